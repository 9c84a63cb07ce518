"""Counts of several workers, summed for whichever of them is asked.

>>> import tempfile
>>> with tempfile.TemporaryFile() as file:
...     first, second = (SharedCounts(file.fileno(), worker, 2, lambda: 0) for worker in (0, 1))
...     first.add("/api/search", 200, 0.07)
...     second.add("/api/search", 200, 0.05)
...     [line for line in second.text().splitlines() if "requests_total{" in line]
['mathamr_requests_total{path="/api/search",status="200"} 2']

Each worker has a slot of the file, which it alone writes. A worker that replaces another one continues the counts of
its slot, so sums never fall. Memory is reported for each worker.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mathamr.evaluation.efficiency import peak_memory
from mathamr.search.web.operation import Counts

SLOT = 1 << 16  # bytes; a record has some kilobytes


class SharedCounts(Counts):
    """Counts of one worker, and the sum over all.

    Args:
        file: descriptor of a file that all workers have open.
        worker: number of this worker, from 0.
        workers: number of workers.
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
