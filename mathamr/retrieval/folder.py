"""Folder of an index: a header, and the data it names, switched in one step.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp()) / "index"
>>> with building(folder) as data:
...     _ = (data / "vectors").write_text("...")
...     switch(folder, data, {"format": "demo", "version": 1, "model_hash": "abc"})
>>> header, data = read_header(folder, "demo", 1)
>>> header["model_hash"], (data / "vectors").exists()
('abc', True)

The header has digests of itself, of the files directly in the data folder, and of further files named to
:func:`switch`. If a bit has changed, the index is refused.

>>> _ = (data / "vectors").write_text(".-.")
>>> read_header(folder, "demo", 1)
Traceback (most recent call last):
    ...
graphs.errors.StoreError: ...vectors: damaged: the file has changed since it was written; build the index again

A process that opens the folder with :func:`open_current` gets either the old index or the new one. A process that has
the old index open can still use it, because the operating system keeps open files until they are closed. The next build
removes the files of a killed one. Only one process can build at a time.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from graphs import digests
from graphs.errors import MathAMRError, StoreError
from graphs.whole_file import cause_of, write_whole

HEADER = "index.json"
FORMULA_TABLE = "formulas.tsv"
DOCUMENTS = "folder"  # collection of an index of documents, in its folder
_DIGEST = "sha256"  # in the header: of the header without it; of each file below ``files``
_DATA = re.compile(r"data-[0-9a-f]{32}")
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, None)  # numpy's errors of a full disk have no number
_UNFINISHED = re.compile(rf"\.lock|\.{re.escape(HEADER)}\..*|encoding(-\d+)?")  # of a build that was killed
SWITCHES = 2  # most that opening an index can meet

T = TypeVar("T")


def refuse_other_files(path: Path) -> None:
    """Raise StoreError for a place that is neither new, nor empty, nor an index, nor what a killed build has left."""
    if path.is_file():
        raise StoreError("is a file, and an index is a folder; name a new folder", path=path)
    entries = sorted(path.iterdir()) if path.is_dir() else []
    if any(_DATA.fullmatch(entry.name) for entry in entries):
        return
    for entry in entries:
        of_documents = entry.name == DOCUMENTS and ((entry / ".lock").exists() or not any(entry.glob("*")))
        if not of_documents and not _UNFINISHED.fullmatch(entry.name):
            raise StoreError(f"the folder holds other files, e.g. {entry.name}; name a new folder", path=path)


@contextmanager
def building(path: Path) -> Iterator[Path]:
    """Yield an empty folder below ``path`` for a new index, which the block fills and gives to :func:`switch`.

    If the block fails, the folder is removed, unless the header already names it: then it is the index.

    Raises:
        StoreError: the index cannot be written (in place of OSError).
    """
    data = path / f"data-{uuid.uuid4().hex}"
    try:
        data.mkdir(parents=True)
        yield data
    except BaseException as error:
        if _named(path) != data.name:
            shutil.rmtree(data, ignore_errors=True)
        if isinstance(error, OSError):
            raise unwritten(error, path) from error
        raise


def open_current(path: Path, open_: Callable[[], T]) -> T:
    """Return what ``open_`` returns; repeat it if another process has meanwhile switched the index of ``path``.

    ``open_`` reads the header first, and the files that it names may be removed before they are opened.
    """
    for _ in range(SWITCHES):
        before = _named(path)
        try:
            return open_()
        except (MathAMRError, OSError):
            if _named(path) == before:
                raise
    return open_()


def _named(path: Path) -> str | None:
    """Return the data folder that the header of ``path`` names; None without a readable header."""
    try:
        return str(json.loads((path / HEADER).read_text(encoding="utf-8"))["data"])
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None


def switch(path: Path, data: Path, header: dict[str, Any], further: Sequence[Path] = ()) -> None:
    """Make ``data`` the index of ``path``, described by ``header``, and remove the previous index.

    Args:
        further: files in folders below ``data`` that have no digest in another header.
    """
    own = [file for file in data.iterdir() if file.is_file() and file.suffix != ".lock"]
    files = {file.relative_to(data).as_posix(): digests.of_file(file) for file in sorted([*own, *further])}
    whole = {**header, "data": data.name, "files": files}
    write_whole(path / HEADER, json.dumps({**whole, _DIGEST: digests.of_json(whole)}, indent=1) + "\n")
    for old in path.glob("data-*"):
        if old != data:
            shutil.rmtree(old, ignore_errors=True)
    for unfinished in path.glob(f".{HEADER}.*"):  # of a build that was killed just before its switch
        unfinished.unlink(missing_ok=True)


def unwritten(error: OSError, path: Path | None) -> StoreError:
    """Return the error to raise for an index that cannot be written."""
    cause = cause_of(error)
    way_out = "; make room, or the folder writable, then run it again" if cause.errno in _OF_DISK else ""
    return StoreError(f"the index cannot be written: {cause}{way_out}", path=path)


def read_header(
    path: Path, index_format: str, version: int, *, model_hash: str | None = None
) -> tuple[dict[str, Any], Path]:
    """Return the header of the index in ``path`` and its data folder.

    Raises :class:`StoreError` if it is missing, damaged, of another format, or (with ``model_hash``) of
    another model.
    """
    place = path / HEADER
    try:
        header = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        missing = f"{HEADER} is missing" if path.is_dir() else "there is no such folder"
        raise StoreError(f"no index here: {missing}; mathamr index writes one", path=path) from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"cannot be read as the header of an index: {error}", path=place) from error
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (index_format, version):
        raise StoreError(f"is not of format {index_format} {version}; build the index again", path=place)
    _refuse_damage(header, place)
    data = path / header["data"]
    for name, digest in header["files"].items():
        try:
            whole = digests.of_file(data / name) == digest
        except OSError as error:
            raise StoreError(f"the index is damaged: {error}; build it again", path=data / name) from error
        if not whole:
            raise StoreError(
                "damaged: the file has changed since it was written; build the index again", path=data / name
            )
    if model_hash is not None and header["model_hash"] != model_hash:
        raise StoreError(
            f"the index was built by model {header['model_hash']}, not by {model_hash}; build it again", path=path
        )
    return header, data


def _refuse_damage(header: Mapping[str, Any], place: Path) -> None:
    """Refuse a header that has changed, or names files elsewhere."""
    rest = {name: value for name, value in header.items() if name != _DIGEST}
    changed = header.get(_DIGEST) != digests.of_json(rest)
    files = header.get("files")
    inside = isinstance(files, dict) and not any(Path(name).is_absolute() or ".." in Path(name).parts for name in files)
    if changed or not inside or not _DATA.fullmatch(str(header.get("data"))) or "model_hash" not in header:
        raise StoreError("damaged: the header has changed since it was written; build the index again", path=place)
