"""Processes of one server: started, replaced, told to open the index again, and ended together."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mathamr.search.web.operation import SLOT, SharedCounts
from mathamr.search.web.workers import Workers
from tests.warm_process import SECONDS

# A worker without a server: it writes a line to its log when it answers and at each SIGHUP.
WORKER = """
import os, signal, sys, time
log, number = sys.argv[1], sys.argv[-2]
def say(word):
    with open(log, "a") as file:
        file.write(f"{word} {number} {os.getpid()}\\n")
signal.signal(signal.SIGHUP, lambda *_: say("reloaded"))
say("begins")
while os.path.exists(log + ".slow"):
    time.sleep(0.02)
if os.path.exists(log + ".broken"):
    sys.exit(2)
say("answers")
print("http://here", flush=True)
while sys.stdin.read(1):
    pass
"""


def run(log: Path, act: Callable[[Callable[[str, int], list[int]]], None]) -> tuple[int, list[str]]:
    """Run two workers; return the exit code and what was told. ``act`` is called in a thread once both answer.

    ``act`` gets a function that waits, for at most :data:`SECONDS`, until the log has a number of lines with a
    word, and returns their processes.
    """
    told: list[str] = []
    stopped = threading.Event()

    def lines(word: str, count: int) -> list[int]:
        deadline = time.monotonic() + SECONDS
        while not stopped.wait(0.02) and time.monotonic() < deadline:
            found = log.read_text().splitlines() if log.exists() else []
            if len(chosen := [line.split() for line in found if line.startswith(word)]) >= count:
                return [int(process) for _, _, process in chosen]
        return []

    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-S", "-c", WORKER, str(log)]
        thread = threading.Thread(target=act, args=(lines,))

        def started(address: str) -> None:
            told.append(address)
            thread.start()

        try:
            return Workers(command, 2, listener, started=started, warn=told.append).run(), told
        finally:
            stopped.set()
            if thread.ident is not None:
                thread.join()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_signals_reach_all_workers_and_a_dead_one_is_replaced(tmp_path: Path) -> None:
    log = tmp_path / "log"
    seen: list[int] = []

    def act(lines: Callable[[str, int], list[int]]) -> None:
        first = lines("answers", 2)
        os.kill(os.getpid(), signal.SIGHUP)
        assert sorted(lines("reloaded", 2)) == sorted(first)
        os.kill(first[0], signal.SIGKILL)
        seen.extend(lines("answers", 3))
        os.kill(os.getpid(), signal.SIGTERM)

    code, told = run(log, act)
    assert code == 0
    assert told == ["http://here", "worker 0 ended with code -9; another one takes its place"]
    assert len(set(seen)) == 3
    assert not any(is_alive(process) for process in seen)


def test_a_worker_that_starts_during_a_reload_opens_the_index_again(tmp_path: Path) -> None:
    """It may have opened the old one."""
    log, slow = tmp_path / "log", tmp_path / "log.slow"
    reloaded: list[int] = []

    def act(lines: Callable[[str, int], list[int]]) -> None:
        first, _ = lines("answers", 2)
        slow.touch()
        os.kill(first, signal.SIGKILL)
        lines("begins", 3)
        os.kill(os.getpid(), signal.SIGHUP)
        lines("reloaded", 1)
        slow.unlink()
        reloaded.extend(lines("reloaded", 2))
        os.kill(os.getpid(), signal.SIGTERM)

    assert run(log, act)[0] == 0
    assert len(set(reloaded)) == 2


def test_counts_that_were_half_written_are_left_out() -> None:
    with tempfile.TemporaryFile() as file:
        SharedCounts(file.fileno(), 0, 2, lambda: 0).add("/api/search", 200, 0.1)
        os.pwrite(file.fileno(), b'{"statuses": [["/api', SLOT)
        second = SharedCounts(file.fileno(), 1, 2, lambda: 0)
        assert 'mathamr_requests_total{path="/api/search",status="200"} 1' in second.text()
        os.pwrite(file.fileno(), b"[", 0)
        assert "mathamr_requests_total{" not in second.text()


def test_a_worker_that_cannot_be_replaced_ends_all(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def act(lines: Callable[[str, int], list[int]]) -> None:
        first, _ = lines("answers", 2)
        (tmp_path / "log.broken").touch()
        os.kill(first, signal.SIGKILL)

    code, told = run(log, act)
    assert code == 2
    assert told[-1] == "worker 0 ended with code 2 before it answered; the server ends"


def test_an_index_that_cannot_be_opened_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "log.broken").touch()
    assert run(tmp_path / "log", lambda _: None) == (2, [])


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGHUP])
def test_handlers_of_before_are_back_afterwards(tmp_path: Path, signal_: signal.Signals) -> None:
    before = signal.getsignal(signal_)
    (tmp_path / "log.broken").touch()
    run(tmp_path / "log", lambda _: None)
    assert signal.getsignal(signal_) is before
