"""Files of a collection as they lie: plain, gzipped, or one member of a zip, which is read without unpacking it.

>>> import tempfile; folder = Path(tempfile.mkdtemp())
>>> with zipfile.ZipFile(folder / "Posts.V1.3.zip", "w") as archive:
...     archive.writestr("Posts.V1.3.xml", "<posts></posts>")
>>> (file,) = members(folder / "Posts.V1.3.zip")
>>> file.name, file.size
('Posts.V1.3.xml', 15)
>>> with file.open() as stream:
...     stream.read()
b'<posts></posts>'

Archives come from elsewhere and are not trusted: nothing is written to disk, and one that is truncated, damaged,
encrypted or a bomb raises CorpusError with the file's name and the way out. Bytes before the damage can be read.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, cast

from graphs.errors import CorpusError

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Members of one zip; the largest published one has 101.
MAX_MEMBERS = 10_000
#: Content this many times larger than what it is packed in is refused, from ``BOMB_BYTES`` of content on. XML and TSV
#: of formulas shrink 5 to 40 times; deflate itself cannot exceed 1,032.
MAX_RATIO = 250
BOMB_BYTES = 1 << 26

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

COMPRESSED = "is compressed with gzip; unpack it"
"""Reason to refuse a gzip file in place of one of text."""

_CHUNK = 1 << 16
_AGAIN = "fetch it again"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_OTHER_METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd"}


@dataclass(frozen=True, order=True, slots=True)
class PackedFile:
    """A file below a collection's root.

    Attributes:
        path: file on disk; content is decompressed where its name ends in ``.gz``.
        member: name of the content in the zip at ``path``; empty where ``path`` is no zip.
    """

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def is_plain(self) -> bool:
        """True if ``path`` itself has the content, so that any part of it can be read alone."""
        return not self.member and self.path.suffix.lower() != ".gz"

    @property
    def parts(self) -> tuple[str, ...]:
        """Folders and name of the content: a zip is the folder of members that have none; ``.gz`` is left out.

        >>> PackedFile(Path("Formulas/slt_v3.zip"), "1.tsv").parts, PackedFile(Path("slt_v3/1.tsv.gz")).parts
        (('Formulas', 'slt_v3', '1.tsv'), ('slt_v3', '1.tsv'))
        """
        if self.member:
            inner = PurePosixPath(self.member).parts
            return (*self.path.parent.parts, *(inner if len(inner) > 1 else (self.path.stem, *inner)))
        return (*self.path.parent.parts, self.path.name if self.is_plain else self.path.stem)

    @property
    def name(self) -> str:
        """Name of the content, without folders and without ``.gz``."""
        return self.parts[-1]

    @property
    def size(self) -> int:
        """Bytes of the content. A gzip file tells them modulo 4 GiB (where it is a chain of several: of the last)."""
        with readable(self):
            if self.member:
                return _info(_directory(self.path), self).file_size
            return self.path.stat().st_size if self.is_plain else _gzip_trailer(self.path)[1]

    @property
    def checksum(self) -> int | None:
        """CRC-32 of the content, as the zip or gzip file keeps it; ``None`` for a plain file."""
        if self.member:
            return _info(_directory(self.path), self).CRC
        return None if self.is_plain else _gzip_trailer(self.path)[0]

    def open(self) -> io.BufferedReader:
        """Open the content for reading, decompressed on the way.

        Reading raises CorpusError where the file is damaged. Only a plain file can seek.
        """
        with readable(self):
            if self.member:
                return io.BufferedReader(_Member(self), _CHUNK)
            return self.path.open("rb") if self.is_plain else io.BufferedReader(_Gunzip(self.path), _CHUNK)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in parts; all of it before a damaged place comes before the error."""
        with self.open() as stream:
            while True:
                with readable(self):
                    chunk = stream.read1(_CHUNK)
                if not chunk:
                    return
                yield chunk

    def head(self, size: int) -> bytes:
        """Return up to ``size`` bytes from the start; CorpusError only where not a single one can be read."""
        beginning = bytearray()
        try:
            for chunk in self.chunks():
                beginning += chunk
                if len(beginning) >= size:
                    break
        except CorpusError:
            if not beginning:
                raise
        return bytes(beginning[:size])


@contextmanager
def readable(file: object) -> Iterator[None]:
    """Turn an error of the disk into a CorpusError that names the file."""
    try:
        yield
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror or error}", path=str(file)) from error


def reason_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return the reason why a file of text cannot be read, with a way out for one that is compressed.

    >>> reason_unreadable(UnicodeDecodeError("utf-8", GZIP, 1, 2, "invalid start byte"))
    'is compressed with gzip; unpack it'
    """
    if isinstance(error, UnicodeDecodeError):
        return COMPRESSED if error.object.startswith(GZIP) else f"is not UTF-8: {error.reason}; save it as UTF-8"
    return f"cannot be read: {error}"


def members(path: Path) -> list[PackedFile]:
    """Return the files in a zip, in the order of their names. Raises CorpusError for one that is not safe to read."""
    with _archive(path) as archive:
        infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
    if len(infos) > MAX_MEMBERS:
        message = f"holds {len(infos):,} files, more than {MAX_MEMBERS:,}: this is no part of a collection; remove it"
        raise CorpusError(message, path=path)
    for info in infos:
        name = PurePosixPath(info.filename)
        if not info.filename:
            raise CorpusError(f"has a member without a name; {_AGAIN}", path=path)
        if name.is_absolute() or ".." in name.parts or "\\" in info.filename or ":" in info.filename[:2]:
            message = f"has a member {info.filename!r} that points out of its folder; {_AGAIN} from a place you trust"
            raise CorpusError(message, path=path)
        if info.flag_bits & 0x1:
            message = f"member {info.filename!r} is encrypted; unpack it and remove the zip"
            raise CorpusError(message, path=path)
        if info.file_size > BOMB_BYTES and info.file_size > MAX_RATIO * info.compress_size:
            raise CorpusError(_bomb(info.filename, info.file_size, info.compress_size), path=path)
    return sorted({PackedFile(path, info.filename) for info in infos})


def same_content(one: PackedFile, other: PackedFile) -> bool:
    """Return whether two files have the same bytes.

    Content of up to 4 MiB is compared whole. Beyond, two packed files are compared by size and checksum, and a plain
    file with another by size and first 256 KiB: a collection is opened often and has 300 files of 100 MB.
    """
    if one.size % (1 << 32) != other.size % (1 << 32):
        return False
    if one.size > 1 << 22:
        sums = one.checksum, other.checksum
        if None not in sums:
            return sums[0] == sums[1]
        return one.head(1 << 18) == other.head(1 << 18)
    with one.open() as left, other.open() as right:
        while True:
            ours, theirs = left.read(1 << 20), right.read(1 << 20)
            if ours != theirs:
                return False
            if not ours:
                return True


# -- streams ---------------------------------------------------------------------------------------------------------


class _Member(io.RawIOBase):
    """A member of a zip."""

    def __init__(self, file: PackedFile) -> None:
        self._file = file
        self._archive = _archive(file.path)
        try:
            info = _info(self._archive.NameToInfo, file)
            if info.compress_type not in _METHODS:
                kind = _OTHER_METHODS.get(info.compress_type, str(info.compress_type))
                message = f"is packed by a method ({kind}) that is not supported; unpack it and remove the zip"
                raise CorpusError(message, path=str(file))
            self._stream = cast(zipfile.ZipExtFile, self._archive.open(info))
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError) as error:  # a name's bytes
            self._archive.close()
            raise CorpusError(f"damaged zip ({error}); {_AGAIN}", path=str(file)) from error
        except CorpusError:
            self._archive.close()
            raise

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._stream.read1(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise CorpusError(f"truncated or damaged zip ({error}); {_AGAIN}", path=str(self._file)) from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed and hasattr(self, "_stream"):
            self._stream.close()
            self._archive.close()
        super().close()


class _Gunzip(io.RawIOBase):
    """Content of a gzip file. Unlike the standard library's reader it gives every byte before a damaged place."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = path.open("rb")
        self._decoder = zlib.decompressobj(wbits=31)
        self._packed = b""
        self._bytes_in = self._bytes_out = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._next_bytes(len(view))
        view[: len(data)] = data
        return len(data)

    def _next_bytes(self, limit: int) -> bytes:
        while True:
            if self._decoder.eof:  # of one gzip stream; several in one file are one content
                self._packed = (self._decoder.unused_data or self._read()).lstrip(b"\0")
                if not self._packed:
                    return b""
                self._decoder = zlib.decompressobj(wbits=31)
            packed = self._packed or self._read()
            if not packed:
                raise CorpusError(f"truncated gzip file; {_AGAIN}", path=self._path)
            try:
                data = self._decoder.decompress(packed, limit)
            except zlib.error as error:
                raise CorpusError(f"damaged gzip file ({error}); {_AGAIN}", path=self._path) from error
            self._packed = self._decoder.unconsumed_tail
            if data:
                self._bytes_out += len(data)
                if self._bytes_out > BOMB_BYTES and self._bytes_out > MAX_RATIO * self._bytes_in:
                    raise CorpusError(_bomb(self._path.name, self._bytes_out, self._bytes_in), path=self._path)
                return data

    def _read(self) -> bytes:
        data = self._source.read(_CHUNK)
        self._bytes_in += len(data)
        return data

    def close(self) -> None:
        if hasattr(self, "_source"):  # else the file cannot be opened
            self._source.close()
        super().close()


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        with readable(path):
            return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise CorpusError(f"truncated or damaged zip ({error}); {_AGAIN}", path=path) from error


def _directory(path: Path) -> Mapping[str, zipfile.ZipInfo]:
    """Return what a zip says of its members; it is read once as long as the file does not change."""
    with readable(path):
        stat = path.stat()
    return _directory_of(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=16)
def _directory_of(path: Path, *version: int) -> Mapping[str, zipfile.ZipInfo]:
    with _archive(path) as archive:
        return archive.NameToInfo


def _info(directory: Mapping[str, zipfile.ZipInfo], file: PackedFile) -> zipfile.ZipInfo:
    try:
        return directory[file.member]
    except KeyError as error:
        raise CorpusError(f"has no member {file.member!r}; {_AGAIN}", path=file.path) from error


def _gzip_trailer(path: Path) -> tuple[int, int]:
    """Checksum and size that a gzip file ends in."""
    with readable(path), path.open("rb") as file:
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - 8))
        trailer = file.read(8)
    return int.from_bytes(trailer[:4], "little"), int.from_bytes(trailer[4:], "little")


def _bomb(name: str, content: int, packed: int) -> str:
    return f"{name!r} unpacks from {packed:,} to more than {content:,} bytes, as a zip bomb does; remove it"
