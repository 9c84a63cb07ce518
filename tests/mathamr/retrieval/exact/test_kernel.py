"""Codes and their compiled scan: equal to the reference, within the bound, and with the results of a float scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from graphs import digests
from graphs.errors import StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import kernel, rescoring, scan
from mathamr.retrieval.exact.codes import Codes, principal_axes
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.exact.kernel import Slabs
from mathamr.retrieval.exact.layout import blocks
from mathamr.retrieval.index import Strategy

MAXSIM = Strategy("maxsim")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small collections are searched by compiled code too."""
    pytest.importorskip("numba")
    monkeypatch.setattr(kernel, "COMPILED_VECTORS", 1)


def laid_out(sizes: list[int], dim: int, generator: torch.Generator, block: int = 300) -> tuple[torch.Tensor, Slabs]:
    """Unit vectors and their layout; some are zero or equal."""
    descending = np.array(sorted(sizes, reverse=True))
    vectors = functional.normalize(torch.randn(int(descending.sum()), dim, generator=generator), dim=1)
    vectors[::7] = 0
    vectors[1::5] = vectors[-1]
    return vectors, Slabs.of(list(blocks(descending, block)))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("sizes", "dim", "whole", "query_sizes"),
    [
        ([1], 1, True, [1]),
        ([3], 8, True, [2]),
        ([5, 1, 1], 20, True, [1, 3]),
        ([*range(1, 30)] * 23, 32, True, [15]),
        ([*range(1, 4)] * 250, 32, False, [8, 1, 4]),
        ([2] * 300, 41, False, [3]),
    ],
)
def test_compiled_scores_equal_the_reference_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, sizes: list[int], dim: int, whole: bool, query_sizes: list[int], threads: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(kernel, "SHARED", 1)
    generator = torch.Generator().manual_seed(0)
    vectors, slabs = laid_out(sizes, dim, generator)
    codes = Codes.of(vectors, slabs)
    query = codes.query(10 * torch.randn(sum(query_sizes), dim, generator=generator), whole)
    owners = np.repeat(np.arange(len(query_sizes)), query_sizes)
    given = ([codes.first, codes.rest] if whole else [codes.first], slabs, query.codes, query.weights, owners)
    found = kernel.scores(*given)
    assert found.shape == (len(query_sizes), len(sizes))
    np.testing.assert_array_equal(found, kernel.scores_reference(*given))


@pytest.mark.parametrize("dim", [2, 9, 32, 128])
def test_codes_are_within_their_bound_and_products_fit_16_bits(dim: int) -> None:
    generator = torch.Generator().manual_seed(0)
    vectors, slabs = laid_out([1] * 2000, dim, generator)
    vectors[3:5] = torch.eye(dim)[:2]  # long in one number
    queries = torch.cat([torch.randn(40, dim, generator=generator), vectors[:40], torch.zeros(1, dim)])
    queries[:4] *= torch.tensor([1e-20, 1e-3, 1e3, 1e12]).unsqueeze(1)
    codes = Codes.of(vectors, slabs)
    coded = codes.query(queries)
    parts = [
        torch.cat([torch.cat(slabs.tiles(part, slab), dim=1).T for slab in range(len(slabs.starts))])
        for part in (codes.first, codes.rest)
    ]
    rows = torch.cat(parts, dim=1)  # (V, p)
    products = coded.codes.astype(np.int64) @ rows.long().numpy().T
    assert np.abs(products).max() <= 32767
    lost = np.abs(
        products * coded.weights[:, None].astype(np.float64) - (queries.double() @ vectors.double().T).numpy()
    )
    assert (lost.max(1) <= coded.errors).all()
    assert (coded.errors <= 0.006 * dim**0.5 * queries.norm(dim=1).numpy() + 1e-9).all()
    nothing = Codes.of(torch.zeros(3, dim), Slabs.of(list(blocks(np.array([1, 1, 1]), 2048))))
    assert not nothing.first.any()


def test_first_numbers_keep_most_of_products() -> None:
    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(500, 20, generator=generator) @ torch.randn(20, 64, generator=generator)
    axes = principal_axes(flat)
    torch.testing.assert_close(axes.T @ axes, torch.eye(64), rtol=0, atol=1e-5)
    first = flat @ axes[:, :20]
    torch.testing.assert_close(first @ first.T, flat @ flat.T, rtol=1e-3, atol=1e-2)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("dim", [3, 32])
def test_rough_scores_differ_by_less_than_their_margin(dtype: torch.dtype, dim: int) -> None:
    generator = torch.Generator().manual_seed(0)
    vectors = functional.normalize(torch.randn(500, dim, generator=generator), dim=1)
    vectors[0], vectors[1] = 0, 6e-8 * torch.ones(dim)  # the smallest numbers of half precision
    vectors = vectors.to(dtype)
    sizes = np.array([1, 200, 3, 64, 65, 1])
    rows, ptr = torch.randint(500, (int(sizes.sum()),), generator=generator).numpy(), np.append(0, sizes.cumsum())
    rows[:2] = [1, 0]
    for query in (torch.randn(19, dim, generator=generator), torch.ones(1, dim)):
        right = torch.stack(
            [
                (vectors[part].double() @ query.double().T).amax(0).sum()
                for part in np.split(torch.from_numpy(rows), ptr[1:-1])
            ]
        )
        exact = rescoring.scores(vectors, rows, ptr, query)
        np.testing.assert_array_equal(exact, right.float().numpy())
        np.testing.assert_array_equal(exact, rescoring.scores_reference(vectors, rows, ptr, query))
        rough = rescoring.scores(vectors, rows, ptr, query, torch.float32)
        assert np.abs(rough - exact).max() <= rescoring.margin(query) / 2
        for k in (1, 3, 6, 10):
            numbers, scores = rescoring.best(vectors, rows, ptr, query, k)
            np.testing.assert_array_equal(scores, exact[numbers])
            assert set(np.argsort(-exact)[:k].tolist()) <= set(numbers.tolist())


def collections() -> dict[str, tuple[VectorSets, VectorSets]]:
    """Documents and queries: random, around few centres, and with ties and zero vectors and queries of any length."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(1, 30, (900,), generator=generator)
    total = int(sizes.sum())
    centres = functional.normalize(torch.randn(12, 32, generator=generator), dim=1)
    random = functional.normalize(torch.randn(total, 32, generator=generator), dim=1)
    near = centres[torch.randint(12, (total,), generator=generator)] + 0.02 * random
    tied = centres[torch.randint(3, (total,), generator=generator)]
    tied[::11] = 0
    queries = VectorSets.of([random[:15], near[:1], centres[:4] * 1e6, torch.zeros(2, 32), near[7:50] * 1e-6])
    return {
        name: (VectorSets.of_sizes(functional.normalize(vectors, dim=1), sizes), queries)
        for name, vectors in (("random", random), ("clustered", near), ("tied", tied))
    }


@pytest.mark.parametrize("way", ["compiled", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["random", "clustered", "tied"])
def test_exact_search_by_codes_has_the_results_of_a_float_scan(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, name: str, dtype: DType, way: str
) -> None:
    documents, queries = collections()[name]
    ids = [str(number) for number in range(len(documents))]
    if way == "compiled":
        request.getfixturevalue("compiled")
    index = ExactIndex.build(ids, documents, dtype=dtype, block=256)
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", 1)
    monkeypatch.setattr("mathamr.retrieval.exact.index.MOST_CANDIDATES", 1.0)
    whole = VectorSets(index.vectors_of(ids).vectors, documents.ptr)
    for k in (1, 10, 60):
        for query, ranking in zip(queries, index.search(queries, MAXSIM, k), strict=True):
            all_scores = rescoring.scores(whole.vectors, np.arange(len(whole.vectors)), whole.ptr.numpy(), query)
            order = sorted(zip(all_scores.tolist(), ids, strict=True), reverse=True)[:k]
            assert ranking == [(post_id, score) for score, post_id in order]


def test_a_folder_with_codes_of_an_earlier_layout_gets_new_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", 1)
    documents, queries = collections()["random"]
    ids = [str(number) for number in range(len(documents))]
    right = ExactIndex.build(ids, documents, path=tmp_path).search(queries, MAXSIM, 5)
    header = json.loads((tmp_path / "index.json").read_text())

    def change(codes: Any) -> None:
        whole = {name: value for name, value in header.items() if name != "sha256"} | {"codes": codes}
        (tmp_path / "index.json").write_text(json.dumps({**whole, "sha256": digests.of_json(whole)}))

    change({"scale": 0.1, "error": 0.2, "length": 1.0})  # of version 0.1, which named no layout
    index = ExactIndex.open(tmp_path)
    assert index._codes is None
    assert index.search(queries, MAXSIM, 5) == right
    for codes in ({**header["codes"], "scale": "none"}, {"layout": "tiles"}):
        change(codes)
        with pytest.raises(StoreError, match="damaged"):
            ExactIndex.open(tmp_path)


def test_the_largest_are_found_by_a_part_of_the_row() -> None:
    generator = np.random.default_rng(0)
    row = generator.normal(size=100_000).astype(np.float32)
    row[500:900] = 9  # none of them may be in the part that is looked at
    row[:400] = -np.inf
    for count in (1, 100, 5_000, 100_000, 200_000):
        places = scan.largest(row, count)
        assert len(places) == min(count, len(row))
        np.testing.assert_array_equal(np.sort(row[places]), np.sort(row)[-count:])
        assert (np.diff(places) > 0).all()


def test_work_is_shared_and_an_error_of_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(kernel, "SHARED", 1)
    for ends in ([5], [1, 2, 3], [100, 101, 102, 103], list(range(1, 200))):
        done: list[int] = []
        kernel.shared(lambda first, last, done=done: done.extend(range(first, last)), np.array(ends))  # type: ignore
        assert sorted(done) == list(range(len(ends)))

    def fail(first: int, last: int) -> None:
        raise ValueError(f"{first} to {last}")

    with pytest.raises(ValueError, match="0 to"):
        kernel.shared(fail, np.array([1]))
