r"""Delimiters of a given size: ``\left( ... \right)``, ``\middle|``, ``\bigl[``."""

from __future__ import annotations

from functools import cache

from graphs.formulas.latex.nodes import Node, Token
from graphs.formulas.latex.reader import EMPTY, GROUP_END, Reader, handles
from graphs.formulas.latex.symbols import SYMBOLS
from graphs.formulas.mathml import clean_plain

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
