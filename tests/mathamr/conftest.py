"""What models are tested on. Tests and the processes they start import ``tiny_collection`` from here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, new_store: Callable[..., GraphStore]) -> GraphStore:
    return new_store(tmp_path_factory.mktemp("graphs") / "preprocessed.db")


@pytest.fixture(scope="session")
def new_store() -> Callable[..., GraphStore]:
    from tiny_collection import make_store

    return make_store


@pytest.fixture
def pairs() -> list[Pair]:
    from tiny_collection import QUESTIONS

    return [Pair(f"q{i}", f"a{i}") for i in range(QUESTIONS)]
