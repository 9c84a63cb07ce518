"""An unfinished download: its bytes, and a note of the version that they are of.

>>> import tempfile; folder = Path(tempfile.mkdtemp())
>>> with locked(folder / ".qrel.part") as part:
...     _ = part.begin(7, '"etag"')
...     part.write(b"A.1")
>>> with locked(folder / ".qrel.part") as part:                     # by a later process
...     part.resumable, part.size, part.total, part.tag
(True, 3, 7, '"etag"')

The note is ``NAME.json`` beside the file. One process at a time has the file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from graphs.errors import CorpusError


class UnfinishedFile:
    """An unfinished file, open and locked, and the note of the version that its bytes are of.

    Attributes:
        path: place of its bytes.
        size: number of its bytes.
        total: size of the complete file; None where it is not known.
        tag: ETag or date of the version; empty where it is not known.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self._file = path, file
        self._note = path.with_name(f"{path.name}.json")
        self.size = file.seek(0, os.SEEK_END)
        self.total: int | None = None
        self.tag = ""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            total, tag = note["total"], note["tag"]
            if isinstance(total, int) and isinstance(tag, str) and "\n" not in tag and "\r" not in tag:
                self.total, self.tag = total, tag
        except (OSError, ValueError, TypeError, KeyError):
            pass  # bytes of an unknown version: the file starts again

    @property
    def resumable(self) -> bool:
        """True if the version of the bytes is known, and some or all bytes are missing."""
        return self.total is not None and 0 < self.size <= self.total

    def begin(self, total: int | None, tag: str) -> int:
        """Start from the first byte of this version; return the number of bytes thrown away."""
        before = self.drop()
        self.total, self.tag = total, tag
        self._note.write_text(json.dumps({"total": total, "tag": tag}), encoding="utf-8")
        return before

    def drop(self) -> int:
        """Throw the bytes away; return their number."""
        before, self.size = self.size, 0
        self._note.unlink(missing_ok=True)
        self._file.seek(0)
        self._file.truncate()
        return before

    def write(self, block: bytes) -> None:
        """Add bytes at the end."""
        self._file.write(block)
        self.size += len(block)

    def flush(self) -> None:
        """Hand the bytes to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self, local: Path) -> None:
        """Rename the complete file to its final name."""
        self.path.replace(local)
        self._note.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[UnfinishedFile]:
    """Yields the unfinished file at ``path``, new or begun. Raises CorpusError if another process downloads it."""
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise CorpusError("is being downloaded by another process", path=path) from error
            if not _is_at(path, file):
                continue  # another process has finished it since it was opened here
            part = UnfinishedFile(path, file)
            try:
                yield part
            finally:
                if part.size == 0 and _is_at(path, file):
                    path.unlink()
            return


def _is_at(path: Path, file: IO[bytes]) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
