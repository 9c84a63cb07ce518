"""The small collection that indexes and searches are tested on."""

from pathlib import Path

import pytest

from tests.scripts.small_collection import make


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search")
    make(path)
    return path
