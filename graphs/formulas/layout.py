"""Building of a symbol layout tree (SLT): symbols on a baseline, joined by rules for rows, fences and scripts.

``x^2 + (a,b)`` is a chain of symbols, a superscript, and a fenced row that becomes one node with its elements within:

>>> x = scripts(Symbol("V!x"), None, Symbol("N!2"))
>>> pair = row([Symbol("("), Symbol("V!a"), Symbol("&comma;"), Symbol("V!b"), Symbol(")")])
>>> finish(row([x, Symbol("+"), pair])).tangent_string()
'[V!x[+[M!()1x2,w[V!a[&comma;],e[V!b]]]],a[N!2]]'

The rules are those of Tangent-S (Davila and Zanibbi, SIGIR 2017), whose indexes these trees must match. The readers of
Presentation MathML and of LaTeX both use them. ``None`` is a part without a symbol, such as an empty row. A symbol may
be passed to a rule only once, because the rules link symbols and do not copy them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from graphs.formulas.tree import FormulaTree

BLANK = "W!"
OPENING = frozenset(("(", "{", "|", "\u2225", "&lsqb;"))
CLOSING = frozenset((")", "}", "|", "\u2225", "&rsqb;"))
COMMA = "&comma;"
ENUMERATION = "aocnbudew"
"""Order in which a symbol's children are numbered in the finished tree."""
_ENUMERATION_REVERSED = ENUMERATION[::-1]


class Symbol:
    """Symbol and its neighbours, by the letter of the edge in the finished tree."""

    n: Symbol | None = None  # next on the baseline
    a: Symbol | None = None  # superscript
    b: Symbol | None = None  # subscript
    o: Symbol | None = None  # over: accent, upper limit, numerator
    u: Symbol | None = None  # under: lower limit, denominator
    c: Symbol | None = None  # superscript before the symbol; the index of a root
    d: Symbol | None = None  # subscript before the symbol
    w: Symbol | None = None  # within a root, a box, a fence, a table
    e: Symbol | None = None  # the first symbol of the next element, in a fence or a table

    def __init__(self, label: str) -> None:
        self.label = label

    def __repr__(self) -> str:
        around = ", ".join(f"{edge}={self.__dict__[edge].label!r}" for edge in ENUMERATION if self.__dict__.get(edge))
        return f"Symbol({self.label!r}{', ' if around else ''}{around})"


ScriptPair = tuple[Symbol | None, Symbol | None]


def is_blank(symbol: Symbol | None) -> bool:
    """Return whether nothing is visible: no symbol, or an empty or invisible one without neighbours."""
    if symbol is None:
        return True
    return symbol.label in (BLANK, "") and not any(symbol.__dict__.get(edge) for edge in ENUMERATION)


def last(symbol: Symbol) -> Symbol:
    """Return the end of the baseline that starts with ``symbol``."""
    while symbol.n is not None:
        symbol = symbol.n
    return symbol


def chain(parts: Sequence[Symbol | None]) -> Symbol | None:
    """Join the parts on a baseline, each after the end of the one before; ``None`` parts are left out."""
    head = end = None
    for part in parts:
        if part is None:
            continue
        if end is None:
            head = part
        else:
            end.n = part
        end = last(part)
    return head


def row(parts: Sequence[Symbol | None]) -> Symbol | None:
    """Build a row: blank parts dropped, a fenced row made one node (:func:`fence`), two adjacent tables made one.

    A row is fenced if it has more than two parts, the first part is one of ``( { | ∥ [``, and the last part is one of
    ``) } | ∥ ]``. As in Tangent-S, scripts of the two fence characters are lost with them.
    """
    shown = [part for part in parts if part is not None and (part.label not in (BLANK, "") or not is_blank(part))]
    if len(shown) < 2:
        return shown[0] if shown else None
    if len(shown) > 2 and _is_sign(shown[0], OPENING) and _is_sign(shown[-1], CLOSING):
        return fence(shown[0].label, shown[1:-1], shown[-1].label)
    head = end = previous = shown[0]
    for part in shown[1:]:
        if part.label.startswith("M!") and previous.label.startswith("M!") and _merge_tables(previous, part):
            continue
        end = last(end)
        end.n = part
        end = previous = part
    return head


def _is_sign(part: Symbol, labels: frozenset[str]) -> bool:
    """Return whether a part is one of ``labels``, not a row that begins with it."""
    return part.label in labels and part.n is None


def fence(opening: str, parts: Sequence[Symbol | None], closing: str) -> Symbol:
    """Build a node of a row between fences, ``M!()1x2`` for ``(a,b)``: one column for each comma-separated element.

    ``w`` leads to the first element, ``e`` from the first symbol of an element to the first of the next; a comma stays
    at the end of its element. A row of one part is split along its baseline; in a row of several, only the parts are
    examined, so a comma in an inner row does not split. A bare table keeps its size: ``M!()2x2``.

    >>> finish(fence("(", [Symbol("V!a"), Symbol("&comma;"), Symbol("V!b")], "]")).tangent_string()
    '[M!(]1x2,w[V!a[&comma;],e[V!b]]]'
    """
    inner = [part for part in parts if part is not None]
    if not inner:
        return Symbol(f"M!{opening}{closing}")
    if len(inner) == 1:
        if _is_bare_table(inner[0]):
            inner[0].label = f"M!{opening}{closing}{inner[0].label[2:]}"
            return inner[0]
        first, columns = _split_baseline(inner[0])
    else:
        first, columns = _split_parts(inner)
    box = Symbol(f"M!{opening}{closing}1x{columns}")
    box.w = first
    return box


def _is_bare_table(symbol: Symbol) -> bool:
    """Return whether a table has no fences and nothing but its cells."""
    label = symbol.label
    if not label.startswith("M!") or label[2:3] in ("(", "{", "|", "&", "\u2225"):
        return False
    return not any(symbol.__dict__.get(edge) for edge in "naboucd")


def _split_baseline(symbol: Symbol) -> tuple[Symbol, int]:
    """Split one baseline after its commas; return its first symbol and the number of elements."""
    if symbol.label == COMMA:  # an empty first element
        blank = Symbol(BLANK)
        blank.n = symbol
        symbol = blank
    columns = 1
    start: Symbol = symbol
    at: Symbol | None = symbol
    while at is not None and at.n is not None:
        comma = at.n
        if comma.label == COMMA:
            columns += 1
            at, comma.n = comma.n, None
            if at is not None:
                start.e = at
                start = at
        else:
            at = comma
    return symbol, columns


def _split_parts(parts: list[Symbol]) -> tuple[Symbol, int]:
    """Split several parts after the parts that are commas."""
    columns = 1
    rest = iter(parts)
    first = Symbol(BLANK) if parts[0].label == COMMA else next(rest)  # a blank: an empty first element
    start = end = first
    for part in rest:
        if part.label == COMMA:
            columns += 1
            last(end).n = part
            end = part
        elif end.label == COMMA:
            start.e = part
            start = end = part
        else:
            end = last(end)
            end.n = part
    return first, columns


def _merge_tables(table: Symbol, other: Symbol) -> bool:
    """Append the columns of ``other`` to those of ``table`` if both are bare and have as many rows."""
    if not (_is_bare_table(table) and _is_bare_table(other)):
        return False
    rows, _, columns = table.label[2:].partition("x")
    other_rows, _, other_columns = other.label[2:].partition("x")
    if rows != other_rows:
        return False
    height, width, other_width = int(rows), int(columns), int(other_columns)
    cells, other_cells = linked(table.w), linked(other.w)
    if len(cells) != height * width or len(other_cells) != height * other_width:
        return False  # rows of unequal length
    merged: list[Symbol] = []
    for i in range(height):
        merged += cells[i * width : (i + 1) * width]
        merged += other_cells[i * other_width : (i + 1) * other_width]
    link(merged)
    table.label = f"M!{rows}x{width + other_width}"
    return True


def link(cells: Sequence[Symbol | None]) -> Symbol:
    """Join the first symbols of elements by ``e``; an empty element becomes a blank. Return the first symbol."""
    filled = [Symbol(BLANK) if cell is None else cell for cell in cells] or [Symbol(BLANK)]
    for cell, following in pairwise(filled):
        cell.e = following
    return filled[0]


def linked(cell: Symbol | None) -> list[Symbol]:
    """Yield the first symbols of the elements that :func:`link` joined, from ``cell`` on."""
    found = []
    while cell is not None:
        found.append(cell)
        cell = cell.e
    return found


def table(rows: Sequence[Sequence[Symbol | None]]) -> Symbol:
    """Build a table, ``M!2x3`` for two rows and three columns in the first row; an empty cell is a blank.

    >>> finish(table([[Symbol("V!a"), None], [Symbol("V!c"), Symbol("V!d")]])).tangent_string()
    '[M!2x2,w[V!a,e[W!,e[V!c,e[V!d]]]]]'
    """
    box = Symbol(f"M!{len(rows)}x{len(rows[0]) if rows else 0}")
    if rows:
        box.w = link([cell for cells in rows for cell in cells or (None,)])
    return box


def boxed(symbol: Symbol) -> Symbol:
    """Build a box around a baseline, for scripts of the whole baseline."""
    box = Symbol("M!1x1")
    box.w = symbol
    return box


def is_operator(symbol: Symbol) -> bool:
    """Return whether a symbol's label has no type (``V!`` ...): operators take their scripts over and under them."""
    return symbol.label[1:2] != "!" and symbol.label[:1] != "?"


def scripts(base: Symbol | None, sub: Symbol | None, sup: Symbol | None) -> Symbol:
    """Add a subscript and a superscript to ``base``; those of an operator such as a sum are its limits.

    The base is boxed if it is longer than one symbol, or has such a script: ``{x_i}_j``.
    """
    if base is None or is_blank(base):
        base = Symbol(BLANK)
    elif is_operator(base):
        return under_over(base, sub, sup)
    if base.n is not None or (sub is not None and base.b is not None) or (sup is not None and base.a is not None):
        base = boxed(base)
    if sub is not None:
        base.b = sub
    if sup is not None:
        base.a = sup
    return base


def under_over(base: Symbol | None, under: Symbol | None, over: Symbol | None) -> Symbol:
    """Add parts under and over ``base``: limits, accents, braces. Boxed as in :func:`scripts`."""
    if base is None or is_blank(base):
        base = Symbol(BLANK)
    elif base.n is not None or (under is not None and base.u is not None) or (over is not None and base.o is not None):
        base = boxed(base)
    if under is not None:
        base.u = under
    if over is not None:
        base.o = over
    return base


def multiscripts(base: Symbol | None, after: Sequence[ScriptPair], before: Sequence[ScriptPair]) -> Symbol:
    """Add pairs of scripts (sub, sup) after and before ``base``; several of a kind make a baseline."""
    if base is None or is_blank(base):
        base = Symbol(BLANK)
    for pairs, sub_slot, sup_slot in ((after, "b", "a"), (before, "d", "c")):
        for which, slot in ((0, sub_slot), (1, sup_slot)):
            found = [pair[which] for pair in pairs]
            if found and is_blank(found[-1]):
                found.pop()  # the last of a kind may be missing
            script = chain([Symbol(BLANK) if symbol is None else symbol for symbol in found])
            if script is not None:
                setattr(base, slot, script)
    return base


def fraction(numerator: Symbol | None, denominator: Symbol | None) -> Symbol:
    """Build ``O!divide`` with the numerator over and the denominator under it."""
    bar = Symbol("O!divide")
    if numerator is not None:
        bar.o = numerator
    if denominator is not None:
        bar.u = denominator
    return bar


def root(radicand: Symbol | None, index: Symbol | None = None) -> Symbol:
    """Build ``O!root`` with the radicand within; a square root has no index."""
    sign = Symbol("O!root")
    if radicand is not None:
        sign.w = radicand
    if index is not None:
        sign.c = index
    return sign


def enclosed(notation: str, inner: Symbol | None) -> Symbol:
    """Build an enclosure, labelled with its notation (``box``, ``updiagonalstrike``, ...; default ``longdiv``)."""
    box = Symbol(notation if notation.strip() else "longdiv")
    if inner is not None:
        box.w = inner
    return box


def finish(symbol: Symbol) -> FormulaTree:
    """Return the finished tree of the baseline that starts with ``symbol``."""
    labels: list[str] = []
    parents: list[int] = []
    edges: list[str] = []
    stack: list[tuple[Symbol, int, str]] = [(symbol, -1, "")]
    while stack:
        symbol, parent, edge = stack.pop()
        index = len(labels)
        labels.append(symbol.label)
        parents.append(parent)
        edges.append(edge)
        around = symbol.__dict__
        if len(around) == 2:  # the label, set first, and one neighbour: most symbols of a formula
            edge = next(reversed(around))
            if around[edge] is not None:
                stack.append((around[edge], index, edge))
        elif len(around) > 2:
            for edge in _ENUMERATION_REVERSED:
                child = around.get(edge)
                if child is not None:
                    stack.append((child, index, edge))
    return FormulaTree("slt", tuple(labels), tuple(parents), tuple(edges))
