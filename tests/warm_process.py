"""Processes that begin with the project imported: forks of one server, which imports it once for all of them.

    process = start("import sys; print(6 * 7); sys.exit(3)", tmp_path)
    process.ended()    # Ended(returncode=3, stdout="42\n", stderr="")

For what a process does: locks, signals, kills, ranks. The first seconds of a new interpreter are tested elsewhere.
Ranks and workers that the project starts are such forks, too, in a test with the fixture ``warm_children``.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 300  # that anything may take, on a machine with other work to do
IMPORTED = (
    "torch._dynamo",  # torch.optim imports it
    "tests.warm_parser",
    "matplotlib.backends.backend_svg",
    "experiments.run",
    "experiments.job",
    "experiments.report.writing",
    "mathamr.systems.graph",
    "mathamr.training.graph.trainer",
)
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(IMPORTED))
_EXPERIMENT = "import sys; from experiments.run import start; sys.exit(start({words!r}))"


class Ended(NamedTuple):
    """Exit code, negative for a signal, and what was printed."""

    returncode: int
    stdout: str
    stderr: str


class Process:
    """A process that runs ``code`` in ``folder``; its environment is this one's, changed by ``environment``."""

    def __init__(self, code: str, folder: Path, environment: Mapping[str, str]) -> None:
        printed = Path(mkdtemp(prefix="printed-", dir=folder))
        self._out, self._err = printed / "out", printed / "err"
        given = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        self._process = _CONTEXT.Process(target=_run, args=(code, str(self._out), str(self._err), given))
        self._process.start()

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.is_alive()

    def ended(self) -> Ended:
        """Wait for the end."""
        self._process.join(SECONDS)
        if self._process.exitcode is None:
            self._process.kill()  # else the session would wait for it at its end
            raise AssertionError(f"still running after {SECONDS} s: {self._err.read_text()}")
        ended = Ended(self._process.exitcode, self._out.read_text(), self._err.read_text())
        self._process.close()
        return ended


def is_running(pid: int) -> bool:
    """Return whether a process has not ended, also where nobody has asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def free_port() -> int:
    """Return a free port of those that the system gives to no connection: none takes it before a process does."""
    while True:
        port = random.SystemRandom().randrange(22_000, 32_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def start(code: str, folder: Path, **environment: str) -> Process:
    """Start a process; what it prints is kept below ``folder``."""
    return Process(code, folder, environment)


def start_experiment(folder: Path, *words: str, before: str = "") -> Process:
    """Start ``python -m experiments.run`` with these words, after the code ``before``."""
    return start(before + _EXPERIMENT.format(words=list(words)), folder)


def _run(code: str, out: str, err: str, environment: dict[str, str]) -> None:
    """Run the code as an interpreter does that was started for it."""
    for name, number in ((out, 1), (err, 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False, buffering=1) for number in (1, 2))  # noqa: SIM115
    _take_environment(environment)
    os.chdir(ROOT)
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})  # multiprocessing prints what it raises


class _Child(ForkServerProcess):
    """A process with the environment of its parent, which the server does not have."""

    def start(self) -> None:
        self._environment = {"OMP_NUM_THREADS": "1", **os.environ}
        super().start()

    def run(self) -> None:
        _take_environment(self._environment)
        super().run()


class Children(ForkServerContext):
    """A context of multiprocessing, in place of ``spawn``."""

    Process = _Child  # type: ignore[assignment]


def _take_environment(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    import torch

    torch.set_num_threads(int(environment["OMP_NUM_THREADS"]))
