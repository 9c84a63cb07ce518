"""Drawings of formula trees: indented text for a terminal, and SVG for a paper.

>>> from graphs.formulas.presentation import parse_slt
>>> tree = parse_slt("<math><mrow><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mi>y</mi></mrow></math>")
>>> print(indented(tree))
V!x
  a  N!2
n  +
n  V!y

In text a child stands below its parent, one step to the right, behind the label of its edge; only the next symbol of a
baseline (``n``) keeps its predecessor's column, so that a baseline reads downwards. The pieces of a drawing serve
:mod:`graphs.graph.drawing`, which draws whole graphs.
"""

from __future__ import annotations

import re
from html import escape

from graphs.formulas.tree import FormulaTree

_STEP = "  "
_ABOVE, _BELOW = "aoc", "budw"
ROW, _CHARACTER, _PADDING, GAP, MARGIN = 52.0, 8.0, 20.0, 20.0, 24.0  # pixels
_INDENT = 10.0  # pixels from the middle of a symbol to what hangs from it, so that edges pass on its left
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FILL = {"N": "#dce9f7", "V": "#e3f2dd", "F": "#f7ecd4", "O": "#f6dede", "U": "#f6dede", "M": "#ece2f4", "E": "#f2b8b8"}


def indented(tree: FormulaTree) -> str:
    """The tree as lines of text."""
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
    """The trees side by side in one SVG document, as in the papers: a symbol layout tree along its baseline, with
    scripts above and below it; an operator tree with its root on top."""
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
    """An SVG document of ``width`` by ``height`` pixels with these elements on white."""
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
    """x and y (pixels) of every node: an SLT along its baseline, an OPT in layers. Left ends are at 0 or more."""
    return _along_baseline(tree) if tree.kind == "slt" else _layered(tree)


def _children(tree: FormulaTree) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in tree.labels]
    for node in range(1, len(tree)):
        children[tree.parents[node]].append(node)
    return children


def _continues(tree: FormulaTree, node: int) -> bool:
    return tree.kind == "slt" and tree.edge_labels[node] == "n"


def label_width(label: str) -> float:
    """Pixels that a node with this label takes."""
    return _CHARACTER * len(label) + _PADDING


def _along_baseline(tree: FormulaTree) -> tuple[list[float], list[float]]:
    """Places (pixels) for the nodes of an SLT. A baseline runs to the right; every baseline gets rows of its own.

    All that hangs above or below a symbol stands to the right of its middle: the edge to it crosses no node.
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
    """Places (pixels) for the nodes of an OPT: leaves from left to right, a parent over the middle of its operands."""
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
    """How far right of a symbol's left end its scripts and parts begin, in pixels."""
    return label_width(tree.labels[node]) / 2 + _INDENT


def elements(tree: FormulaTree, x: list[float], y: list[float]) -> list[str]:
    """The SVG elements of a tree whose nodes stand at ``x`` and ``y``."""
    edges, nodes, names = [], [], []
    for node, label in enumerate(tree.labels):
        parent = tree.parents[node]
        if parent >= 0:
            points = _edge(tree, parent, node, x, y)
            path = " ".join(f"{horizontal:.1f},{vertical:.1f}" for horizontal, vertical in points)
            edges.append(f'<polyline points="{path}" fill="none" stroke="#888"/>')
            (left, top), (right, bottom) = points[:2]
            above = 4.0 if top == bottom else -4.0  # the name of an edge stands over a level one, and on a slanted one
            names.append(
                text_element((left + right) / 2, (top + bottom) / 2 - above, tree.edge_labels[node], size=11, halo=True)
            )
        fill = _FILL.get(label[0], "white") if label[1:2] == "!" else "#f6dede"
        nodes += node_elements(x[node], y[node], label, fill)
    return edges + nodes + names


def node_elements(x: float, y: float, label: str, fill: str) -> list[str]:
    """A node with its label."""
    half = label_width(label) / 2
    corner = f'x="{x - half:.1f}" y="{y - 13:.1f}" width="{2 * half:.1f}" height="26" rx="13"'
    return [f'<rect {corner} fill="{fill}" stroke="#444"/>', text_element(x, y + 5, label)]


def _edge(tree: FormulaTree, parent: int, node: int, x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """The corners of an edge, from border to border: straight to the next row, around a corner to one further off."""
    half_parent, half_node = label_width(tree.labels[parent]) / 2, label_width(tree.labels[node]) / 2
    if y[parent] == y[node]:
        return [(x[parent] + half_parent, y[parent]), (x[node] - half_node, y[node])]
    side = 13.0 if y[node] > y[parent] else -13.0
    if abs(y[parent] - y[node]) > ROW + 1:
        return [(x[parent], y[parent] + side), (x[parent], y[node]), (x[node] - half_node, y[node])]
    return [(x[parent], y[parent] + side), (x[node], y[node] - side)]


def text_element(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    size: int = 14,
    weight: str = "normal",
    halo: bool = False,
) -> str:
    """A text, escaped; with a halo it can be read over a line."""
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"'
    if halo:  # white around the letters, so that a line under them does not strike them out
        style += ' fill="#555" stroke="white" stroke-width="3" paint-order="stroke"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    """Text for XML; characters that XML cannot have become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text))
