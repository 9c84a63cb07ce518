r"""Repair of lists that the grammar does not read, for common forms in typed LaTeX.

Runs of punctuation, of relation signs and of stars become one sign. Each script gets a base, a dot between bars
becomes a variable, and an unclosed brace begins a system. Parts after ``\pmod{n}`` are another formula, an
``\lvert`` that ``|`` closes is ``|``, too, and bars that fence nothing are signs
(:mod:`graphs.formulas.latex.grammar.bars`). All symbols stay, in order; only their grouping changes. A list that the
grammar reads is not repaired, so formulas that LaTeXML reads have LaTeXML's reading. The fallback for a list that is
not read after its repair either is :func:`kludge`.

>>> from graphs.formulas.latex.reader import Reader
>>> [item.role for item in mended(Reader(r"x\colon = y,,z").formula().items)]
['UNKNOWN', 'RELOP', 'UNKNOWN', 'PUNCT', 'UNKNOWN']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphs.formulas.latex.grammar.bars import of_one_kind, without_fences
from graphs.formulas.latex.nodes import Dual, Named, Node, Row, Script, ScriptMark, Table, Unparsed, place_of_scripts
from graphs.formulas.latex.symbols import ABSENT, INVISIBLE_COMMA, SPACE, SYMBOLS, symbol

_RELATIONAL = frozenset(("RELOP", "ARROW", "METARELOP"))
_STOPS = frozenset(("PUNCT", "PERIOD"))
_ON_NOTHING = frozenset(("OPEN", "PUNCT"))
_STARS = frozenset(("*", "∗"))
_BARS = frozenset(("VERTBAR", "OPEN", "CLOSE"))
_BETWEEN = frozenset(("VERTBAR", "MIDDLE"))
_AFTER_MODIFIER = frozenset(("RELOP", "ARROW", "METARELOP", "CLOSE", "PUNCT", "PERIOD", "POSTSUB", "POSTSUP"))
_KEEPS_ROLE = frozenset(("METARELOP", "MODIFIEROP", "MODIFIER"))


def mended(items: list[Node]) -> list[Node]:
    """Return the items with their slips mended; the given list is unchanged."""
    items = without_fences(of_one_kind(items))
    out: list[Node] = []
    position = 0
    end = len(items)
    while position < end:
        item = items[position]
        role = item.role
        run = position + 1
        if role in _STOPS and (_in_bars(items, position) or _has_script(items, position)):
            out.append(Dual(symbol("UNKNOWN", item.value), item, role="UNKNOWN", value=item.value))
        elif role in _STOPS:
            run = next((i for i in range(run, end) if items[i].role not in _STOPS), end)
            out.append(_stops(items[position:run]))
        elif role in _RELATIONAL:
            run = next((i for i in range(run, end) if not _runs_on(items, i)), end)
            out.append(item if run == position + 1 else _relation(items[position:run]))
        elif role == "MULOP" and item.value in _STARS:
            run = next((i for i in range(run, end) if items[i].role != "MULOP" or items[i].value not in _STARS), end)
            out.append(item if run == position + 1 else _run("MULOP", items[position:run]))
        elif _begins_system(items, position):
            run = position + 2
            out.append(Dual(Named("cases", [items[position + 1]]), Row(items[position:run])))
        elif role == "MODIFIER" and out and out[-1] is SPACE:
            out[-1] = Dual(item, Row([SPACE, item]), role=role)
        elif role == "MODIFIER" and out and run < end and items[run].role not in _AFTER_MODIFIER:
            out += [item, INVISIBLE_COMMA]
        elif type(item) is ScriptMark and not item.floating and (not out or out[-1].role in _ON_NOTHING):
            out.append(ScriptMark(item.script, item.sup, True, item.level))
        elif type(item) is ScriptMark and not item.floating and out[-1].role in _KEEPS_ROLE:
            out[-1] = Script(out[-1], item, "post", out[-1].role)
        else:
            out.append(item)
        position = run
    return _without_idle_stops(out)


def _runs_on(items: list[Node], position: int) -> bool:
    """Return whether a relation sign joins the one before; a second arrow or the bracket of ``= <1,2>`` does not."""
    item = items[position]
    before = items[position - 1]
    if item.role not in _RELATIONAL or item.role == before.role == "ARROW":
        return False
    if position > 1 and items[position - 2].value == "/":  # ``X/\\sim \\to Y``
        return False
    return item.name != "less-than" or all(other.name != "greater-than" for other in items[position + 1 :])


def _in_bars(items: list[Node], position: int) -> bool:
    """Return whether a dot is alone between bars: ``\\|.\\|``."""
    if not 0 < position < len(items) - 1:
        return False
    before, after = items[position - 1], items[position + 1]
    return before.value == after.value and before.role in _BARS and after.role in _BARS


def _has_script(items: list[Node], position: int) -> bool:
    """Return whether a dot carries a script, as in a tower of powers: ``x^{.^{.^{.}}}``."""
    following = items[position + 1] if position + 1 < len(items) else None
    return items[position].role == "PERIOD" and isinstance(following, ScriptMark) and not following.floating


def _begins_system(items: list[Node], position: int) -> bool:
    """Return whether this is a brace before aligned equations without a closing brace."""
    if items[position].role != "OPEN" or items[position].value != "{" or position + 1 == len(items):
        return False
    following = items[position + 1]
    if not isinstance(following, Dual) or not isinstance(following.layout, Table):
        return False
    return position + 2 == len(items) or items[position + 2].value != "}"


def _stops(run: list[Node]) -> Node:
    """Make one sign of a run of punctuation; it separates the elements of a list."""
    if len(run) == 1:
        return run[0]
    return Dual(run[0], Row(run), role="PUNCT", value=",")


def _relation(run: list[Node]) -> Node:
    """Make one sign of a run of relation signs: ``\\colon =`` is an assignment."""
    text = "".join(item.value for item in run)
    if text == ":=":
        return Dual(SYMBOLS[":="], Row(run), role="RELOP", name=text, value=text)
    return _run("RELOP", run)


def _run(role: str, run: list[Node]) -> Node:
    """Make one sign of a run of signs."""
    text = "".join(item.value for item in run)
    return Dual(symbol(role, text), Row(run), role=role, name=text, value=text)


def _without_idle_stops(items: list[Node]) -> list[Node]:
    """Join punctuation with its neighbour beside a relation sign, at the beginning, and at a fence's end."""
    joined: list[Node] = []
    waiting: list[Node] = []
    before = "START"
    for item, after in zip(items, [*(item.role for item in items[1:]), "END"], strict=True):
        is_idle = item.role in _STOPS and (
            after in _RELATIONAL
            or after in ("CLOSE", "END")
            or before in _RELATIONAL
            or before in ("OPEN", "START")
            or (item is SPACE and (after in _BETWEEN or before in _BETWEEN))
        )
        before = "" if is_idle else item.role
        if is_idle:
            if joined and joined[-1].role != "OPEN" and type(joined[-1]) is not ScriptMark:
                joined[-1] = _with_stop(joined[-1], [item], after=True)
            else:
                waiting.append(item)
        elif waiting and type(item) is not ScriptMark:
            joined.append(_with_stop(item, waiting, after=False))
            waiting = []
        else:
            joined.append(item)
    return joined + waiting


def _with_stop(item: Node, stops: list[Node], *, after: bool) -> Node:
    parts = [item, *stops] if after else [*stops, item]
    return Dual(item, Row(parts), role=item.role, name=item.name, value=item.value)


MAX_ROWS: Final = 40
"""Fences nested deeper than this get no row."""


def kludge(items: Sequence[Node]) -> list[Node]:
    """Attach scripts to the items before them, and put each fence with its contents in a row.

    An end of a fence without a beginning ends the row that starts at the left; the rest stays as it is.
    """
    rows: list[list[Node]] = [[], []]  # the last is the open row
    for item in items:
        if item.role == "OPEN" and len(rows) < MAX_ROWS:
            rows.append([item])
        elif item.role == "CLOSE":
            _close_row(rows, [item])
        else:
            rows[-1].append(item)
    while len(rows) > 1:
        _close_row(rows, [])
    parts: list[Node] = []
    for part in rows[0]:
        parts += part.parts if type(part) is Unparsed else [part]
    return parts


def _close_row(rows: list[list[Node]], end: list[Node]) -> None:
    attached = _attach(rows.pop() + end)
    if not rows:
        rows.append([])
    if attached:
        rows[-1].append(Unparsed(attached) if len(attached) > 1 else attached[0])


def _attach(items: Sequence[Node]) -> list[Node]:
    out: list[Node] = []
    before: list[ScriptMark] = []
    for item in items:
        if type(item) is ScriptMark:
            if out and not before and not item.floating:
                out[-1] = Script(out[-1], item, place_of_scripts(out[-1]))
            else:
                before.append(item)
            continue
        for mark in reversed(before):
            item = Script(item, mark, "pre")
        before = []
        out.append(item)
    if before:
        base: Node = ABSENT
        for mark in before:
            base = Script(base, mark, "post")
        out.append(base)
    return out
