"""Ranks in processes of their own: what comes back, and how they end together."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import struct
import threading
import time
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
import torch

from graphs.errors import ConfigError, TrainingError
from mathamr.training import processes
from mathamr.training.distributed import ranks
from mathamr.training.interruption import Interrupted, listen
from mathamr.training.processes import Log, run_ranks
from tests.warm_process import SECONDS, is_running, start

WHEN_IMPORTED = signal.getsignal(signal.SIGINT)
"""Handler of Ctrl-C while this module was imported, which a rank does before its function is called."""

if multiprocessing.parent_process() is not None:
    for name in os.environ.get("SIGNALS_WHILE_IMPORTING", "").split():
        os.kill(os.getpid(), getattr(signal, name))


def summed(log: Log, factor: int) -> int:
    """Return the sum of the ranks' numbers, and log each rank's."""
    with ranks("cpu") as world:
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.tensor([float(world.rank + 1)])
        world.sum_gradients([parameter], [])
        log({"kind": "step", "rank": world.rank})
        return factor * int(parameter.grad.item())


def until_told(log: Log) -> None:
    """Train until a signal comes, as the training loop does."""
    with ranks("cpu") as world, listen() as stop:
        step = 0
        while not world.any(stop.received is not None):
            step += 1
            log({"kind": "step", "step": step})
            time.sleep(0.02)
        raise Interrupted(stop.received, step, "model")


def fails_on_the_second(log: Log) -> None:
    """Fail on rank 1, while rank 0 waits for it."""
    with ranks("cpu") as world:
        if world.rank == 1:
            raise ConfigError("no such thing")
        world.any(False)


def signals_itself(log: Log, rank: int, name: str) -> None:
    """Send a signal to one rank alone, while all train."""
    with ranks("cpu") as world, listen() as stop:
        step = 0
        while not world.any(stop.received is not None):
            step += 1
            log({"kind": "step", "step": step})
            if step == 3 and world.rank == rank:
                os.kill(os.getpid(), getattr(signal, name))
        raise Interrupted(stop.received, step, "model")


def has_too_little_memory(log: Log, rank: int, error: type[Exception]) -> None:
    """Fail on one rank as an allocation does, while the other waits for it."""
    with ranks("cpu") as world:
        if world.rank == rank:
            raise error("not enough memory: you tried to allocate 20 GiB")
        world.any(False)


def done_when_told(log: Log) -> int:
    """Do the last step, and have something left to do that listens to no signal."""
    log({"kind": "step", "step": 1})
    time.sleep(0.3)
    return 7


def ignores_the_keyboard(log: Log) -> bool:
    """Return whether Ctrl-C is ignored, from the import on."""
    return WHEN_IMPORTED == signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def number_of_threads(log: Log) -> int:
    """Return the number of threads with which each rank computes."""
    with ranks("cpu") as world:
        world.any(False)  # a rank that ends while another one connects is lost
        return torch.get_num_threads()


def dies_within_a_message(log: Any) -> None:
    """Begin a message of 100 bytes, and end."""
    (pipe,) = (cell.cell_contents for cell in log.__closure__ if isinstance(cell.cell_contents, Connection))
    os.write(pipe.fileno(), struct.pack("!i", 100) + b"half")
    os._exit(3)


def one_does_not_notice(log: Log) -> None:
    """Lose rank 0 on rank 1, while rank 0 is at something else."""
    if os.environ["RANK"] == "1":
        raise TrainingError("lost another rank while summing gradients")
    time.sleep(SECONDS)


def waits_for_ever(log: Log, folder: Path) -> None:
    """Leave the number of this process in ``folder``."""
    (folder / str(os.getpid())).touch()
    time.sleep(SECONDS)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def summed_aloud(log: Log, factor: int) -> int:
    """Write to standard error as a library in C would, below Python's stream, and return the sum."""
    os.write(2, f"this is rank {os.environ['RANK']}\n".encode())
    return summed(log, factor)


def test_what_rank_0_returns_and_logs_comes_back_and_others_write_to_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rank-1.log").write_text("of the run before\n")
    records: list[dict[str, Any]] = []
    assert run_ranks(2, "cpu", summed_aloud, (10,), records.append, tmp_path) == 30
    assert records == [{"kind": "step", "rank": 0}]
    assert (tmp_path / "rank-1.log").read_text() == "of the run before\nthis is rank 1\n"
    shown = capfd.readouterr().err
    assert shown.count("this is rank 0\n") == shown.count("this is rank") == 1
    assert not (tmp_path / "rank-0.log").exists()


@pytest.mark.usefixtures("warm_children")
def test_a_signal_stops_all_ranks_which_have_saved() -> None:
    def tell(record: dict[str, Any]) -> None:
        if record["step"] == 3:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1)).start()

    with pytest.raises(Interrupted, match="stopped by SIGUSR1 after step"):
        run_ranks(2, "cpu", until_told, (), tell)


def test_signals_sent_to_ranks_that_import_do_not_end_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNALS_WHILE_IMPORTING", "SIGUSR1 SIGTERM SIGINT")
    assert run_ranks(2, "cpu", summed, (10,), lambda record: None) == 30
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {signal.SIGUSR1, signal.SIGTERM}


def test_the_first_process_has_all_signals_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting the resource tracker of multiprocessing unblocks SIGTERM."""
    tracker = resource_tracker.ResourceTracker()
    for name in ("ensure_running", "getfd"):
        monkeypatch.setattr(resource_tracker, name, getattr(tracker, name))
    process = multiprocessing.get_context("spawn").Process(target=os.getpid)
    with processes._undisturbed():
        process.start()
    try:
        (line,) = (line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "SigBlk" in line)
        blocked = int(line.split()[1], 16)
        assert all(blocked >> (number - 1) & 1 for number in (signal.SIGUSR1, signal.SIGTERM))
    finally:
        process.kill()
        process.join()
        tracker._stop()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize(("given", "of_a_rank"), [(5, 2), (1, 1)])
def test_ranks_share_the_threads_of_their_parent(monkeypatch: pytest.MonkeyPatch, given: int, of_a_rank: int) -> None:
    """A job of Slurm sets OMP_NUM_THREADS to all of its processors."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(given))
    monkeypatch.setattr(torch, "get_num_threads", lambda: given)
    assert run_ranks(2, "cpu", number_of_threads, (), lambda record: None) == of_a_rank
    assert os.environ["OMP_NUM_THREADS"] == str(given)


@pytest.mark.usefixtures("warm_children")
def test_a_signal_that_comes_while_ranks_start_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = processes._few_threads

    def told(count: int) -> Any:
        threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        return begin(count)

    monkeypatch.setattr(processes, "_few_threads", told)
    with pytest.raises(Interrupted, match="stopped by SIGUSR1 after step"):
        run_ranks(2, "cpu", until_told, (), lambda record: None)


@pytest.mark.usefixtures("warm_children")
def test_the_port_is_taken_before_a_rank_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = multiprocessing.get_context("spawn")
    ports = []

    class Context:
        Pipe = staticmethod(spawn.Pipe)

        @staticmethod
        def Process(*, args: tuple[Any, ...], **given: Any) -> Any:
            ports.append(args[2])
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", args[2]))
            return spawn.Process(args=args, **given)

    monkeypatch.setattr(processes.multiprocessing, "get_context", lambda _: Context)
    assert run_ranks(2, "cpu", summed, (10,), lambda record: None) == 30
    assert len(set(ports)) == 1


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize("rank", [0, 1])
def test_either_rank_ends_both_and_says_why(rank: int) -> None:
    killed = rf"rank {rank} of 2 was killed by SIGKILL; perhaps the memory did not suffice.*the same command resumes"
    with pytest.raises(TrainingError, match=killed):
        run_ranks(2, "cpu", signals_itself, (rank, "SIGKILL"), lambda record: None)
    with pytest.raises(Interrupted, match=r"stopped by .* after step \d+, saved"):
        run_ranks(2, "cpu", signals_itself, (rank, "SIGUSR1"), lambda record: None)
    for error in (MemoryError, torch.OutOfMemoryError):
        said = rf"{error.__name__} on rank {rank} of 2: not enough memory"
        with pytest.raises(TrainingError, match=said):
            run_ranks(2, "cpu", has_too_little_memory, (rank, error), lambda record: None)
    assert not multiprocessing.active_children()


@pytest.mark.usefixtures("warm_children")
def test_the_error_of_one_rank_is_that_of_all() -> None:
    with pytest.raises(TrainingError, match="no such thing"):
        run_ranks(2, "cpu", fails_on_the_second, (), print)


def test_one_gpu_by_number_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"use train\.device=cuda with train\.processes=2"):
        run_ranks(2, "cuda:1", fails_on_the_second, (), print)


@pytest.mark.usefixtures("warm_children")
def test_a_signal_after_the_last_step_reaches_the_caller() -> None:
    def tell(record: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in a shell's background it is ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            run_ranks(1, "cpu", done_when_told, (), tell)
    finally:
        signal.signal(signal.SIGINT, before)


def test_ranks_leave_the_keyboard_to_their_parent() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run_ranks(1, "cpu", ignores_the_keyboard, (), print)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("warm_children")
def test_a_rank_that_dies_within_a_message_is_named() -> None:
    with pytest.raises(TrainingError, match=r"rank 0 of 1 ended with exit code 3; the same command resumes"):
        run_ranks(1, "cpu", dies_within_a_message, (), print)


@pytest.mark.usefixtures("warm_children")
def test_a_rank_that_does_not_notice_is_killed_and_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    with pytest.raises(TrainingError, match="lost another rank while summing gradients"):
        run_ranks(2, "cpu", one_does_not_notice, (), print)


def test_a_function_without_a_name_is_refused_and_leaves_nothing_open() -> None:
    resource_tracker.ensure_running()  # which has a file open from then on
    before = open_files()
    with pytest.raises((AttributeError, TypeError, ValueError), match=r"pickle|local object"):
        run_ranks(2, "cpu", lambda log: None, (), print)
    assert not multiprocessing.active_children()
    assert open_files() <= before


def test_ranks_die_with_the_process_that_has_started_them(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    code = f"""
import sys
sys.path[:0] = [{str(Path(__file__).parent)!r}]
from pathlib import Path
from test_processes import run_ranks, waits_for_ever
run_ranks(2, "cpu", waits_for_ever, (Path({str(folder)!r}),), print)
"""
    parent, deadline = start(code, tmp_path), time.monotonic() + SECONDS
    while len(ranks_begun := [path.name for path in folder.iterdir()]) < 2:
        assert parent.is_running
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(parent.pid, signal.SIGKILL)
    assert parent.ended().returncode == -signal.SIGKILL
    while any(is_running(int(pid)) for pid in ranks_begun):
        assert time.monotonic() < deadline
        time.sleep(0.05)
