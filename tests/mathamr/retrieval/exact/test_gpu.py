"""Largest similarities by tensor cores: on a GPU, or by Triton's interpreter where Triton is installed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import gpu, scan
from mathamr.retrieval.exact.layout import Block, blocks

GENERATOR = torch.Generator().manual_seed(5)


def unit(count: int, dim: int) -> Tensor:
    return functional.normalize(torch.randn(count, dim, generator=GENERATOR), dim=1)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("triton", reason="Triton is not installed; it comes with torch for GPUs")
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    gpu._kernel.cache_clear()
    yield "cuda" if torch.cuda.is_available() else "cpu"
    gpu._kernel.cache_clear()


def test_two_halves_are_the_query() -> None:
    query = unit(50, 32)
    high, low = gpu.halves(query)
    assert (high.double() + low.double() - query).abs().max() < 2**-22


def test_vectors_on_a_cpu_and_in_float32_are_left_to_the_reference() -> None:
    assert not gpu.usable(unit(2, 32).half())
    assert not gpu.usable(unit(2, 32))


@pytest.mark.parametrize("dim", [8, 32, 48])
@pytest.mark.parametrize("width", [1, 16, 70])
def test_the_kernel_gives_the_largest_similarities(device: str, dim: int, width: int) -> None:
    sizes = np.sort(np.random.default_rng(dim).integers(1, 9, 150))[::-1]
    layout, vectors = list(blocks(sizes, 100)), unit(int(sizes.sum()), dim).half()
    queries = unit(width, dim)
    found = gpu.largest(queries.to(device), vectors.to(device), layout)
    for block, part in zip(layout, found, strict=True):
        assert torch.allclose(part.cpu().double(), reference(queries, vectors, block), atol=1e-6)


def test_scores_are_those_without_the_kernel(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, vectors = list(blocks(np.array([3, 2, 1]), 2)), unit(6, 32).half().to(device)
    queries = VectorSets.of([unit(2, 32), unit(3, 32)]).to(device)
    without, used = (scores(queries, vectors, layout, use, monkeypatch) for use in (False, True))
    assert torch.allclose(used, without, atol=1e-6)


def scores(
    queries: VectorSets, vectors: Tensor, layout: list[Block], use: bool, monkeypatch: pytest.MonkeyPatch
) -> Tensor:
    monkeypatch.setattr(gpu, "usable", lambda _: use)
    return scan.scores(queries, vectors, layout)


def reference(queries: Tensor, vectors: Tensor, block: Block) -> Tensor:
    best = torch.full((block.counts[0], len(queries)), -np.inf, dtype=torch.float64)
    for start, count in zip(block.starts, block.counts, strict=True):
        similarities = vectors[start : start + count].double() @ queries.double().T
        best[:count] = torch.maximum(best[:count], similarities)
    return best
