"""The engine that the page is tested with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mathamr.search.engine import Engine
from mathamr.search.settings import Settings, read
from tests.mathamr.web.tiny_index import build


@pytest.fixture(scope="session")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="session")
def engine(index_folder: Path) -> Iterator[Engine]:
    engine = Engine.open(index_folder)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def settings(index_folder: Path) -> Settings:
    return read([f"index={index_folder}"])[0]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    from tests.mathamr.web.browser import open_chromium

    driver = open_chromium()
    yield driver
    driver.quit()
