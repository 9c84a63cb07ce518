"""Search: queries per second, latency, recall and nDCG' of every strategy and backend, beside brute force.

    python scripts/bench.py search --index index                # all parts: some ten minutes, 3 GB of disk
    python scripts/bench.py search --posts 3000 --full-posts 30000 --queries 10     # a trial of a minute

The benchmark has three parts; a size of 0 leaves a part out. **Race**: the exact index, numpy and the package
maxsim-cpu (`pip install maxsim-cpu`; left out if missing) take turns to find the best 100 of 30,000 documents of 16
vectors of 32 numbers, for one query of 16 vectors. **Strategies**: all strategies search a collection of the size of
the thesis's experiments. **Full scale**: exact search of 21.9 million vectors, the size of ARQMath, in half precision
from disk.

A collection consists of original documents, from an index or generated, and of copies of each with more and more noise.
A query is an original with other noise. The copies of its original are its relevant posts, with grades 3, 2 and 1 by
their noise; ten times as many other posts are judged 0. Recall@100 is relative to exact search by the same strategy.
`ms` is the median and `p95` the 95th percentile of the times of single queries; `queries/s` is the rate for all queries
in one batch. Compare only numbers of one run, and set the same number of threads for all: `OMP_NUM_THREADS=2`.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Qrels, Run
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.index import Index, Strategy
from mathamr.retrieval.strategies import compare, search
from mathamr.search.catalog import Catalog
from mathamr.stages.console import Console
from scripts.benchmarks.peers import peer

DIM = 32  # thesis Table 4.5
MEAN_VECTORS = 16  # of a post; 21.9 million by 1,365,254 posts
ORIGINALS = 2863  # as many as arqmath-mini has answers
NOISE = (0.5, 3.0)  # length of the noise that is added to unit vectors, of the first copy and of the last
K = 100

Result = dict[str, float | None]


def vectors_of(index: Path) -> VectorSets:
    """Return the vectors of all posts of an index."""
    with closing(Catalog.open(index)) as catalog:
        return catalog.vectors.vectors_of(sorted(catalog.vectors.post_ids()))


def generated(count: int, generator: torch.Generator) -> VectorSets:
    """Return sets of unit vectors, 3 to some 60 each; those of one set have a common direction."""
    sizes = 3 + torch.poisson(torch.full((count,), 1.0) * (MEAN_VECTORS - 3), generator=generator).long()
    centres = torch.randn(count, DIM, generator=generator).repeat_interleave(sizes, 0)
    vectors = centres + torch.randn(len(centres), DIM, generator=generator)
    return VectorSets.of_sizes(functional.normalize(vectors, dim=1), sizes)


def with_noise(sets: VectorSets, length: float, generator: torch.Generator) -> VectorSets:
    """Return the sets with a random vector of this expected length added to each vector, of unit length again."""
    noise = torch.randn(sets.vectors.shape, generator=generator) * (length / sets.vectors.shape[1] ** 0.5)
    return VectorSets(functional.normalize(sets.vectors + noise, dim=1), sets.ptr)


def repeated(
    originals: VectorSets, posts: int, file: Path, generator: torch.Generator, progress: Callable[[int], None]
) -> VectorSets:
    """Return ``posts`` sets: the originals repeated with increasing noise; half precision, memory-mapped."""
    copies = -(-posts // len(originals))
    each = torch.full((copies,), len(originals))
    each[-1] = posts - len(originals) * (copies - 1)
    sizes = torch.cat([originals.sizes[:count] for count in each.tolist()])
    shape = (int(sizes.sum()), originals.vectors.shape[1])
    packed = np.lib.format.open_memmap(file, mode="w+", dtype=np.dtype("float16"), shape=shape)
    row = 0
    lengths = np.linspace(*NOISE, copies).tolist()
    for length, count in zip(lengths, each.tolist(), strict=True):
        noisy = with_noise(originals, length, generator).vectors[: int(originals.ptr[count])]
        packed[row : row + len(noisy)] = noisy.half().numpy()
        row += len(noisy)
        progress(count)
    return VectorSets.of_sizes(torch.from_numpy(packed), sizes)


def judgments(sampled: Sequence[int], originals: int, posts: int, generator: torch.Generator) -> Qrels:
    """Return judgments of queries from originals ``sampled[i]``: copies graded 3, 2, 1 by their noise, others 0."""
    qrels: Qrels = {}
    for number, original in enumerate(sampled):
        copies = range(original, posts, originals)
        others = torch.randint(posts, (10 * len(copies),), generator=generator).tolist()
        grades = {str(post): 0 for post in others}
        grades |= {str(post): 3 - 3 * place // len(copies) for place, post in enumerate(copies)}
        qrels[f"T.{number}"] = grades
    return qrels


def ndcg(rankings: Sequence[Sequence[tuple[str, float]]], qrels: Qrels) -> float:
    """Return nDCG' of the rankings of topics T.0, T.1, ..."""
    run = Run.from_results("bench", {f"T.{number}": list(ranking) for number, ranking in enumerate(rankings)})
    return evaluate(run, qrels).aggregate["ndcg_prime"]


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of a call, by the clock and of CPU time of all threads."""
    begin = time.process_time()
    with Stopwatch() as watch:
        run()
    return 1000 * watch.seconds, 1000 * (time.process_time() - begin)


def race(documents: int, repeats: int, device: str, generator: torch.Generator) -> Result:
    """Return milliseconds of a query of 16 vectors over ``documents`` x 16 x 32, the fastest of ``repeats`` in turns.

    Milliseconds of CPU sum all threads, active waiting included, so they compare only with one thread.
    """
    size = 16
    vectors = functional.normalize(torch.randn(documents * size, DIM, generator=generator), dim=1)
    sets = VectorSets(vectors, torch.arange(documents + 1) * size)
    index = ExactIndex.build([str(i) for i in range(documents)], sets, device=device)
    many = functional.normalize(torch.randn(20 * size, DIM, generator=generator), dim=1)
    queries = VectorSets(many, torch.arange(21) * size)
    one = queries.select(torch.tensor([0]))
    matrix, query = vectors.numpy().reshape(documents, size, DIM), one.vectors.numpy()

    def best(scores: np.ndarray) -> np.ndarray:
        places = np.argpartition(-scores, K)[:K]
        return places[np.argsort(-scores[places])]

    runners: dict[str, Callable[[], Any]] = {
        "exact": lambda: index.search(one, Strategy(), K),
        "exact_batch": lambda: index.search(queries, Strategy(), K),
        "numpy": lambda: best((matrix @ query.T).max(1).sum(1)),
    }
    if (other := peer("maxsim_cpu", "maxsim-cpu")) is not None:
        runners["maxsim_cpu"] = lambda: best(other.maxsim_scores(query, matrix))
    right = [int(post_id) for post_id, _ in runners["exact"]()[0]]
    for name, runner in runners.items():
        if not name.startswith("exact") and len(set(right) & set(runner().tolist())) < K - 1:
            raise RuntimeError(f"{name} finds other documents than the exact index")
    fastest, cpu = (dict.fromkeys(runners, math.inf) for _ in range(2))
    for _ in range(repeats):
        for name, runner in runners.items():
            share = len(queries) if name == "exact_batch" else 1
            milliseconds, of_cpu = timed(runner)
            fastest[name] = min(fastest[name], milliseconds / share)
            cpu[name] = min(cpu[name], of_cpu / share)
    result: Result = {f"{name}_ms": value for name, value in fastest.items()}
    result |= {f"{name}_cpu_ms": value for name, value in cpu.items()}
    for name in ("numpy", "maxsim_cpu"):
        result[f"exact_speedup_vs_{name}"] = fastest[name] / fastest["exact"] if name in fastest else None
        result[f"batch_speedup_vs_{name}"] = fastest[name] / fastest["exact_batch"] if name in fastest else None
    for name, value in fastest.items():
        print(
            f"race       {name:12} {value:8.2f} ms a query, {value / fastest['exact']:5.2f} times exact;   "
            f"{cpu[name]:8.2f} ms of CPU, {cpu[name] / cpu['exact']:5.2f} times"
        )
    return result


class Bench:
    """Collection, its queries and their relevant documents; searches indexes of it."""

    def __init__(
        self, originals: VectorSets, posts: int, queries: int, file: Path, generator: torch.Generator, console: Console
    ) -> None:
        with console.stage("making vectors", total=posts, unit="posts") as advance:
            self.documents = repeated(originals, posts, file, generator, advance)
        self.post_ids = [str(i) for i in range(posts)]
        sampled = torch.randperm(min(posts, len(originals)), generator=generator)[:queries]
        self.queries = with_noise(originals.select(sampled), NOISE[0], generator)
        self.qrels = judgments(sampled.tolist(), len(originals), posts, generator)

    def measure(self, index: Index, exact: Index, name: str, strategies: Sequence[Strategy]) -> Result:
        """Print and return the cost and the results of each strategy."""
        result: Result = {}
        for row in compare(index, exact, self.queries, strategies, K):
            search(index, self.queries, row.strategy, K)
            with Stopwatch() as watch:
                rankings = search(index, self.queries, row.strategy, K)
            rate, quality = len(self.queries) / watch.seconds, ndcg(rankings, self.qrels)
            print(
                f"{name:18} {row.strategy!s:26} {1000 * row.seconds:8.1f} ms {1000 * row.p95:8.1f} p95 "
                f"{rate:9,.1f} queries/s   recall@{K} {row.recall:.3f}   nDCG' {quality:.3f}",
                flush=True,
            )
            key = f"{name}_{row.strategy}".replace(" ", "_").replace("-", "_")
            result |= {f"{key}_ms": 1000 * row.seconds, f"{key}_p95_ms": 1000 * row.p95}
            result |= {f"{key}_queries_per_second": rate, f"{key}_recall_100": row.recall, f"{key}_ndcg_prime": quality}
        return result

    def built(self, name: str, make: Callable[[], Index]) -> tuple[Index, Result]:
        """Build an index; return it and its cost."""
        with Stopwatch() as watch:
            index = make()
        print(f"{name:18} built in {watch.seconds:,.1f} s, {index.nbytes / len(index):,.0f} bytes a post", flush=True)
        key = name.replace("-", "_")
        return index, {f"{key}_build_seconds": watch.seconds, f"{key}_bytes": float(index.nbytes)}


def strategies_and_backends(bench: Bench, folder: Path, pool: int, m_all: int, device: str) -> Result:
    """Measure every strategy of every backend over one collection."""
    from mathamr.retrieval.index import Hnsw
    from mathamr.retrieval.qdrant import EmbeddedIndex
    from mathamr.retrieval.qdrant_server import ServerIndex

    exact_ones = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=pool), Strategy("maxsim")]
    result: Result = {}
    reference = ExactIndex.build(bench.post_ids, bench.documents)
    dtypes: tuple[DType, ...] = ("float32", "float16")
    for dtype in dtypes:
        options: dict[str, Any] = {"path": folder / dtype, "dtype": dtype, "device": device}
        index, costs = bench.built(
            f"exact-{dtype}", partial(ExactIndex.build, bench.post_ids, bench.documents, **options)
        )
        result |= costs | bench.measure(index, reference, f"exact-{dtype}", exact_ones)
        index.close()
    hnsw = Hnsw(m_all=m_all)
    places: dict[str, Callable[[], Index]] = {
        "qdrant-embedded": lambda: EmbeddedIndex.build(bench.post_ids, bench.documents, path=folder / "q", hnsw=hnsw)
    }
    url = os.environ.get("QDRANT_URL")
    if url:
        places["qdrant-server"] = lambda: ServerIndex.build(bench.post_ids, bench.documents, location=url, hnsw=hnsw)
    else:
        print("qdrant-server      QDRANT_URL is not set: left out")
    approximate = [Strategy(s.name, exact=False, pool=pool) for s in exact_ones if s.name != "maxsim" or m_all]
    for name, make in places.items():
        index, costs = bench.built(name, make)
        result |= costs | bench.measure(index, reference, name, [*approximate, *exact_ones])
        index.close()
    if not m_all:
        print("                   approximate maxsim needs an HNSW graph of all vectors: --m-all 16 (minutes to build)")
    return result


def full_scale(bench: Bench, folder: Path, pool: int, device: str) -> Result:
    """Measure exact search of everything, in half precision from disk."""
    path = folder / "full"
    index, result = bench.built(
        "full-scale", lambda: ExactIndex.build(bench.post_ids, bench.documents, path=path, dtype="float16")
    )
    index.close()
    vectors = len(bench.documents.vectors)
    bench.documents = bench.documents.select(torch.tensor([0]))  # release the source, so that only the index counts
    reset_peak_memory()
    reopened = ExactIndex.open(path, device=device)
    strategies = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=pool), Strategy("maxsim")]
    search(reopened, bench.queries.select(torch.tensor([0])), strategies[-1], K)  # reads the file
    result |= bench.measure(reopened, reopened, "full-scale", strategies)
    memory = peak_memory()
    each = [bench.queries.select(torch.tensor([number])) for number in range(len(bench.queries))]
    cpu = [timed(partial(search, reopened, one, strategies[-1], K))[1] for one in each]
    cpu_seconds = float(np.median(cpu)) / 1000
    print(f"full-scale         a query of exact maxsim takes {cpu_seconds:.2f} s of CPU, the median")
    print(f"full-scale         {vectors:,} vectors, {memory / 2**30:.2f} GiB of memory at most while searching")
    result |= {
        "full_scale_vectors": float(vectors),
        "full_scale_query_vectors": float(bench.queries.sizes.float().mean()),
        "full_scale_memory_gib": memory / 2**30,
        "full_scale_cpu_seconds": cpu_seconds,
        "full_scale_queries_per_second": 1000 / (result["full_scale_exact_maxsim_ms"] or 1.0),
        "full_scale_batch_queries_per_second": result["full_scale_exact_maxsim_queries_per_second"],
    }
    reopened.close()
    return result


def main() -> Result:
    """Run the parts with a size above 0; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, help="folder of scripts/index.py to take encodings from")
    parser.add_argument("--documents", type=int, default=30_000, help="documents in the race")
    parser.add_argument("--posts", type=int, default=33_771, help="posts in the comparison of strategies and backends")
    parser.add_argument("--full-posts", type=int, default=1_365_254, help="posts in the search at full scale")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--full-queries", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=15, help="repetitions of the race; the fastest counts")
    parser.add_argument("--pool", type=int, default=1000, help="candidates that doc_vn_maxsim reranks")
    parser.add_argument("--m-all", type=int, default=0, help="edges of the HNSW graph of all vectors in Qdrant")
    parser.add_argument("--device", default="cpu", help="device of the exact index")
    parser.add_argument("--folder", type=Path, help="folder of indexes during the search; default: a temporary one")
    given = parser.parse_args()
    threads = torch.get_num_threads()
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))  # maxsim-cpu, which is imported later
    print(f"{threads} threads, device {given.device}, load {Path('/proc/loadavg').read_text().split()[0]}")
    console, generator = Console(), torch.Generator().manual_seed(0)
    start = time.perf_counter()
    result: Result = {"threads": float(threads)}
    if given.documents:
        result |= race(given.documents, given.repeats, given.device, generator)
    originals = generated(ORIGINALS, generator) if given.index is None else vectors_of(given.index)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        if given.posts:
            bench = Bench(originals, given.posts, given.queries, folder / "posts.npy", generator, console)
            result |= strategies_and_backends(bench, folder, given.pool, given.m_all, given.device)
        if given.full_posts:
            bench = Bench(originals, given.full_posts, given.full_queries, folder / "full.npy", generator, console)
            result |= full_scale(bench, folder, given.pool, given.device)
    print(f"total {time.perf_counter() - start:,.0f} s")
    return result
