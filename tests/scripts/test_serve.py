"""scripts/serve.py: it starts, answers, and ends by Ctrl-C; what is wrong is one message."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import uvicorn

from mathamr.search.engine import Engine
from mathamr.search.settings import read
from mathamr.search.web import app as web_app
from mathamr.search.web import guard, patience
from scripts import serve
from tests.mathamr.search.web.tiny_index import build

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("serve"))


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the script on a free port; yields its process and its address."""
    command = [sys.executable, "scripts/serve.py", "port=0", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            home = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+", home), home
            yield process, home
        finally:
            process.kill()


def test_it_answers_until_it_is_interrupted(index: Path) -> None:
    with started(f"index={index}", "strategy=single_vector", "k=2", "--log") as (process, home):
        with urlopen(f"{home}/", timeout=60) as page:
            assert b"<title>MathAMR+ search</title>" in page.read()
        body = json.dumps({"query": "Why is $\\sqrt2$ irrational?"}).encode()
        request = Request(f"{home}/api/search", data=body, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert (len(found["results"]), found["best"]) == (2, 1.0)
        assert process.stderr is not None
        process.send_signal(signal.SIGHUP)
        before = ""
        while before.count("5 posts, loaded in") < 2:
            line = process.stderr.readline()
            assert line, before
            before += line
        with urlopen(request, timeout=60) as answer:
            assert json.load(answer)["results"] == found["results"]
        process.send_signal(signal.SIGINT)
        _, after = process.communicate(timeout=60)
    assert process.returncode == 0
    errors = before + after
    assert "Traceback" not in errors
    logged = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    ended = sorted((one["path"], one["status"]) for one in logged)  # the page's file may be closed after a search
    assert ended == [("/api/search", 200)] * 2 + [("other", 200)]


@pytest.mark.slow
def test_two_workers_answer_on_one_port_with_common_metrics(index: Path) -> None:
    with started(f"index={index}", "--workers", "2") as (process, home):
        for _ in range(4):
            with urlopen(f"{home}/api/index", timeout=60) as answer:
                assert json.load(answer)["posts"] == 5
        with urlopen(f"{home}/api/health", timeout=60) as answer:
            assert json.load(answer)["workers"] == 2
        counted, deadline = 'mathamr_requests_total{path="/api/index",status="200"} 4\n', time.monotonic() + 60
        metrics = ""
        while counted not in metrics and time.monotonic() < deadline:  # a request is counted after its answer is sent
            with urlopen(f"{home}/api/metrics", timeout=60) as answer:
                metrics = answer.read().decode()
        assert counted in metrics
        assert 'mathamr_memory_peak_bytes{worker="1"}' in metrics
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index=nowhere", "port=0"], "no index here"),
        (["port=0"], "index=FOLDER is missing"),
        (["index=x", "depth=3"], "unknown key 'depth'; choose from: index, k,"),
        (["index=x", "a query"], "queries are typed into the page"),
        (["index=x", "port=70000"], "ports go from 0, any that is free, to 65535"),
        (["index=x", "port=many"], "a whole number is needed"),
        (["index=x", "workers=0"], "from 1 to 64 processes can answer"),
        (["index=x", "index=y", "model=z"], "model=z is about one index, but 2 are given"),
        (["index=x", "start=10"], "start=10: the page begins at the first result; leave start out"),
        (["index=x", "strategy=best"], "unknown strategy 'best'"),
        (["index=x", "host=no.such.name.invalid"], "host=no.such.name.invalid port=8000"),
        (["index=x", "host=.a"], "host=.a port=8000"),
    ],
)
def test_what_is_wrong_is_one_message_and_code_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_port_in_use_is_told_before_anything_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve.main(["index=nowhere", f"port={port}"]) == 2
    assert "Address already in use" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda _: None)
    assert serve.main(["index=nowhere"]) == 2
    assert "pip install 'mathamr-plus[web]'" in capsys.readouterr().err


def test_waiting_questions_are_refused_before_connections() -> None:
    """Only the refusal of a question is an object with the reason."""
    assert serve.MAX_CONNECTIONS >= 2 * web_app.MAX_WAITING


@contextmanager
def running(server: uvicorn.Server, listener: socket.socket) -> Iterator[None]:
    """Run a server in a thread."""
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(60)


@pytest.fixture
def served(index: Path) -> Iterator[tuple[uvicorn.Server, tuple[str, int]]]:
    """Server in a thread, and its address."""
    settings, _ = read([f"index={index}"])
    with closing(Engine.open(index)) as engine, socket.create_server(("127.0.0.1", 0)) as listener:
        server = serve.server_of([(engine, settings)], listener, "127.0.0.1")
        with running(server, listener):
            yield server, listener.getsockname()[:2]


def test_half_sent_requests_keep_nobody_out(
    served: tuple[uvicorn.Server, tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many clients as there may be connections send half of a head, or half of a body; then one asks."""
    _, address = served
    monkeypatch.setattr(patience.PatientProtocol, "read_seconds", 0.3)
    monkeypatch.setattr(guard, "READ_SECONDS", 0.3)
    half_body = (
        b"POST /api/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with ExitStack() as stack:
        slow = []
        for number in range(serve.MAX_CONNECTIONS - 1):
            client = stack.enter_context(socket.create_connection(address, timeout=60))
            client.sendall((b"GET / HTT", half_body, b"")[number % 3])
            slow.append(client)
        replies = [client.recv(1 << 16) for client in slow]  # waits until the server has given up on each
        assert {reply.split(b"\r\n")[0] for reply in replies} == {b"HTTP/1.1 408 Request Timeout"}
        monkeypatch.undo()  # the one that asks may take its time
        with urlopen("http://{}:{}/api/index".format(*address), timeout=60) as answer:
            assert json.load(answer)["posts"] == 5


def test_a_client_that_reads_nothing_loses_its_connection(
    served: tuple[uvicorn.Server, tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    monkeypatch.setattr(patience.PatientProtocol, "write_seconds", 0.3)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 11)
        client.connect(address)
        client.sendall(b"GET /mathlive/mathlive.min.mjs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        client.recv(1, socket.MSG_PEEK)
        until(lambda: not server.server_state.connections)
        assert not server.server_state.connections
        received = 0
        with suppress(ConnectionResetError):
            while piece := client.recv(1 << 20):
                received += len(piece)
        assert received < 20 * (web_app.PAGE.parent / "mathlive" / "mathlive.min.mjs").stat().st_size


def test_a_client_that_reads_slowly_gets_the_whole_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """The response is longer than the system's buffers, so that the watch over its client begins, and ends nothing."""
    sent = b"x" * 2_000_000
    found, checks, check = bytearray(), [0], patience.PatientProtocol._check_reading

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": sent})

    def fair(protocol: patience.PatientProtocol, before: int) -> None:
        if len(found) < checks[-1] + (1 << 18):  # the client has had no time, on a machine with other work to do
            protocol._full = protocol.loop.call_later(0.1, protocol._check_reading, before)
            return
        checks.append(len(found))
        check(protocol, before)

    monkeypatch.setattr(patience.PatientProtocol, "_check_reading", fair)
    monkeypatch.setattr(patience.PatientProtocol, "write_seconds", 0.4)
    server = uvicorn.Server(uvicorn.Config(app, http=patience.PatientProtocol, lifespan="off", log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listener, running(server, listener), socket.socket() as client:
        client.settimeout(60)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        client.connect(listener.getsockname())
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while piece := client.recv(1 << 15):
            found += piece
            time.sleep(len(piece) / 2_000_000)
    assert found.count(b"x") == len(sent)
    assert len(checks) > 1


def test_a_search_is_left_out_if_its_client_has_gone(
    served: tuple[uvicorn.Server, tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = served
    searched: list[str] = []
    going, may_answer = threading.Event(), threading.Event()
    answer = Engine.answer

    def wait(engine: Engine, text: str, **more: Any) -> Any:
        searched.append(text)
        going.set()
        assert may_answer.wait(60)
        return answer(engine, text, **more)

    def ask(query: str) -> socket.socket:
        body = json.dumps({"query": query}).encode()
        head = "POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
        client = socket.create_connection(address, timeout=60)
        client.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        return client

    monkeypatch.setattr(Engine, "answer", wait)
    with ask("Is $a$ odd?") as first:
        assert going.wait(60)
        for _ in range(2):
            with ExitStack() as others:
                for _ in range(web_app.MAX_WAITING - 1):
                    others.enter_context(ask("Is $b$ odd?"))
                until(lambda: waiting(address) == web_app.MAX_WAITING)
                with ask("Is $b$ odd?") as refused:
                    assert refused.recv(12) == b"HTTP/1.1 503"
            until(lambda: waiting(address) == 1)
        until(lambda: len(server.server_state.tasks) <= 2)  # at MAX_CONNECTIONS of them, uvicorn refuses all requests
        with ask("Is $c$ odd?") as last:
            may_answer.set()
            for client in (first, last):
                assert client.recv(15) == b"HTTP/1.1 200 OK"
    assert searched == ["Is $a$ odd?", "Is $c$ odd?"]


def until(true: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waiting(address: tuple[str, int]) -> int:
    with urlopen("http://{}:{}/api/health".format(*address), timeout=60) as answer:
        number: int = json.load(answer)["waiting"]
    return number
