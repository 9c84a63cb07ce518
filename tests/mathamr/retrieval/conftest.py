"""A small collection of ragged sets of unit vectors, and queries to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from mathamr.maxsim import VectorSets


@dataclass(frozen=True)
class Collection:
    post_ids: list[str]
    documents: VectorSets
    queries: VectorSets


def random_sets(generator: torch.Generator, count: int, longest: int, dim: int) -> VectorSets:
    sizes = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
    return VectorSets.of(
        [torch.nn.functional.normalize(torch.randn(size, dim, generator=generator), dim=1) for size in sizes]
    )


@pytest.fixture
def make_collection() -> Callable[..., Collection]:
    def make(count: int = 90, num_queries: int = 7, longest: int = 9, dim: int = 8, seed: int = 0) -> Collection:
        generator = torch.Generator().manual_seed(seed)
        documents = random_sets(generator, count, longest, dim)
        queries = random_sets(generator, num_queries, longest, dim)
        return Collection([str(1000 + 7 * i) for i in range(count)], documents, queries)

    return make


@pytest.fixture
def collection(make_collection: Callable[..., Collection]) -> Collection:
    return make_collection()
