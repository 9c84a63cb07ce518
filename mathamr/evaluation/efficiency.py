"""What a result cost: seconds, bytes and parameters, measured the same way everywhere.

>>> with Stopwatch() as watch:
...     total = sum(range(1000))
>>> 0 <= watch.seconds < 60
True
>>> peak_memory() > 10_000_000  # a Python process with torch loaded takes more than 10 MB
True
>>> Cost(epoch_seconds=3.0, pairs=1500).row()["pairs_per_second"]
500.0
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

if sys.platform != "win32":
    import resource


_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Stopwatch:
    """Wall-clock seconds of a ``with`` block; on a CUDA device it waits for the work queued there at both ends.

    ``seconds`` can be read inside the block as well: it then holds the time so far.
    """

    def __init__(self, device: torch.device | str | None = None) -> None:
        self._device = torch.device(device) if device is not None else torch.device("cpu")
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
        """Seconds since the block was entered, or that it took."""
        return (time.perf_counter() if self._end is None else self._end) - self._start

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


def peak_memory() -> int:
    """Largest resident set of this process, in bytes, since :func:`reset_peak_memory` (Linux) or since it started.

    0 where the system does not tell (Windows).
    """
    if sys.platform == "win32":
        return 0
    if _STATUS.exists():
        peaks = [line.split()[1] for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:")]
        if peaks:
            return int(peaks[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def reset_peak_memory() -> None:
    """Begin a new measurement of :func:`peak_memory`, so that a job is not charged for the one before it (Linux)."""
    with contextlib.suppress(OSError):  # not Linux, or /proc is closed to us: the peak is then that of the whole run
        _CLEAR_REFS.write_text("5", encoding="ascii")


def peak_device_memory(device: torch.device) -> int:
    """Largest memory of the device so far, in bytes: what torch held on a GPU, or the process in the CPU's."""
    return peak_gpu_memory(device) if device.type == "cuda" else peak_memory()


def peak_gpu_memory(device: torch.device | str | None = None) -> int:
    """Largest memory that torch held on a CUDA device since :func:`reset_peak_gpu_memory`, in bytes; 0 without CUDA."""
    if not torch.cuda.is_available() or (device is not None and torch.device(device).type != "cuda"):
        return 0
    return int(torch.cuda.max_memory_allocated(device))


def reset_peak_gpu_memory(device: torch.device | str | None = None) -> None:
    """Begin a new measurement of :func:`peak_gpu_memory`; nothing to do without CUDA."""
    if torch.cuda.is_available() and (device is None or torch.device(device).type == "cuda"):
        torch.cuda.reset_peak_memory_stats(device)


def parameters_by_group(model: torch.nn.Module) -> dict[str, int]:
    """Number of parameters under each direct child of ``model``; its own parameters under their own names.

    >>> parameters_by_group(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1)))
    {'0': 8, '2': 3}
    """
    groups: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        group = name.partition(".")[0]
        groups[group] = groups.get(group, 0) + parameter.numel()
    return groups


def bytes_on_disk(path: Path) -> int:
    """Bytes that a file, or all files below a folder, take; of a file with holes only what is allocated."""
    if path.is_dir():
        return sum(bytes_on_disk(file) for file in path.rglob("*") if file.is_file())
    status = path.stat()
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of one job. Seconds, bytes and counts; 0 means that it was not measured."""

    epoch_seconds: float = 0.0  # mean time of an epoch
    pairs: int = 0  # training pairs in an epoch
    peak_memory: int = 0  # bytes, resident set of the process
    peak_gpu_memory: int = 0  # bytes
    parameters: dict[str, int] = field(default_factory=dict)  # by group of the model
    index_seconds: float = 0.0
    index_bytes: int = 0
    vectors: int = 0
    queries: int = 0
    query_seconds: float = 0.0  # for all queries together

    @property
    def pairs_per_second(self) -> float:
        """Training speed, pairs/s."""
        return self.pairs / self.epoch_seconds if self.epoch_seconds > 0 else 0.0

    @property
    def queries_per_second(self) -> float:
        """Search throughput, queries/s."""
        return self.queries / self.query_seconds if self.query_seconds > 0 else 0.0

    def row(self) -> dict[str, float | int]:
        """Columns for a results table: the fields, the two rates, and the parameters as one total and one a group."""
        columns = asdict(self)
        groups = columns.pop("parameters")
        columns["pairs_per_second"] = self.pairs_per_second
        columns["queries_per_second"] = self.queries_per_second
        columns["parameters"] = sum(groups.values())
        columns.update({f"parameters_{name}": count for name, count in groups.items()})
        return columns
