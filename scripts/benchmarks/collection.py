"""Speed of building a collection, and the memory of all its processes.

    python scripts/bench.py collection --corpus jsonl --root ../shared/data/mse-questions --out mse.db --workers 2

The collection is built as by scripts/build_collection.py (the same database, resumed if it exists), and then counted. A
line is printed for each tenth of the posts: posts done, and in that tenth posts per second of wall time, milliseconds
of CPU time for each post, and the peak resident memory of this process and its workers together, sampled every
``--every`` seconds. Pages that processes share count for each. ``--samples FILE`` keeps every sample as ``seconds,
posts, processes, MiB``. The last line is one JSON object; ``flat`` is the peak of the last tenth divided by that of
the second, in which all workers are running.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from experiments.configuration.composition import graph_config, parser_options
from experiments.options import add_corpus, corpus_of
from graphs.amr import parsers
from graphs.stores import collection
from mathamr.stages.console import Console
from mathamr.stages.data.graphs import count
from mathamr.stages.parsers import factory

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of a process and its descendants: ``memory`` in bytes, ``cpu`` in seconds since each started."""

    processes: int
    memory: int
    cpu: float


def usage(root: int) -> Usage:
    """Measure process ``root`` and all below it, from /proc; ended processes count in the CPU time of their parent."""
    processes = memory = ticks = 0
    for pid in family(root):
        with suppress(OSError):  # it has ended since
            values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            processes += 1
            memory += int(values[21]) * os.sysconf("SC_PAGESIZE")
            ticks += sum(int(value) for value in values[11:15])
    return Usage(processes, memory, ticks / os.sysconf("SC_CLK_TCK"))


def family(root: int) -> list[int]:
    """Return process ``root`` and all below it."""
    found = [root]
    for children in Path(f"/proc/{root}/task").glob("*/children"):
        with suppress(OSError):
            found += [pid for child in children.read_text().split() for pid in family(int(child))]
    return found


@dataclass(slots=True)
class Watch:
    """Sampler of the memory of this process and its workers; ``peaks`` by tenth of the posts."""

    total: int
    samples: IO[str] | None
    done: int = 0
    begin: float = field(default_factory=time.monotonic)
    peaks: Counter[int] = field(default_factory=Counter)

    def sample(self) -> Usage:
        now = usage(os.getpid())
        tenth = min(self.done * 10 // max(self.total, 1), 9)
        self.peaks[tenth] = max(self.peaks[tenth], now.memory)
        if self.samples is not None:
            seconds = time.monotonic() - self.begin
            print(
                f"{seconds:.3f}\t{self.done}\t{now.processes}\t{now.memory / _MIB:.1f}", file=self.samples, flush=True
            )
        return now

    @contextmanager
    def every(self, seconds: float) -> Iterator[None]:
        """Sample in a thread during the block."""
        end = threading.Event()

        def run() -> None:
            while not end.wait(seconds):
                self.sample()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


def main() -> dict[str, Any]:
    """Build a collection, print a line for each tenth of it; return the result."""
    parser = argparse.ArgumentParser(description="posts a second and memory of a build of a collection")
    add_corpus(parser)
    parser.add_argument("--out", type=Path, required=True, help="output database (resumed if it exists)")
    parser.add_argument("--parser", default="embedded", help=f"one of {', '.join(parsers.PARSERS)}")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="parser option; repeatable")
    parser.add_argument("--workers", type=int, default=2, help="processes that parse")
    parser.add_argument("--limit", type=int, help="the first posts only")
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="SECONDS", help="time between samples (default 10)"
    )
    parser.add_argument("--samples", type=Path, metavar="TSV", help="keep every sample in this file")
    given = parser.parse_args()
    options = parser_options(given.parser, given.option)
    corpus = corpus_of(given)
    total = sum(1 for _ in islice(corpus.posts(), given.limit))
    with given.samples.open("a", encoding="utf-8") if given.samples else nullcontext() as samples:
        watch = Watch(total, samples)
        print(f"{total:,} posts\n{'posts':>10} {'posts/s':>10} {'CPU ms a post':>14} {'peak MiB':>10}", flush=True)
        last = (0, time.monotonic(), usage(os.getpid()).cpu)

        def advance(count: int) -> None:
            nonlocal last
            before = watch.done * 10 // max(total, 1)
            watch.done += count
            if watch.done * 10 // max(total, 1) > before:
                now = (watch.done, time.monotonic(), watch.sample().cpu)
                posts, seconds, cpu = (new - old for new, old in zip(now, last, strict=True))
                last = now
                peak = watch.peaks[min(before, 9)] / _MIB
                print(
                    f"{watch.done:>10,} {posts / seconds:>10.1f} {cpu * 1000 / posts:>14.1f} {peak:>10,.0f}", flush=True
                )

        begin, cpu = time.monotonic(), usage(os.getpid()).cpu
        with watch.every(given.every):
            collection.build(
                given.out,
                islice(corpus.posts(), given.limit),
                factory(given.parser, options),
                source=corpus.fingerprints().graphs,
                workers=given.workers,
                progress=advance,
            )
            seconds, cpu = time.monotonic() - begin, usage(os.getpid()).cpu - cpu
            building = dict(watch.peaks)
            watch.peaks.clear()
            counted = count(given.out, graph_config(), Console(), workers=given.workers)
            watch.sample()
    peaks = [round(building.get(tenth, 0) / _MIB, 1) for tenth in range(10)]
    result = {
        "posts": counted.posts,
        "graphs": counted.graphs,
        "posts_without_graph": counted.posts_without_graph,
        "nodes_mean": round(counted.nodes.mean, 1),
        "workers": given.workers,
        "posts_per_second": round(total / seconds, 1),
        "cpu_ms_per_post": round(cpu * 1000 / max(total, 1), 1),
        "peak_mib": max(peaks),
        "peak_mib_by_tenth": peaks,
        "flat": round(peaks[9] / peaks[1], 3) if peaks[1] else None,
        "counting_peak_mib": round(max(watch.peaks.values()) / _MIB, 1),
    }
    print(f"{result['posts_per_second']} posts/s, at most {result['peak_mib']:,} MiB in all processes")
    return result
