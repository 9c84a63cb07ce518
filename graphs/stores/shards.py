"""A collection in parts: each post belongs to one of N shards, by its id; the shards are built apart and merged.

>>> shard = Shard.parse("3/16")
>>> shard.holds("255"), sum(Shard(k, 16).holds("255") for k in range(1, 17))
(False, 1)
>>> Shard.parse("0/16")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: shard '0/16': shards are numbered from 1, as in 1/16, 2/16 ... 16/16

Which shard a post belongs to depends on its id and N alone: not on the order of the posts, nor on the machine.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from graphs import database
from graphs.corpus.post import Post
from graphs.errors import ConfigError, Failure, StoreError
from graphs.stores.collection import (
    SELECTION,
    BuildSummary,
    Collection,
    insert_failures,
    insert_graphs,
    summarize,
    writer,
)
from graphs.stores.origin import TOPICS

_COMMIT_EVERY = 1000  # graphs
_BY_ID = attrgetter("post_id")
_COMMON = ("source", "parser", "trees", SELECTION, TOPICS)  # of the meta table: the same in all shards
_WAYS_OUT = {
    SELECTION: "; build this shard again with the missing --kinds, --tasks or --years",
    TOPICS: "; build the shards of the earlier topics again, into other files",
}


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` (from 1) of ``count``."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``3/16``; raise :class:`ConfigError` for anything else."""
        number, _, count = text.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            raise ConfigError(f"shard {text!r}: shards are numbered from 1, as in 1/16, 2/16 ... 16/16")
        return cls(int(number), int(count))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def holds(self, post_id: str) -> bool:
        """Return whether the post belongs to this shard."""
        digest = hashlib.blake2b(post_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1

    def of(self, posts: Iterable[Post | Failure]) -> Iterator[Post | Failure]:
        """Stream the posts of this shard. An unreadable record without an id is assigned by its message."""
        return (p for p in posts if self.holds(p.post_id or (p.message if isinstance(p, Failure) else "")))


def merge(
    path: str | os.PathLike[str],
    shards: Sequence[str | os.PathLike[str]],
    *,
    progress: Callable[[int], None] | None = None,
) -> BuildSummary:
    """Make the collection ``path`` of all its shards; it appears when it is complete.

    Raises:
        StoreError: when ``path`` exists, the shards are of different sources, parsers or kinds of posts, one is
            unfinished, missing or given twice, or a post is in two of them.
    """
    path = Path(path)
    if path.exists():
        raise StoreError("this file exists; merge into another one", path=path)
    with ExitStack() as stack:
        parts = [stack.enter_context(Collection(shard)) for shard in shards]
        meta = _common_meta(parts)
        partial = path.with_name(f"{path.name}.part")
        with writer(partial) as connection:
            connection.execute("DELETE FROM graph")  # of a merge that was killed
            connection.execute("DELETE FROM failure")
            before = ""
            for count, graph in enumerate(heapq.merge(*parts, key=_BY_ID), 1):
                if graph.post_id == before:
                    raise StoreError(f"post {before} is in two of the shards; build one of them anew", path=path)
                before = graph.post_id
                insert_graphs(connection, [graph])
                if progress is not None:
                    progress(1)
                if count % _COMMIT_EVERY == 0:
                    connection.commit()
            insert_failures(connection, heapq.merge(*(part.failures() for part in parts), key=_BY_ID))
            database.write_meta(connection, **meta)
            connection.commit()
    partial.replace(path)
    partial.with_name(f"{partial.name}.lock").unlink(missing_ok=True)
    return summarize(path)


def _common_meta(parts: Sequence[Collection]) -> dict[str, object]:
    """Return the description of the merged collection."""
    if not parts:
        raise StoreError("no shard is given; a merge needs all of them")
    meta = [part.meta for part in parts]
    for key in _COMMON:
        # A shard whose posts all failed before a parser saw them knows no parser, one of an older version no selection.
        values = {str(known[key]): part.path for known, part in zip(meta, parts, strict=True) if key in known}
        if len(values) > 1:
            (one, first), (other, second), *_ = values.items()
            message = f"its {key} is {other!r}, that of {first} is {one!r}; only shards of one build can be merged"
            raise StoreError(message + _WAYS_OUT.get(key, ""), path=second)
    shards: dict[Shard, Path] = {}
    for known, part in zip(meta, parts, strict=True):
        if not known.get("finished"):
            raise StoreError("this shard is not finished; build it again; it resumes where it stopped", path=part.path)
        shard = Shard.parse(str(known.get("shard", "1/1")))
        if shard in shards:
            raise StoreError(f"this is shard {shard}, and so is {shards[shard]}; give each once", path=part.path)
        shards[shard] = part.path
    counts = sorted({shard.count for shard in shards})
    if len(counts) > 1:
        raise StoreError(f"the shards are of {counts[0]} and of {counts[1]}; all must be of one number")
    missing = [str(shard) for number in range(1, counts[0] + 1) if (shard := Shard(number, counts[0])) not in shards]
    if missing:
        raise StoreError(f"{len(missing)} of {counts[0]} shards are missing: {', '.join(missing[:8])}")
    common = {key: known[key] for known in meta for key in _COMMON if key in known}
    if not all(TOPICS in known for known in meta):
        common.pop(TOPICS, None)  # the topics of an older version's shard are unknown
    return {**common, "shard": "1/1", "finished": True}
