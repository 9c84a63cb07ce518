"""Time limits of connections: for the head of a request to arrive, and for the client to read a response.

    uvicorn.Config(app, http=PatientProtocol)

uvicorn limits the time between two requests, but not the time that a request takes to arrive. Half-sent requests could
therefore occupy all connections and keep out other clients, and so could clients that read no response.
:mod:`mathamr.search.web.guard` limits the time for bodies.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS = 10.0
WRITE_SECONDS = 10.0
SEND_BUFFER = 1 << 16  # bytes; Linux takes more when a third is free, and would let it grow to megabytes
LEAST = 1 << 12  # bytes that the system takes in this time; it takes tens of KiB at once
_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with bounds in seconds: for a head to arrive, and for the next :data:`LEAST` bytes to be sent."""

    read_seconds = READ_SECONDS
    write_seconds = WRITE_SECONDS
    _waiting: asyncio.TimerHandle | None = None
    _full: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        if (connection := transport.get_extra_info("socket")) is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        transport.set_write_buffer_limits(0)  # whatever the system does not take makes it pause
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take the bytes that came; keep waiting if the head of a request is incomplete."""
        super().data_received(data)
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._stop_waiting()
        elif self._waiting is None:
            self._wait()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._expect_reading()

    def resume_writing(self) -> None:
        """Send again."""
        if self._full is not None:
            self._full.cancel()
            self._full = None
        super().resume_writing()

    def _expect_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._full = self.loop.call_later(self.write_seconds, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < LEAST:
            self.transport.abort()
        else:
            self._expect_reading()

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
