"""Validity and speed of the embedded AMR parser on every sentence of a collection.

    python scripts/bench.py embedded_parser --corpus arqmath --root ../shared/data/arqmath-mini --workers 2

Each sentence of each post (its title included, with ``FORMULA_i`` for its formulas) is parsed as a separate chunk. A
graph is invalid if the package ``penman`` cannot read it, or reads triples different from this project's. ``lost``
counts the placeholders of sentences whose graphs have no concept with that name. The time is spent in the parser alone:
``sentences_per_second`` of wall time, summed over the processes, and ``sentences_per_cpu_second`` of one of them, which
is the fairer number if processes wait for a core. Exit code 1: an invalid graph or a lost placeholder.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from itertools import islice
from typing import Any

import penman
from penman.exceptions import PenmanError

from experiments.options import add_corpus, corpus_of
from graphs.amr.embedded import EmbeddedParser
from graphs.amr.penman_text import decode
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import AMRError, Failure
from graphs.processes import batched, ordered_map
from mathamr.stages.console import Console

_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_POSTS_AT_ONCE = 64


class Check:
    """Checker in a worker process: parses the sentences of posts, checks their graphs, and returns counts."""

    def __init__(self) -> None:
        self._parser = EmbeddedParser()
        self._parser.parse([["What is loaded late is loaded now."]])

    def __call__(self, posts: list[Post]) -> tuple[Counter[str], float, float]:
        sentences = [sentence for post in posts for sentence in extract(post).sentences]
        begin, cpu = time.perf_counter(), time.process_time()
        graphs = self._parser.parse([[sentence] for sentence in sentences])
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        counts = Counter(posts=len(posts), sentences=len(sentences))
        for sentence, text in zip(sentences, graphs, strict=True):
            wanted = set(_PLACEHOLDER.findall(sentence))
            counts["placeholders"] += len(wanted)
            concepts = _concepts(text)
            counts["invalid"] += concepts is None
            counts["lost"] += len(wanted - (concepts or set()))
        return counts, seconds, cpu


def _concepts(text: str | Failure) -> set[str] | None:
    """Return the concepts of a graph; None for an invalid one."""
    if isinstance(text, Failure):
        return None
    try:
        theirs, ours = penman.decode(text), decode(text)
    except (PenmanError, AMRError):
        return None
    if set(theirs.triples) != set(ours.triples):
        return None
    return {str(instance.target) for instance in theirs.instances()}


def main() -> tuple[dict[str, Any], int]:
    """Parse every sentence; return the counts, and the exit code."""
    parser = argparse.ArgumentParser(description="validity and speed of the embedded AMR parser, sentence by sentence")
    add_corpus(parser)
    parser.add_argument("--limit", type=int, help="the first posts only")
    parser.add_argument("--workers", type=int, default=1, help="processes that parse")
    given = parser.parse_args()
    total = Counter(dict.fromkeys(("posts", "sentences", "invalid", "placeholders", "lost"), 0))
    seconds = cpu = 0.0
    with Console().stage("parsing", unit="posts") as advance:
        posts = (post for post in corpus_of(given).posts() if isinstance(post, Post))
        batches = batched(islice(posts, given.limit), _POSTS_AT_ONCE)
        for counts, more, more_cpu in ordered_map(Check, (), batches, workers=given.workers):
            total.update(counts)
            seconds, cpu = seconds + more, cpu + more_cpu
            advance(counts["posts"])
    result = {
        **total,
        "workers": given.workers,
        "sentences_per_second": round(total["sentences"] * given.workers / max(seconds, 1e-9), 1),
        "sentences_per_cpu_second": round(total["sentences"] / max(cpu, 1e-9), 1),
    }
    print(f"{total['sentences']:,} sentences: {total['invalid']} invalid graphs, {total['lost']} placeholders lost")
    return result, int(total["invalid"] > 0 or total["lost"] > 0)
