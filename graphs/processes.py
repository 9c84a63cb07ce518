"""Work spread over processes, results in order, memory flat: what every build of a database runs on.

A ``task`` is a class: each process makes one (loading its parser or opening its database once) and calls it an item at
a time.

>>> class Power:
...     def __init__(self, exponent): self.exponent = exponent
...     def __call__(self, base): return base ** self.exponent
>>> list(ordered_map(Power, (2,), iter([1, 2, 3]), workers=1))
[1, 4, 9]

With one worker everything runs in this process. With more, at most a few items a worker are under way, so that a slow
consumer holds back the producer. A process that dies (out of memory, a crash in native code) takes no other item with
it: its items run again one by one, and the one that kills a process by itself is handed to ``give_up``. A process that
cannot even start (no parser, no database) is no item's fault: that raises, and costs no item.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeVar

from graphs.errors import MathAMRError

Item = TypeVar("Item")
Result = TypeVar("Result")

_ITEMS_PER_WORKER = 3

# One of the two a process, once it has started.
_task: Callable[[Any], Any] | None = None
_fault: Exception | None = None


def ordered_map(
    task: Callable[..., Callable[[Item], Result]],
    arguments: tuple[object, ...],
    items: Iterator[Item],
    *,
    workers: int,
    give_up: Callable[[Item], Result] | None = None,
) -> Iterator[Result]:
    """``task(*arguments)(item)`` for every item, in the order of the items.

    Args:
        task: importable class or function; made once in each process.
        arguments: what to make it from; must travel between processes.
        workers: processes; 1 runs everything in this one.
        give_up: gives the result for an item whose process dies; without it such an item raises.

    Raises:
        MathAMRError: when a process dies at its start, or on an item without ``give_up``.
        Exception: what ``task`` raises, when it is made or called.
    """
    if workers <= 1:
        call = task(*arguments)
        for item in items:
            yield call(item)
        return
    context = multiprocessing.get_context("spawn")  # a forked child would inherit locks and open databases

    def pool(processes: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(task, arguments))

    executor = pool(workers)
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        while True:
            for item in islice(items, workers * _ITEMS_PER_WORKER - len(waiting)):
                waiting.append((item, executor.submit(_run, item)))
            if not waiting:
                return
            item, future = waiting[0]
            try:
                result = future.result()
            except BrokenProcessPool as error:
                executor.shutdown(wait=False, cancel_futures=True)
                again = [item for item, _ in waiting]
                waiting.clear()
                for item in again:
                    yield _alone(pool, item, give_up, error)
                executor = pool(workers)
                continue
            waiting.popleft()
            yield result
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _alone(
    pool: Callable[[int], ProcessPoolExecutor],
    item: Item,
    give_up: Callable[[Item], Result] | None,
    cause: BaseException,
) -> Result:
    """Run one item in a process of its own."""
    with pool(1) as executor:
        try:
            executor.submit(_started).result()
        except BrokenProcessPool:
            raise MathAMRError(
                "a worker process dies as it starts, before it gets any work, out of memory perhaps; run again with"
                " fewer workers, finished work is kept"
            ) from cause
        try:
            return executor.submit(_run, item).result()
        except BrokenProcessPool:
            if give_up is None:
                raise MathAMRError(
                    "a worker process died, out of memory perhaps; run again with fewer workers, finished work is kept"
                ) from cause
            return give_up(item)


def _start(task: Callable[..., Callable[[Any], Any]], arguments: tuple[object, ...]) -> None:
    global _task, _fault
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _task = task(*arguments)
    except Exception as error:  # noqa: BLE001 - raised again for the first item; raised here, it would only end the process
        _fault = error


def _end_with_parent() -> None:
    """A killed parent cannot end its workers: each waits for its death."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _started() -> None:
    """Answers when the process has started."""


def _run(item: Any) -> Any:
    if _fault is not None:
        raise _fault
    assert _task is not None
    return _task(item)
