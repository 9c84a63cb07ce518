"""Check of an index after each build: agreement with exact search, and speed.

>>> from mathamr.retrieval.exact.index import ExactIndex
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = ExactIndex.build(["154", "255"], documents)
>>> [(str(row.strategy), row.recall) for row in compare(index, index, documents, [Strategy("maxsim")])]
[('exact maxsim', 1.0)]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from mathamr.maxsim import VectorSets
from mathamr.retrieval.index import Index, Ranking, Strategy

DEPTH = 100


@dataclass(frozen=True, slots=True)
class Agreement:
    """``recall`` is the share of the exact first ``DEPTH`` that the index finds too; ``seconds`` is the median of the
    queries, ``p95`` their 95th percentile."""

    strategy: Strategy
    recall: float
    seconds: float
    p95: float


def compare(
    index: Index, exact: Index, queries: VectorSets, strategies: Sequence[Strategy], k: int = DEPTH
) -> list[Agreement]:
    """Search ``index`` one query at a time, and ``exact`` with the same strategies, exactly.

    A document with the same score as the k-th counts as right.
    """
    rows = []
    for strategy in strategies:
        right = exact.search(queries, Strategy(strategy.name, pool=strategy.pool), k)
        recalls, seconds = [], []
        for number, ranking in enumerate(right):
            one = queries.select(torch.tensor([number]))
            start = time.perf_counter()
            (found,) = index.search(one, strategy, k)
            seconds.append(time.perf_counter() - start)
            recalls.append(_recall(found, ranking))
        median, p95 = np.quantile(seconds, [0.5, 0.95]).tolist()
        rows.append(Agreement(strategy, sum(recalls) / len(recalls), median, p95))
    return rows


def _recall(ranking: Ranking, right: Ranking) -> float:
    wanted = {post_id for post_id, _ in right}
    bound = right[-1][1] - 1e-5
    hits = sum(post_id in wanted or score >= bound for post_id, score in ranking)
    return min(1.0, hits / len(right))
