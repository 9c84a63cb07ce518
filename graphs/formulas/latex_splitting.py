r"""``\over`` and its kin: commands that put all that stands before them in a list over all that stands behind.

>>> from graphs.formulas.latex_symbols import SYMBOLS
>>> split(r"\choose", SYMBOLS["n"], SYMBOLS["k"]).content.name
'binomial'
"""

from __future__ import annotations

from typing import Final

from graphs.formulas.latex_nodes import Dual, Fraction, Node, Row
from graphs.formulas.latex_symbols import SYMBOLS

SPLITTING: Final = frozenset((r"\over", r"\atop", r"\choose", r"\brace", r"\brack", r"\above"))
"""The commands."""


def split(command: str, above: Node, below: Node) -> Node:
    """What one of :data:`SPLITTING` makes of the two parts of a list."""
    if command in (r"\over", r"\above"):
        return Fraction(above, below)
    if command == r"\choose":
        return binomial(above, below)
    bare = Fraction(above, below, name="")
    if command == r"\atop":
        return bare
    left, right = (r"\{", r"\}") if command == r"\brace" else ("[", "]")
    return Row([SYMBOLS[left], bare, SYMBOLS[right]])


def binomial(top: Node, bottom: Node) -> Node:
    """A binomial coefficient: a fraction without a bar, in parentheses."""
    bare = Fraction(top, bottom, name="binomial")
    return Dual(bare, Row([SYMBOLS["("], bare, SYMBOLS[")"]]))
