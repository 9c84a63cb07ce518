"""Membership of nodes in formula trees: decided by the place in the graph, not by the names of roles.

Other programs write ``(s / solve-01 :ARG1 (F0 / FORMULA_0 :opt (o / SUP :op0 (v / x :font (b / bold)) :op1 2)))``.
All that is below ``:opt`` is the operator tree:

>>> kinds = [NodeKind.AMR, NodeKind.FORMULA, *[NodeKind.AMR] * 4]
>>> formula = [-1, 0, -1, -1, -1, -1]
>>> edges = [(0, ":ARG1", 1), (1, ":opt", 2), (2, ":op0", 3), (3, ":font", 4), (2, ":op1", 5)]
>>> mark_trees(edges, kinds, formula, root=0)
>>> [kind.name for kind in kinds], formula
(['AMR', 'FORMULA', 'OPT', 'OPT', 'OPT', 'OPT'], [-1, 0, 0, 0, 0, 0])

A node is one of a tree when edges lead to it from the formula's ``:opt`` or ``:slt`` by roles of such a tree
(:func:`graphs.formulas.roles.tree_role`), or when it is tied to the rest of the graph through that tree alone. So the
AMR keeps a node that a tree mentions by another role, a tree keeps a node that the AMR mentions, and a node of two
trees is the first one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from graphs.formulas.roles import tree_kind, tree_role
from graphs.formulas.tree import TreeKind

Edge = tuple[int, str, int]  # source, role such as ":ARG0" or ":slt-n", target


class NodeKind(IntEnum):
    """Kind of a node of a MathAMR+ graph."""

    AMR = 0  # a concept, or a constant such as a number or a name
    FORMULA = 1  # a FORMULA_i node
    OPT = 2
    SLT = 3


TREE_KINDS: dict[NodeKind, TreeKind] = {NodeKind.OPT: "opt", NodeKind.SLT: "slt"}
"""Kinds of nodes in formula trees."""


def mark_trees(edges: Sequence[Edge], kinds: list[NodeKind], formula: list[int], root: int) -> None:  # noqa: C901
    """Mark the nodes of formula trees in ``kinds`` and ``formula``, where only formula nodes are marked so far.

    Takes time linear in the graph. ``root`` is in no tree.
    """
    starts = [node for node, kind in enumerate(kinds) if kind is NodeKind.FORMULA]
    if not starts or _mark_our_trees(edges, kinds, formula, root, starts):
        return
    for node, kind in enumerate(kinds):
        if kind in TREE_KINDS:
            kinds[node], formula[node] = NodeKind.AMR, -1
    incident: list[list[Edge]] = [[] for _ in kinds]
    for edge in edges:
        incident[edge[0]].append(edge)
        if edge[2] != edge[0]:
            incident[edge[2]].append(edge)

    def mark(node: int, like: int, kind: NodeKind) -> None:
        kinds[node], formula[node] = kind, formula[like]
        stack.append(node)

    stack = starts[::-1]
    while stack:
        node = stack.pop()
        for source, role, child in incident[node]:
            if source == node and kinds[child] is NodeKind.AMR and child != root:
                if kinds[node] is NodeKind.FORMULA:
                    if tree := tree_kind(role):
                        mark(child, node, _NODE_KINDS[tree])
                elif tree_role(role, TREE_KINDS[kinds[node]]):
                    mark(child, node, kinds[node])
    trees = [node for node, kind in enumerate(kinds) if kind in TREE_KINDS]
    outside = {root, *starts}  # what no tree lies between
    stack = list(outside)
    while stack:
        for source, _, target in incident[stack.pop()]:
            for node in (source, target):
                if node not in outside and kinds[node] is NodeKind.AMR:
                    outside.add(node)
                    stack.append(node)
    stack = trees[::-1]
    while stack:
        node = stack.pop()
        for source, _, target in incident[node]:
            other = target if source == node else source
            if kinds[other] is NodeKind.AMR and other not in outside:
                mark(other, node, kinds[node])


_NODE_KINDS: dict[TreeKind, NodeKind] = {"opt": NodeKind.OPT, "slt": NodeKind.SLT}


def _mark_our_trees(
    edges: Sequence[Edge], kinds: list[NodeKind], formula: list[int], root: int, starts: list[int]
) -> bool:
    """:func:`mark_trees` in one pass, for trees as we write them; false where there is anything else in the graph."""
    children: dict[int, list[tuple[str, int]]] = {}
    others: list[Edge] = []
    for edge in edges:
        source, role, target = edge
        if role.startswith((":opt", ":slt")):
            children.setdefault(source, []).append((role, target))
        else:
            others.append(edge)
    ours = True
    stack = starts[::-1]
    while stack:
        node = stack.pop()
        here = kinds[node]
        for role, child in children.pop(node, ()):
            kind = NodeKind.OPT if role.startswith(":opt") else NodeKind.SLT
            ours = ours and (kind is here or (here is NodeKind.FORMULA and len(role) == 4))
            if kinds[child] is NodeKind.AMR:
                kinds[child], formula[child] = kind, formula[node]
                stack.append(child)
    if not ours or children or kinds[root] in TREE_KINDS:
        return False
    for source, role, target in others:
        if kinds[source] > NodeKind.FORMULA or kinds[target] > NodeKind.FORMULA:
            return False
        if len(role) == 4 and tree_kind(role):  # ":OPT"
            return False
    return True
