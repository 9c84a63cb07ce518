"""The engine that the page is tested with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mathamr.search.engine import Engine
from mathamr.search.settings import Settings, read
from tests.mathamr.search.web.tiny_index import build

if TYPE_CHECKING:
    from tests.mathamr.search.web.browser import Page


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
    from tests.mathamr.search.web.browser import open_chromium

    driver = open_chromium()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def home(engine: Engine, settings: Settings) -> Iterator[str]:
    """Address of a server of the tiny index."""
    from mathamr.search.web.app import create_app
    from tests.mathamr.search.web.browser import served

    with served(create_app(engine, settings)) as address:
        yield address


@pytest.fixture
def page(chromium: Any, home: str) -> Page:
    from tests.mathamr.search.web.browser import Page

    return Page(chromium, home)
