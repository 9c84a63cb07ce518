"""Alignment of two trees in plain Python: the reference of :mod:`mathamr.structure.alignment`.

>>> from graphs.formulas.latex import parse_latex
>>> rules = Scoring.by_default()
>>> query, tree = parse_latex("x+x").opt, parse_latex("y+y+2").opt
>>> nodes, weight = align_plainly(query, tree, [1.0, 1.0, 1.0], rules)
>>> nodes, weight  # the sum, and two variables renamed
({0: 0, 1: 1, 2: 2}, 2.6)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from graphs.formulas.tree import FormulaTree
from mathamr.structure.scoring import VARIABLE, Scoring, symbol_class


def align_plainly(
    query: FormulaTree, tree: FormulaTree, weights: Sequence[float], scoring: Scoring
) -> tuple[dict[int, int], float]:
    """Return the aligned nodes of the largest common subtree, and its weight under one renaming.

    Args:
        weights: weights of the query's nodes.
    """
    best: tuple[float, dict[int, int]] = (0.0, {})
    for node in range(len(query)):
        for other in range(len(tree)):
            found = _below(query, tree, weights, scoring, node, other)
            best = max(best, found, key=lambda one: one[0])
    nodes = dict(sorted(best[1].items()))
    return nodes, _weight(query, tree, weights, scoring, nodes)


def _below(
    query: FormulaTree, tree: FormulaTree, weights: Sequence[float], scoring: Scoring, node: int, other: int
) -> tuple[float, dict[int, int]]:
    """Return the weight and the nodes aligned from two nodes down."""
    own, label = query.labels[node], tree.labels[other]
    if symbol_class(own) != symbol_class(label):
        return 0.0, {}
    total, nodes = weights[node] * (1 if own == label else scoring.credit(own)), {node: other}
    for edge in dict.fromkeys(query.edge_labels[child] for child in _children(query, node)):
        children = [child for child in _children(query, node) if query.edge_labels[child] == edge]
        children.sort(key=lambda child: -_whole(query, weights, child))
        free = [child for child in _children(tree, other) if tree.edge_labels[child] == edge]
        for least in (1 - 1e-9, 0.0):
            for child in [child for child in children if child not in nodes]:
                ways = [(*_below(query, tree, weights, scoring, child, one), one) for one in free]
                weight, below, taken = max(ways, key=lambda way: way[0], default=(0.0, {}, -1))
                if weight > 0 and weight >= least * _whole(query, weights, child):
                    total, nodes = total + weight, {**nodes, **below}
                    free.remove(taken)
    return total, nodes


def _weight(
    query: FormulaTree, tree: FormulaTree, weights: Sequence[float], scoring: Scoring, nodes: dict[int, int]
) -> float:
    """Return the weight of aligned nodes under the renaming that is chosen greedily."""
    pairs: dict[tuple[str, str], float] = defaultdict(float)
    for node, other in nodes.items():
        own, label = query.labels[node], tree.labels[other]
        if symbol_class(own) == VARIABLE:
            pairs[own, label] += weights[node] * (1 + 1e-6 * (own == label))
    renaming: dict[str, str] = {}
    for own, label in sorted(pairs, key=lambda pair: -pairs[pair]):
        if own not in renaming and label not in renaming.values():
            renaming[own] = label
    aligned = [(node, query.labels[node], tree.labels[other]) for node, other in nodes.items()]
    broken = {node for node, own, label in aligned if symbol_class(own) == VARIABLE and renaming.get(own) != label}
    whole = not broken and len(nodes) == len(query) == len(tree)
    total = 0.0
    for node, own, label in aligned:
        credit = 1.0 if own == label else scoring.credit(own)
        if whole and own != label and symbol_class(own) == VARIABLE:
            credit = scoring.equal
        total += weights[node] * (scoring.inconsistent if node in broken else credit)
    return total


def _children(tree: FormulaTree, node: int) -> list[int]:
    return [child for child in range(node + 1, len(tree)) if tree.parents[child] == node]


def _whole(tree: FormulaTree, weights: Sequence[float], node: int) -> float:
    return weights[node] + sum(_whole(tree, weights, child) for child in _children(tree, node))
