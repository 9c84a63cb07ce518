"""Approximate and exact MaxSim over as many posts as ARQMath has: time, recall, nDCG', memory, updates.

    python scripts/bench.py approximate_search --index index                    # some ten minutes, 3 GB of disk
    python scripts/bench.py approximate_search --index index --posts 100000     # a trial of a minute

``--index`` is a folder of mathamr index, whose vectors are the originals, or a random part of them with
``--vectors-a-post`` on average, so that the defaults are the size of ARQMath. **like**: generated posts with the
originals' mean, covariances between posts and within a post, and numbers of vectors; a query is a post with noise.
**repeated**: the originals repeated with more and more noise, with relevant posts as in the benchmark ``search``.
Vectors are kept in half precision. Queries are searched one after the other. **float** is the scan of all vectors in
float32, which exact search uses for small collections. Recall@100 is relative to exact search. Memory is that of a new
process that only opens the index and searches: its own, and with the pages of files that it has read.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mathamr.evaluation.efficiency import Stopwatch, process_memory
from mathamr.maxsim import VectorSets
from mathamr.retrieval.approximate import ApproximateIndex
from mathamr.retrieval.exact import scan
from mathamr.retrieval.index import Index, Ranking, Strategy
from mathamr.retrieval.strategies import search
from mathamr.stages.console import Console
from scripts.benchmarks.search import NOISE, Bench, K, Result, ndcg, timed, vectors_of, with_noise

POSTS_AT_A_TIME = 1 << 16
EXACT, APPROXIMATE = Strategy("maxsim"), Strategy("maxsim", exact=False)


def like(originals: VectorSets, posts: int, file: Path, generator: torch.Generator) -> VectorSets:
    """Return generated sets with the statistics of ``originals``; half precision, memory-mapped.

    A set has a normally distributed centre and normal deviations from it, with the covariances of the originals; its
    vectors are then scaled to unit length.
    """
    sizes = originals.sizes
    owner = torch.arange(len(originals)).repeat_interleave(sizes)
    means = torch.zeros(len(originals), originals.vectors.shape[1]).index_add_(0, owner, originals.vectors)
    means /= sizes.unsqueeze(1)
    deviations = originals.vectors - means[owner]
    between, within = _root(torch.cov(means.T)), _root(deviations.T @ deviations / len(deviations))
    drawn_sizes = sizes[torch.randint(len(sizes), (posts,), generator=generator)]
    shape = (int(drawn_sizes.sum()), originals.vectors.shape[1])
    packed = np.lib.format.open_memmap(file, mode="w+", dtype=np.dtype("float16"), shape=shape)
    row = 0
    for part in drawn_sizes.split(POSTS_AT_A_TIME):
        centres = means.mean(0) + torch.randn(len(part), shape[1], generator=generator) @ between
        vectors = centres.repeat_interleave(part, 0)
        vectors += torch.randn(vectors.shape, generator=generator) @ within
        packed[row : row + len(vectors)] = functional.normalize(vectors, dim=1).half().numpy()
        row += len(vectors)
    return VectorSets.of_sizes(torch.from_numpy(packed), drawn_sizes)


def _root(covariance: Tensor) -> Tensor:
    """Square root of a covariance matrix."""
    values, axes = torch.linalg.eigh(covariance)
    return (axes * values.clamp(min=0).sqrt()) @ axes.T


def thinned(sets: VectorSets, mean: float, generator: torch.Generator) -> VectorSets:
    """Return the sets with a random part of their vectors, ``mean`` on average, and with the last of each."""
    share = (mean - 1) / max(float(sets.sizes.float().mean()) - 1, 1e-9)
    kept = torch.rand(len(sets.vectors), generator=generator) < share
    kept[sets.ptr[1:] - 1] = True
    owner = torch.arange(len(sets)).repeat_interleave(sets.sizes)
    return VectorSets.of_sizes(sets.vectors[kept], torch.bincount(owner[kept], minlength=len(sets)))


def memory(path: Path, queries: VectorSets, strategy: Strategy) -> tuple[float, float]:
    """Return the memory of this process after a search, in GiB: its own, and the peak with pages of files."""
    index = ApproximateIndex.open(path)
    for query in queries:
        search(index, VectorSets.of([query]), strategy, K)
    return process_memory("RssAnon") / 2**30, process_memory("VmHWM") / 2**30


def in_float(index: ApproximateIndex, query: VectorSets) -> None:
    """Scan the vectors of all documents in float32, without codes; results are not sorted."""
    for segment in index._segments:
        scores = scan.scores(query, segment.exact._vectors, segment.exact._blocks)
        torch.topk(scores, K)


def recall(found: Sequence[Ranking], right: Sequence[Ranking]) -> float:
    """Return the share of the right documents that were found, the mean over queries."""
    shares = [
        len({name for name, _ in a} & {name for name, _ in b}) / len(b) for a, b in zip(found, right, strict=True)
    ]
    return sum(shares) / len(shares)


def measured(name: str, path: Path, queries: VectorSets, qrels: object, rounds: int) -> Result:
    """Search the index in ``path`` and print times, recall and memory."""
    result: Result = {}
    for label, strategy in (("approximate", APPROXIMATE), ("exact", EXACT)):
        with get_context("spawn").Pool(1) as pool:
            private, most = pool.apply(memory, (path, queries, strategy))
        print(f"{name:9} {label:12} memory {private:.2f} GiB, {most:.2f} GiB with pages of files", flush=True)
        result |= {f"{name}_{label}_private_gib": private, f"{name}_{label}_memory_gib": most}
    index = ApproximateIndex.open(path)
    each = [queries.select(torch.tensor([number])) for number in range(len(queries))]
    for strategy in (APPROXIMATE, EXACT):
        search(index, each[0], strategy, K)  # reads files
    found = search(index, queries, APPROXIMATE, K)
    right = search(index, queries, EXACT, K)
    runs: dict[str, Callable[[VectorSets], object]] = {
        "approximate": lambda one: search(index, one, APPROXIMATE, K),
        "exact": lambda one: search(index, one, EXACT, K),
        "float": lambda one: in_float(index, one),
    }
    clock: dict[str, list[float]] = {run: [] for run in runs}
    cpu: dict[str, list[float]] = {run: [] for run in runs}
    for _ in range(rounds):
        for run, function in runs.items():
            for one in each:
                milliseconds, of_cpu = timed(partial(function, one))
                clock[run].append(milliseconds)
                cpu[run].append(of_cpu)
    with Stopwatch() as together:
        search(index, queries, EXACT, K)
    result |= {f"{name}_recall_100": recall(found, right)}
    for run in runs:
        median, p95 = np.quantile(clock[run], [0.5, 0.95]).tolist()
        of_cpu, fastest = float(np.median(cpu[run])), min(clock[run])
        rate = 1000 / float(np.mean(clock[run]))
        print(
            f"{name:9} {run:12} {median:8.1f} ms {p95:8.1f} p95 {fastest:8.1f} fastest {of_cpu:8.1f} ms of CPU, "
            f"{rate:.2f} queries/s, {float(np.median(cpu['float'])) / of_cpu:5.2f} times float by CPU time",
            flush=True,
        )
        result |= {f"{name}_{run}_ms": median, f"{name}_{run}_p95_ms": p95, f"{name}_{run}_cpu_ms": of_cpu}
        result |= {f"{name}_{run}_queries_per_second": rate}
    rate = len(queries) / together.seconds
    print(f"{name:9} exact, {len(queries)} queries together: {rate:.2f} queries/s")
    print(f"{name:9} recall@{K} {recall(found, right):.4f}")
    if qrels is not None:
        ours, best = ndcg(found, qrels), ndcg(right, qrels)  # type: ignore[arg-type]
        print(f"{name:9} nDCG' {ours:.4f}, of exact search {best:.4f}")
        result |= {f"{name}_ndcg_prime": ours, f"{name}_exact_ndcg_prime": best}
    index.close()
    return result | {f"{name}_exact_together_queries_per_second": rate}


def updated(name: str, path: Path, new: VectorSets) -> Result:
    """Add posts to the index in ``path``, remove as many, and print the seconds."""
    ids = [f"new-{number}" for number in range(len(new))]
    with Stopwatch() as adding:
        ApproximateIndex.update(path, add=(ids, new)).close()
    with Stopwatch() as removing:
        index: Index = ApproximateIndex.update(path, remove=[str(number) for number in range(len(new))])
    (ranking,) = search(index, VectorSets.of([new[0]]), APPROXIMATE, 1)
    right = ranking[0][0] == ids[0]
    print(f"{name:9} {len(new)} posts added in {adding.seconds:.1f} s, removed in {removing.seconds:.1f} s: {right}")
    index.close()
    return {f"{name}_add_seconds": adding.seconds, f"{name}_remove_seconds": removing.seconds}


def main() -> Result:
    """Measure both kinds of vectors; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True, help="folder of mathamr index, to take vectors from")
    parser.add_argument("--vectors", nargs="+", default=["like", "repeated"], choices=["like", "repeated"])
    parser.add_argument("--posts", type=int, default=1_365_254, help="posts to search")
    parser.add_argument("--vectors-a-post", type=float, default=16, help="vectors a post, the mean; 0: as in the index")
    parser.add_argument("--queries", type=int, default=40, help="queries")
    parser.add_argument("--rounds", type=int, default=1, help="searches of each query, in turns")
    parser.add_argument("--folder", type=Path, help="folder of the index during the search; default: a temporary one")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch and of the search")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(f"{torch.get_num_threads()} threads, load {Path('/proc/loadavg').read_text().split()[0]}")
    originals = vectors_of(given.index)
    generator = torch.Generator().manual_seed(0)
    if given.vectors_a_post:
        originals = thinned(originals, given.vectors_a_post, generator)
    result: Result = {"threads": float(torch.get_num_threads())}
    for name in given.vectors:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            source, path, qrels = Path(folder) / "vectors.npy", Path(folder) / "index", None
            if name == "like":
                documents = like(originals, given.posts, source, generator)
                sampled = torch.randint(given.posts, (given.queries,), generator=generator)
                few = documents.select(sampled)
                queries = with_noise(VectorSets(few.vectors.float(), few.ptr), NOISE[0], generator)
            else:
                bench = Bench(originals, given.posts, given.queries, source, generator, Console())
                documents, queries, qrels = bench.documents, bench.queries, bench.qrels
            with Stopwatch() as watch:
                ids = [str(number) for number in range(len(documents))]
                index = ApproximateIndex.build(ids, documents, path=path, dtype="float16")
            size, vectors = index.nbytes / len(index), index.num_vectors
            print(f"{name:9} {vectors:,} vectors, queries of {float(queries.sizes.float().mean()):.1f}, built in "
                  f"{watch.seconds:.1f} s, {size:,.0f} bytes a post", flush=True)  # fmt: skip
            index.close()
            new = with_noise(queries, NOISE[1], generator)
            del documents, ids
            source.unlink()
            result |= {f"{name}_vectors": float(vectors), f"{name}_build_seconds": watch.seconds}
            result |= measured(name, path, queries, qrels, given.rounds)
            result |= updated(name, path, new)
    print(f"load {Path('/proc/loadavg').read_text().split()[0]} at the end")
    return result
