"""Aligned weights of many trees, compiled by numba where it is installed; equal to :mod:`mathamr.structure.alignment`.

Trees are taken one after another, without copies. All sums are made in the order of the reference, so weights are equal
in every bit.

>>> from graphs.formulas.tree import FormulaTree
>>> from mathamr.structure.forest import ForestBuilder, Names
>>> rules = Scoring.by_default()
>>> names = Names()
>>> variable, builder = names.symbol("V!"), ForestBuilder(names)
>>> for label in ("V!x", "V!y", "N!2"):
...     builder.add(FormulaTree("slt", (label,), (-1,), ("",)))
>>> trees = builder.finish()
>>> query = Query(trees.take([0]), np.array([2.0]), np.array([0.8]))
>>> weigh(query, trees, np.array([0, 1, 2]), variable, rules)
(array([2., 2., 0.]), array([ True,  True, False]))
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mathamr.compiled import compiled
from mathamr.structure.alignment import EQUAL, Floats, Integers, Query, align, aligned_weights
from mathamr.structure.forest import Forest
from mathamr.structure.scoring import Scoring

SIGNATURE = (
    "void(int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int32[::1], int32[::1], int64[::1], "
    "int32[::1], float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], int64, float64, float64, float64, "
    "float64[::1], boolean[::1])"
)


def weigh(
    query: Query, trees: Forest, numbers: Integers, variable: int, scoring: Scoring
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the aligned weight of each chosen tree, and which of them equal the query's under one renaming.

    Args:
        numbers: places of trees (f,).
        variable: number of the class of variables.
    """
    function = compiled(_kernel, SIGNATURE)
    if function is None:
        return weigh_reference(query, trees, numbers, variable, scoring)
    weights, equal = np.zeros(len(numbers)), np.zeros(len(numbers), dtype=bool)
    own, below = query.tree, [[child for _, group in groups for child in group] for groups in query.operands]
    children = np.array([child for group in below for child in group], dtype=np.int64)
    starts = np.cumsum([0, *(len(group) for group in below)])
    function(
        trees.bounds, trees.symbols, trees.classes, trees.parents, trees.edges, numbers, own.symbols, own.classes,
        own.parents, own.edges, query.weights, query.credits, query.wholes, children, starts, variable, EQUAL,
        scoring.inconsistent, scoring.equal, weights, equal,
    )  # fmt: skip
    return weights, equal


def weigh_reference(
    query: Query, trees: Forest, numbers: Integers, variable: int, scoring: Scoring
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Compute :func:`weigh` with numpy."""
    own = trees.take(numbers)
    weights, _, equal = aligned_weights(query, own, align(query, own), variable, scoring)
    return weights, equal


def _kernel(  # noqa: C901
    bounds, symbols, classes, parents, edges, numbers, own_symbols, own_classes, own_parents, own_edges,
    weights, credits, wholes, children, starts, variable, nearly, inconsistent, equal_credit, out, equal,
):  # fmt: skip
    """Weigh the chosen trees; ``children[starts[n]:starts[n + 1]]`` are those of node n of the query, edge by edge."""
    size, most = len(weights), 0
    for tree in numbers:
        most = max(most, bounds[tree + 1] - bounds[tree])
    scores, choices = np.empty((most, size)), np.empty((most, size), np.int32)
    heads, nexts, free = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.bool_)
    matches, pair_of = np.empty(size, np.int32), np.empty(size, np.int32)
    owns, others = np.empty(size, np.int32), np.empty(size, np.int32)
    sums, kept = np.empty(size), np.empty(size, np.bool_)
    for place, tree in enumerate(numbers):
        first, count = bounds[tree], bounds[tree + 1] - bounds[tree]
        # The best pair of nodes to begin from. The children of a tree's node are a linked list: heads, then nexts.
        heads[:count] = -1
        best, top, start = 0.0, -1, -1
        for node in range(count - 1, -1, -1):
            for own in range(size):
                scores[node, own] = 0.0
                if own_classes[own] != classes[first + node]:
                    continue
                total = weights[own] if own_symbols[own] == symbols[first + node] else weights[own] * credits[own]
                begin, stop = starts[own], starts[own + 1]
                while begin < stop:
                    edge, end = own_edges[children[begin]], begin
                    while end < stop and own_edges[children[end]] == edge:
                        choices[node, children[end]] = -1
                        end += 1
                    other = heads[node]
                    if end == begin + 1:  # the usual case: one child takes the heaviest
                        child, highest = children[begin], 0.0
                        while other >= 0:
                            if edges[first + other] == edge and scores[other, child] > highest:
                                highest, choices[node, child] = scores[other, child], other
                            other = nexts[other]
                        total += highest
                        begin = end
                        continue
                    while other >= 0:
                        free[other] = edges[first + other] == edge
                        other = nexts[other]
                    for least in (nearly, 0.0):
                        for at in range(begin, end):
                            child, highest, taken = children[at], 0.0, -1
                            other = heads[node] if choices[node, child] < 0 else -1
                            while other >= 0:
                                gain = scores[other, child]
                                if free[other] and gain > highest and gain >= least * wholes[child]:
                                    highest, taken = gain, other
                                other = nexts[other]
                            if taken >= 0:
                                choices[node, child] = taken
                                total += highest
                                free[taken] = False
                    begin = end
                scores[node, own] = total
                if total > best or (total == best and own <= top):
                    best, top, start = total, own, node
            above = parents[first + node] - first
            if above >= 0:
                nexts[node], heads[above] = heads[above], node
        if top < 0:
            continue
        # The aligned nodes, and the pairs of variables.
        whole = top == 0 and count == size
        pairs = 0
        for own in range(top, size):
            above = matches[own_parents[own]] if own > top and own_parents[own] >= top else -1
            matches[own] = start if own == top else choices[above, own] if above >= 0 else -1
            if matches[own] < 0:
                whole = False
            elif own_classes[own] == variable:
                symbol, pair = symbols[first + matches[own]], 0
                while pair < pairs and (owns[pair] != own_symbols[own] or others[pair] != symbol):
                    pair += 1
                if pair == pairs:
                    owns[pair], others[pair], sums[pair], kept[pair] = own_symbols[own], symbol, 0.0, False
                    pairs += 1
                sums[pair] += weights[own] * (1 + 1e-6 * (own_symbols[own] == symbol))
                pair_of[own] = pair
        # The renaming: the heaviest pair first.
        for pair in range(pairs):
            sums[pair] = np.rint(sums[pair] * 1e9) / 1e9
        best = 0.0
        while best >= 0.0:
            best, pick = -1.0, 0
            for pair in range(pairs):
                before = owns[pair] < owns[pick] or (owns[pair] == owns[pick] and others[pair] < others[pick])
                if sums[pair] > best or (sums[pair] == best and before):
                    best, pick = sums[pair], pair
            if best >= 0.0:
                kept[pick] = True
                for pair in range(pairs):
                    if owns[pair] == owns[pick] or others[pair] == others[pick]:
                        sums[pair] = -2.0
        for own in range(top, size):
            if matches[own] >= 0 and own_classes[own] == variable and not kept[pair_of[own]]:
                whole = False
        equal[place] = whole
        for own in range(top, size):
            if matches[own] < 0:
                continue
            credit = 1.0
            same = symbols[first + matches[own]] == own_symbols[own]
            if own_classes[own] != variable:
                if not same:
                    credit, equal[place] = credits[own], False
            elif not kept[pair_of[own]]:
                credit = inconsistent
            elif not same:
                credit = equal_credit if whole else credits[own]
            out[place] += weights[own] * credit
