"""Counts and logs of the requests to the page, for its operator.

>>> counts = Counts(waiting=lambda: 3)
>>> counts.add("/api/search", 200, 0.07)
>>> counts.add("/api/search", 503, 0.001)
>>> print(counts.text().split("# HELP mathamr_memory")[0].strip())
# HELP mathamr_requests_total Requests by path and status.
# TYPE mathamr_requests_total counter
mathamr_requests_total{path="/api/search",status="200"} 1
mathamr_requests_total{path="/api/search",status="503"} 1
# HELP mathamr_request_seconds Seconds from a request to the end of its response.
# TYPE mathamr_request_seconds histogram
mathamr_request_seconds_bucket{path="/api/search",le="0.01"} 1
mathamr_request_seconds_bucket{path="/api/search",le="0.03"} 1
mathamr_request_seconds_bucket{path="/api/search",le="0.1"} 2
...
mathamr_request_seconds_bucket{path="/api/search",le="+Inf"} 2
mathamr_request_seconds_sum{path="/api/search"} 0.071
mathamr_request_seconds_count{path="/api/search"} 2
# HELP mathamr_waiting Questions that wait for the engine, the one being answered among them.
# TYPE mathamr_waiting gauge
mathamr_waiting 3

Neither counts nor logs contain words of a query. Paths outside the interface are counted as ``other``.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mathamr.evaluation.efficiency import peak_memory

BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # seconds, of the histogram
PATHS = (
    *("/api/search", "/api/compare", "/api/export", "/api/heat-map", "/api/posts/"),
    *("/api/index", "/api/health", "/api/metrics"),
)
OTHER = "other"
_REQUESTS, _SECONDS = "mathamr_requests_total", "mathamr_request_seconds"


class Counts:
    """Numbers of requests and their seconds, by path.

    Args:
        waiting: returns the number of questions that wait for the engine.
        memory: returns the peak memory in bytes by the labels of its line; by default that of this process.

    Attributes:
        about: facts about the counted process for ``GET /api/health``.
    """

    def __init__(self, waiting: Callable[[], int], memory: Callable[[], Mapping[str, int]] | None = None) -> None:
        self._waiting = waiting
        self._memory = memory or (lambda: {"": peak_memory()})
        self.about: dict[str, int] = {}
        self._totals: dict[str, float] = {}  # by the name and labels of their lines

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        added: dict[str, float] = {f'{_REQUESTS}{{path="{path}",status="{status}"}}': 1}
        added |= {f'{_SECONDS}_bucket{{path="{path}",le="{bound:g}"}}': int(seconds <= bound) for bound in BOUNDS}
        added |= {
            f'{_SECONDS}_bucket{{path="{path}",le="+Inf"}}': 1,
            f'{_SECONDS}_sum{{path="{path}"}}': seconds,
            f'{_SECONDS}_count{{path="{path}"}}': 1,
        }
        self._load(added)

    def text(self) -> str:
        """Return the counts in the text format of Prometheus."""
        of_requests = sorted(name for name in self._totals if name.startswith(_REQUESTS))
        of_seconds = sorted((name for name in self._totals if name not in of_requests), key=_path)  # else as added
        lines = [*_head(_REQUESTS, "counter", "Requests by path and status."), *map(self._line, of_requests)]
        help_ = "Seconds from a request to the end of its response."
        lines += [*_head(_SECONDS, "histogram", help_), *map(self._line, of_seconds)]
        help_ = "Questions that wait for the engine, the one being answered among them."
        lines += [*_head("mathamr_waiting", "gauge", help_), f"mathamr_waiting {self._waiting()}"]
        lines += _head("mathamr_memory_peak_bytes", "gauge", "Highest resident memory of the process.")
        lines += [f"mathamr_memory_peak_bytes{labels} {peak}" for labels, peak in self._memory().items()]
        return "\n".join(lines) + "\n"

    def _line(self, name: str) -> str:
        total = self._totals[name]
        return f"{name} {total if isinstance(total, int) else f'{total:.6g}'}"

    def _load(self, totals: Mapping[str, float]) -> None:
        """Add other totals."""
        for name, number in totals.items():
            self._totals[name] = self._totals.get(name, 0) + number


def _path(name: str) -> str:
    return name.split('"')[1]


def _head(name: str, kind: str, help_: str) -> list[str]:
    return [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]


def path_of(path: str) -> str:
    """Return the name that a path is counted under.

    >>> path_of("/api/posts/255"), path_of("/page.css")
    ('/api/posts/', 'other')
    """
    return next((own for own in PATHS if path == own or (own.endswith("/") and path.startswith(own))), OTHER)


class Watched:
    """An application whose requests are counted, and logged as one line of JSON each where ``log`` is given."""

    def __init__(self, app: ASGIApp, counts: Counts, log: Callable[[str], None] | None = None) -> None:
        self._app = app
        self._counts = counts
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500  # of an application that fails before it answers

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - start
            path = path_of(scope["path"])
            self._counts.add(path, status, seconds)
            if self._log is not None:
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                line = {"time": now, "method": scope["method"], "path": path, "status": status}
                self._log(json.dumps(line | {"seconds": round(seconds, 4)}))


SLOT = 1 << 16  # bytes; a record has some kilobytes


class SharedCounts(Counts):
    """Counts of one worker, and the sum over all, for whichever of them is asked.

    Each worker has a slot of the file, which it alone writes. A worker that replaces another one continues the counts
    of its slot, so sums never fall. Memory is reported for each worker.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     first, second = (SharedCounts(file.fileno(), worker, 2, lambda: 0) for worker in (0, 1))
    ...     first.add("/api/search", 200, 0.07)
    ...     second.add("/api/search", 200, 0.05)
    ...     [line for line in second.text().splitlines() if "requests_total{" in line]
    ['mathamr_requests_total{path="/api/search",status="200"} 2']

    Args:
        file: descriptor of a file that all workers have open.
        worker: number of this worker, from 0.
        waiting: returns the number of questions that wait for this worker's engine.
    """

    def __init__(self, file: int, worker: int, workers: int, waiting: Callable[[], int]) -> None:
        super().__init__(waiting)
        self._file, self._worker, self._workers = file, worker, workers
        self.about = {"worker": worker, "workers": workers}
        self._load(self._read(worker).get("totals", {}))
        self._write()

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        super().add(path, status, seconds)
        self._write()

    def text(self) -> str:
        """Return the sums over all workers in the text format of Prometheus."""
        self._write()
        records = [self._read(worker) for worker in range(self._workers)]
        waiting = sum(record.get("waiting", 0) for record in records)
        memory = {f'{{worker="{worker}"}}': record.get("memory", 0) for worker, record in enumerate(records)}
        total = Counts(lambda: waiting, lambda: memory)
        for record in records:
            total._load(record.get("totals", {}))
        return total.text()

    def _write(self) -> None:
        record = {"totals": self._totals, "waiting": self._waiting(), "memory": peak_memory()}
        line = json.dumps(record).encode() + b"\n"
        with self._locked(self._worker, fcntl.LOCK_EX) as start:
            os.pwrite(self._file, line, start)

    def _read(self, worker: int) -> dict[str, Any]:
        with self._locked(worker, fcntl.LOCK_SH) as start:
            line = os.pread(self._file, SLOT, start).partition(b"\n")[0]
        try:
            record: dict[str, Any] = json.loads(line) if line.strip(b"\0") else {}
        except ValueError:  # the worker was killed while it wrote
            return {}
        return record

    @contextmanager
    def _locked(self, worker: int, kind: int) -> Iterator[int]:
        """Lock the slot of a worker; yields its first byte."""
        start = worker * SLOT
        fcntl.lockf(self._file, kind, SLOT, start)
        try:
            yield start
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, SLOT, start)
