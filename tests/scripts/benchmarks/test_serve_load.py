"""The load on the page's server: answers, places that are full, and errors are counted apart."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mathamr.search.engine import Engine
from mathamr.search.settings import read
from mathamr.search.web import app
from scripts import index as index_script
from scripts import serve
from scripts.benchmarks.scale import serve_load
from tests.scripts.small_collection import index_arguments


@pytest.fixture(scope="module")
def folder(work: Path) -> Path:
    assert index_script.main(index_arguments(work, work / "load-index")) == 0
    return work / "load-index"


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    settings, _ = read([f"index={folder}"])
    engine = Engine.open(folder)
    listener = socket.create_server(("127.0.0.1", 0))
    server = serve.server_of([(engine, settings)], listener, "127.0.0.1")
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield "{}:{}".format(*listener.getsockname()[:2])
    server.should_exit = True
    thread.join(60)
    listener.close()
    engine.close()


def test_every_client_is_answered_and_memory_is_read(folder: Path, address: str) -> None:
    queries = serve_load.queries_of(folder)
    assert len(queries) == 4
    load, memory = serve_load.run(address, queries, 6, 1.0, os.getpid())
    assert (load.busy, dict(load.errors)) == (0, {})
    assert len(load.seconds) >= 6
    found = serve_load.summary(load, memory, 6, 1.0)
    assert found["answers"] == len(load.seconds)
    assert min(memory) > 10


def test_a_server_without_a_place_is_asked_again(folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_load, "PAUSE", 0.01)
    answer, turns = Engine.answer, iter(range(10**6))

    def sometimes(*arguments: object, **more: object) -> object:
        if next(turns) == 0:
            raise app.Busy
        return answer(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "answer", sometimes)
    load, _ = serve_load.run(address, serve_load.queries_of(folder), 1, 0.2, os.getpid())
    assert (load.busy, dict(load.errors)) == (1, {})
    assert load.seconds


def test_a_connection_that_breaks_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    load, memory = serve_load.run(f"127.0.0.1:{port}", ["$x$"], 1, 0.1, os.getpid())
    assert load.errors.total() > 0
    assert not load.seconds
    assert serve_load.summary(load, memory, 1, 0.1)["errors"] == load.errors.total()
