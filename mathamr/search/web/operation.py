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
mathamr_request_seconds_bucket{path="/api/search",le="0.3"} 2
mathamr_request_seconds_bucket{path="/api/search",le="1"} 2
mathamr_request_seconds_bucket{path="/api/search",le="3"} 2
mathamr_request_seconds_bucket{path="/api/search",le="10"} 2
mathamr_request_seconds_bucket{path="/api/search",le="+Inf"} 2
mathamr_request_seconds_sum{path="/api/search"} 0.071
mathamr_request_seconds_count{path="/api/search"} 2
# HELP mathamr_waiting Questions that wait for the engine, the one being answered among them.
# TYPE mathamr_waiting gauge
mathamr_waiting 3

Neither counts nor logs contain words of a query. Paths outside the interface are counted as ``other``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any

from mathamr.evaluation.efficiency import peak_memory
from mathamr.search.web.guard import App, Message, Receive, Send

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

    def __init__(self, app: App, counts: Counts, log: Callable[[str], None] | None = None) -> None:
        self._app = app
        self._counts = counts
        self._log = log

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
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
