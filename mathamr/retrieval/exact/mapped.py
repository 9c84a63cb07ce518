"""Arrays in files: written with room on the disk for all of their numbers, and read as files that others may send.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "vectors.npy"
>>> array = mapped(file, "float32", (2, 3))
>>> array[:] = 1
>>> array.flush()
>>> float(read_array(file, "r").sum())
6.0
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike

from graphs.errors import StoreError, faults_as


def mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap:
    """Make an array in a new ``.npy`` file, to be filled by memory-mapped writes.

    The file would have holes, and a disk that fills up while they are written ends the process with SIGBUS, without a
    message. So the whole file is reserved first. On a file system without ``fallocate``, as NFS 3, the C library writes
    to every block of 4 KiB for this, which takes some seconds for each GiB.

    Raises:
        OSError: the disk has no room for the file.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    if hasattr(os, "posix_fallocate"):  # macOS has none
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array


def read_array(path: Path, mode: Literal["r", "c"]) -> np.ndarray:
    """Open the array of a ``.npy`` file, memory-mapped: read-only, or with ``c`` writable without a change to the file.

    Neither an archive nor Python objects are read.

    Raises:
        StoreError: the file cannot be read, or holds something else.
    """
    with faults_as(StoreError, "the index is damaged: {}; build it again", path):
        array = np.asarray(np.lib.format.open_memmap(path, mode=mode))
    return array


def read_ids(path: Path) -> np.ndarray:
    """Map the ids (N,) of a ``.npy`` file into memory; raise StoreError if it is unreadable or holds something else."""
    ids = read_array(path, "r")
    if ids.dtype.kind != "U" or ids.ndim != 1:
        raise StoreError("the index is damaged: the file holds no list of ids; build it again", path=path)
    return ids
