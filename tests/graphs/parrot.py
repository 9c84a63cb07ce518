"""A stand-in parser and its posts, for the tests of collections and for the processes that these start."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from graphs.amr.penman_text import atom
from graphs.corpus.post import Post
from graphs.errors import AMRError, Failure
from graphs.stores import collection


class Parrot:
    """A parser for tests: says each sentence, and does what the sentences tell it to.

    It takes ``delay`` seconds a chunk. After the first batch it waits for the file ``gate``, at most a minute.
    """

    name, version, model = "parrot", "1", "none"

    def __init__(self, delay: float = 0.0, gate: str = "") -> None:
        self.delay, self.gate, self.batches = delay, gate, 0

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        time.sleep(self.delay * len(chunks))
        for _ in range(3_000 if self.gate and self.batches == 1 else 0):
            if Path(self.gate).exists():
                break
            time.sleep(0.02)
        self.batches += 1
        if any("die" in sentence for chunk in chunks for sentence in chunk):
            os._exit(3)
        if any("crash" in sentence for chunk in chunks for sentence in chunk):
            raise AMRError("crashed", kind="crash")
        return [self._say(chunk) for chunk in chunks]

    def _say(self, chunk: Sequence[str]) -> str:
        if any("apart" in sentence for sentence in chunk):
            return "(s / say-01) (p / part)"
        words = [word.strip(".,") for word in " ".join(chunk).split()]
        said = " ".join(f":op{i} (w{i} / {atom(word or 'x')})" for i, word in enumerate(words, 1))
        return f"(s / say-01 {said})"


def posts(count: int, **special: str) -> list[Post | Failure]:
    """Posts 0, 1, 2 ...; ``special`` replaces the body of ``p3`` etc."""
    bodies = {i: f"Solve $x^{i}$ for $y$." for i in range(count)}
    bodies.update({int(key[1:]): body for key, body in special.items()})
    return [Post(str(i), "answer", body=body, markup="text") for i, body in bodies.items()]


def build(
    path: Path, source_posts: Iterable[Post | Failure], workers: int = 1, source: str = "test", **more: Any
) -> collection.BuildSummary:
    return collection.build(path, source_posts, Parrot, source=source, workers=workers, **more)


def content(path: Path) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        graphs = connection.execute("SELECT * FROM graph ORDER BY post_id").fetchall()
        return graphs, connection.execute("SELECT * FROM failure ORDER BY post_id").fetchall()
