"""Token vectors of late interaction: our indexes, exact and approximate, beside fast-plaid, the index of PyLate.

    python scripts/bench.py token_index --encoded outputs/shared/*/models/KEY/tokens --qrels QREL_FILE ... \\
        --plaid ENVIRONMENT/bin/python

``--encoded`` is the folder of a model's token vectors, of posts and of topics, that an experiment with
``text.late_interaction=true`` left behind. ``--plaid`` is a Python that has fast-plaid (`pip install fast-plaid` in a
separate environment, because it requires another torch than this project); without it, only our indexes are measured.

Columns: bytes of the index, nDCG' of the judged topics (regime ``mini``), the share of the first 100 of exact search
that is found, and queries a second of one thread, one query after the other. The approximate index is searched with
two sizes of its pool, fast-plaid with two numbers of probes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from graphs.errors import ConfigError, RetrievalError
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.metrics import evaluate, restrict
from mathamr.evaluation.runs import Qrels, Run, read_qrels
from mathamr.maxsim import VectorSets
from mathamr.retrieval.approximate import ApproximateIndex
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.index import Index, Ranking, Strategy
from scripts.benchmarks.scale.approximate_search import recall

K = 1000
FIRST = 100
POOLS = (FIRST, 1000)
PROGRAM = Path(__file__).with_name("plaid.py")


@dataclass
class Judged:
    """Topics with judgments, and the exact results: prints what a search is worth."""

    topics: Sequence[str]
    qrels: Qrels
    exact: Sequence[Ranking]
    result: dict[str, float] = field(default_factory=dict)

    def show(self, name: str, found: Sequence[Ranking], size: int, seconds: float) -> None:
        """Print a row, and keep its numbers."""
        run = Run.from_results("bench", dict(zip(self.topics, found, strict=True)))
        ndcg = evaluate(run, self.qrels).aggregate["ndcg_prime"]
        overlap = recall([ranking[:FIRST] for ranking in found], [ranking[:FIRST] for ranking in self.exact])
        rate = len(found) / seconds
        print(f"{name:28} {size / 2**20:8.1f} MiB   nDCG' {ndcg:.3f}   of the first {FIRST} {overlap:6.1%}   "
              f"{rate:8.1f} queries/s", flush=True)  # fmt: skip
        numbers = {"bytes": float(size), "ndcg_prime": ndcg, "overlap": overlap, "queries_per_second": rate}
        self.result |= {f"{name}: {column}": value for column, value in numbers.items()}


def searched(index: Index, queries: VectorSets, strategy: Strategy) -> tuple[list[Ranking], float]:
    """Return the results, and the seconds for all queries, one after the other."""
    each = [queries.select(torch.tensor([number])) for number in range(len(queries))]
    index.search(each[0], strategy, K)  # reads files
    with Stopwatch() as watch:
        found = [index.search(query, strategy, K)[0] for query in each]
    return found, watch.seconds


def plaid(python: str, folder: Path, documents: VectorSets, queries: VectorSets) -> Mapping[str, float]:
    """Search with fast-plaid in another environment; its rankings lie in ``folder`` then."""
    for name, some in (("document", documents), ("query", queries)):
        np.save(folder / f"{name}s.npy", some.vectors.numpy())
        np.save(folder / f"{name}_sizes.npy", some.sizes.numpy())
    ran = subprocess.run([python, PROGRAM, folder], stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        raise ConfigError(f"{python} could not search with fast-plaid (see above); install it there")
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> dict[str, float]:
    """Build every index over the same vectors, and search it with the same queries; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoded", type=Path, required=True, help="folder of token vectors beside a model")
    parser.add_argument("--qrels", type=Path, nargs="+", required=True, help="judgments of the topics")
    parser.add_argument("--plaid", metavar="PYTHON", help="a Python that has fast-plaid")
    given = parser.parse_args()
    torch.set_num_threads(1)
    both = ExactIndex.open(given.encoded / "encoded")
    ids = sorted(both.post_ids())
    posts = [name for name in ids if name.isdigit()]  # topics are A.1, A.3, ...
    qrels = restrict(read_qrels(*given.qrels), set(posts))  # regime mini
    topics = [name for name in ids if name in qrels]
    if not (topics and posts):
        raise RetrievalError(f"{given.encoded}: {len(topics)} judged topics and {len(posts)} posts; give its judgments")
    documents, queries = both.vectors_of(posts), both.vectors_of(topics)
    print(f"{len(posts):,} posts with {len(documents.vectors):,} vectors of {both.dim}, {len(topics)} topics")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        exact = ExactIndex.build(posts, documents, path=folder / "exact")
        best, seconds = searched(exact, queries, Strategy("maxsim"))
        judged = Judged(topics, qrels, best)
        judged.show("exact", best, exact.nbytes, seconds)
        exact.close()
        index = ApproximateIndex.build(posts, documents, path=folder / "approximate", dtype="float16")
        for pool in POOLS:
            found, seconds = searched(index, queries, Strategy("maxsim", exact=False, pool=pool))
            judged.show(f"approximate, pool {pool}", found, index.nbytes, seconds)
        index.close()
        if given.plaid is not None:
            measured = plaid(given.plaid, folder, documents, queries)
            for path in sorted(folder.glob("[0-9]*-*.json")):
                bits, probes = path.stem.split("-")
                found = [
                    [(posts[number], float(-place)) for place, number in enumerate(ranking)]
                    for ranking in json.loads(path.read_text())
                ]
                size, seconds = int(measured[f"{bits}_bytes"]), measured[f"{path.stem}_seconds"]
                judged.show(f"plaid, {bits} bits, {probes} probes", found, size, seconds)
    return judged.result
