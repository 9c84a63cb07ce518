"""The exact index: every layout and strategy against the definition, and the folder it is kept in."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.exact.layout import blocks, moved
from mathamr.retrieval.folder import switch
from mathamr.retrieval.index import Strategy
from mathamr.retrieval.strategies import search_reference

STRATEGIES = [Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=12), Strategy("maxsim")]


def assert_same(
    found: list[list[tuple[str, float]]], expected: list[list[tuple[str, float]]], tol: float = 1e-5
) -> None:
    assert [[post_id for post_id, _ in row] for row in found] == [[post_id for post_id, _ in row] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert [score for _, score in row] == pytest.approx([score for _, score in other], abs=tol)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("k", [1, 10, 1000])
@pytest.mark.parametrize("block", [1, 16, 4096])
def test_same_ranking_as_the_definition(collection: Any, strategy: Strategy, k: int, block: int) -> None:
    index = ExactIndex.build(collection.post_ids, collection.documents, block=block)
    expected = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, k)
    assert_same(index.search(collection.queries, strategy, k), expected)


def test_query_groups_do_not_change_the_ranking(make_collection: Callable[..., Any]) -> None:
    many = make_collection(count=40, num_queries=60, longest=20)  # some 600 query vectors: several groups
    index = ExactIndex.build(many.post_ids, many.documents)
    for strategy in STRATEGIES:
        expected = search_reference(many.post_ids, many.documents, many.queries, strategy, 5)
        assert_same(index.search(many.queries, strategy, 5), expected)


@pytest.mark.parametrize(("block", "larger"), [(1, 3), (4, 16), (16, 4096), (16, 16)])
def test_vectors_are_moved_into_larger_blocks(block: int, larger: int) -> None:
    sizes = -np.sort(-np.random.default_rng(0).integers(1, 9, size=45))

    def places(block: int) -> list[tuple[int, int]]:
        """Return the document and the position in its set of each row."""
        return [
            (part.first + document, position)
            for part in blocks(sizes, block)
            for position, count in enumerate(part.counts)
            for document in range(count)
        ]

    before, after = places(block), places(larger)
    rows = [first + row for first, some in moved(sizes, block, larger) for row in some.tolist()]
    assert [before[row] for row in rows] == after


@pytest.mark.parametrize("block", [1, 16, 90])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_blocks_that_need_several_products(
    collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, dtype: Any
) -> None:
    """A block is one product in such a small collection, unless similarities are few."""
    monkeypatch.setattr("mathamr.retrieval.exact.scan.CPU_SIMILARITIES", 64)
    index = ExactIndex.build(collection.post_ids, collection.documents, path=tmp_path, dtype=dtype, block=block)
    stored = VectorSets(collection.documents.vectors.to(getattr(torch, dtype)).float(), collection.documents.ptr)
    for strategy in STRATEGIES:
        expected = search_reference(collection.post_ids, stored, collection.queries, strategy, 10)
        assert_same(index.search(collection.queries, strategy, 10), expected)


@pytest.mark.parametrize(("dtype", "block"), [("float32", 400), ("float16", 16)])
def test_a_search_by_codes_is_exact(
    make_collection: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Any, block: int
) -> None:
    """Codes leave out documents, and never one of the best; with a part of the documents, and in a folder."""
    many = make_collection(count=400)
    ids = many.post_ids
    plain = ExactIndex.build(ids, many.documents, path=tmp_path / "plain", dtype=dtype, block=block)
    best = (
        plain.search(many.queries, Strategy("maxsim"), 10),
        plain.only(ids[::2]).search(many.queries, Strategy("maxsim"), 10),
    )
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", 1)
    rescored: list[int] = []
    best_of = ExactIndex.rescored
    monkeypatch.setattr(
        ExactIndex,
        "rescored",
        lambda self, query, places, k: rescored.append(len(places)) or best_of(self, query, places, k),
    )
    for index in (
        ExactIndex.build(
            ids, many.documents, path=tmp_path / "codes", dtype=dtype, block=block
        ),  # with a file of codes
        plain,  # whose codes are made in memory
    ):
        assert_same(index.search(many.queries, Strategy("maxsim"), 10), best[0])
        assert_same(index.only(ids[::2]).search(many.queries, Strategy("maxsim"), 10), best[1])
    assert rescored
    assert np.median(rescored) < 30


@pytest.mark.parametrize("coded_vectors", [1, 1 << 60])
def test_ties_at_the_cut_are_ordered_by_post_id_among_many(
    make_collection: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, coded_vectors: int
) -> None:
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", coded_vectors)
    some = make_collection(count=200)
    sets = [*some.documents, *[some.queries[0]] * 6]
    index = ExactIndex.build([str(i) for i in range(len(sets))], VectorSets.of(sets))
    (found,) = index.search(some.queries.select(torch.tensor([0])), Strategy("maxsim"), 3)
    assert [post_id for post_id, _ in found] == ["205", "204", "203"]
    assert len({score for _, score in found}) == 1


def test_memory_is_of_the_largest_block_however_many_similarities_fit(
    collection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, where memory is taken when it is asked for."""
    monkeypatch.setattr("mathamr.retrieval.exact.scan.CPU_SIMILARITIES", 1 << 60)
    index = ExactIndex.build(collection.post_ids, collection.documents)
    expected = search_reference(collection.post_ids, collection.documents, collection.queries, Strategy("maxsim"), 10)
    assert_same(index.search(collection.queries, Strategy("maxsim"), 10), expected)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("block", [1, 16, 4096])
def test_a_part_is_searched_over_the_vectors_of_all(
    collection: Any, tmp_path: Path, strategy: Strategy, block: int
) -> None:
    whole = ExactIndex.build(collection.post_ids, collection.documents, path=tmp_path, block=block)
    some = torch.arange(1, 90, 3)
    ids = [collection.post_ids[i] for i in some.tolist()]
    part, alone = whole.only(ids), ExactIndex.build(ids, collection.documents.select(some))
    for k in (1, 10, 1000):
        assert_same(part.search(collection.queries, strategy, k), alone.search(collection.queries, strategy, k))
    assert part._vectors.data_ptr() == whole._vectors.data_ptr()  # no copy
    assert (len(part), part.num_vectors, part.nbytes) == (len(alone), alone.num_vectors, alone.nbytes)
    assert sorted(part.post_ids()) == sorted(ids)
    for index, held in ((part, ids), (whole, collection.post_ids)):
        every = [*collection.post_ids, "nowhere"]
        assert index.holds(every).tolist() == [post_id in held for post_id in every]
    part.close()
    assert len(whole.search(collection.queries, Strategy("maxsim"), 90)[0]) == 90
    with pytest.raises(RetrievalError, match="the index holds no post nowhere"):
        whole.only(["nowhere"])


def test_a_document_of_one_vector_keeps_its_negative_score() -> None:
    """A padded slot would score 0, which is more than any of these."""
    query = VectorSets.of([torch.tensor([[1.0, 0.0]])])
    documents = VectorSets.of(
        [torch.tensor([[-1.0, 0.0]]), torch.tensor([[-0.8, 0.6]] * 3), torch.tensor([[-0.6, 0.8]])]
    )
    index = ExactIndex.build(["a", "b", "c"], documents)
    assert_same(index.search(query, Strategy("maxsim"), 3), [[("c", -0.6), ("b", -0.8), ("a", -1.0)]])


def test_equal_scores_are_ordered_by_post_id_also_at_the_cut() -> None:
    same = VectorSets.of([torch.tensor([[1.0, 0.0]])] * 6)
    index = ExactIndex.build(["30", "4", "200", "1", "15", "9"], same)
    for strategy in (Strategy("single_vector"), Strategy("maxsim"), Strategy("doc_vn_maxsim", pool=4)):
        found = index.search(same.select(torch.tensor([0])), strategy, 3)[0]
        assert found == [("9", 1.0), ("4", 1.0), ("30", 1.0)]


def test_equal_posts_that_are_scored_again_are_ordered_by_post_id() -> None:
    """Their scores in float32 differ by their place in a product; none of them may be lost before that."""
    generator = torch.Generator().manual_seed(0)
    one, *queries = torch.nn.functional.normalize(torch.randn(21, 384, generator=generator), dim=1).split(1)
    ids = [str(i) for i in range(100, 203)]
    index = ExactIndex.build(ids, VectorSets.of([one] * len(ids)))
    for ranking in index.search(VectorSets.of(queries), Strategy("doc_vn_maxsim", pool=1000), 3):
        assert [post_id for post_id, _ in ranking] == ["202", "201", "200"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_folder_gives_the_ranking_of_memory(collection: Any, tmp_path: Path, dtype: Any) -> None:
    built = ExactIndex.build(collection.post_ids, collection.documents, path=tmp_path, dtype=dtype, model_hash="m1")
    opened = ExactIndex.open(tmp_path, model_hash="m1")
    assert (len(opened), opened.num_vectors, opened.dim) == (90, len(collection.documents.vectors), 8)
    assert opened.nbytes > opened.num_vectors * 8 * (2 if dtype == "float16" else 4)
    # The stored vectors, rounded or not, are what the definition is applied to.
    stored = VectorSets(collection.documents.vectors.to(getattr(torch, dtype)).float(), collection.documents.ptr)
    for strategy in STRATEGIES:
        expected = search_reference(collection.post_ids, stored, collection.queries, strategy, 10)
        assert_same(opened.search(collection.queries, strategy, 10), expected)
        assert_same(built.search(collection.queries, strategy, 10), expected)


def test_a_new_index_replaces_the_old_in_one_step(
    collection: Any, make_collection: Callable[..., Any], tmp_path: Path
) -> None:
    old = ExactIndex.build(collection.post_ids, collection.documents, path=tmp_path)
    before = old.search(collection.queries, Strategy("maxsim"), 3)
    (tmp_path / "data-left-by-a-kill").mkdir()
    other = make_collection(count=20, seed=1)
    ExactIndex.build(other.post_ids, other.documents, path=tmp_path)
    assert len(ExactIndex.open(tmp_path)) == 20
    assert old.search(collection.queries, Strategy("maxsim"), 3) == before  # who has the old one open keeps it
    assert len(list(tmp_path.iterdir())) == 2  # the header and the new data


def test_folders_that_cannot_be_opened(collection: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no index here"):
        ExactIndex.open(tmp_path)
    ExactIndex.build(collection.post_ids, collection.documents, path=tmp_path, model_hash="m1")
    with pytest.raises(StoreError, match="built by model m1, not by m2"):
        ExactIndex.open(tmp_path, model_hash="m2")
    header = json.loads((tmp_path / "index.json").read_text())
    without = {name: value for name, value in header.items() if name != "sha256"}
    (tmp_path / "index.json").write_text(json.dumps(without))
    with pytest.raises(StoreError, match="damaged: the header has changed"):
        ExactIndex.open(tmp_path)
    (tmp_path / "index.json").write_text(json.dumps(header))
    vectors = tmp_path / header["data"] / "vectors.npy"
    vectors.write_bytes(vectors.read_bytes()[:-100])
    with pytest.raises(StoreError, match="damaged"):
        ExactIndex.open(tmp_path)
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(StoreError, match="not of format"):
        ExactIndex.open(tmp_path)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(StoreError, match=r"index\.json: cannot be read"):
        ExactIndex.open(tmp_path)


def test_documents_that_cannot_be_indexed() -> None:
    one = torch.tensor([[1.0, 0.0]])
    with pytest.raises(RetrievalError, match="3 post ids for 2 sets"):
        ExactIndex.build(["a", "b", "c"], VectorSets.of([one, one]))
    with pytest.raises(RetrievalError, match="post a is given twice"):
        ExactIndex.build(["b", "a", "a"], VectorSets.of([one, one, one]))
    with pytest.raises(RetrievalError, match="post b has no vectors"):
        ExactIndex.build(["a", "b"], VectorSets.of([one, one[:0]]))
    with pytest.raises(RetrievalError, match=r"vector of post b has length 2"):
        ExactIndex.build(["a", "b"], VectorSets.of([one, 2 * one]))
    with pytest.raises(RetrievalError, match="length nan"):
        ExactIndex.build(["a"], VectorSets.of([one * float("nan")]))
    with pytest.raises(RetrievalError, match="no documents"):
        ExactIndex.build([], VectorSets(one[:0], torch.zeros(1, dtype=torch.int64)))


def test_approximate_search_is_refused_with_a_backend_that_has_it(collection: Any) -> None:
    index = ExactIndex.build(collection.post_ids, collection.documents)
    with pytest.raises(RetrievalError, match=r"approximate maxsim.*backends approximate and qdrant"):
        index.search(collection.queries, Strategy("maxsim", exact=False), 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_gpu_gives_the_ranking_of_the_cpu(collection: Any) -> None:
    index = ExactIndex.build(collection.post_ids, collection.documents, device="cuda")
    for strategy in STRATEGIES:
        expected = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, 10)
        assert_same(index.search(collection.queries, strategy, 10), expected, tol=1e-4)


def giant(file: Path, shape: tuple[int, ...], dtype: str) -> None:
    with file.open("wb") as opened:
        np.lib.format.write_array_header_1_0(opened, {"descr": dtype, "fortran_order": False, "shape": shape})


def written(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def archive() -> bytes:
    file = BytesIO()
    np.savez(file, np.array([2, 2], np.int32))
    return file.getvalue()


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array([1, 3], np.int32)), id="ascending"),
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array([10**6, 4 - 10**6], np.int32)), id="negative"),
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array([4, 0], np.int32)), id="empty"),
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array([2.5, 1.5])), id="no-integers"),
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array(["2", "2"])), id="texts"),
        pytest.param(lambda data: np.save(data / "sizes.npy", np.array([2, 2], ">i4")), id="other-byte-order"),
        pytest.param(lambda data: giant(data / "sizes.npy", (10**13,), "<i4"), id="giant"),
        pytest.param(lambda data: giant(data / "post_ids.npy", (10**30,), "<U2"), id="more-than-an-address"),
        pytest.param(lambda data: written(data / "sizes.npy", b""), id="nothing"),
        pytest.param(lambda data: written(data / "sizes.npy", b"PK\x03\x04 and no archive"), id="no-archive"),
        pytest.param(lambda data: written(data / "sizes.npy", archive()), id="archive"),
        pytest.param(lambda data: written(data / "sizes.npy", b"\x93NUMPY\x01\x00v\x00" + b"(" * 118), id="brackets"),
        pytest.param(lambda data: np.save(data / "post_ids.npy", np.array([1, 2])), id="numbers-as-ids"),
        pytest.param(lambda data: np.save(data / "vectors.npy", np.eye(4)), id="float64"),
        pytest.param(
            lambda data: np.save(data / "vectors.npy", np.asfortranarray(np.eye(4, dtype=np.float32)[:, ::-1])),
            id="columns",
        ),
        pytest.param(lambda data: {"block": 0}, id="no-block"),
        pytest.param(lambda data: {"block": 10**30}, id="more-than-a-place"),
        pytest.param(lambda data: {"block": "2048"}, id="block-as-text"),
        pytest.param(lambda data: {"documents": None}, id="no-number-of-documents"),
        pytest.param(lambda data: {"codes": ["tiles"]}, id="codes-as-list"),
        pytest.param(lambda data: {"codes": {"layout": "tiles", "scale": "x", "error": 0, "length": 1}}, id="no-scale"),
    ],
)
def test_an_index_from_elsewhere_whose_parts_do_not_fit_is_refused(
    write: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Digests do not help: who makes such an index can compute them. The kernels would read outside their arrays."""
    ExactIndex.build(["a", "b"], VectorSets.of([torch.eye(4)[:2], torch.eye(4)[2:]]), path=tmp_path).close()
    header = json.loads((tmp_path / "index.json").read_text())
    data = tmp_path / header["data"]
    header |= write(data) or {}
    switch(tmp_path, data, {name: value for name, value in header.items() if name not in ("sha256", "data", "files")})
    with pytest.raises(StoreError, match="the index is damaged"):
        ExactIndex.open(tmp_path)


def test_blocks_of_any_size_need_no_more_memory_than_their_documents(tmp_path: Path) -> None:
    documents = VectorSets.of([torch.eye(4)[:2], torch.eye(4)[2:]])
    index = ExactIndex.build(["a", "b"], documents, path=tmp_path, dtype="float16", block=10**13)
    assert [row[0][0] for row in index.search(documents, Strategy("single_vector"), 1)] == ["a", "b"]
