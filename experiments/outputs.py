"""Files that several processes share below ``outputs/``: replaced whole, and guarded by locks.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_whole(folder / "results.csv", "condition,seed\\n")
>>> (folder / "results.csv").read_text(), [path.name for path in folder.iterdir()]
('condition,seed\\n', ['results.csv'])
>>> with locked(folder / ".lock") as first, locked(folder / ".lock") as second:
...     first, second
(True, False)
"""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphs.errors import StoreError


def write_whole(path: Path, text: str) -> None:
    """Write in one step: a reader sees the old file or the new one, and of two writers the last one's."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock ``path`` where it is free; yields whether it is held. With ``wait``, until it is free.

    A process that ends, in whatever way, lets go of its locks.

    Raises:
        StoreError: on a file system without locks.
    """
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            message = f"the file system gives no lock ({error.strerror}); choose another folder with outputs=..."
            raise StoreError(message, path=path) from error
        yield True
