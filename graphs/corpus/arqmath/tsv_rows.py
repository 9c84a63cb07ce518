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
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

MAX_ROW_BYTES = 1 << 25  # search for a closing mark no further than this

_TEXT = rb'[^"]*+(?:""[^"]*+)*+'  # within a quotation
_FIELD = rb'(?:"%b"|(?!")[^\t\n]*+)' % _TEXT
_CLOSED_LINE = re.compile(rb'(?:"%b"|(?!"))[^\t]*+(?:\t(?:"%b"|(?!"))[^\t]*+)*+' % (_TEXT, _TEXT))
_CLOSING_LINE = re.compile(rb'%b"(?:\t%b)*+\r?\n?' % (_TEXT, _FIELD))
_CONTINUING_LINE = re.compile(rb'(?:%b"\t(?:%b\t)*+")?+%b' % (_TEXT, _FIELD, _TEXT))


def quoted_rows(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each row with its line end, and whether its quotations are closed."""
    line = stream.readline(MAX_ROW_BYTES)
    while line:
        lines, size = [line], len(line)
        line = stream.readline(MAX_ROW_BYTES)
        if _CLOSED_LINE.fullmatch(lines[0]):
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
