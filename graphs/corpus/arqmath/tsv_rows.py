r"""Rows of a formula TSV, as bytes; a row with an unclosed quotation mark ends at the first line end.

>>> import io
>>> table = b'1\t"a\nb"\n' + b'2\t"<math\n' + b'3\tx" + 1\n' + b'4\t"y"\n'
>>> for row, closed in quoted_rows(io.BytesIO(table)):
...     print(row, closed)
b'1\t"a\nb"\n' True
b'2\t"<math\n' False
b'3\tx" + 1\n' True
b'4\t"y"\n' True

As for Python's ``csv``, a mark opens a quotation at the start of a field only; elsewhere it is an ordinary character. A
quoted field may have line ends. If it has, a tab or a line end must follow the closing mark; otherwise the mark opens
the next quotation, and this one is not closed.

:func:`whole_rows` cuts a file between rows, many times faster:

>>> list(whole_rows(io.BytesIO(table), 12))
[b'1\t"a\nb"\n', b'2\t"<math\n3\tx" + 1\n', b'4\t"y"\n']
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

MAX_ROW_BYTES = 1 << 25  # search for a closing mark no further than this
COMMENT = "comment"  # type of a formula in a comment on its post
MISSING = "d"  # in the issue of a formula that the text of its post lacks: Task 2 must not return it

_TEXT = rb'[^"]*+(?:""[^"]*+)*+'  # within a quotation
_FIELD = rb'(?:"%b"|(?!")[^\t\n]*+)' % _TEXT
_CLOSED_LINE = re.compile(rb'(?:"%b"|(?!"))[^\t]*+(?:\t(?:"%b"|(?!"))[^\t]*+)*+' % (_TEXT, _TEXT))
_CLOSING_LINE = re.compile(rb'%b"(?:\t%b)*+\r?\n?' % (_TEXT, _FIELD))
_CLOSED_FIELD = rb'(?:"%b"(?=[\t\r\n])|(?!")[^\t\n]*+)' % _TEXT
_CLOSED_ROWS = re.compile(rb"(?:%b(?:\t%b)*+\r?\n)*+" % (_CLOSED_FIELD, _CLOSED_FIELD))
_CONTINUING_LINE = re.compile(rb'(?:%b"\t(?:%b\t)*+")?+%b' % (_TEXT, _FIELD, _TEXT))


def quoted_rows(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each row with its line end, and whether its quotations are closed."""
    line = stream.readline(MAX_ROW_BYTES)
    while line:
        lines, size = [line], len(line)
        line = stream.readline(MAX_ROW_BYTES)
        if b'"' not in lines[0] or _CLOSED_LINE.fullmatch(lines[0]):
            yield lines[0], True
            continue
        while line and size < MAX_ROW_BYTES and _CONTINUING_LINE.fullmatch(line):
            lines.append(line)
            size += len(line)
            line = stream.readline(MAX_ROW_BYTES)
        if size < MAX_ROW_BYTES and _CLOSING_LINE.fullmatch(line):
            yield b"".join([*lines, line]), True
            line = stream.readline(MAX_ROW_BYTES)
        else:  # no quotation that is open at the end of one of these lines is closed later
            yield from ((one, _CLOSED_LINE.fullmatch(one) is not None) for one in lines)


def whole_rows(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the stream in blocks of about ``size`` bytes that end where a row of :func:`quoted_rows` ends."""
    block = stream.read(size)
    while block:
        closed = _CLOSED_ROWS.match(block, 0, 2 * size)
        end = 0 if closed is None else closed.end()
        if end:
            yield block[:end]
            block = block[end:]
        else:  # a quotation that is not closed here, a long row, or the last one
            lines = _LinesAgain(block, stream)
            rows: list[bytes] = []
            start = 0
            for row, _ in quoted_rows(lines):
                rows.append(row)
                end += len(row)
                if end - start >= size:
                    yield b"".join(rows)
                    rows, start = [], end
                    if lines.taken - end < size:  # else much was read in search of a closing mark: not twice
                        break
            if rows:
                yield b"".join(rows)
            block = lines.after(end)
        if len(block) < size:
            block += stream.read(size)


class _LinesAgain(io.BytesIO):
    """Lines of a block and of the stream that follows it; the bytes after any place can be had again."""

    def __init__(self, block: bytes, following: BinaryIO) -> None:
        super().__init__(block)
        self._following = following
        self._lines: list[bytes] = []
        self.taken = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line, of at most ``size`` bytes."""
        limit = MAX_ROW_BYTES if size is None or size < 0 else size
        line = super().readline(limit)
        if not line.endswith(b"\n") and len(line) < limit:
            line += self._following.readline(limit - len(line))
        self._lines.append(line)
        self.taken += len(line)
        return line

    def after(self, place: int) -> bytes:
        """Return the bytes from ``place`` on that were taken from the stream."""
        return b"".join([*self._lines, self.read()])[place:]


def columns_of(header: bytes) -> list[str]:
    """Return the names of the columns in the first line of a table.

    >>> columns_of(b"id\\tpost_id\\r\\n")
    ['id', 'post_id']
    """
    return header.decode("utf-8-sig", errors="replace").rstrip("\r\n").split("\t")


def formula_column(header: Sequence[str]) -> int:
    """Return the place of the formula among the columns.

    >>> formula_column(["id", "formula", "note"]), formula_column(["id", "post_id", "mathml"])
    (1, 2)
    """
    return header.index("formula") if "formula" in header else len(header) - 1
