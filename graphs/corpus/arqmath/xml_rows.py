"""Elements of a large or untrusted XML file, one after another, with nothing else of it in memory.

>>> import tempfile; path = Path(tempfile.mkdtemp()) / "Posts.xml"
>>> _ = path.write_text('<posts>\\n<row Id="1" Body="a &lt;b&gt;"/>\\n<row Id="2"/></posts>')
>>> list(read_rows(path))
[(2, {'Id': '1', 'Body': 'a <b>'}), (3, {'Id': '2'})]

Entities are not resolved, nothing is fetched, and a file with a document type declaration is refused: posts need none,
and it is what attacks on XML readers are made of.

Rows are found by their start, ``<row``, which no attribute can hold, and parsed a few hundred KB at a time. A row that
is damaged or far too long costs itself only:

>>> _ = path.write_bytes(b'<posts><row Id="1"/><row Id="2" Body="\\xff"/>\\n<row Id="3"/></posts>')
>>> for line, row in surviving_rows(path):
...     print(line, row if isinstance(row, dict) else (row.post_id, row.kind))
1 {'Id': '1'}
1 ('2', 'broken_row')
2 {'Id': '3'}
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from lxml import etree

from graphs.corpus.packed import PackedFile, readable
from graphs.errors import CorpusError, Failure

#: Bytes of a row. The parser takes no longer attribute; a post's text is cut at a twentieth of it.
MAX_ROW = 10_000_000

_BLOCK = 1 << 18
_KEPT = 1 << 12  # bytes of a row that is too long, in which the end of the file is recognised
_STARTS = re.compile(rb"<row(?=[\s/>])")
_WHOLE = re.compile(rb"""<row(?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*+\s*(?:/>|>\s*</row\s*>)""")
_ID = re.compile(rb"""<row\s+Id\s*=\s*["']([\w.-]{1,40})["']""")
_END = re.compile(rb"</(?!row\s*>)[\w:.-]+\s*>\s*(?:<!--(?:(?!-->).)*-->\s*)*\Z", re.DOTALL)
_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']""")
_AGAIN = "is the file complete? Fetch or unpack it again"
_PROLOG = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT_TAG = re.compile(r"<[\w:.-]+(?:\s[^<>]*)?>")
_ROOT = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)[\s/>]")


def read_rows(path: Path | PackedFile) -> Iterator[tuple[int, dict[str, str]]]:
    """``(line, attributes)`` of every ``<row>``, in order. Raises CorpusError, with the line, where the XML breaks."""
    for line, row in surviving_rows(path):
        if isinstance(row, Failure):
            raise CorpusError(row.message)
        yield line, row


def surviving_rows(path: Path | PackedFile) -> Iterator[tuple[int, dict[str, str] | Failure]]:
    """``(line, attributes)`` of every ``<row>``, in order, and a Failure in the place of what cannot be read.

    Kinds of failures: ``broken_row`` and ``long_row`` are followed by the next row; ``broken_xml`` is the last, where
    the file or its archive breaks off.

    Raises:
        CorpusError: no file, a document type declaration, or broken XML without any row.
    """
    given = path if isinstance(path, PackedFile) else PackedFile(path)
    _refuse_doctype(given)
    yield from _Rows(given)


class _Rows:
    """Rows of one file. The buffer starts with the row that has begun."""

    def __init__(self, file: PackedFile) -> None:
        self._file = file
        self._place = str(file)
        head = file.head(1024)
        declared = _ENCODING.search(head)
        self._wide = _wide(head)
        encoding = "utf-8" if self._wide or declared is None else declared[1].decode()
        encoding = "utf-8" if encoding.lower().startswith(("utf-16", "utf-32", "ucs")) else encoding
        try:
            self._parser = etree.XMLParser(encoding=encoding, remove_comments=True, remove_pis=True, **_SAFE)
        except LookupError as error:
            raise CorpusError(f"encoding {encoding!r} is unknown; convert it to UTF-8", path=self._place) from error
        self._buffer = bytearray()
        self._line = 1  # of the start of the buffer
        self._broken = ""  # reason why the file breaks off

    def __iter__(self) -> Iterator[tuple[int, dict[str, str] | Failure]]:
        buffer, blocks = self._buffer, self._blocks()
        if not (yield from self._begin(blocks)):
            self._read_without_rows()
            return
        skipped, skipped_line, skipped_id = 0, 0, ""
        searched = 0
        for block in chain([b""], blocks):  # the first row may have begun in the last block
            buffer += block
            if skipped:
                following = _STARTS.search(buffer)
                if following is None:
                    skipped += self._drop(len(buffer) - _KEPT)
                    continue
                skipped += self._drop(following.start())
                yield skipped_line, self._too_long(skipped_line, skipped, skipped_id)
                skipped, searched = 0, 0
            last = _last_start(buffer, searched)
            if last > 0:
                line, rows = self._line, bytes(buffer[:last])
                self._drop(last)
                yield from self._read(rows, line)
            searched = max(len(buffer) - 5, 0)
            if len(buffer) > MAX_ROW:
                skipped_line, skipped_id = self._line, _id(buffer)
                skipped = self._drop(len(buffer) - _KEPT)
        end = _END.search(buffer, max(len(buffer) - _KEPT, 0))
        last = end.start() if end else len(buffer)
        rest: list[tuple[int, dict[str, str] | Failure]] = []
        if skipped:
            yield skipped_line, self._too_long(skipped_line, skipped + last, skipped_id)
        else:
            rest = list(self._read(bytes(buffer[:last]), self._line))
        if end is not None and not self._broken:
            yield from rest
            return
        yield from (found for found in rest if not isinstance(found[1], Failure))
        message = self._broken or f"{self._place}:{self._line}: broken XML: the file ends within its rows; {_AGAIN}"
        yield self._line, Failure("", "read", "broken_xml", message)

    def _begin(self, blocks: Iterator[bytes]) -> Generator[tuple[int, Failure], None, bool]:
        """Let the buffer start with the first row, and yield what is lost before it; return whether there is a row."""
        buffer, searched = self._buffer, 0
        for block in blocks:
            buffer += block
            if first := _STARTS.search(buffer, searched):
                if b"<!DOCTYPE" in buffer[_HEAD - 9 : first.start()]:
                    raise CorpusError(_NO_DOCTYPE, path=self._place)
                if lost := _unread(bytes(buffer[: first.start()])):
                    message = f"{self._place}:{self._line}: broken XML before the first row that can be read"
                    message = f"{message}; {lost:,} bytes are lost; {_AGAIN}"
                    yield self._line, Failure("", "read", "broken_row", message)
                self._drop(first.start())
                return True
            searched = max(len(buffer) - 5, 0)
            if len(buffer) > MAX_ROW:
                raise CorpusError(f"has no <row> in its first {MAX_ROW:,} bytes", path=self._place)
        return False

    def _blocks(self) -> Iterator[bytes]:
        """Decode the content from UTF-8, or from the declared encoding, which has ASCII's letters for tags."""
        try:
            with readable(self._file), self._file.open() as stream:
                decode = codecs.getincrementaldecoder(self._wide)("replace").decode if self._wide else None
                while block := stream.read1(_BLOCK):
                    yield block if decode is None else decode(block).encode()
        except CorpusError as error:
            self._broken = str(error)

    def _drop(self, size: int) -> int:
        """Remove bytes from the start of the buffer, which are counted in lines; return how many they were."""
        size = max(size, 0)
        self._line += self._buffer.count(b"\n", 0, size)
        del self._buffer[:size]
        return size

    def _read(self, rows: bytes, line: int) -> Iterator[tuple[int, dict[str, str] | Failure]]:
        """Parse the rows in ``rows``, together if they are intact, else one by one."""
        try:
            yield from self._parse(rows, line)
            return
        except _Damaged as error:
            starts = [match.start() for match in _STARTS.finditer(rows)]
            if len(starts) == 1:
                yield from self._read_damaged(rows, line, error)
                return
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            yield from self._read(rows[start:end], line)
            line += rows.count(b"\n", start, end)

    def _parse(self, rows: bytes, line: int) -> list[tuple[int, dict[str, str] | Failure]]:
        try:
            root = etree.fromstring(b"<rows>" + rows + b"</rows>", self._parser)
        except etree.XMLSyntaxError as error:
            raise _Damaged(f"broken XML: {error.msg or 'no content'}", error.lineno or 1) from error
        for element in root:  # a damaged <row shows as text or as another element
            if element.tag != "row" or (element.tail and not element.tail.isspace()):
                what = "text" if element.tag == "row" else f"<{element.tag}>"
                raise _Damaged(f"broken XML: {what} between two rows", _line_of(element))
        return [
            (line + _line_of(element) - 1, {str(key): str(value) for key, value in element.attrib.items()})
            for element in root
        ]

    def _read_damaged(self, row: bytes, line: int, error: _Damaged) -> Iterator[tuple[int, dict[str, str] | Failure]]:
        """A row up to the next one that is broken, or that something broken follows."""
        whole = _WHOLE.match(row)
        if whole is not None and whole.end() < len(row):
            try:
                yield from self._parse(whole[0], line)
            except _Damaged:
                whole = None
        lost = len(row) - (whole.end() if whole else 0)
        at = line + error.line - 1
        if len(row) > MAX_ROW:
            yield line, self._too_long(line, len(row), _id(row))
            return
        message = f"{self._place}:{at}: {error}; {lost:,} bytes are lost; {_AGAIN}"
        yield at, Failure("" if whole else _id(row), "read", "broken_row", message)

    def _read_without_rows(self) -> None:
        """Raise CorpusError unless the file is XML without a row."""
        if self._broken:
            raise CorpusError(self._broken)
        if b"<!DOCTYPE" in self._buffer[_HEAD - 9 :]:
            raise CorpusError(_NO_DOCTYPE, path=self._place)
        try:
            etree.fromstring(bytes(self._buffer), self._parser)
        except etree.XMLSyntaxError as error:
            message = f"broken XML: {error.msg or 'no content'}; {_AGAIN}"
            raise CorpusError(message, path=self._place, line=error.lineno or 1) from error

    def _too_long(self, line: int, size: int, post_id: str) -> Failure:
        message = f"{self._place}:{line}: a row of {size / 1e6:.1f} MB; longest allowed: {MAX_ROW / 1e6:.0f} MB"
        return Failure(post_id, "read", "long_row", message)


class _Damaged(Exception):
    """Rows that cannot be read; ``line`` counts from 1 within them."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def _unread(start: bytes) -> int:
    """Return the length of what is neither the root's start tag, nor blank, nor a comment: a damaged first row."""
    text = decoded(start)
    place = _after_prolog(text)
    root = _ROOT_TAG.match(text, place)
    return len(text) - _after_prolog(text, root.end() if root else place)


def _after_prolog(text: str, start: int = 0) -> int:
    """Return the place of what is neither blank, nor a comment, nor an instruction."""
    match = _PROLOG.match(text, start)
    return match.end() if match else start


def _last_start(buffer: bytearray, start: int) -> int:
    """Return the place of the last row that begins from ``start`` on; -1 if none does."""
    end = len(buffer) - 1
    while (at := buffer.rfind(b"<row", start, max(end, 0))) >= 0:
        if buffer[at + 4] in b" \t\r\n/>":
            return at
        end = at + 3
    return -1


def _line_of(element: etree._Element) -> int:
    return cast(int, element.sourceline or 1)


def _id(row: bytes | bytearray) -> str:
    """Return the Id of a row that cannot be read, as far as it shows."""
    match = _ID.match(row[:256])
    return match[1].decode(errors="replace") if match else ""


def read_elements(path: Path | PackedFile, tag: str, key: str) -> Iterator[tuple[int, str, dict[str, str]]]:
    """``(line, attribute key, texts of the children by tag)`` of every ``<tag>``; errors as in :func:`read_rows`."""
    for line, element in elements(path, tag):
        texts = {str(child.tag): "".join(map(str, child.itertext())) for child in element if isinstance(child.tag, str)}
        yield line, element.get(key, ""), texts


def elements(path: Path | PackedFile, tag: str) -> Iterator[tuple[int, etree._Element]]:
    """Yield ``(line, element)`` of every ``<tag>``, which is emptied afterwards; errors as in :func:`read_rows`."""
    given = path if isinstance(path, PackedFile) else PackedFile(path)
    place = str(given)
    _refuse_doctype(given)
    try:
        with readable(given), given.open() as file:
            stream = SimpleNamespace(read=file.read1)  # gives what it has: an error comes after the elements before it
            context = etree.iterparse(stream, events=("end",), tag=tag, remove_comments=True, remove_pis=True, **_SAFE)
            for _, element in context:
                if element.getroottree().docinfo.internalDTD is not None:
                    raise CorpusError(_NO_DOCTYPE, path=place)
                yield element.sourceline or 0, element
                element.clear()
                parent = element.getparent()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        message = f"broken XML: {error.msg or 'no content'}; {_AGAIN}"
        raise CorpusError(message, path=place, line=error.lineno or 1) from error


_SAFE: Any = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
_HEAD = 1 << 16
_NO_DOCTYPE = "has a document type declaration (<!DOCTYPE ...>), which is refused: delete it, a collection needs none"


def _refuse_doctype(file: PackedFile) -> None:
    """Inspect the file's first 64 KiB before a parser reads it."""
    text = decoded(file.head(_HEAD))
    place = _after_prolog(text)
    if text.startswith("<!DOCTYPE", place):
        raise CorpusError(_NO_DOCTYPE, path=str(file), line=text.count("\n", 0, place) + 1)


def root_of(start: bytes) -> str:
    """Return the name of the root element of an XML file that starts so; empty where it has no such start.

    >>> root_of(b'\\xef\\xbb\\xbf<?xml version="1.0"?><!-- 2021 --><Topics><Topic number="A.1">')
    'Topics'
    """
    text = decoded(start)
    root = _ROOT.match(text, _after_prolog(text))
    return root[1] if root else ""


def decoded(start: bytes) -> str:
    """Return the first bytes of an XML file as text, in which its tags can be searched; other letters may be wrong."""
    wide = bool(_wide(start))
    text = start.decode("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", errors="replace")
    return text.replace("\x00", "") if wide else text.removeprefix("\xef\xbb\xbf")


def _wide(start: bytes) -> str:
    """Return the codec of a file whose letters have two bytes or more; empty for others."""
    if start[:4] in (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"):
        return "utf-32"
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return "" if b"\x00" not in start[:4] else "utf-16-be" if start[:1] == b"\x00" else "utf-16-le"
