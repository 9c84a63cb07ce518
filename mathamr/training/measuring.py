"""Time and memory of training steps.

>>> watch = Stopwatch()
>>> watch.waiting(iter("ab"))
'a'
>>> 0 <= watch.waited <= watch.seconds()
True
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from typing import TypeVar

import torch

Item = TypeVar("Item")


class Stopwatch:
    """Seconds since it was made, and how many of them were spent in :meth:`waiting`."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self.waited = 0.0

    def waiting(self, items: Iterator[Item]) -> Item:
        """The next of ``items``."""
        start = time.perf_counter()
        item = next(items)
        self.waited += time.perf_counter() - start
        return item

    def seconds(self) -> float:
        """Since it was made."""
        return time.perf_counter() - self._start


def reset_peak_memory(device: torch.device) -> None:
    """Begin to measure anew on a GPU; the peak of a process cannot be reset."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory_bytes(device: torch.device) -> int:
    """The most memory in use so far: allocated on a GPU, or resident in the process on the CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
