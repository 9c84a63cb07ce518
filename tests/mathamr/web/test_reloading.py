"""A replaced index is searched after a reload; one that cannot be opened leaves the index of before."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphs.errors import StoreError
from mathamr.search.engine import Engine
from mathamr.search.reloading import ReloadableEngine
from mathamr.search.settings import read
from mathamr.search.web.app import create_app
from tests.mathamr.web import tiny_index


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
