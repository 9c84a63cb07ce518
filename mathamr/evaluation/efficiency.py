"""Costs of a result in seconds and bytes, measured the same way everywhere.

>>> with Stopwatch() as watch:
...     total = sum(range(1000))
>>> 0 <= watch.seconds < 60
True
>>> peak_memory() > 10_000_000  # a Python process with numpy loaded takes more than 10 MB
True
"""

from __future__ import annotations

import contextlib
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mathamr.memory import give_back_memory

if TYPE_CHECKING:
    import torch

_CLEAR_REFS = Path("/proc/self/clear_refs")


class Stopwatch:
    """Wall-clock seconds of a ``with`` block; on a CUDA device it waits for queued work at both ends.

    ``seconds`` can be read inside the block; it then holds the time so far.
    """

    def __init__(self, device: torch.device | str | None = None) -> None:
        self._device = device if str(device).startswith("cuda") else None
        self._start = 0.0
        self._end: float | None = None

    def __enter__(self) -> Stopwatch:
        self._wait()
        self._end = None
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self._wait()
        self._end = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the block was entered, or its duration."""
        return (time.perf_counter() if self._end is None else self._end) - self._start

    def _wait(self) -> None:
        if self._device is not None:
            import torch  # slow to import

            torch.cuda.synchronize(self._device)


def peak_memory() -> int:
    """Return the largest resident set of this process in bytes, since :func:`reset_peak_memory` or its start."""
    if recorded := process_memory("VmHWM"):
        return recorded
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def process_memory(*names: str, process: int | str = "self", file: str = "status") -> int:
    """Return the sum of sizes that Linux records of a process in ``/proc/PROCESS/FILE``, in bytes.

    The value is 0 if the process has ended, or the system records nothing.

    Args:
        names: ``VmRSS`` (resident set), ``VmHWM`` (its peak), ``RssAnon`` (without files) ...; ``Pss`` of the file
            ``smaps_rollup``, in which processes share the pages that they have in common.
    """
    try:
        lines = Path(f"/proc/{process}/{file}").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.partition(":")[0] in names)


def reset_peak_memory() -> None:
    """Start a new measurement of :func:`peak_memory`, so that a job is not charged for the one before it (Linux)."""
    give_back_memory()
    with contextlib.suppress(OSError):  # not Linux, or no access to /proc: the peak is that of the whole run
        _CLEAR_REFS.write_text("5", encoding="ascii")


def peak_device_memory(device: torch.device) -> int:
    """Return the largest memory of the device so far, in bytes: torch's on a GPU, the process's on the CPU."""
    return peak_gpu_memory(device) if device.type == "cuda" else peak_memory()


def peak_gpu_memory(device: torch.device | str) -> int:
    """Return torch's largest memory on a CUDA device since :func:`reset_peak_gpu_memory`, in bytes; 0 without CUDA."""
    import torch

    on_gpu = str(device).startswith("cuda") and torch.cuda.is_available()
    return int(torch.cuda.max_memory_allocated(device)) if on_gpu else 0


def reset_peak_gpu_memory(device: torch.device | str) -> None:
    """Start a new measurement of :func:`peak_gpu_memory`; does nothing without CUDA."""
    import torch

    if str(device).startswith("cuda") and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats(device)


def bytes_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; holes of sparse files do not count."""
    if path.is_dir():
        return sum(bytes_on_disk(file) for file in path.rglob("*") if file.is_file())
    status = path.stat()
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)
