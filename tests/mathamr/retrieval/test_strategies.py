"""The one entry to every index: what it refuses, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from graphs.errors import ConfigError, RetrievalError
from mathamr.maxsim import VectorSets
from mathamr.retrieval import Strategy, build, search
from mathamr.retrieval.index import STRATEGIES
from mathamr.retrieval.strategies import search_reference


def test_an_unknown_strategy_is_refused_with_those_there_are(collection: Any) -> None:
    index = build("exact", collection.post_ids, collection.documents)
    with pytest.raises(
        RetrievalError, match="unknown strategy 'colbert'; choose from: single_vector, doc_vn_maxsim, maxsim"
    ):
        search(index, collection.queries, "colbert")
    with pytest.raises(RetrievalError, match="pool=0"):
        Strategy("doc_vn_maxsim", pool=0)


def test_no_queries_an_empty_query_and_a_query_of_another_model(collection: Any) -> None:
    index = build("exact", collection.post_ids, collection.documents, model_hash="m1")
    none = VectorSets(torch.empty(0, 8), torch.zeros(1, dtype=torch.int64))
    assert search(index, none) == []
    unit = torch.eye(8)
    with pytest.raises(RetrievalError, match="query 1 of 2 is empty"):
        search(index, VectorSets.of([unit[:1], unit[:0]]))
    with pytest.raises(RetrievalError, match="dimension 3, the index of dimension 8"):
        search(index, VectorSets.of([torch.eye(3)]))
    with pytest.raises(RetrievalError, match="built by model m1, the queries were encoded by m2"):
        search(index, collection.queries, model_hash="m2")
    with pytest.raises(RetrievalError, match="not finite"):
        search(index, VectorSets.of([unit[:1] * float("nan")]))
    with pytest.raises(RetrievalError, match="k=0"):
        search(index, collection.queries, k=0)


def test_an_unknown_backend_is_refused(collection: Any) -> None:
    with pytest.raises(ConfigError, match="unknown backend 'faiss'; choose from: exact, approximate, qdrant"):
        build("faiss", collection.post_ids, collection.documents)
    with pytest.raises(ConfigError, match="belongs to the backend qdrant"):
        build("exact", collection.post_ids, collection.documents, location="embedded")


@pytest.mark.parametrize("backend", ["exact", "approximate", "qdrant"])
def test_a_backend_refuses_a_strategy_that_it_does_not_know(
    backend: str, collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a new name would rank as one of the others."""
    monkeypatch.setattr("mathamr.retrieval.index.STRATEGIES", (*STRATEGIES, "best_three"))
    index = build(backend, collection.post_ids, collection.documents, path=tmp_path / "index")
    with pytest.raises(
        RetrievalError, match=f"the backend {backend if backend == 'qdrant' else 'exact'} has no strategy best_three"
    ):
        search(index, collection.queries, "best_three")
    with pytest.raises(RetrievalError, match="the backend reference has no strategy"):
        search_reference(collection.post_ids, collection.documents, collection.queries, Strategy("best_three"), 10)
