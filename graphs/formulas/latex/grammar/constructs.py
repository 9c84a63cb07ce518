r"""Nodes built of parsed parts: a fence and its contents, a chain of relations, a list, a product.

>>> from graphs.formulas.latex.symbols import SYMBOLS
>>> interval = fence([SYMBOLS[symbol] for symbol in "(a,b]"])
>>> interval.content.name, len(interval.content.args)
('open-closed-interval', 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from graphs.formulas.latex.nodes import Dual, Infix, Named, Node, Prefix, Relations, Row, Token
from graphs.formulas.latex.symbols import CONDITIONAL, symbol

LARGE = frozenset(("BIGOP", "SUMOP", "INTOP", "LIMITOP", "DIFFOP"))
"""Large operators: those that apply to all factors that follow them."""
ADDITIVE = frozenset(("ADDOP", "BINOP"))
MULTIPLICATIVE = frozenset(("MULOP", "BINOP"))

_ONE_WITHIN = {
    "{}": "set", "||": "absolute-value", "∥∥": "norm", "||||": "norm", "⌊⌋": "floor", "⌈⌉": "ceiling",
    "<>": "expectation", "<|": "bra", "|>": "ket",
}  # fmt: skip
_TWO_WITHIN = {
    "(,)": "open-interval", "[,]": "closed-interval", "(,]": "open-closed-interval", "[,)": "closed-open-interval",
    "{,}": "set",
}  # fmt: skip
_MANY_WITHIN = {"(,)": "vector", "{,}": "set"}


def fence(shown: Sequence[Node]) -> Node:
    """Build the node of a fence with its contents; its two ends and the number of elements give the meaning."""
    opening, closing = shown[0].value, shown[-1].value
    args = shown[1:-1:2]
    if len(args) == 1:
        name = _ONE_WITHIN.get(opening + closing)
        if name is None or shown[0].name == "lVert":
            if opening == "(" and closing == ")":
                return Dual(args[0], Row(shown))
            name = f"delimited-{opening}{closing}"
    elif not args:
        name = "list"
    else:
        key = f"{opening}{shown[2].value}{closing}"
        name = (_TWO_WITHIN if len(args) == 2 else _MANY_WITHIN).get(key, "list")
    return Dual(Named(name, args), Row(shown))


def relation(chain: list[Node]) -> Node:
    """Build a relation, or a chain of several; a single part is returned as it is."""
    if len(chain) == 1:
        return chain[0]
    if len(chain) == 3:
        return Infix(chain[1], [chain[0], chain[2]])
    return Relations(chain)


def listing(listed: list[Node]) -> Node:
    """Build a list of parts with punctuation between them; a single part is returned as it is."""
    if len(listed) == 1:
        return listed[0]
    return Dual(Named("list", listed[::2]), Row(listed))


def applied(operator: Node, args: list[Node]) -> Node:
    """Apply an operator to its operands, between them or before them by its part of speech."""
    role = operator.role
    if role in LARGE or role == "OPERATOR":
        return Prefix(operator, args)
    return Infix(operator, args)


def product(operator: Node, left: Node, right: Node, fresh: bool) -> Node:
    """Multiply ``left`` by ``right``; a product of the same kind grows. ``fresh``: ``left`` is a single factor."""
    if (
        type(left) is Infix
        and (not fresh or left.op.role in MULTIPLICATIVE)
        and same(left.op, operator)
        and len(left.args) > 1
    ):
        return Infix(operator, [*left.args, right]) if fresh else _extended(left, right)
    return Infix(operator, [left, right])


@lru_cache(100)
def primes(primes: str) -> Token:
    """Build primes in a row, as one symbol."""
    return symbol("SUPOP", primes)


def conditional(bar: Token) -> Token:
    """Build a bar that is an operator: ``a`` given ``b``."""
    return Token(
        "MODIFIEROP", bar.value, bar.slt if bar.slt[1:2] != "!" else bar.slt[2:], CONDITIONAL, name="conditional"
    )


def same(first: Node, second: Node) -> bool:
    """Return whether two operators are equal symbols, so that their operands may be in one list; scripts prevent it."""
    if first is second:
        return True
    return type(first) is type(second) is Token and (first.name, first.value) == (second.name, second.value)


def _extended(product: Infix, factor: Node) -> Infix:
    assert isinstance(product.args, list)
    product.args.append(factor)
    return product
