"""Results come in order, and a process that dies takes only its own item with it."""

import fcntl
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from graphs.errors import MathAMRError, StoreError
from graphs.processes import ordered_map
from graphs.shared_files import is_locked, locked
from tests.warm_process import SECONDS, is_running


class Square:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def __call__(self, number: int) -> int:
        if number == -1:
            os._exit(9)
        if number == -2:
            raise ValueError("minus two")
        return number * number + self.offset


class ProcessId:
    def __call__(self, number: int) -> int:
        return os.getpid()


class CannotStart:
    def __init__(self, dies: bool) -> None:
        if dies:
            os._exit(9)
        raise StoreError("no such file; build it first", path="formulas.db")

    def __call__(self, number: int) -> int:
        return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_items(workers: int) -> None:
    assert list(ordered_map(Square, (1,), iter(range(20)), workers=workers)) == [n * n + 1 for n in range(20)]


@pytest.mark.usefixtures("warm_children")
def test_a_process_that_dies_loses_only_its_own_item() -> None:
    items = iter([1, 2, -1, 3, 4])
    assert list(ordered_map(Square, (0,), items, workers=2, give_up=lambda item: 1000 + item)) == [1, 4, 999, 9, 16]


@pytest.mark.usefixtures("warm_children")
def test_a_process_that_dies_while_the_consumer_is_busy_loses_only_its_own_item() -> None:
    others = set(multiprocessing.active_children())
    results = ordered_map(Square, (0,), iter([1, 2, -1, *range(3, 12)]), workers=2, give_up=lambda item: 1000 + item)
    found = [next(results)]
    deadline = time.monotonic() + 60
    while set(multiprocessing.active_children()) - others and time.monotonic() < deadline:
        time.sleep(0.01)  # a commit to a slow disk; the death of one process ends the other
    assert [*found, *results] == [1, 4, 999, *(n * n for n in range(3, 12))]


class Sum:
    def __init__(self, log: str) -> None:
        self.log = log

    def __call__(self, numbers: list[int]) -> int:
        with Path(self.log).open("a") as log:
            print(numbers, file=log)
        if -1 in numbers:
            os._exit(9)
        return sum(numbers)


def halves(numbers: list[int]) -> list[list[int]]:
    return [[number] for number in numbers]


@pytest.mark.usefixtures("warm_children")
def test_an_item_that_kills_its_process_is_tried_in_its_parts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    items = iter([[1, 2], [3, -1, 4, 5], [6, 7]])
    results = ordered_map(Sum, (str(log),), items, workers=2, split=halves, give_up=lambda item: 1000)
    assert list(results) == [3, 3, 1000, 4, 5, 13]
    tried = log.read_text().splitlines()
    assert tried.count("[-1]") == 2  # after 3 in one process, and as the first of the next
    assert [tried.count(f"[{number}]") for number in (3, 4, 5)] == [1, 1, 1]


@pytest.mark.usefixtures("warm_children")
def test_one_process_apart_can_die_and_this_one_lives() -> None:
    items = iter([1, -1, 3])
    assert list(ordered_map(Square, (0,), items, workers=1, apart=True, give_up=lambda item: 0)) == [1, 0, 9]
    assert next(ordered_map(ProcessId, (), iter([1]), workers=1, apart=True)) != os.getpid()
    assert next(ordered_map(ProcessId, (), iter([1]), workers=1)) == os.getpid()


@pytest.mark.usefixtures("warm_children")
def test_a_death_without_a_way_to_give_up_says_what_to_do() -> None:
    with pytest.raises(MathAMRError, match="fewer workers"):
        list(ordered_map(Square, (0,), iter([-1]), workers=2))


@pytest.mark.usefixtures("warm_children")
def test_an_exception_in_a_process_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="minus two"):
        list(ordered_map(Square, (0,), iter([1, -2]), workers=2))


@pytest.mark.usefixtures("warm_children")
def test_a_process_that_cannot_start_raises_and_gives_up_no_item() -> None:
    given_up: list[int] = []
    for dies, message in ((False, "formulas.db: no such file; build it first"), (True, "dies at its start")):
        with pytest.raises(MathAMRError, match=message):
            list(ordered_map(CannotStart, (dies,), iter([1, 2]), workers=2, give_up=given_up.append))
    assert given_up == []


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from graphs.processes import ordered_map
        from test_processes import ProcessId
        for process in ordered_map(ProcessId, (), iter([1, 2]), workers=2):
            print(process, flush=True)
            time.sleep(60)
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + SECONDS
    while is_running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_ctrl_c_in_a_terminal_ends_workers_that_start_without_a_word(tmp_path: Path) -> None:
    task = """
        import os, time
        class Slow:
            def __init__(self):
                os.write(1, b"starting\\n")  # in one piece
                time.sleep(600)
        """
    (tmp_path / "slow.py").write_text(textwrap.dedent(task))
    program = textwrap.dedent(
        """
        import signal
        from graphs.processes import ordered_map
        from slow import Slow
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what runs in the background
        try:
            list(ordered_map(Slow, (), iter([1, 2]), workers=2))
        except KeyboardInterrupt:
            print("stopped")
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{Path.cwd()}{os.pathsep}{tmp_path}"},
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert [parent.stdout.readline() for _ in range(2)] == ["starting\n"] * 2
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does
    assert parent.communicate(timeout=SECONDS) == ("stopped\n", "")


@pytest.mark.usefixtures("warm_children")
def test_no_more_items_are_taken_than_are_under_way(tmp_path: Path) -> None:
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = ordered_map(Square, (0,), items(), workers=2)
    next(results)
    assert len(taken) <= 7
    results.close()


def test_asking_for_a_lock_takes_none_and_writes_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch(mode=0o400)
    with lock.open() as another:
        fcntl.flock(another, fcntl.LOCK_SH)  # a process that asks at the same time
        assert not is_locked(lock)
    lock.chmod(0o600)
    with locked(lock) as mine:
        assert mine
        assert is_locked(lock)
