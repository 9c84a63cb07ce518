"""Roles of the edges in formula trees: our names, and the names in other releases of MathAMR graphs.

>>> [tree_role(role, "opt") for role in (":opt-0", ":op0", ":OPT12", ":op-3", ":opA")]
[':opt-0', ':opt-0', ':opt-12', ':opt-3', ':opt-10']
>>> [tree_role(role, "slt") for role in (":slt-n", ":n", ":A", ":slt_b", ":within")]
[':slt-n', ':slt-n', ':slt-a', ':slt-b', ':slt-w']
>>> tree_role(":mod", "opt"), tree_role(":n", "opt"), tree_kind(":Opt"), tree_kind(":ARG1")
(None, None, 'opt', None)

The MathAMR of 2022 writes the operand at position 0 as ``:op0`` and the one at position 10 as ``:opA``, with
Tangent-S's letters; edges of layout trees have Tangent-S's letters, or their names. AMR itself has ``:op1`` ..., so the
meaning of a role depends on the place of its edge (:mod:`graphs.graph.membership`).
"""

from __future__ import annotations

import re
from functools import lru_cache

from graphs.formulas.tree import TreeKind, position_of

_OPERAND = re.compile(r":opt?[-_]?(?:([0-9]{1,18})|(?<!:op)([A-Za-z])|(?<=:op)([A-SU-Za-su-z]))", re.IGNORECASE)
_LETTER = re.compile(r":(?:slt[-_]?)?([naboucdwe])", re.IGNORECASE)
_NAMES = {
    ":next": "n", ":above": "a", ":below": "b", ":over": "o", ":under": "u", ":pre-above": "c", ":pre-below": "d",
    ":within": "w", ":element": "e",
}  # fmt: skip


def tree_kind(role: str) -> TreeKind | None:
    """Return the kind of tree whose root this role leads to from a formula node; ``None`` for other roles."""
    lower = role.lower()
    return "opt" if lower == ":opt" else "slt" if lower == ":slt" else None


@lru_cache(maxsize=1 << 14)
def tree_role(role: str, kind: TreeKind) -> str | None:
    """Return our name of a role in a tree of this kind, written in any case; ``None`` for an unknown role."""
    if kind == "slt":
        match = _LETTER.fullmatch(role)
        letter = match[1].lower() if match else _NAMES.get(role.lower())
        return None if letter is None else f":slt-{letter}"
    match = _OPERAND.fullmatch(role)
    if match is None:
        return None
    return f":opt-{int(match[1]) if match[1] else position_of(match[2] or match[3])}"
