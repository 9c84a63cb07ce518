"""LaTeX files of a paper, from an untrusted archive.

>>> import io, tarfile, tempfile
>>> path = Path(tempfile.mkdtemp()) / "2501.00001.tar.gz"
>>> with tarfile.open(path, "w:gz") as archive:
...     for name, content in (("main.tex", b"\\\\documentclass{article}"), ("figure.png", b"...")):
...         member = tarfile.TarInfo(name)
...         member.size = len(content)
...         archive.addfile(member, io.BytesIO(content))
>>> read_files(path)
{'main.tex': '\\\\documentclass{article}'}

A paper is a ``.tar.gz``, ``.tgz`` or ``.tar``; a ``.gz``, which on arXiv is a packed folder or one packed file; a
folder; or one LaTeX file. Nothing is unpacked to disk: members are read one after the other into memory, as text, up to
the bounds of :class:`Limits`. An archive that reaches outside itself (absolute paths, ``..``), has devices, exceeds a
bound, or has oversized headers is refused as a whole. A link is never followed on disk: it is another name of a file
that was read from the archive, and is skipped where it leads elsewhere.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from graphs.errors import CorpusError
from graphs.papers.latex_source import STYLES

SUFFIXES = (".tex", ".ltx", ".texx", ".latex", *STYLES)
"""Endings of files that are read."""

_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f\x7f]")
_MOST_CONTROLS = 50  # one control character in so many; of random bytes, one in ten is one

MAX_HEADER_BYTES = 1_000_000  # of a member's long name or attributes


@dataclass(frozen=True)
class Limits:
    """Bounds of a paper: number of files of any kind, bytes of one LaTeX file, and unpacked bytes of all files."""

    files: int = 10_000
    file_bytes: int = 20_000_000
    total_bytes: int = 1_000_000_000


def read_files(path: Path, limits: Limits | None = None) -> dict[str, str]:
    """Return the LaTeX files of the paper at ``path``, by their names inside it, in packed order.

    Files that are not text in UTF-8 or Latin-1 are skipped.

    Raises:
        CorpusError: a missing paper, a damaged or hostile archive, or one beyond ``limits``.
    """
    limits = limits or Limits()
    links: dict[str, str] = {}
    try:
        if path.is_dir():
            members = _of_folder(path, limits)
        elif path.name.endswith((".tar.gz", ".tgz", ".tar", ".gz")):
            members = _of_archive(path, limits, links)
        else:
            if path.stat().st_size > limits.file_bytes:
                raise CorpusError(f"is a file of more than {limits.file_bytes:,} bytes", path=path)
            members = iter([(path.name, path.read_bytes())])
        texts = {name: decode(content) for name, content in members}
    except (OSError, EOFError, ValueError, OverflowError, RecursionError, zlib.error, tarfile.TarError) as error:
        raise CorpusError(f"cannot be read: {error}", path=path) from error
    found = {name: text for name, text in texts.items() if text is not None}
    size = sum(map(len, found.values()))
    for name, target in links.items():
        if name not in found and target in texts and texts[target] is not None:
            found[name] = found[target]
            if (size := size + len(found[name])) > limits.total_bytes:
                raise CorpusError(f"has links to LaTeX files of more than {limits.total_bytes:,} bytes", path=path)
    return found


def decode(content: bytes) -> str | None:
    """Decode bytes as UTF-8, else as Latin-1; return ``None`` if control characters show that they are not text."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
        if _MOST_CONTROLS * len(_CONTROL.findall(text)) > len(text):
            return None
    return None if "\0" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def _of_folder(folder: Path, limits: Limits) -> Iterator[tuple[str, bytes]]:
    inside = folder.resolve()
    count = size = 0
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        count += 1
        if count > limits.files:
            raise CorpusError(f"has more than {limits.files:,} files", path=folder)
        if file.suffix.lower() in SUFFIXES and file.resolve().is_relative_to(inside):
            if file.stat().st_size > limits.file_bytes:
                raise CorpusError(f"{file.name} has more than {limits.file_bytes:,} bytes", path=folder)
            if (size := size + file.stat().st_size) > limits.total_bytes:
                raise CorpusError(f"has LaTeX files of more than {limits.total_bytes:,} bytes", path=folder)
            yield file.relative_to(folder).as_posix(), file.read_bytes()


def _of_archive(path: Path, limits: Limits, links: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Yield the members of a (packed) tar, or the one file of a ``.gz``; add the targets of links to ``links``."""
    with path.open("rb") as file:
        plain = cast(IO[bytes], file if path.suffix == ".tar" else gzip.GzipFile(fileobj=file))
        stream = io.BufferedReader(_Bounded(plain, path, limits.total_bytes))
        if not _is_tar(stream.peek(tarfile.BLOCKSIZE)[: tarfile.BLOCKSIZE]):
            whole = stream.read(limits.file_bytes + 1)
            if len(whole) > limits.file_bytes:
                raise CorpusError(f"is a file of more than {limits.file_bytes:,} bytes", path=path)
            yield path.with_suffix(".tex").name, whole
            return
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as archive:
            for count, member in enumerate(archive, 1):
                if count > limits.files:
                    raise CorpusError(f"has more than {limits.files:,} members", path=path)
                if (reason := _refusal(member)) is not None:
                    raise CorpusError(f"member {member.name[:200]!r} {reason}", path=path)
                if PurePosixPath(member.name).suffix.lower() not in SUFFIXES:
                    continue
                if member.issym() or member.islnk():
                    folder = posixpath.dirname(member.name) if member.issym() else ""
                    # a target outside the archive is no member's name
                    links[str(PurePosixPath(member.name))] = posixpath.normpath(posixpath.join(folder, member.linkname))
                elif member.isfile():
                    if member.size > limits.file_bytes:
                        raise CorpusError(f"{member.name!r} has more than {limits.file_bytes:,} bytes", path=path)
                    content = archive.extractfile(member)
                    if content is not None:
                        yield str(PurePosixPath(member.name)), content.read(limits.file_bytes)


def _refusal(member: tarfile.TarInfo) -> str | None:
    """Return the reason to refuse a member, or ``None``."""
    name = PurePosixPath(member.name)
    if name.is_absolute() or "\\" in member.name or ":" in member.name.split("/")[0]:
        return "has an absolute path"
    if ".." in name.parts:
        return "reaches outside the archive"
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return "is neither a file nor a folder"
    return "is a sparse file" if member.issparse() else None


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class _Member(tarfile.TarInfo):
    """Member with bounded long name and attributes, which :mod:`tarfile` reads into memory."""

    @property
    def type(self) -> bytes:
        """Type of the member; :mod:`tarfile` sets it after the size, in methods that differ between its versions."""
        return self._type

    @type.setter
    def type(self, value: bytes) -> None:
        if value not in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE) and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        self._type = value


class _Bounded(io.RawIOBase):
    """Stream that raises after ``limit`` bytes, so that a bomb is not unpacked further."""

    def __init__(self, stream: IO[bytes], path: Path, limit: int) -> None:
        self._stream, self._path, self._limit = stream, path, limit
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(min(len(buffer), self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise CorpusError(f"unpacks to more than {self._limit:,} bytes", path=self._path)
        buffer[: len(content)] = content
        return len(content)
