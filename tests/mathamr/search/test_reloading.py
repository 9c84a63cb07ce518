"""An index that is replaced while it is opened or open; one that cannot be opened leaves the index of before."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from graphs.errors import StoreError
from mathamr.retrieval.folder import HEADER, building, read_header, switch
from mathamr.search import catalog
from mathamr.search.catalog import Catalog
from mathamr.search.engine import Engine, QueryEncoder
from mathamr.search.reloading import ReloadableEngine
from mathamr.search.settings import read
from mathamr.search.web.app import create_app
from mathamr.training import checkpoint
from tests.mathamr.search.web import tiny_index


def test_a_replaced_index_is_searched_after_a_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = tiny_index.build(tmp_path / "first")
    monkeypatch.setattr(tiny_index, "ANSWERS", {name: tiny_index.ANSWERS[name] for name in ("11", "14")})
    second = tiny_index.build(tmp_path / "second")
    place = tmp_path / "index"
    place.symlink_to(first)
    engine = ReloadableEngine(lambda: Engine.open(place))
    client = TestClient(create_app(engine, read([f"index={place}"])[0]), base_url="http://127.0.0.1:8000")

    def found() -> tuple[int, int]:
        results = client.post("/api/search", json={"query": "$\\sqrt2$", "k": 9}).json()["results"]
        return client.get("/api/index").json()["posts"], len(results)

    assert found() == (5, 5)
    place.unlink()
    with pytest.raises(StoreError, match="no index here"):
        engine.reload()
    assert found() == (5, 5)
    place.symlink_to(second)
    engine.reload()
    assert found() == (2, 2)
    engine.close()


def update(index: Path, **changed: object) -> None:
    """Replace an index by one with the same data, and with changes to its header."""
    header, before = read_header(index, catalog.FORMAT, catalog.VERSION)
    with building(index) as data:
        shutil.copytree(before, data, dirs_exist_ok=True)
        further = [data / name for name in header["files"] if (data / name).parent != data]
        switch(
            index, data, {name: header[name] for name in header if name not in ("sha256", "files")} | changed, further
        )


@pytest.fixture
def replaced(index_folder: Path, tmp_path: Path) -> Path:
    """Copy of the index, to be replaced."""
    return shutil.copytree(index_folder, tmp_path / "index")


def after_an_update(index: Path, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that first updates the index, if it has not done so before."""
    updates = [1]

    def slow(*given: Any, **options: Any) -> Any:
        if updates:
            updates.pop()
            update(index)
        return function(*given, **options)

    return slow


def test_an_index_that_is_updated_while_it_is_opened_is_opened_again(
    replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (replaced / HEADER).read_text()
    monkeypatch.setattr(Catalog, "__init__", after_an_update(replaced, Catalog.__init__))
    with closing(Catalog.open(replaced)) as found:
        assert len(found) == 5
    assert (replaced / HEADER).read_text() != before


@pytest.mark.parametrize(("place", "step"), [(checkpoint, "load_encoder"), (QueryEncoder, "__init__")])
@pytest.mark.parametrize("trees", [True, False])
def test_an_index_that_is_updated_while_its_model_is_read_is_opened_again(
    place: Any, step: str, trees: bool, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not trees:
        update(replaced, structured=0)  # as an earlier version writes it
    before = (replaced / HEADER).read_text()
    monkeypatch.setattr(place, step, after_an_update(replaced, getattr(place, step)))
    with closing(Engine.open(replaced)) as engine:
        assert engine.answer("$\\sqrt2$", task="formulas").results
    assert (replaced / HEADER).read_text() != before


@pytest.mark.parametrize("trees", [True, False])
def test_an_open_engine_finds_posts_and_formulas_after_an_update(trees: bool, replaced: Path) -> None:
    if not trees:
        update(replaced, structured=0)
    with closing(Engine.open(replaced)) as engine:
        update(replaced)
        assert len(engine.answer("$\\sqrt2$", k=9).results) == 5
        assert engine.answer("$\\sqrt2$", task="formulas").results
