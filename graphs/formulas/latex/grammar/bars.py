r"""Bars that are not fences: restrictions, "divides", parallels and conditions.

``f_{|A}`` is restricted to ``A``, ``p||G|`` divides, ``AB || CD`` are parallel, ``\parallel`` always is, and
``E(u \middle| X)`` is conditional. The grammar first takes bars for absolute values, norms, sets and evaluations;
where that fails, this module finds the bars that are signs between two parts.

>>> from graphs.formulas.latex.reader import Reader
>>> [item.role for item in without_fences(Reader("AB||CD").formula().items)]
['UNKNOWN', 'UNKNOWN', 'RELOP', 'UNKNOWN', 'UNKNOWN']
"""

from __future__ import annotations

from graphs.formulas.latex.grammar.constructs import conditional
from graphs.formulas.latex.nodes import Dual, Node, Row, ScriptMark, Token
from graphs.formulas.latex.symbols import opt_label, symbol

_BARS = frozenset(("VERTBAR", "MIDDLE"))
_BEFORE_OPERAND = frozenset(
    ("OPEN", "PUNCT", "PERIOD", "RELOP", "ARROW", "METARELOP", "ADDOP", "MULOP", "BIGOP", "VERTBAR")
)
_SIDES = frozenset(("OPEN", "CLOSE"))
_WITH_CONDITIONS = frozenset(("{", "⟨"))


def of_one_kind(items: list[Node]) -> list[Node]:
    r"""Return the items with every ``\lvert`` and ``\rvert`` made a plain bar, where they make no pairs."""
    opening = [item.role for item in items if item.value == "|" and item.role in _SIDES]
    if opening.count("OPEN") == opening.count("CLOSE"):
        return items
    return [
        Token("VERTBAR", "|", item.slt, item.opt, name=item.name)
        if isinstance(item, Token) and item.value == "|" and item.role in _SIDES
        else item
        for item in items
    ]


def without_fences(items: list[Node]) -> list[Node]:
    """Return the items with the bars between two parts made relations; the given list is unchanged."""
    positions = [position for position, item in enumerate(items) if item.role in _BARS]
    if not positions:
        return items
    upright = [position for position in positions if items[position].role == "VERTBAR" and items[position].value == "|"]
    if positions == [0]:
        return [_condition(items[0]), *items[1:]]
    if len(upright) == 2 and upright[1] == upright[0] + 1 and _stands_between(items, upright[0], upright[1]):
        bars = items[upright[0] : upright[1] + 1]
        parallel = Dual(symbol("RELOP", "||", "parallel-to"), Row(bars), role="RELOP", name="||", value="||")
        return [*items[: upright[0]], parallel, *items[upright[1] + 1 :]]
    signs = set(positions).difference(upright)
    if len(upright) % 2:
        signs |= _odd_one(items, upright)
    out: list[Node] = []
    within: list[str] = []
    for position, item in enumerate(items):
        if item.role == "OPEN":
            within.append(item.value)
        elif item.role == "CLOSE" and within:
            within.pop()
        elif position in signs and item.value != "∥" and not (within and within[-1] in _WITH_CONDITIONS):
            if within:
                item = _condition(item)
            elif item.role == "VERTBAR":
                item = _divides(item)
        elif position in signs and item.name == "parallel-to":
            item = Dual(item, item, role="RELOP", name=item.name, value=item.value)
        out.append(item)
    return out


def _stands_between(items: list[Node], first: int, last: int) -> bool:
    """Return whether there is an operand before ``first`` and something to relate it to after ``last``."""
    return (
        first > 0
        and last + 1 < len(items)
        and items[first - 1].role not in _BEFORE_OPERAND
        and items[last + 1].role != "CLOSE"
        and not isinstance(items[last + 1], ScriptMark)
    )


def _odd_one(items: list[Node], upright: list[int]) -> set[int]:
    """Find the bar that no absolute value needs among an odd number of bars: of ``p||G|``, the first."""
    runs: list[list[int]] = []
    for position in upright:
        if runs and position == runs[-1][-1] + 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    long = [run for run in runs if len(run) > 1]
    if len(long) != 1 or len(long[0]) > 3:
        return set()
    run = long[0]
    if len(run) == 3:
        return {run[1]}
    return {run[0]} if _stands_between(items, run[0], run[0]) else set()


def _condition(bar: Node) -> Node:
    shown = bar if isinstance(bar, Token) else symbol("VERTBAR", "|")
    return Dual(conditional(shown), bar, role="METARELOP", name="conditional", value=bar.value)


def _divides(bar: Node) -> Node:
    sign = Token("RELOP", bar.value, bar.value, opt_label("divides"), name="divides")
    return Dual(sign, bar, role="RELOP", name="divides", value=bar.value)
