"""Arrays in files, with room on the disk for all of their numbers.

>>> import tempfile
>>> file = Path(tempfile.mkdtemp()) / "vectors.npy"
>>> array = mapped(file, "float32", (2, 3))
>>> array[:] = 1
>>> array.flush()
>>> np.load(file).sum()
np.float32(6.0)
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike


def mapped(path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> np.memmap:
    """Make an array in a new ``.npy`` file, to be filled by memory-mapped writes.

    The file would have holes, and a disk that fills up while they are written ends the process with SIGBUS, without a
    message. So the whole file is reserved first.

    Raises:
        OSError: the disk has no room for the file.
    """
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
    if hasattr(os, "posix_fallocate"):  # macOS has none
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return array
