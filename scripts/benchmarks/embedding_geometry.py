"""Cost of measuring a space of 100,000 x 768 embeddings: seconds and memory of each instrument of mathamr/analysis.

    OMP_NUM_THREADS=2 python scripts/bench.py embedding_geometry
    python scripts/bench.py embedding_geometry --documents 10000 --queries 200       # a short trial

Embeddings are random, around 500 centres and away from the origin, like those of language models. The goal for all
instruments together is five minutes and 4 GB on two cores. Each uses all documents, except the nearest distances: these
are computed from ``--domain`` documents, drawn at random, to all others, since all pairs would take 15 TFLOP. `memory`
is the peak of the process so far, including the embeddings (0.3 GB) and libraries. `bootstrap` draws ``--samples``
samples of 5,000 values. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from mathamr.analysis.bootstrap import accuracy
from mathamr.analysis.collapse import collapse
from mathamr.analysis.components import plane
from mathamr.analysis.isotropy import isoscore, partition_isotropy, standardizing, top_removal, whitening
from mathamr.analysis.overlap import density, overlap
from mathamr.analysis.shift import mean_discrepancy, nearest_distances
from mathamr.analysis.similarities import Floats, cosine, survey
from mathamr.analysis.thresholds import threshold_curve
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.resampling import bootstrap

PER_POST = 16  # vectors of a post, for the collapse
MOST_TESTED = 2_000  # vectors of each side in the test of mean discrepancy, whose memory is quadratic


class Table:
    """Times of the parts, one after the other."""

    def __init__(self) -> None:
        self.result: dict[str, float] = {}

    def __call__(self, name: str, part: Callable[[], Any]) -> Any:
        before = time.process_time()
        with Stopwatch() as watch:
            result = part()
        cpu, memory = time.process_time() - before, peak_memory() / 1e9
        self.result |= {f"{name}_seconds": watch.seconds, f"{name}_cpu_seconds": cpu, f"{name}_memory_gb": memory}
        print(f"{name:24} {watch.seconds:8.2f} s {cpu:8.2f} s of CPU   memory {memory:5.2f} GB", flush=True)
        return result


def embeddings(count: int, dimension: int) -> Floats:
    """Return embeddings (count, dimension) float32, made in parts."""
    generator = np.random.default_rng(1)
    centres = np.random.default_rng(0).normal(size=(500, dimension)).astype(np.float32) + 0.5
    vectors = np.empty((count, dimension), np.float32)
    for start in range(0, count, 10_000):
        some = vectors[start : start + 10_000]
        some[:] = generator.standard_normal(some.shape, dtype=np.float32)
        some += centres[np.arange(start, start + len(some)) % 500]
    return vectors


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Read the sizes, run and print all instruments on one space; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--domain", type=int, default=10_000, help="number of documents to find nearest neighbours of")
    parser.add_argument("--samples", type=int, default=10_000, help="number of bootstrap samples")
    given = parser.parse_args(arguments)
    documents, queries, dimension, domain = given.documents, given.queries, given.dimension, given.domain
    if domain >= documents or queries > documents:
        parser.error("--domain must be less than --documents, and --queries not more")
    vectors = embeddings(documents, dimension)
    generator = np.random.default_rng(2)
    right = generator.choice(documents, queries, replace=False)
    query_vectors = vectors[right] + generator.standard_normal((queries, dimension), dtype=np.float32)
    correct = [[int(number)] for number in right]
    reset_peak_memory()
    table = Table()
    begin = time.perf_counter()
    found = table("survey", lambda: survey(cosine(query_vectors, vectors), correct, 10))
    table("thresholds", lambda: threshold_curve(found, 10))
    table("overlap", lambda: overlap(found, psi=25))
    table("density", lambda: density(found.top, np.linspace(-1, 1, 201)))
    table("partition_isotropy", lambda: partition_isotropy(vectors))
    table("isoscore", lambda: isoscore(vectors))
    for fit in (standardizing, whitening, top_removal):
        name = fit.__name__
        move = table(f"{name}_fit", partial(fit, vectors))
        moved = table(f"{name}_apply", partial(move, vectors))
        table(f"{name}_i_a", partial(partition_isotropy, moved))
        table(f"{name}_isoscore", partial(isoscore, moved))
        again = survey(cosine(move(query_vectors), moved), correct, 10)
        print(f"    accuracy@10 {accuracy(found, 10).mean():.3f}, {name} {accuracy(again, 10).mean():.3f}")
        del moved
    posts = documents // PER_POST
    kinds = np.tile([0] * 8 + [1] * 7 + [2], posts)
    ptr = np.arange(posts + 1) * PER_POST
    table("collapse", lambda: collapse(vectors[: posts * PER_POST], ptr, kinds))
    table("plane", lambda: plane(vectors))
    print(f"    nearest distances of {domain:,} documents, drawn at random, to the other {documents - domain:,}")
    drawn = np.zeros(documents, bool)
    drawn[generator.choice(documents, domain, replace=False)] = True
    table("nearest_distances", lambda: nearest_distances(vectors[drawn], vectors[~drawn]))
    halves = np.array_split(vectors[: 2 * MOST_TESTED], 2)
    table("mean_discrepancy", lambda: mean_discrepancy(*halves))
    values = generator.random(5_000)
    table("bootstrap", lambda: bootstrap(values, samples=given.samples))
    total = {"seconds": time.perf_counter() - begin, "memory_gb": peak_memory() / 1e9}
    print(f"total {total['seconds']:.1f} s, {total['memory_gb']:.2f} GB")
    return {**table.result, **total}
