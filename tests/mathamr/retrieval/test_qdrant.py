"""Embedded Qdrant: the same rankings as the definition, its graphs, its folder and its lock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from graphs.errors import RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval import Strategy, build, search
from mathamr.retrieval.backends import open_index
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.index import Hnsw
from mathamr.retrieval.qdrant import EmbeddedIndex
from mathamr.retrieval.strategies import search_reference


def scores_of(rankings: list[list[tuple[str, float]]]) -> list[dict[str, float]]:
    return [dict(row) for row in rankings]


@pytest.mark.parametrize(
    "strategy", [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=12), Strategy("maxsim")], ids=str
)
def test_exact_search_is_the_definition(collection: Any, strategy: Strategy) -> None:
    index = EmbeddedIndex.build(collection.post_ids, collection.documents)
    for k in (10, 1000):
        found = index.search(collection.queries, strategy, k)
        expected = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, k)
        assert [[p for p, _ in row] for row in found] == [[p for p, _ in row] for row in expected]
        for row, other in zip(scores_of(found), scores_of(expected), strict=True):
            assert row == pytest.approx(other, abs=1e-5)
    index.close()


def test_negative_scores_come_back() -> None:
    query = VectorSets.of([torch.tensor([[1.0, 0.0]])])
    documents = VectorSets.of(
        [torch.tensor([[-1.0, 0.0]]), torch.tensor([[-0.8, 0.6]] * 3), torch.tensor([[-0.6, 0.8]])]
    )
    index = EmbeddedIndex.build(["a", "b", "c"], documents)
    assert [post_id for post_id, _ in index.search(query, Strategy("maxsim"), 3)[0]] == ["c", "b", "a"]
    index.close()


def test_approximate_search_finds_nearly_all_and_needs_a_graph(make_collection: Callable[..., Any]) -> None:
    large = make_collection(count=800, num_queries=10, longest=5, dim=16)
    plain = EmbeddedIndex.build(large.post_ids, large.documents)
    exact = ExactIndex.build(large.post_ids, large.documents)
    with pytest.raises(
        RetrievalError,
        match=r"approximate maxsim: its vectors have no HNSW graph; search with exact=true, use",
    ):
        plain.search(large.queries, Strategy("maxsim", exact=False), 10)
    with_graph = EmbeddedIndex.build(large.post_ids, large.documents, hnsw=Hnsw(m_all=16))
    for index, name in ((plain, "single_vector"), (plain, "doc_vn_maxsim"), (with_graph, "maxsim")):
        found = search(index, large.queries, Strategy(name, exact=False, pool=100), 10)
        right = search(exact, large.queries, Strategy(name, pool=100), 10)
        hits = sum(len(set(dict(f)) & set(dict(r))) for f, r in zip(found, right, strict=True))
        assert hits >= 90, (name, hits)  # of 100
    plain.close()
    with_graph.close()


def test_a_folder_is_opened_again_and_held_by_one(collection: Any, tmp_path: Path) -> None:
    first = build("qdrant", collection.post_ids, collection.documents, path=tmp_path, model_hash="m1")
    expected = first.search(collection.queries, Strategy("maxsim"), 5)
    with pytest.raises(StoreError, match="belongs to one process"):
        open_index("qdrant", path=tmp_path)
    first.close()
    with pytest.raises(RetrievalError, match="closed"):
        first.search(collection.queries, Strategy("maxsim"), 5)
    with pytest.raises(StoreError, match="built by model m1, not by m2"):
        open_index("qdrant", path=tmp_path, model_hash="m2")
    again = open_index("qdrant", path=tmp_path, model_hash="m1")
    assert (len(again), again.num_vectors, again.dim) == (90, len(collection.documents.vectors), 8)
    assert again.nbytes > 0
    assert again.search(collection.queries, Strategy("maxsim"), 5) == expected
    again.close()


def test_a_new_index_replaces_an_old_one(collection: Any, make_collection: Callable[..., Any], tmp_path: Path) -> None:
    build("qdrant", collection.post_ids, collection.documents, path=tmp_path).close()
    other = make_collection(count=20, seed=1)
    index = build("qdrant", other.post_ids, other.documents, path=tmp_path)
    assert len(index) == 20
    assert len(list(tmp_path.iterdir())) == 2
    index.close()
    with pytest.raises(StoreError, match="no index here"):
        open_index("qdrant", path=tmp_path / "elsewhere")


def test_a_temporary_index_leaves_nothing(collection: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    index = build("qdrant", collection.post_ids, collection.documents)
    assert list(tmp_path.iterdir())
    index.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(RetrievalError, match="given twice"):
        build("qdrant", ["a"] * 90, collection.documents)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_too_full_is_said_before_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine would be killed by SIGBUS."""
    monkeypatch.setattr("mathamr.retrieval.qdrant.shutil.disk_usage", lambda _: SimpleNamespace(free=20 << 20))
    documents = VectorSets.of([torch.eye(4)] * 100)
    with pytest.raises(StoreError, match=r"takes up to 32 MiB while it is built, 20 MiB are free; make room"):
        EmbeddedIndex.build([str(i) for i in range(100)], documents, path=tmp_path / "index")
    assert not (tmp_path / "index").exists()
