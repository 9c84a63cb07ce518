r"""Environments and other tables: matrices, cases, arrays, aligned equations.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"\begin{pmatrix}1&2\\3&4\end{pmatrix}").slt.tangent_string()
'[M!()2x2,w[N!1,e[N!2,e[N!3,e[N!4]]]]]'
"""

from __future__ import annotations

import re

from graphs.formulas.latex.nodes import Dual, Named, Node, Prefix, Row, Table, Text, Token
from graphs.formulas.latex.reader import CELL_END, EMPTY, ENDS_LINE, GROUP_END, NOTHING, Reader, handles
from graphs.formulas.latex.spaces import UNITS
from graphs.formulas.latex.symbols import ABSENT, SYMBOLS, opt_label
from graphs.formulas.latex.tokens import bracketed, group

_FENCES = {
    "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "Bmatrix": (r"\{", r"\}"), "vmatrix": (r"\vert", r"\vert"),
    "Vmatrix": (r"\|", r"\|"), "psmallmatrix": ("(", ")"), "bsmallmatrix": ("[", "]"),
}  # fmt: skip
_ALIGNED = frozenset(("aligned", "split", "gathered", "alignedat", "multlined"))
_PLACED = _ALIGNED - {"split"}  # an optional argument gives the vertical position
_WITH_COLUMNS = frozenset(("array", "tabular", "subarray", "alignat", "alignedat", "xalignat", "darray"))
_FILLED = frozenset(("array", "tabular", "darray"))  # short rows get empty cells, up to the columns that are declared
_CASES = frozenset(("cases", "dcases", "rcases", "numcases"))
_DETERMINANT = Token("LIMITOP", "det", "det", opt_label("determinant"))


def rows_of(reader: Reader, end: frozenset[str], columns: int = 0) -> list[list[list[Node]]]:
    """Read the items of each cell, row by row, up to a token of ``end``; fill up rows of fewer than ``columns``."""
    rows: list[list[list[Node]]] = [[]]
    spanned = reader.spanned
    while True:
        row = rows[-1]
        row.append([item for item in reader.within(end | CELL_END) if item is not EMPTY])
        stopped = reader.stopped
        if stopped == "&":
            continue
        if stopped not in ENDS_LINE and len(rows) > 1 and row == [[]]:
            rows.pop()
            break
        missing = columns - len(row) - (reader.spanned - spanned)
        if missing > 0:
            reader.count(missing, "the last row of a table")
            row += [[]] * missing
        spanned = reader.spanned
        if stopped not in ENDS_LINE:
            break
        if stopped == r"\\":
            _skip_options_of_line_end(reader.stack)
        rows.append([])
    return rows


def _columns(specification: list[str]) -> int:
    r"""Count the columns that the specification of an array declares.

    >>> _columns(list(r"*{2}{c|}@{\quad}p{2cm}r"))
    4
    """
    text = _NO_COLUMN.sub("", "".join(specification).replace(" ", ""))
    return len(_COLUMN.findall(_REPEATED.sub(lambda found: found[2] * int(found[1]), text)))


_COLUMN = re.compile("[clrpmb]")
_NO_COLUMN = re.compile(r"(?:[@!<>]|(?<=[pmb]))\{(?:[^{}]|\{[^{}]*+\})*+\}")  # @{between}, p{width}
_REPEATED = re.compile(r"\*\{?([0-9]{1,2})\}?(\{[^{}]*+\}|[clr])")


def _skip_options_of_line_end(stack: list[str]) -> None:
    r"""Skip the star and the length of ``\\*[2pt]``; after a space, or without a unit, they belong to the next row."""
    if stack and stack[-1] == "*":
        stack.pop()
    if _LENGTH.match("".join(stack[: -_LENGTH_TOKENS - 1 : -1])):
        bracketed(stack)


# -1.5 truept, .5\baselineskip, and 1em plus 2pt minus 1pt
_SIZE = (
    rf"\s*+[+-]?\s*+(?:[0-9.,]++\s*+(?:true\s*+)?(?:{'|'.join(UNITS)}|fil{{1,3}})"
    r"|[0-9.]*+\s*+\\(?:[A-Za-z]*(?:skip(?:amount)?|height|width|sep)|jot))\s*+"
)
_LENGTH = re.compile(rf"\[{_SIZE}(?:plus{_SIZE})?(?:minus{_SIZE})?\]")
_LENGTH_TOKENS = 48  # of the longest bracket that is read as a length


def cells_of(reader: Reader, rows: list[list[list[Node]]]) -> list[list[Node]]:
    """Make one part of each cell; an empty cell is ``ABSENT``."""
    return [[reader.math_list(cell, "Anything,") if cell else ABSENT for cell in row] for row in rows]


@handles(r"\begin")
def _environment(reader: Reader, token: str, out: list[Node]) -> Node | None:
    name = reader.name_argument()
    bare = name.rstrip("*")
    if bare in _WITH_COLUMNS or bare in _PLACED or name.endswith("matrix*"):
        bracketed(reader.stack)
    specification = group(reader.stack) if bare in _WITH_COLUMNS else None
    rows = rows_of(reader, NOTHING, _columns(specification) if specification and bare in _FILLED else 0)
    if reader.stopped == r"\end":
        reader.name_argument()
    return _table_of(reader, bare, rows)


@handles(
    r"\matrix", r"\pmatrix", r"\cases", r"\eqalign", r"\eqalignno", r"\bordermatrix", r"\displaylines", r"\aligned",
    r"\bmatrix", r"\vmatrix", r"\array", r"\smallmatrix", r"\Vmatrix", r"\Bmatrix", r"\split", r"\gathered", r"\align",
    r"\ialign", r"\halign",
)  # fmt: skip
def _plain_table(reader: Reader, token: str, out: list[Node]) -> Node | None:
    if reader.next_token() != "{":
        return None
    reader.stack.pop()
    rows = rows_of(reader, GROUP_END)
    name = token[1:]
    return _table_of(reader, "aligned" if name.startswith("eqalign") else name, rows)


def _table_of(reader: Reader, name: str, rows: list[list[list[Node]]]) -> Node | None:
    if name in ("equation", "math", "displaymath"):
        return reader.math_list([item for row in rows for cell in row for item in cell], "Anything,")
    cells = cells_of(reader, rows)
    if name in _CASES:
        cells = [[*row, ABSENT] if len(row) == 1 else row for row in cells]
    table = Table(cells)
    if name in _CASES:
        flat = [Text(()) if cell is ABSENT else cell for row in cells for cell in row]
        return Dual(Named("cases", flat), Row([SYMBOLS[r"\{"], table]))
    if name in _ALIGNED:
        merged = reader.math_list([item for row in rows for cell in row for item in cell], "Anything,")
        return Dual(merged, table)
    if name == "subarray":
        return Dual(Named("list", [table]), table)
    fences = _FENCES.get(name)
    if fences is None:
        return table
    left, right = (SYMBOLS[fence] for fence in fences)
    content: Node = table
    if name == "vmatrix":
        content = Prefix(_DETERMINANT, [table])
    elif name == "Vmatrix":
        content = Named("norm", [table])
    return Dual(content, Row([left, table, right]))


@handles(r"\substack")
def _substack(reader: Reader, token: str, out: list[Node]) -> Node | None:
    if reader.next_token() != "{":
        return reader.argument()
    reader.stack.pop()
    return _table_of(reader, "subarray", rows_of(reader, GROUP_END))


@handles(r"\multicolumn")
def _over_columns(reader: Reader, token: str, out: list[Node]) -> None:
    """Read the contents of a cell that spans columns."""
    number = reader.name_argument()
    group(reader.stack)
    out.extend(reader.argument_items())
    if re.fullmatch("[1-9][0-9]?", number):
        reader.spanned += int(number) - 1
