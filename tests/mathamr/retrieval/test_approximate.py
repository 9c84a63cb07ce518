"""The approximate index: recall, equality to exact search, its folder, additions and removals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from graphs.errors import RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval import approximate
from mathamr.retrieval.approximate import ApproximateIndex, merged
from mathamr.retrieval.backends import build, open_index
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.index import Strategy
from mathamr.retrieval.strategies import search_reference

EXACT = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=12), Strategy("maxsim")]
ALL = Strategy("maxsim", exact=False, pool=10_000)  # as many as there are


def assert_same(found: Any, expected: Any) -> None:
    assert [[post_id for post_id, _ in row] for row in found] == [[post_id for post_id, _ in row] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert [score for _, score in row] == pytest.approx([score for _, score in other], abs=1e-5)


@pytest.fixture(scope="module")
def clustered() -> tuple[list[str], VectorSets, VectorSets]:
    """3,000 posts of 12 vectors around 40 centres, and 10 queries of 12 vectors."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(40, 32, generator=generator)
    vectors = centres[torch.randint(40, (3000 * 12,), generator=generator)]
    vectors = functional.normalize(vectors + 0.7 * torch.randn(vectors.shape, generator=generator), dim=1)
    documents = VectorSets.of_sizes(vectors, torch.full((3000,), 12))
    queries = documents.select(torch.arange(0, 3000, 300))
    noisy = queries.vectors + 0.05 * torch.randn(queries.vectors.shape, generator=generator)
    return [str(i) for i in range(3000)], documents, VectorSets(functional.normalize(noisy, dim=1), queries.ptr)


def test_clustered_vectors_are_found(clustered: Any) -> None:
    ids, documents, queries = clustered
    found = ApproximateIndex.build(ids, documents).search(queries, Strategy("maxsim", exact=False, pool=600), 20)
    right = ExactIndex.build(ids, documents).search(queries, Strategy("maxsim"), 20)
    shares = [len({n for n, _ in a} & {n for n, _ in b}) / 20 for a, b in zip(found, right, strict=True)]
    assert np.mean(shares) >= 0.98
    for row, best in zip(found, right, strict=True):
        scores = dict(best)
        assert all(score == pytest.approx(scores[name], abs=1e-5) for name, score in row if name in scores)


@pytest.mark.parametrize("folder", [False, True])
def test_with_all_candidates_it_is_exact(collection: Any, tmp_path: Path, folder: bool) -> None:
    index = build("approximate", collection.post_ids, collection.documents, path=tmp_path if folder else None)
    for strategy in [*EXACT, ALL]:
        for k in (1, 10, 1000):
            expected = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, k)
            assert_same(index.search(collection.queries, strategy, k), expected)
    assert (len(index), index.num_vectors) == (90, len(collection.documents.vectors))
    assert index.nbytes > index.num_vectors * 8 * 4


def test_posts_are_added_replaced_and_removed(make_collection: Callable[..., Any], tmp_path: Path) -> None:
    """Every strategy ranks what is left as an index of these posts alone, whether segments are joined or not."""
    whole = make_collection(count=120)
    ids, sets = whole.post_ids, list(whole.documents)
    held = dict(zip(ids[:40], sets[:40], strict=True))
    ApproximateIndex.build(ids[:40], VectorSets.of(sets[:40]), path=tmp_path, model_hash="m1").close()
    for step in range(approximate.MOST_SEGMENTS):
        new = ids[40 + 6 * step : 45 + 6 * step]
        old = list(held)[step : step + 2]
        add = dict(zip([*new, old[0]], sets[40 + 6 * step : 46 + 6 * step], strict=True))  # old[0] gets other vectors
        index = ApproximateIndex.update(tmp_path, add=(list(add), VectorSets.of(list(add.values()))), remove=old)
        held = {name: one for name, one in held.items() if name not in old} | add
        assert sorted(index.post_ids()) == sorted(held)
        assert index.num_vectors == sum(len(one) for one in held.values())
        if step in (0, approximate.MOST_SEGMENTS - 1):
            for strategy in [*EXACT, ALL]:
                alone = search_reference(list(held), VectorSets.of(list(held.values())), whole.queries, strategy, 30)
                assert_same(index.search(whole.queries, strategy, 30), alone)
        index.close()
    last = json.loads((tmp_path / "index.json").read_text())
    assert last["segments"] == 2  # all that was added has become one
    assert ApproximateIndex.open(tmp_path, model_hash="m1").model_hash == "m1"


def test_a_post_removed_while_segments_are_joined_is_not_found_again(
    collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approximate, "MOST_SEGMENTS", 2)
    sets = [collection.documents.select(torch.tensor(places)) for places in ([0], [1, 2], [3])]
    ApproximateIndex.build(["a"], sets[0], path=tmp_path).close()
    ApproximateIndex.update(tmp_path, add=(["b", "c"], sets[1])).close()
    index = ApproximateIndex.update(tmp_path, add=(["d"], sets[2]), remove=["b"])
    assert sorted(index.post_ids()) == ["a", "c", "d"]
    assert {name for row in index.search(collection.queries, ALL, 9) for name, _ in row} == {"a", "c", "d"}


def test_more_results_than_candidates_are_as_many_as_asked_for(collection: Any) -> None:
    index = ApproximateIndex.build(collection.post_ids, collection.documents)
    rankings = index.search(collection.queries, Strategy("maxsim", exact=False, pool=5), 20)
    assert [len(ranking) for ranking in rankings] == [20] * len(collection.queries)


def test_updates_that_cannot_be(collection: Any, tmp_path: Path) -> None:
    ids, documents = collection.post_ids, collection.documents
    ApproximateIndex.build(ids, documents, path=tmp_path).close()
    one = documents.select(torch.tensor([0]))
    with pytest.raises(RetrievalError, match=r"holds no post nowhere \(1 such\)"):
        ApproximateIndex.update(tmp_path, remove=["nowhere"])
    with pytest.raises(RetrievalError, match="holds post 1000 already"):
        ApproximateIndex.update(tmp_path, add=(["1000"], one))
    with pytest.raises(RetrievalError, match=r"vectors of dimension 9, the index of dimension 8"):
        ApproximateIndex.update(tmp_path, add=(["new"], VectorSets.of([torch.eye(9)[:2]])))
    with pytest.raises(RetrievalError, match="no document is left"):
        ApproximateIndex.update(tmp_path, remove=ids)
    with pytest.raises(StoreError, match="no index here"):
        ApproximateIndex.update(tmp_path / "elsewhere", add=(["1"], one))
    assert len(ApproximateIndex.open(tmp_path)) == 90
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("data-")]) == 1


@pytest.mark.parametrize("folder", [False, True])
def test_vectors_that_are_not_finite_are_refused_with_their_post(tmp_path: Path, folder: bool) -> None:
    documents = VectorSets.of([torch.eye(8)[:2], torch.full((1, 8), float("nan"))])
    with pytest.raises(RetrievalError, match="a vector of post b has length nan"):
        ApproximateIndex.build(["a", "b"], documents, path=tmp_path / "index" if folder else None)


def test_an_update_that_fails_leaves_the_old_index(
    collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ApproximateIndex.build(collection.post_ids[:50], collection.documents.select(torch.arange(50)), path=tmp_path)
    before = ApproximateIndex.open(tmp_path)
    right = before.search(collection.queries, ALL, 5)

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(approximate, "switch", stopped)
    with pytest.raises(KeyboardInterrupt):
        ApproximateIndex.update(tmp_path, add=(["new"], collection.documents.select(torch.tensor([60]))))
    monkeypatch.undo()
    (tmp_path / "data-left-by-a-kill").mkdir()
    assert ApproximateIndex.open(tmp_path).search(collection.queries, ALL, 5) == right
    ApproximateIndex.update(tmp_path, add=(["new"], collection.documents.select(torch.tensor([60]))))
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("data-")]) == 1
    assert before.search(collection.queries, ALL, 5) == right  # who has the old one open keeps it


def test_folders_that_cannot_be_opened(collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", 1)
    with pytest.raises(StoreError, match="no index here"):
        open_index("approximate", path=tmp_path)
    ApproximateIndex.build(collection.post_ids, collection.documents, path=tmp_path, model_hash="m1")
    with pytest.raises(StoreError, match="built by model m1, not by m2"):
        open_index("approximate", path=tmp_path, model_hash="m2")
    header = (tmp_path / "index.json").read_text()
    (tmp_path / "index.json").write_text(header.replace('"version": 2', '"version": 1'))
    with pytest.raises(StoreError, match="not of format mathamr-approximate-index 2; build the index again"):
        ApproximateIndex.open(tmp_path)
    (tmp_path / "index.json").write_text(header)
    (data,) = tmp_path.glob("data-*")
    for name in ("vectors", "codes", "axes"):
        file = next(data.glob(f"segment-0/data-*/{name}.npy"))
        whole = file.read_bytes()
        file.write_bytes(whole[:-3] + b"abc")
        with pytest.raises(StoreError, match="damaged"):
            ApproximateIndex.open(tmp_path)
        file.write_bytes(whole)
    hostile = np.array([{"a": 1}], dtype=object)
    np.save(data / "removed-0.npy", hostile, allow_pickle=True)
    with pytest.raises(StoreError, match="damaged"):
        ApproximateIndex.open(tmp_path)


def test_merging_keeps_the_sum_of_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    query = functional.normalize(torch.randn(30, 64, generator=generator), dim=1)
    few = merged(query, 8)
    assert len(few) <= 8
    torch.testing.assert_close(few.sum(0), query.sum(0))
    assert merged(query[:3], 8) is query[:3] or torch.equal(merged(query[:3], 8), query[:3])
    torch.testing.assert_close(merged(query[:1].repeat(20, 1), 8).sum(0), 20 * query[0])
