r"""Commands of LaTeX: definitions, commands without output, delimiters, and the registration of all others.

Importing this module registers the commands of its neighbours with the reader.

>>> [part] = read(r"\left(2x\right)")
>>> part.items
[Token(OPEN, '(', 'V!('), Token(NUMBER, 'N!2', 'N!2'), Token(UNKNOWN, 'V!x', 'V!x'), Token(CLOSE, ')', 'V!)')]
"""

from __future__ import annotations

from functools import cache

import graphs.formulas.latex.structures as structures
import graphs.formulas.latex.tables as tables
import graphs.formulas.latex.text as text
from graphs.formulas.latex.nodes import MathList, Node, Token
from graphs.formulas.latex.reader import EMPTY, GROUP_END, Reader, handles
from graphs.formulas.latex.spaces import given_space
from graphs.formulas.latex.symbols import SYMBOLS, symbol
from graphs.formulas.latex.tokens import DEFINING, Macros, bracketed, define, group
from graphs.formulas.mathml import clean_plain

_MODULES = (structures, tables, text)  # imported so that their commands are known


def read(latex: str, macros: Macros | None = None) -> list[MathList]:
    r"""Read a formula into its lists, each after those within it; the last is the whole formula.

    >>> [item.role for item in read(r"2\frac{a}{b}x_1")[-1].items]
    ['NUMBER', 'ATOM', 'UNKNOWN', 'POSTSUB']

    Raises FormulaError for a formula that is too long or too deep.
    """
    reader = Reader(latex, macros)
    reader.formula()
    return reader.lists


@handles(*DEFINING, r"\gdef", r"\edef")
def _define(reader: Reader, token: str, out: list[Node]) -> None:
    define(r"\def" if token in (r"\gdef", r"\edef") else token, reader.stack, reader.macros)


@handles(
    r"\color", r"\label", r"\tag", r"\require", r"\vspace", r"\ref", r"\eqref", r"\cline", r"\class", r"\cssId",
    r"\style", r"\textcolor", r"\href", r"\rule", r"\raise", r"\lower", r"\leftroot", r"\uproot", r"\url",
    r"\pagecolor", r"\raisebox", r"\cite", r"\numberwithin", r"\mathcolor",
)  # fmt: skip
def _leaves_nothing(reader: Reader, token: str, out: list[Node]) -> None:
    reader.star()
    if token in (r"\raise", r"\lower"):
        given_space(reader, token)
        return
    if token in (r"\textcolor", r"\color", r"\rule", r"\raisebox"):
        bracketed(reader.stack)
    group(reader.stack)
    if token == r"\rule":
        group(reader.stack)


@handles("&", "$", r"\(", r"\)", "}")
def _stray(reader: Reader, token: str, out: list[Node]) -> None:
    """Skip an alignment mark outside of a table, a dollar sign, or a closing brace without an opening one."""


@handles(r"\end")
def _stray_end(reader: Reader, token: str, out: list[Node]) -> None:
    reader.name_argument()


_OF_SYMBOL = {r"\qvar": symbol("UNKNOWN", "?"), "...": SYMBOLS[r"\ldots"], r"\mod": SYMBOLS[r"\bmod"]}


@handles(*_OF_SYMBOL)
def _symbol(reader: Reader, token: str, out: list[Node]) -> Node:
    return _OF_SYMBOL[token]


@handles(r"\unicode", r"\char", r"\unichar")
def _unicode(reader: Reader, token: str, out: list[Node]) -> Node | None:
    given = group(reader.stack) or [""] if token == r"\unicode" else [reader.stack.pop() if reader.stack else ""]
    text = "".join(given).strip()
    try:
        return symbol("UNKNOWN", chr(int(text[1:], 16) if text[:1] in ("x", '"') else int(text)))
    except (ValueError, OverflowError):
        return None


_DELIMITERS = frozenset("()[]{}⌊⌋⌈⌉⟨⟩↑⇑↓⇓↕⇕")
_ANGLES = {"<": r"\langle", ">": r"\rangle", r"\lt": r"\langle", r"\gt": r"\rangle"}
_SIDES = {"l": "OPEN", "r": "CLOSE", "m": "MIDDLE"}


@handles(r"\left")
def _left(reader: Reader, command: str, out: list[Node]) -> None:
    r"""Read the delimiters and the group between them; an ``\over`` within splits this group only."""
    opening = _delimiter(reader, command, out)
    if opening is not None:
        out.append(opening)
    out.extend(reader.within(reader.stop | _RIGHT))
    if reader.stopped == r"\right":
        closing = _delimiter(reader, reader.stopped, out)
        if closing is not None:
            out.append(closing)
    elif reader.stopped:
        reader.stack.append(reader.stopped)


_RIGHT = frozenset((r"\right",))


@handles(
    r"\right", r"\middle",
    *(rf"\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")),
)  # fmt: skip
def _delimiter(reader: Reader, command: str, out: list[Node]) -> Node | None:
    side = {r"\left": "OPEN", r"\right": "CLOSE", r"\middle": "MIDDLE"}.get(command)
    if side is None and command[-1] in "lrm":
        side = _SIDES[command[-1]]
    token = reader.next_token()
    while reader.is_macro(token):
        reader.stack.pop()
        reader.expand(token)
        token = reader.next_token()
    if not token or token == "}":
        return None
    reader.stack.pop()
    if token[0] == "." and len(token) > 1:  # a number after the invisible delimiter
        reader.stack.append(token[1:])
        token = "."
    if token == ".":
        return None
    if token == "{":  # a braced delimiter, or a forgotten backslash
        inner = reader.within(GROUP_END)
        out.extend(item for item in inner if item is not EMPTY)
        return None
    token = _ANGLES.get(token, token)
    found = SYMBOLS.get(token)
    if found is None:
        reader.stack.append(token)
        return None
    return found if side is None else _fence(token, side)


@cache
def _fence(token: str, side: str) -> Token:
    r"""Make the fence of a symbol by its command: ``\lvert`` is another one than ``|``, of equal value."""
    found = SYMBOLS[token]
    if found.value in _DELIMITERS:
        role = side
    elif found.role == "VERTBAR":
        role = "MIDDLE" if side == "MIDDLE" else "VERTBAR"
    else:
        role = found.role
    return Token(
        role,
        found.value,
        found.slt if found.slt[1:2] != "!" else found.slt[2:],
        f"V!{clean_plain(found.value)}",
        name=found.value if found.name.endswith("Vert") else found.name,
    )
