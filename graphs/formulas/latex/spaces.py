r"""Spaces of a given width: ``\hspace{1cm}``, ``\kern 3pt``, ``\phantom{x}``.

>>> points("1.5em"), points("1cm")
(15.0, 28.45)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphs.formulas.latex.tokens import group

if TYPE_CHECKING:
    from graphs.formulas.latex.reader import Reader


def points(text: str) -> float:
    """Convert a length such as ``1.5em`` to points, at ten points an em."""
    text = text.replace(" ", "")
    number = text[:-2]
    try:
        return float(number) * UNITS.get(text[-2:], 0.0)
    except ValueError:
        return 0.0


UNITS = {
    "pt": 1.0, "em": 10.0, "ex": 4.3, "mu": 1 / 1.8, "mm": 2.845, "cm": 28.45, "in": 72.27, "px": 0.75, "pc": 12.0,
}  # fmt: skip
SPACE_COMMANDS = frozenset(
    (r"\hspace", r"\mspace", r"\hskip", r"\kern", r"\mkern", r"\mskip", r"\phantom", r"\hphantom", r"\vphantom")
)


def given_space(reader: Reader, command: str) -> float:
    """Read the width of ``\\hspace{1cm}`` and the like, in points."""
    stack = reader.stack
    if command in (r"\hspace", r"\mspace"):
        reader.star()
        return points("".join(group(stack) or []))
    if command in (r"\phantom", r"\hphantom"):
        return 5.0 * len(reader.argument_items())
    if command == r"\vphantom":
        reader.argument_items()
        return 0.0
    text = ""
    while (token := reader.next_token()) and (token in "+-." or token[0] in "0123456789."):
        text += stack.pop()
    unit = ""
    while text and len(unit) < 2 and (token := reader.next_token()).isalpha() and token.isascii():
        unit += stack.pop()
    if unit and unit not in UNITS:
        stack.extend(reversed(unit))
    text += unit
    return points(text)
