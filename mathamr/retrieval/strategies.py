"""Search of an index with any backend: ``search(index, queries, strategy, k)``.

>>> import torch
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

from collections.abc import Sequence

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
