"""Drawings of a whole MathAMR+ graph, as in the thesis's Figure 3.1: indented text for a terminal, SVG for a paper.

>>> from graphs.graph.mathamr_plus import decode
>>> text = "(s / solve-01 :ARG0 (y / you) :ARG1 (F0 / FORMULA_0 :slt (a / V!x :slt-n (b / +))) :ARG2 y)"
>>> print(indented(decode(text, {"FORMULA_0": "17"})))
solve-01
  :ARG0 you [1]
  :ARG1 FORMULA_0 (17)
    :slt
      V!x
      n  +
  :ARG2 see [1] you

Each node is drawn below the first that mentions it; where others point to it as well, it has a number in brackets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphs.formulas import drawing
from graphs.formulas.drawing import GAP, MARGIN, ROW, label_width
from graphs.formulas.tree import FormulaTree, TreeKind, position_label
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.membership import TREE_KINDS

_STEP = "  "
_FILL = {NodeKind.AMR: "#f4f4f4", NodeKind.FORMULA: "#fff2b3"}
_ROLE_CHARACTER = 7.0  # pixels


def indented(graph: DocumentGraph) -> str:
    """Return the graph as lines of text."""
    outline = _Outline.of(graph)
    lines = []
    stack: list[tuple[str, int, str, bool]] = [("", graph.root, "", True)]
    while stack:
        role, node, indent, first = stack.pop()
        number = outline.numbers.get(node)
        mark = "" if number is None else f" [{number}]"
        start = f"{indent}{role} " if role else indent
        if not first:
            lines.append(f"{start}see{mark} {graph.labels[node]}")
            continue
        kind = graph.kinds[node]
        formula_id = f" ({graph.formula_ids[graph.formula[node]]})" if kind is NodeKind.FORMULA else ""
        lines.append(f"{start}{graph.labels[node]}{formula_id}{mark}")
        deeper = indent + _STEP
        for tree in outline.trees.get(node, ()):
            lines.append(f"{deeper}:{tree.kind}")
            lines.extend(f"{deeper}{_STEP}{line}" for line in drawing.indented(tree).splitlines())
        below = [(role, child, deeper, True) for role, child in outline.children[node]]
        again = [(role, other, deeper, False) for role, other in outline.again[node]]
        stack.extend(reversed(below + again))
    return "\n".join(lines)


def svg(graph: DocumentGraph, title: str = "") -> str:
    """Return the graph as an SVG document.

    The AMR is in layers from its root, with the two trees of a formula below it. Dashed lines lead to nodes with
    several parents.
    """
    outline = _Outline.of(graph)
    order = outline.order(graph.root)
    roles = {child: role for node in order for role, child in outline.children[node]}
    below: dict[int, float] = {}  # pixels that the trees and the nodes below a node take side by side
    width: dict[int, float] = {}  # and the node with them
    for node in reversed(order):
        trees = sum(_tree_width(tree) for tree in outline.trees.get(node, ()))
        below[node] = trees + sum(width[child] for _, child in outline.children[node])
        width_of_node = max(label_width(graph.labels[node]), _ROLE_CHARACTER * len(roles.get(node, ""))) + GAP
        width[node] = max(width_of_node, below[node])
    start, x, y = {graph.root: MARGIN}, {}, {graph.root: MARGIN + 13}
    lines: list[str] = []
    nodes: list[str] = []
    bottom = 0.0
    for node in order:
        x[node] = start[node] + width[node] / 2
        bottom = max(bottom, y[node])
        left = x[node] - below[node] / 2
        for role, child in outline.children[node]:
            start[child], y[child] = left, y[node] + ROW
            left += width[child]
            lines += _line(x[node], y[node], start[child] + width[child] / 2, y[child], role)
        for tree in outline.trees.get(node, ()):
            tree_x, tree_y = drawing.places(tree)
            down = y[node] + ROW - min(tree_y)
            tree_x, tree_y = [left + GAP + value for value in tree_x], [down + value for value in tree_y]
            lines += _line(x[node], y[node], tree_x[0], tree_y[0], f":{tree.kind}")
            nodes += drawing.elements(tree, tree_x, tree_y)
            bottom = max(bottom, *tree_y)
            left += _tree_width(tree)
        nodes += drawing.node_elements(x[node], y[node], graph.labels[node], _FILL[graph.kinds[node]])
    for node in order:
        for role, other in outline.again[node]:
            lines += _curve(x[node], y[node], x[other], y[other], role)
    return drawing.document([*lines, *nodes], width[graph.root] + 2 * MARGIN, bottom + 13 + MARGIN, title)


@dataclass(slots=True)
class _Outline:
    """Spanning tree of the AMR and formula nodes, with the other edges.

    ``children[v]``: role and node of what is drawn below ``v``; ``again[v]``: of what ``v`` points to that is drawn
    elsewhere; ``trees[v]``: the trees of a formula node; ``numbers``: of the nodes that stand in some ``again``.
    """

    children: list[list[tuple[str, int]]]
    again: list[list[tuple[str, int]]]
    trees: dict[int, list[FormulaTree]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: DocumentGraph) -> _Outline:
        outline = cls([[] for _ in graph.labels], [[] for _ in graph.labels])
        placed = {graph.root}
        edges = [edge for edge in graph.edges if graph.kinds[edge[2]] not in TREE_KINDS]
        while edges:  # one round, but for graphs whose edges are in no order of reading
            later = []
            for source, role, target in edges:
                if source in placed and target in placed:
                    outline.again[source].append((role, target))
                    outline.numbers.setdefault(target, len(outline.numbers) + 1)
                elif source in placed:
                    outline.children[source].append((role, target))
                    placed.add(target)
                elif target in placed:
                    outline.children[target].append((f"{role}-of", source))
                    placed.add(source)
                else:
                    later.append((source, role, target))
            if len(later) == len(edges):
                break
            edges = later
        below: dict[int, list[tuple[str, int]]] = {}
        for source, role, target in graph.edges:
            if graph.kinds[target] in TREE_KINDS:
                below.setdefault(source, []).append((role, target))
        for node in graph.formula_nodes:
            outline.trees[node] = [_tree(graph, below, role, root) for role, root in below.get(node, ())]
        return outline

    def order(self, root: int) -> list[int]:
        """Return the nodes of the spanning tree, each before those below it."""
        order, stack = [], [root]
        while stack:
            order.append(node := stack.pop())
            stack.extend(child for _, child in reversed(self.children[node]))
        return order


def _tree(graph: DocumentGraph, below: dict[int, list[tuple[str, int]]], role: str, root: int) -> FormulaTree:
    """Return the formula tree below ``root``; a node that is reached twice is in it once."""
    kind: TreeKind = "opt" if role.startswith(":opt") else "slt"
    children: dict[int, list[tuple[str, int]]] = {root: []}
    stack = [root]
    while stack:
        here = stack.pop()
        for role_below, child in below.get(here, ()):
            if child not in children:
                children[child] = []
                children[here].append((_edge_label(role_below), child))
                stack.append(child)
    numbered: list[tuple[str, int, str]] = []  # label, parent, edge
    placed = [(root, -1, "")]
    while placed:
        here, parent, edge = placed.pop()
        placed.extend((child, len(numbered), label) for label, child in reversed(children[here]))
        numbered.append((graph.labels[here], parent, edge))
    labels, parents, edges = zip(*numbered, strict=True)
    return FormulaTree(kind, labels, parents, edges)


def _edge_label(role: str) -> str:
    """``:slt-n`` is ``n`` in a formula tree, ``:opt-12`` the letter of position 12."""
    label = role.partition("-")[2]
    is_position = role.startswith(":opt") and label.isdecimal() and len(label) < 4  # there are no 1,000 letters
    return position_label(int(label)) if is_position else label


def _tree_width(tree: FormulaTree) -> float:
    x, _ = drawing.places(tree)
    return max(value + label_width(label) / 2 for value, label in zip(x, tree.labels, strict=True)) + 2 * GAP


def _line(x: float, y: float, child_x: float, child_y: float, role: str) -> list[str]:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{child_x:.1f}" y2="{child_y:.1f}"'
    label_x = x + (child_x - x) * 0.75  # the lower end, where edges of one node are apart
    return [f'<line {ends} stroke="#888"/>', drawing.text_element(label_x, child_y - 18, role, size=11, halo=True)]


def _curve(x: float, y: float, other_x: float, other_y: float, role: str) -> list[str]:
    middle = (x + other_x) / 2, max(y, other_y) + ROW / 2
    path = f"M {x:.1f} {y:.1f} Q {middle[0]:.1f} {middle[1]:.1f} {other_x:.1f} {other_y:.1f}"
    label = drawing.text_element(middle[0], (y + other_y) / 4 + middle[1] / 2, role, size=11, halo=True)
    return [f'<path d="{path}" fill="none" stroke="#36c" stroke-dasharray="4 3"/>', label]
