"""The engine that the page is tested with. Tests of scripts import ``tiny_index`` from here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mathamr.engine import Engine
from mathamr.search_settings import Settings, read

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_index import build

    return build(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="session")
def engine(index_folder: Path) -> Iterator[Engine]:
    engine = Engine.open(index_folder)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def settings(index_folder: Path) -> Settings:
    return read([f"index={index_folder}"])[0]
