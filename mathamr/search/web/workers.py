"""Several server processes on one port: started, watched, and ended together.

    Workers([sys.executable, "scripts/serve.py", "index=index"], 2, listener, started=print, warn=print).run()

A worker is the command with ``--worker LISTENER COUNTS NUMBER WORKERS``: two file descriptors and two numbers, see
:class:`Place`. It prints its address when it answers. The first one is started alone, so that an index that cannot be
opened is reported once. A worker that dies is replaced; if one dies before it answers, all are ended. On the signal HUP
every worker opens its index again; TERM and INT end all. Workers end with this process, however it ends: their standard
input is a pipe from it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO

from mathamr.search.web.operation import SLOT

FLAG = "--worker"
GRACE = 30.0  # seconds to answer what was asked, before a worker is killed
_POLL_SECONDS = 0.2  # seconds between two looks at the workers


@dataclass(frozen=True, slots=True)
class Place:
    """One worker's place among all.

    >>> Place.of(["index=a", "--worker", "3", "4", "0", "2"])
    (['index=a'], Place(listener=3, counts=4, number=0, workers=2))
    >>> Place.of(["index=a"])
    (['index=a'], None)

    Attributes:
        listener: descriptor of the listening socket.
        counts: descriptor of the file of the counts (:mod:`mathamr.search.web.operation`).
        number: number of this worker, from 0.
    """

    listener: int
    counts: int
    number: int
    workers: int

    @classmethod
    def of(cls, words: Sequence[str]) -> tuple[list[str], Place | None]:
        """Return the words of a command without the place, and the place, or None for a server alone."""
        if FLAG not in words:
            return list(words), None
        at = words.index(FLAG)
        return [*words[:at], *words[at + 5 :]], cls(*map(int, words[at + 1 : at + 5]))


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    reloads: int  # requests to open the index again that it has seen
    home: str = ""  # its address, once it answers
    known: threading.Event = field(default_factory=threading.Event)  # it answers, or has died before

    def listen(self) -> None:
        """Wait for the address."""
        assert self.process.stdout is not None
        self.home = self.process.stdout.readline().strip()
        self.known.set()

    def close(self) -> None:
        """Close the pipes of a process that has ended."""
        self.known.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


class Workers:
    """Processes that answer on one socket.

    Args:
        command: command of a worker, without its place.
        count: number of workers.
        started: called with the address once all workers answer.
        warn: called with a message about a worker that died.
    """

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        listener: socket.socket,
        *,
        started: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> None:
        self._command = list(command)
        self._count = count
        self._listener = listener
        self._started = started
        self._warn = warn
        self._workers: dict[int, _Worker] = {}
        # Signal handlers set these. They must not take a lock, which the interrupted code may hold, as Event.set would.
        self._ending = False
        self._reloads = 0

    def run(self) -> int:
        """Answer until a signal ends all; return 0, or the code of a worker that died before it answered."""
        before = {
            signal.SIGTERM: signal.signal(signal.SIGTERM, self._end),
            signal.SIGINT: signal.signal(signal.SIGINT, self._end),
            signal.SIGHUP: signal.signal(signal.SIGHUP, self._count_reload),
        }
        with tempfile.TemporaryFile() as counts:
            os.truncate(counts.fileno(), self._count * SLOT)
            try:
                return self._serve(counts)
            finally:
                self._end_all()
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _serve(self, counts: IO[bytes]) -> int:
        for numbers in (range(1), range(1, self._count)):
            for worker in [self._start(number, counts) for number in numbers]:
                worker.known.wait()
                if self._ending:
                    return 0
                if not worker.home:
                    return worker.process.wait() or 1
        self._started(self._workers[0].home)
        while not self._ending:
            time.sleep(_POLL_SECONDS)
            for number, worker in list(self._workers.items()):
                code = worker.process.poll()
                if code is None:
                    self._reload(worker)
                if code is None or self._ending:
                    continue
                worker.known.wait()
                if not worker.home:
                    self._warn(f"worker {number} ended with code {code} before it answered; the server ends")
                    return code if code > 0 else 1
                self._warn(f"worker {number} ended with code {code}; another one takes its place")
                worker.close()
                self._start(number, counts)
        return 0

    def _start(self, number: int, counts: IO[bytes]) -> _Worker:
        descriptors = (self._listener.fileno(), counts.fileno())
        place = [FLAG, *map(str, (*descriptors, number, self._count))]
        reloads = self._reloads  # before the index is opened
        process = subprocess.Popen(
            [*self._command, *place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
            process_group=0,  # Ctrl-C is for this process alone
        )
        worker = self._workers[number] = _Worker(process, reloads)
        threading.Thread(target=worker.listen, daemon=True).start()
        return worker

    def _end(self, *_: object) -> None:
        self._ending = True
        for worker in self._workers.values():
            worker.process.terminate()

    def _count_reload(self, *_: object) -> None:
        self._reloads += 1

    def _reload(self, worker: _Worker) -> None:
        """Tell a worker to open its index again if a signal came since it was told, or started.

        It can be told only once it answers: it has no handler of the signal before.
        """
        if worker.home and worker.reloads < self._reloads:
            worker.reloads = self._reloads
            worker.process.send_signal(signal.SIGHUP)

    def _end_all(self) -> None:
        self._end()
        for worker in self._workers.values():
            try:
                worker.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.close()


def end_with_parent() -> None:
    """End this worker when its standard input closes, i.e. when the process that started it is gone."""

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
