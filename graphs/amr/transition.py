"""Neural parser of the published results, in another process and Python environment.

    limits = {"batch_size": 8, "seconds_per_chunk": 60, "start_seconds": 900}
    parser = TransitionParser("envs/transition/bin/python", "doc-sen-conll-amr-seed42", **limits)
    parse_documents(parser, documents)

``transition-amr-parser`` pins an old torch and cannot share this project's environment. A worker
(``transition_worker.py``, or any program with the same JSON lines) runs on the other environment's Python. It receives
batches, and is restarted when it dies or takes too long. A failing batch is retried in halves, until the failing chunk
is alone: ``died``, ``timeout``, ``parser_error``, ``protocol``. A graph of a part of its chunk is a failure too:
``clipped``, or ``merge`` if the parser could not merge its windows (:mod:`graphs.amr.completeness`). Batches are small,
since each may take ``seconds_per_chunk`` times its chunks: a chunk that hangs costs that time at most 2 *
``batch_size`` - 1 times, and one start of the worker for each halving, plus one. docs/amr.md explains the setup of the
environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from graphs.amr.completeness import DIVISIBLE, check
from graphs.amr.parser import halved
from graphs.errors import AMRError, ConfigError, Failure, MathAMRError


class WorkerStartError(MathAMRError):
    """A worker that cannot start: a fault of its environment, so no batch is halved for it."""


WORKER = Path(__file__).with_name("transition_worker.py")


class TransitionParser:
    """AMR by a worker process.

    ``python`` is the interpreter of the worker's environment; ``batch_size`` the number of chunks in a request,
    ``seconds_per_chunk`` the time for each of them, and ``start_seconds`` the time to load the model. Close it (or use
    it in ``with``) to end the worker, which also ends when the parser is garbage-collected.
    """

    name = "transition"

    def __init__(
        self,
        python: str,
        model: str,
        *,
        batch_size: int,
        seconds_per_chunk: float,
        start_seconds: float,
        worker: str | os.PathLike[str] = WORKER,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("seconds_per_chunk", seconds_per_chunk)):
            if not value > 0:
                raise ConfigError(f"parser=transition: {name}={value} must be above 0")
        self.model = model
        self._batch_size = batch_size
        self._command = [python, os.fspath(worker), "--model", model]
        self._seconds_per_chunk = seconds_per_chunk
        self._start_seconds = start_seconds
        self._worker: _Worker | None = None
        self._stop: Callable[[], object] = lambda: None
        self._version = ""

    @property
    def version(self) -> str:
        """Version of the parser, as reported by the worker; starts the worker if needed."""
        if not self._version:
            self._running()
        return self._version

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return one Penman text or :class:`Failure` for each chunk."""
        answers: list[str | Failure] = []
        for start in range(0, len(chunks), self._batch_size):
            answers += halved(self._parse_batch, chunks[start : start + self._batch_size], self.name)
        return answers

    def _parse_batch(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Parse a batch; raise :class:`AMRError` if it fails as a whole."""
        worker = self._running()
        try:
            return worker.answers(chunks, time.monotonic() + self._seconds_per_chunk * len(chunks))
        except AMRError as error:
            if error.kind not in {"parser_error", *DIVISIBLE}:  # the worker is dead, hangs, or violates the protocol
                self.close()
            raise

    def _running(self) -> _Worker:
        if self._worker is not None and not self._worker.is_alive():
            self.close()
        if self._worker is None:
            worker = _Worker(self._command)
            try:
                ready = worker.record(time.monotonic() + self._start_seconds)
                if "start_error" in ready:
                    raise AMRError(str(ready["start_error"]), kind="no_start")
                if not ready.get("ready"):
                    raise AMRError(
                        f"the worker began with {ready}; it must begin with {{'ready': true}}", kind="protocol"
                    )
            except AMRError as error:
                worker.stop()
                # No chunk's fault: a worker that cannot start would fail them all, one by one.
                raise WorkerStartError(f"the AMR worker did not start: {error.message}") from error
            self._version = str(ready.get("version", "unknown"))
            self._worker = worker
            # The reading thread references the worker but not this parser; otherwise a model would stay in memory.
            self._stop = weakref.finalize(self, worker.stop)
        return self._worker

    def close(self) -> None:
        """End the worker; the next batch starts another."""
        self._stop()
        self._worker = None

    def __enter__(self) -> TransitionParser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Worker:
    """Running worker process; a thread reads its answers, so that waiting has a time limit."""

    def __init__(self, command: Sequence[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        except OSError as error:
            self._log.close()
            raise WorkerStartError(f"{command[0]}: {error.strerror}; python= names the worker's interpreter") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        self._output: IO[bytes] = self._process.stdout
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._output:
            self._lines.put(line)
        self._lines.put(None)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answers(self, chunks: Sequence[Sequence[str]], deadline: float) -> list[str | Failure]:
        """Send a batch and return an answer for each of its chunks."""
        lines = [json.dumps({"post_id": "", "chunk": i, "sentences": list(c)}) for i, c in enumerate(chunks)]
        sender = threading.Thread(target=self._send, args=("\n".join([*lines, "", ""]).encode(),), daemon=True)
        sender.start()  # a worker that answers while it reads must not block on full pipes
        answers: list[str | Failure] = []
        while len(answers) < len(chunks):
            record = self.record(deadline)
            if "batch_error" in record:
                kind = record.get("kind")
                raise AMRError(str(record["batch_error"]), kind=kind if kind in DIVISIBLE else "parser_error")
            if record.get("chunk") != len(answers):
                raise AMRError(f"answer {record.get('chunk')!r} where {len(answers)} was due", kind="protocol")
            if isinstance(record.get("penman"), str):
                sent = record.get("tokens")
                problem = check(record["penman"], sent) if isinstance(sent, int) else None
                answers.append(problem or record["penman"])
            else:
                answers.append(Failure("", "amr", "parser_error", str(record.get("error", "neither graph nor error"))))
        return answers

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a dead worker is noticed when its answer is missing
            self._input.write(data)
            self._input.flush()

    def record(self, deadline: float) -> dict[str, Any]:
        """Return the next line of the worker, read as JSON."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise AMRError("the worker gave no answer within its time", kind="timeout") from None
        if line is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            raise AMRError(f"the worker died (exit status {self._process.poll()}): {self._last_words()}", kind="died")
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise AMRError(f"the worker wrote {line[:80]!r}; each line must be a JSON object", kind="protocol")
        return record

    def _last_words(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 300))
        return self._log.read().decode("utf-8", "replace").strip() or "it wrote nothing to standard error"

    def stop(self) -> None:
        """Kill the worker and its child processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(5)
        for stream in (self._input, self._output, self._log):
            with contextlib.suppress(OSError):
                stream.close()
