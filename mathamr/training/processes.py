"""Ranks of one training, each in its own process on this machine, started and watched from here.

    trained = run_ranks(2, "cpu", train_rank, (settings, shared, topic_sets, folder), log)

Each process calls the function, whose ranks meet in :func:`mathamr.training.distributed.ranks`; what rank 0 logs and
returns comes back. The others write to ``FOLDER/rank-N.log`` what rank 0 writes to the screen. A signal is passed on:
all ranks save and stop. When one dies for any reason, the others are stopped within :data:`GRACE` seconds, and its
reason is raised here. When this process dies, all of them end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
import torch.distributed

from graphs.errors import ConfigError, MathAMRError, TrainingError
from mathamr.training.distributed import ranks
from mathamr.training.interruption import Interrupted, StopSignal, listen

GRACE = 20.0
"""Seconds that ranks may take to notice that another one is gone; then they are killed."""
Log = Callable[[dict[str, Any]], None]
_PASSED_ON = frozenset({signal.SIGTERM, signal.SIGUSR1})
_LOST = "lost another rank"  # how the others see it, whatever the reason was

_Result = TypeVar("_Result")
_Arguments = ParamSpec("_Arguments")


def number_of(processes: int | str, device: str) -> int:
    """Return the number of processes that ``train.processes`` asks for; ``auto`` is one for each GPU.

    >>> number_of(3, "cpu"), number_of("auto", "cpu")
    (3, 1)
    """
    if processes != "auto":
        return int(processes)
    return max(1, torch.cuda.device_count()) if device in ("auto", "cuda") and torch.cuda.is_available() else 1


def run_ranks(
    count: int,
    device: str,
    function: Callable[Concatenate[Log, _Arguments], _Result],
    arguments: tuple[Any, ...],
    log: Log,
    folder: Path | None = None,
) -> _Result:
    """Call ``function(log, *arguments)`` in ``count`` processes; return what rank 0 returns.

    Args:
        device: ``train.device``, which determines how the ranks communicate.
        function: importable by its name; so are the types of its arguments and of its result.
        folder: place of ``rank-N.log``, the output of each rank above 0; None: it goes where that of rank 0 goes.

    Raises:
        Interrupted: all ranks have saved and stopped, after a signal.
        TrainingError: a rank has failed or died.
    """
    if device.startswith("cuda") and device != "cuda":
        raise ConfigError(f"train.device={device} is one GPU; use train.device=cuda with train.processes={count}")
    context = multiprocessing.get_context("spawn")
    # The ranks meet at a store of this process, which owns its port: a free port could be taken before rank 0 binds it.
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    pipes = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(
            target=_rank, args=(rank, count, store.port, device, pipe[1], folder, function, arguments), daemon=True
        )
        for rank, pipe in enumerate(pipes)
    ]
    with listen() as stop:
        try:
            with _few_threads(count), _undisturbed():
                for process in processes:
                    process.start()
            for _, theirs in pipes:
                theirs.close()  # else the end of a process would not be the end of its pipe
            result = _Watch(processes, [ours for ours, _ in pipes], log, stop).result()
        finally:
            for process in processes:
                if process.pid is not None:  # else it did not start
                    process.kill()
                    process.join()
            for both in pipes:
                for end in both:
                    end.close()
    if stop.received is not None:
        signal.raise_signal(stop.received)  # it came after the last step, when there was nothing left to stop
    return result


class _Watch:
    """Reader of the messages of all ranks, until all have ended."""

    def __init__(self, processes: list[SpawnProcess], pipes: list[Connection], log: Log, stop: StopSignal) -> None:
        self._processes, self._pipes, self._log, self._stop = processes, pipes, log, stop
        self._results: dict[int, Any] = {}
        self._errors: dict[int, str] = {}
        self._interrupted: tuple[int, str] | None = None
        self._given_up = False  # on ranks that do not notice that another one is gone: they are killed
        self._training = False  # only then do the ranks know what to do with a signal

    def result(self) -> Any:
        """Return the result of rank 0; errors as in :func:`run_ranks`."""
        open_pipes = dict(zip(self._pipes, range(len(self._pipes)), strict=True))
        passed_on, deadline = False, float("inf")
        while open_pipes:
            for pipe in wait(list(open_pipes), timeout=0.2):
                assert isinstance(pipe, Connection)
                rank = open_pipes[pipe]
                try:
                    message = pipe.recv()
                except (EOFError, OSError):  # OSError: it died within a message, or before it read ours
                    del open_pipes[pipe]
                    self._ended(rank)
                else:
                    self._take(rank, *message)
            if self._stop.received is not None and self._training and not passed_on:
                passed_on = True
                number = signal.SIGUSR1 if self._stop.received is signal.SIGUSR1 else signal.SIGTERM
                for process in self._processes:
                    if process.is_alive() and process.pid is not None:
                        os.kill(process.pid, number)
            if self._errors:
                deadline = min(deadline, time.monotonic() + GRACE)
            if time.monotonic() > deadline:
                self._given_up = True
                for process in self._processes:
                    process.kill()
        if self._errors:
            first = next((text for text in self._errors.values() if _LOST not in text), None)
            raise TrainingError(first or next(iter(self._errors.values())))
        if self._interrupted is not None:
            raise Interrupted(self._stop.received, *self._interrupted)
        return self._results[0]

    def _take(self, rank: int, kind: str, content: Any) -> None:
        if kind == "log":
            self._training = True
            self._log(content)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has died since
                self._pipes[rank].send(None)
        elif kind == "result":
            self._results[rank] = content
        elif kind == "interrupted":
            self._interrupted = content
        else:
            self._errors[rank] = content

    def _ended(self, rank: int) -> None:
        process = self._processes[rank]
        process.join(GRACE)
        if rank in self._results or rank in self._errors or self._interrupted is not None or self._given_up:
            return
        code = process.exitcode or 0
        died = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        memory = "; perhaps the memory did not suffice: try a smaller train.node_budget" if code == -9 else ""
        self._errors[rank] = f"rank {rank} of {len(self._processes)} {died}{memory}; the same command resumes"


def _rank(
    rank: int,
    count: int,
    port: int,
    device: str,
    pipe: Connection,
    folder: Path | None,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    """Run one rank: the target of its process."""
    _die_with_parent()
    _leave_signals_to_training()
    if rank and folder is not None:
        _write_to(folder / f"rank-{rank}.log")
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port}
    os.environ.update({name: str(number) for name, number in numbers.items()}, MASTER_ADDR="127.0.0.1")
    os.environ.update(TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0")  # the store is there already

    def log(record: dict[str, Any]) -> None:
        if rank == 0:
            pipe.send(("log", record))
            pipe.recv()  # it is written before training goes on, and saves a checkpoint perhaps

    try:
        with ranks(device):
            result = function(log, *arguments)
        pipe.send(("result", result if rank == 0 else None))
    except Interrupted as stopped:
        pipe.send(("interrupted", (stopped.step, str(stopped.path))))
    except MathAMRError as error:
        pipe.send(("error", str(error)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that has started this one says it
        traceback.print_exc(file=sys.stderr)
        pipe.send(("error", f"{type(error).__name__} on rank {rank} of {count}: {error}"))
    finally:
        pipe.close()


def _write_to(path: Path) -> None:
    """Send standard output and standard error of this process to the end of a file, also those of libraries in C."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _leave_signals_to_training() -> None:
    """Ignore signals before and after training, which handles them: the parent process ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; it is passed on as SIGTERM
    for number in _PASSED_ON:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Start processes that no signal ends while they import: Slurm and terminals send signals to all of a job.

    SIGINT is ignored and the others are blocked, which a new process inherits. This process gets those that came
    meanwhile at the end.
    """
    resource_tracker.ensure_running()  # which unblocks SIGTERM when the first process starts it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    keyboard = None
    if threading.current_thread() is threading.main_thread():
        keyboard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if keyboard is not None:
            signal.signal(signal.SIGINT, keyboard)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _few_threads(count: int) -> Iterator[None]:
    """Divide the threads of this process among new processes: with more of them than cores, all wait for each other."""
    name = "OMP_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = str(max(1, torch.get_num_threads() // count))
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
