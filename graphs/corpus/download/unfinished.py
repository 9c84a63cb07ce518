"""An unfinished download: its bytes, a note of the version that they are of, and damage in a file that has arrived.

>>> import tempfile; folder = Path(tempfile.mkdtemp())
>>> with locked(folder / ".qrel.part") as part:
...     _ = part.begin(7, '"etag"')
...     part.write(b"A.1")
>>> with locked(folder / ".qrel.part") as part:                     # by a later process
...     part.resumable, part.size, part.total, part.tag
(True, 3, 7, '"etag"')

The note is ``NAME.json`` beside the file. One process at a time has the file. Damage is a truncated XML file, a broken
archive, or a web page under another name:

>>> path = folder / "arrived"
>>> _ = path.write_text("<!DOCTYPE html><title>Moved</title>")
>>> find_damage(path, "qrel_task1.tsv")
'is a web page, not the file itself'
>>> _ = path.write_text('<posts><row Id="1" ')
>>> find_damage(path, "Posts.xml")
'is XML without an end'

Archives are read through, a block at a time, and nothing is unpacked to the disk.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from graphs.corpus.packed import BOMB_BYTES, MAX_RATIO, members
from graphs.errors import CorpusError


class UnfinishedFile:
    """An unfinished file, open and locked, and the note of the version that its bytes are of.

    Attributes:
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


_BLOCK = 1 << 20
LARGER = 2  # most times the published size, which is rounded; at least one time in so many


def find_damage(path: Path, name: str, size: int | None = None) -> str:
    """Return what is wrong with the file, as the rest of a sentence; empty if it seems intact.

    Args:
        name: its published name, whose ending says what it should be.
        size: published size in bytes, rounded; None where it is not known.
    """
    found = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
        file.seek(max(found - 64, 0))
        end = file.read().rstrip()
    if not found:
        return "is empty"
    if start.startswith((b"<!doctype html", b"<html")):
        return "is a web page, not the file itself"
    if size is not None and not size / LARGER <= found <= size * LARGER:
        return f"has {found:,} bytes where about {size:,} are published"
    if name.endswith(".zip"):
        return _damage_of_zip(path)
    if name.endswith(".gz"):
        return _damage_of_gzip(path, found)
    if name.endswith(".xml") and not end.endswith(b">"):
        return "is XML without an end"
    return ""


def _damage_of_zip(path: Path) -> str:
    try:
        for member in members(path):
            for _ in member.chunks():
                pass
    except CorpusError as error:
        return f"is no intact archive: {error.message.removesuffix('; fetch it again')}"
    return ""


def _damage_of_gzip(path: Path, size: int) -> str:
    unpacked = 0
    try:
        with gzip.open(path) as file:
            while block := file.read(_BLOCK):
                unpacked += len(block)
                if unpacked > max(size * MAX_RATIO, BOMB_BYTES):
                    return f"is a gzip file that unpacks to {MAX_RATIO} times its size and more"
    except (OSError, EOFError, zlib.error) as error:
        return f"is a damaged gzip file ({error})"
    return ""
