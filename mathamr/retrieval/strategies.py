"""Search of an index with any backend, ``search(index, queries, strategy, k)``, and its agreement with exact search.

>>> from mathamr.retrieval.backends import build
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = build("exact", ["154", "255"], documents, model_hash="abc")
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> [post_id for post_id, score in search(index, question, "doc_vn_maxsim", k=2, model_hash="abc")[0]]
['255', '154']
>>> search(index, question, "maxsim", k=2, model_hash="xyz")
Traceback (most recent call last):
    ...
graphs.errors.RetrievalError: the index was built by model abc, the queries were encoded by xyz; build the index again
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from graphs.errors import RetrievalError
from mathamr import maxsim
from mathamr.maxsim import VectorSets
from mathamr.retrieval.index import Index, Ranking, Strategy


def search(
    index: Index,
    queries: VectorSets,
    strategy: Strategy | str = "maxsim",
    k: int = 1000,
    *,
    model_hash: str | None = None,
) -> list[Ranking]:
    """Return at most ``k`` pairs ``(post_id, score)`` for each query, best first; equal scores by post id, descending.

    ``strategy`` is a :class:`Strategy`, or the name of an exact one. With ``model_hash``, the hash of the model
    that encoded the queries, an index of another model is refused. No queries give no rankings.
    Raises :class:`RetrievalError` for an unknown strategy, a strategy that the backend lacks (the message
    names one that it has), a query without vectors, and vectors of another dimension.
    """
    if isinstance(strategy, str):
        strategy = Strategy(strategy)
    if model_hash is not None and model_hash != index.model_hash:
        raise RetrievalError(
            f"the index was built by model {index.model_hash or '(unknown)'}, the queries were encoded by "
            f"{model_hash}; build the index again"
        )
    if len(queries) == 0:
        return []
    return index.search(queries, strategy, k)


def search_reference(
    post_ids: Sequence[str], documents: VectorSets, queries: VectorSets, strategy: Strategy, k: int
) -> list[Ranking]:
    """Return the results of :func:`search` for ``documents``, computed by the definition, as a reference."""
    if strategy.name not in ("single_vector", "doc_vn_maxsim", "maxsim"):
        raise strategy.not_in("reference")
    single = maxsim.scores_reference(queries.documents_only(), documents.documents_only())
    multi = maxsim.scores_reference(queries, documents)
    rankings = []
    for by_document, by_set in zip(single.tolist(), multi.tolist(), strict=True):
        places = sorted(range(len(post_ids)), key=lambda i: (by_document[i], post_ids[i]), reverse=True)
        scores = by_document if strategy.name == "single_vector" else by_set
        places = places[: strategy.pool] if strategy.name == "doc_vn_maxsim" else places
        places = sorted(places, key=lambda i: (scores[i], post_ids[i]), reverse=True)[:k]
        rankings.append([(post_ids[i], scores[i]) for i in places])
    return rankings


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

    >>> from mathamr.retrieval.exact.index import ExactIndex
    >>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
    >>> index = ExactIndex.build(["154", "255"], documents)
    >>> [(str(row.strategy), row.recall) for row in compare(index, index, documents, [Strategy("maxsim")])]
    [('exact maxsim', 1.0)]
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
