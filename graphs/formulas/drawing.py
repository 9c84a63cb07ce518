"""Drawings of formula trees: indented text for a terminal, and SVG for a paper.

>>> from graphs.formulas.presentation import parse_slt
>>> tree = parse_slt("<math><mrow><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mi>y</mi></mrow></math>")
>>> print(indented(tree))
V!x
  a  N!2
n  +
n  V!y

In text a child is below its parent, one step to the right, after the label of its edge. Only the next symbol of a
baseline (``n``) keeps its predecessor's column, so that a baseline reads downwards. :mod:`graphs.graph.drawing`, which
draws whole graphs, shares the parts of a drawing.
"""

from __future__ import annotations

import re
from html import escape

from graphs.formulas.tree import FormulaTree

_STEP = "  "
_ABOVE, _BELOW = "aoc", "budw"
ROW, _CHARACTER, _PADDING, GAP, MARGIN = 52.0, 8.0, 20.0, 20.0, 24.0  # pixels
_INDENT = 10.0  # pixels from the middle of a symbol to its children, so that edges pass on its left
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FILL = {"N": "#dce9f7", "V": "#e3f2dd", "F": "#f7ecd4", "O": "#f6dede", "U": "#f6dede", "M": "#ece2f4", "E": "#f2b8b8"}


def indented(tree: FormulaTree) -> str:
    """Return the tree as lines of text."""
    children = _children(tree)
    lines = []
    stack = [(0, "")]
    while stack:
        node, indent = stack.pop()
        edge = tree.edge_labels[node]
        lines.append(f"{indent}{edge}{_STEP if edge else ''}{tree.labels[node]}")
        following = [child for child in children[node] if _continues(tree, child)]
        others = [child for child in children[node] if not _continues(tree, child)]
        stack.extend((child, indent) for child in reversed(following))
        stack.extend((child, indent + _STEP) for child in reversed(others))
    return "\n".join(lines)


def svg(*trees: FormulaTree, title: str = "") -> str:
    """Return the trees side by side in one SVG document, in the layout of the papers.

    A symbol layout tree runs along its baseline, with scripts above and below it; an operator tree has its root on top.
    """
    drawings = [(tree, *places(tree)) for tree in trees]
    body = []
    left, height = MARGIN, 0.0
    for tree, x, y in drawings:
        top = min(y)
        body += elements(tree, [left + value for value in x], [MARGIN * 2.5 + value - top for value in y])
        body.append(text_element(left, MARGIN, tree.kind.upper(), anchor="start", weight="bold"))
        left += max(value + label_width(label) / 2 for value, label in zip(x, tree.labels, strict=True)) + 3 * MARGIN
        height = max(height, max(y) - top + MARGIN * 4)
    return document(body, left, height, title)


def document(body: list[str], width: float, height: float, title: str) -> str:
    """Return an SVG document of ``width`` by ``height`` pixels with these elements on white."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="serif" font-size="14">',
            f"<title>{_escaped(title)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def places(tree: FormulaTree) -> tuple[list[float], list[float]]:
    """Return x and y (pixels) of every node: an SLT along its baseline, an OPT in layers. Left ends are >= 0."""
    return _along_baseline(tree) if tree.kind == "slt" else _layered(tree)


def _children(tree: FormulaTree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in tree.labels]
    for node in range(1, len(tree)):
        children[tree.parents[node]].append(node)
    return children


def _continues(tree: FormulaTree, node: int) -> bool:
    return tree.kind == "slt" and tree.edge_labels[node] == "n"


def label_width(label: str) -> float:
    """Return the width of a node with this label, in pixels."""
    return _CHARACTER * len(label) + _PADDING


def _along_baseline(tree: FormulaTree) -> tuple[list[float], list[float]]:
    """Return places (pixels) for the nodes of an SLT. A baseline runs to the right; every baseline has separate rows.

    Everything above or below a symbol is to the right of its middle, so the edge to it crosses no node.
    """
    children = _children(tree)
    number = len(tree)
    own, width = [0.0] * number, [0.0] * number  # of a symbol with its scripts; of the baseline from there on
    up, down = [0] * number, [0] * number  # rows that the baseline from there on needs above and below it
    for node in range(number - 1, -1, -1):
        own[node] = label_width(tree.labels[node]) + GAP
        for child in children[node]:
            edge = tree.edge_labels[child]
            if edge in _ABOVE:
                up[node] += up[child] + down[child] + 1
            elif edge in _BELOW:
                down[node] += up[child] + down[child] + 1
            if edge not in "ne":
                own[node] = max(own[node], _indent(tree, node) + width[child])
        width[node] = own[node]
        for child in children[node]:
            if tree.edge_labels[child] in "ne":
                width[node] += width[child]
                up[node], down[node] = max(up[node], up[child]), max(down[node], down[child])
    x, y = [0.0] * number, [0.0] * number
    start = [0.0] * number  # the left end of a symbol with its scripts
    for node in range(number):
        x[node] = start[node] + label_width(tree.labels[node]) / 2
        above = below = 0
        right = start[node] + own[node]
        for child in children[node]:
            edge = tree.edge_labels[child]
            if edge in "ne":
                start[child], y[child] = right, y[node]
                right += width[child]
                continue
            start[child] = start[node] + _indent(tree, node)
            rows = up[child] + down[child] + 1
            if edge in _ABOVE:
                y[child] = y[node] - ROW * (above + down[child] + 1)
                above += rows
            else:
                y[child] = y[node] + ROW * (below + up[child] + 1)
                below += rows
    return x, y


def _layered(tree: FormulaTree) -> tuple[list[float], list[float]]:
    """Return places (pixels) of an OPT's nodes: leaves from left to right, a parent over the middle of its operands."""
    children = _children(tree)
    number = len(tree)
    width = [0.0] * number
    for node in range(number - 1, -1, -1):
        width[node] = max(label_width(tree.labels[node]) + GAP, sum(width[child] for child in children[node]))
    x, y, start = [0.0] * number, [0.0] * number, [0.0] * number
    for node in range(number):
        x[node] = start[node] + width[node] / 2
        left = start[node] + (width[node] - sum(width[child] for child in children[node])) / 2
        for child in children[node]:
            start[child], y[child] = left, y[node] + ROW
            left += width[child]
    return x, y


def _indent(tree: FormulaTree, node: int) -> float:
    """Return the distance of a symbol's scripts and parts from its left end, in pixels."""
    return label_width(tree.labels[node]) / 2 + _INDENT


def elements(tree: FormulaTree, x: list[float], y: list[float]) -> list[str]:
    """Return the SVG elements of a tree with nodes at ``x`` and ``y``."""
    edges, nodes, names = [], [], []
    for node, label in enumerate(tree.labels):
        parent = tree.parents[node]
        if parent >= 0:
            points = _edge(tree, parent, node, x, y)
            path = " ".join(f"{horizontal:.1f},{vertical:.1f}" for horizontal, vertical in points)
            edges.append(f'<polyline points="{path}" fill="none" stroke="#888"/>')
            (left, top), (right, bottom) = points[:2]
            above = 4.0 if top == bottom else -4.0  # an edge's name is over a level edge, and on a slanted one
            names.append(
                text_element((left + right) / 2, (top + bottom) / 2 - above, tree.edge_labels[node], size=11, halo=True)
            )
        fill = _FILL.get(label[0], "white") if label[1:2] == "!" else "#f6dede"
        nodes += node_elements(x[node], y[node], label, fill)
    return edges + nodes + names


def node_elements(x: float, y: float, label: str, fill: str) -> list[str]:
    """Return a node with its label."""
    half = label_width(label) / 2
    corner = f'x="{x - half:.1f}" y="{y - 13:.1f}" width="{2 * half:.1f}" height="26" rx="13"'
    return [f'<rect {corner} fill="{fill}" stroke="#444"/>', text_element(x, y + 5, label)]


def _edge(tree: FormulaTree, parent: int, node: int, x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """Return the corners of an edge, from border to border: straight to the next row, else around a corner."""
    half_parent, half_node = label_width(tree.labels[parent]) / 2, label_width(tree.labels[node]) / 2
    if y[parent] == y[node]:
        return [(x[parent] + half_parent, y[parent]), (x[node] - half_node, y[node])]
    side = 13.0 if y[node] > y[parent] else -13.0
    if abs(y[parent] - y[node]) > ROW + 1:
        return [(x[parent], y[parent] + side), (x[parent], y[node]), (x[node] - half_node, y[node])]
    return [(x[parent], y[parent] + side), (x[node], y[node] - side)]


def text_element(
    x: float, y: float, text: str, *, anchor: str = "middle", size: int = 14, weight: str = "normal", halo: bool = False
) -> str:
    """Return a text element, escaped; a halo makes it legible over a line."""
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
    if halo:  # white around the letters, so that no line strikes them out
        style += ' fill="#555" stroke="white" stroke-width="3" paint-order="stroke"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    """Return text for XML; characters that XML forbids become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text))
