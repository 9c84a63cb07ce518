r"""Neighbours that become one part: digits of a number, three dots, a mixed number, ``:=``, the sides of ``\over``.

>>> from graphs.formulas.latex.symbols import SYMBOLS
>>> dots = [SYMBOLS["."], SYMBOLS["."]]
>>> joined(dots, SYMBOLS["."], False), dots == [SYMBOLS[r"\ldots"]]
(True, True)
>>> split(r"\choose", SYMBOLS["n"], SYMBOLS["k"]).content.name
'binomial'
"""

from __future__ import annotations

from typing import Final

from graphs.formulas.latex.grammar.constructs import fence
from graphs.formulas.latex.nodes import Dual, Fraction, Infix, Node, Row, Token
from graphs.formulas.latex.symbols import INVISIBLE_PLUS, SYMBOLS

SPLITTING: Final = frozenset((r"\over", r"\atop", r"\choose", r"\brace", r"\brack", r"\above"))
"""Commands that put everything before them in a list over everything after them."""

_PAIRS: dict[tuple[Node, Node], Token] = {
    (SYMBOLS[":"], SYMBOLS["="]): SYMBOLS[":="],
    (SYMBOLS["!"], SYMBOLS["!"]): SYMBOLS["!!"],
}
_DOT_TRIPLES = {SYMBOLS["."]: SYMBOLS[r"\ldots"], SYMBOLS[r"\cdot"]: SYMBOLS[r"\cdots"]}


def joined(out: list[Node], node: Node, spaced: bool) -> bool:
    """Merge ``node`` into the last node of ``out``; return whether it merged.

    ``spaced`` tells that there is a space between the two.
    """
    before = out[-1]
    if before.role == "NUMBER":
        if node.role == "NUMBER":
            out[-1] = _joined_numbers(before, node, spaced)
            return True
        if type(node) is Fraction and _is_of_numbers(node):
            out[-1] = Infix(INVISIBLE_PLUS, [before, node])
            return True
    elif node is before and node in _DOT_TRIPLES and len(out) > 1 and out[-2] is node:
        out[-2:] = [_DOT_TRIPLES[node]]
        return True
    elif (before, node) in _PAIRS:
        out[-1] = _PAIRS[before, node]
        return True
    return False


def _joined_numbers(first: Node, second: Node, spaced: bool) -> Token:
    """Join two numbers side by side; a space between them is shown in the SLT and has no meaning."""
    assert isinstance(first, Token)
    assert isinstance(second, Token)
    digits = first.value + second.value
    return Token("NUMBER", digits, f"{first.slt}{' ' if spaced else ''}{second.value}", f"N!{digits}")


def _is_of_numbers(fraction: Fraction) -> bool:
    parts = (fraction.numerator, fraction.denominator)
    return fraction.name == "divide" and all(part.role == "NUMBER" for part in parts)


def split(command: str, above: Node, below: Node) -> Node:
    """Build the node that a command of :data:`SPLITTING` makes of the two parts of a list."""
    if command in (r"\over", r"\above"):
        return Fraction(above, below)
    if command == r"\choose":
        return binomial(above, below)
    bare = Fraction(above, below, name="")
    if command == r"\atop":
        return bare
    left, right = (r"\{", r"\}") if command == r"\brace" else ("[", "]")
    return fence([SYMBOLS[left], bare, SYMBOLS[right]])


def binomial(top: Node, bottom: Node) -> Node:
    """Build a binomial coefficient: a fraction without a bar, in parentheses."""
    bare = Fraction(top, bottom, name="binomial")
    return Dual(bare, Row([SYMBOLS["("], bare, SYMBOLS[")"]]))
