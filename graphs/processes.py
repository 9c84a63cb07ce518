"""Work spread over processes, results in order, memory flat; every build of a database uses it.

A ``task`` is a class: each process makes one instance (loading its parser or opening its database once) and calls it
with one item at a time.

>>> class Power:
...     def __init__(self, exponent): self.exponent = exponent
...     def __call__(self, base): return base ** self.exponent
>>> list(ordered_map(Power, (2,), iter([1, 2, 3]), workers=1))
[1, 4, 9]

With one worker everything runs in this process. With more, at most a few items for each worker are under way, so that a
slow consumer holds back the producer. If a process dies (out of memory, a crash in native code), its items run again
one by one. The item that kills a process alone runs in the parts made by ``split``, and a part that does so is passed
to ``give_up``. A process that cannot start (no parser, no database) is not the fault of an item: that raises, and costs
no item.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from graphs.errors import MathAMRError

Item = TypeVar("Item")
Result = TypeVar("Result")

_ITEMS_PER_WORKER = 3

# One of the two for each process, once it has started.
_task: Callable[[Any], Any] | None = None
_fault: Exception | None = None


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items, the last one shorter.

    >>> list(batched("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    stream = iter(items)
    while batch := list(islice(stream, size)):
        yield batch


def ordered_map(
    task: Callable[..., Callable[[Item], Result]],
    arguments: tuple[object, ...],
    items: Iterator[Item],
    *,
    workers: int,
    split: Callable[[Item], Sequence[Item]] | None = None,
    give_up: Callable[[Item], Result] | None = None,
    apart: bool = False,
) -> Iterator[Result]:
    """Yield ``task(*arguments)(item)`` for every item, in order.

    Args:
        task: importable class or function; called once in each process.
        arguments: arguments of ``task``; must be picklable.
        workers: number of processes; 1 runs everything in this one.
        split: function from an item whose process dies to its parts; each part has a result.
        give_up: function that gives the result of an item that cannot be split and whose process dies; without it
            such an item raises.
        apart: use another process even for one worker, so that this process survives its death.

    Raises:
        MathAMRError: a process that dies at its start, or on an item without ``give_up``.
        Exception: any error of ``task``, when it is made or called.
    """
    if workers <= 1 and not apart:
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
                try:
                    with _without_ctrl_c():
                        future = executor.submit(_run, item)
                except BrokenProcessPool as error:  # a process died while the consumer was busy
                    future = Future()
                    future.set_exception(error)
                waiting.append((item, future))
            if not waiting:
                return
            item, future = waiting[0]
            try:
                result = future.result()
            except BrokenProcessPool as error:
                executor.shutdown(wait=False, cancel_futures=True)
                again = deque(item for item, _ in waiting)
                waiting.clear()
                yield from _one_by_one(pool, again, split, give_up, error)
                executor = pool(workers)
                continue
            waiting.popleft()
            yield result
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _one_by_one(
    pool: Callable[[int], ProcessPoolExecutor],
    items: deque[Item],
    split: Callable[[Item], Sequence[Item]] | None,
    give_up: Callable[[Item], Result] | None,
    cause: BaseException,
) -> Iterator[Result]:
    """Run the items one after another in one process, and after its death in another.

    Only the first item of a process is known to have killed it; any other is retried as the first.
    """
    while items:
        with pool(1) as executor:
            try:
                with _without_ctrl_c():
                    started = executor.submit(_started)
                started.result()
            except BrokenProcessPool:
                raise MathAMRError(
                    "a worker process dies at its start, perhaps out of memory; run again with"
                    " fewer workers, finished work is kept"
                ) from cause
            first = True
            while items:
                try:
                    result = executor.submit(_run, items[0]).result()
                except BrokenProcessPool:
                    break
                items.popleft()
                yield result
                first = False
            else:
                return
        if first:
            item = items.popleft()
            parts = [item] if split is None else split(item)
            if len(parts) > 1:
                items.extendleft(reversed(parts))
            elif give_up is None:
                raise MathAMRError(
                    "a worker process died, perhaps out of memory; run again with fewer workers, finished work is kept"
                ) from cause
            else:
                yield give_up(item)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C while processes start, which inherit this; this process gets it afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(task: Callable[..., Callable[[Any], Any]], arguments: tuple[object, ...]) -> None:
    global _task, _fault
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a terminal sends Ctrl-C to all: end without a traceback
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with _with_ctrl_c():
            _task = task(*arguments)
    except Exception as error:  # noqa: BLE001 - raised again for the first item; raised here, it would only end the process
        _fault = error


def _end_with_parent() -> None:
    """End this worker when its parent dies: a killed parent cannot end it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _started() -> None:
    """Return True once the process has started."""


def _run(item: Any) -> Any:
    if _fault is not None:
        raise _fault
    assert _task is not None
    with _with_ctrl_c():
        return _task(item)


@contextmanager
def _with_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end this worker, but not while it sends a result: the parent would wait for the rest of it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
