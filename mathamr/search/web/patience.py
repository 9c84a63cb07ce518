"""Time limit for requests: a connection is closed if the head of a request does not arrive in time.

    uvicorn.Config(app, http=PatientProtocol)

uvicorn limits the time between two requests, but not the time that a request takes to arrive. Half-sent requests could
therefore occupy all connections and keep out other clients. :mod:`mathamr.search.web.guard` limits the time for bodies.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS = 10.0
_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with a bound on the time that the head of a request takes to arrive, in seconds."""

    read_seconds = READ_SECONDS
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the bytes that came; keep waiting if the head of a request is incomplete."""
        super().data_received(data)
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(self.read_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.write(_LATE)
            self.transport.close()
