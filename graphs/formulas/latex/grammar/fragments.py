r"""Fallback for a list that the grammar does not read: scripts on their bases, a row for each fence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphs.formulas.latex.nodes import Node, Script, ScriptMark, Unparsed, place_of_scripts
from graphs.formulas.latex.symbols import ABSENT

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
        elif item.role == "CLOSE" and rows:
            _close_row(rows, [item])
        elif rows:
            rows[-1].append(item)
        else:
            rows.append([item])
    while len(rows) > 1:
        _close_row(rows, [])
    parts: list[Node] = []
    for part in rows[0] if rows else []:
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
            if item.floating or before:
                before.append(item)
            elif out:
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
