"""Damage in a file that has just arrived: a truncated XML file, a broken archive, a web page under another name.

>>> import tempfile; path = Path(tempfile.mkdtemp()) / "arrived"
>>> _ = path.write_text("<!DOCTYPE html><title>Moved</title>")
>>> find_damage(path, "qrel_task1.tsv")
'is a web page, not the file itself'
>>> _ = path.write_text('<posts><row Id="1" ')
>>> find_damage(path, "Posts.xml")
'is XML without an end'

Archives are read through, a block at a time, and nothing is unpacked to the disk.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from graphs.corpus.packed import BOMB_BYTES, MAX_RATIO, members
from graphs.errors import CorpusError

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
