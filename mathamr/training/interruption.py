"""Signals that stop training: SIGTERM and SIGUSR1, sent by Slurm before a node is taken away, and SIGINT from Ctrl-C.

>>> import os
>>> with listen() as stop:
...     os.kill(os.getpid(), signal.SIGUSR1)
...     stop.received
<Signals.SIGUSR1: 10>

Training checks for a signal after each step, saves, and raises :class:`Interrupted`. A script then exits with
:data:`EXIT_INTERRUPTED`, which tells a batch script to queue the job again; the job will resume. A second Ctrl-C does
not wait for the step to end: it raises Python's ``KeyboardInterrupt``, and the last checkpoint remains.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from graphs.errors import TrainingError

EXIT_INTERRUPTED = 75  # EX_TEMPFAIL of sysexits.h: try again later

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Interrupted(TrainingError):
    """Training was stopped by a signal, and saved. It resumes after ``step``."""

    exit_code = EXIT_INTERRUPTED

    def __init__(self, received: signal.Signals | None, step: int, path: str | os.PathLike[str]) -> None:
        self.received, self.step = received, step
        name = "a signal to another rank" if received is None else received.name
        super().__init__(f"stopped by {name} after step {step}, saved; repeat the call to resume", path=path)


@dataclass(slots=True)
class StopSignal:
    """``received``: the signal, or None so far."""

    received: signal.Signals | None = None


@contextmanager
def listen() -> Iterator[StopSignal]:
    """Record the signals instead of dying from them; the earlier handlers are restored afterwards.

    An ignored signal, such as SIGINT in a shell's background, stays ignored. Only the main thread receives signals;
    in another thread nothing is recorded.
    """
    stop = StopSignal()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        if number == stop.received == signal.SIGINT:
            raise KeyboardInterrupt
        stop.received = signal.Signals(number)

    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, note) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
