"""Largest common subtrees of a query's tree with many trees at once, under consistent renamings of variables.

A subtree is aligned from a node downwards: two nodes are aligned if their symbols are of one class, and then their
children whose edges have equal labels. Where several children have one label, as below a commutative operator, each of
the query's takes a free one of the tree: first those that find a subtree equal to their own, then the others, the
heaviest first.
An aligned node counts the weight of the query's symbol times its credit (:class:`mathamr.structure.scoring.Scoring`).
The best pair of nodes to begin from is found by dynamic programming over all pairs, as the maximum subtree
similarity of Tangent (Zanibbi et al., SIGIR 2016) is, here for all trees in the same array operations.

Each variable of the query is renamed to one of the formula. The renaming of an alignment is chosen greedily, the pair
of variables with the greatest aligned weight first, as in Tangent-S (Davila and Zanibbi, SIGIR 2017). Variables of
equal names are preferred where weights are equal.

:mod:`mathamr.structure.reference` aligns one tree in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mathamr.structure.forest import MAX_NAMES, Forest
from mathamr.structure.scoring import Scoring

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
EQUAL = 1 - 1e-9  # sums of weights differ in their last bits


@dataclass(frozen=True)
class Query:
    """Tree of a query: a forest of one formula, and of each node (n,) its weight and its credit in another symbol."""

    tree: Forest
    weights: Floats
    credits: Floats

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def wholes(self) -> Floats:
        """Weights of the subtrees (n,)."""
        totals = self.weights.copy()
        for node in range(len(totals) - 1, 0, -1):
            totals[self.tree.parents[node]] += totals[node]
        return totals

    @cached_property
    def operands(self) -> list[list[tuple[int, list[int]]]]:
        """Children of each node by the label of their edge; of one label the heaviest first."""
        children: list[dict[int, list[int]]] = [{} for _ in range(len(self))]
        for node in range(1, len(self)):
            children[self.tree.parents[node]].setdefault(int(self.tree.edges[node]), []).append(node)
        return [
            [(edge, sorted(own, key=lambda child: -self.wholes[child])) for edge, own in groups.items()]
            for groups in children
        ]


def align(query: Query, trees: Forest) -> Integers:
    """Return the node of each tree that each node of the query is aligned with, -1 for none (n, F).

    Node numbers are those of ``trees``. Of equal alignments the one of the first node of the query is taken, then
    that of the first node of the tree.
    """
    size, count = len(query), len(trees.symbols)
    matches = np.full((size, len(trees)), -1, dtype=np.int64)
    if not size or not count:
        return matches
    scores, choices = _tables(query, trees)
    filled = np.flatnonzero(np.diff(trees.bounds))
    best = np.maximum.reduceat(scores, trees.bounds[filled], axis=1)  # (n, filled trees)
    tops = best.argmax(axis=0)
    highest = best[tops, np.arange(len(filled))]
    place = np.full(len(trees), -1)
    place[filled] = np.arange(len(filled))
    own = place[trees.owner]
    nodes = np.flatnonzero((scores[tops[own], np.arange(count)] == highest[own]) & (highest[own] > 0))
    matches[tops[own[nodes[::-1]]], trees.owner[nodes[::-1]]] = nodes[::-1]  # the first node is written last
    for node in range(1, size):
        above = matches[query.tree.parents[node]]
        found = np.flatnonzero(above >= 0)
        matches[node, found] = choices[node, above[found]]
    return matches


def _tables(query: Query, trees: Forest) -> tuple[Floats, Integers]:
    """Return the weight aligned from each pair of nodes down (n, N), and the node that each takes below a pair (n, N).

    ``choices[child, j]`` is the node that ``child`` takes where its parent is aligned with ``j``.
    """
    scores = np.zeros((len(query), len(trees.symbols)))
    choices = np.full(scores.shape, -1, dtype=np.int64)
    below_edge = {edge: np.flatnonzero(trees.edges == edge) for edge in np.unique(query.tree.edges[1:]).tolist()}
    for node in range(len(query) - 1, -1, -1):
        fits = trees.classes == query.tree.classes[node]
        alike = np.flatnonzero(fits)
        if not len(alike):
            continue
        same = trees.symbols[alike] == query.tree.symbols[node]
        total = np.zeros(len(trees.symbols))
        total[alike] = np.where(same, query.weights[node], query.weights[node] * query.credits[node])
        for edge, children in query.operands[node]:
            below = below_edge[edge]
            below = below[fits[trees.parents[below]]]
            if len(below):
                _take(query, children, below, trees.parents[below], scores, choices, total)
        scores[node] = total
    return scores, choices


def _take(
    query: Query,
    children: list[int],
    below: Integers,
    parents: Integers,
    scores: Floats,
    choices: Integers,
    total: Floats,
) -> None:
    """Match the query's children with free ones of ``below`` under each parent; write choices, add to totals."""
    if len(children) == 1 and np.bincount(parents).max() == 1:
        gains = scores[children[0], below]
        found = gains > 0
        choices[children[0], parents[found]] = below[found]
        total[parents] += gains
        return
    order = np.argsort(parents, kind="stable")
    below, parents = below[order], parents[order]
    starts = np.flatnonzero(np.append(True, parents[1:] != parents[:-1]))
    segment = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(below))))
    free = np.ones(len(below), dtype=bool)
    for whole in (True, False):
        for child in children:
            gains = np.where(free, scores[child, below], 0.0)
            if whole:
                gains[gains < query.wholes[child] * EQUAL] = 0.0
            gains[choices[child, parents] >= 0] = 0.0
            highest = np.maximum.reduceat(gains, starts)
            winners = np.flatnonzero((gains > 0) & (gains == highest[segment]))[::-1]
            first_winners = np.full(len(starts), -1)
            first_winners[segment[winners]] = winners  # the first winner is written last
            first_winners = first_winners[first_winners >= 0]
            choices[child, parents[first_winners]] = below[first_winners]
            total[parents[first_winners]] += gains[first_winners]
            free[first_winners] = False


def aligned_weights(
    query: Query, trees: Forest, matches: Integers, variable: int, scoring: Scoring
) -> tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the aligned weight of each tree (F,), which matches keep its renaming (n, F), and which trees equal the
    query's under one renaming (F,).

    Args:
        matches: result of :func:`mathamr.structure.alignment.align` (n, F).
        variable: number of the class of variables.
    """
    kept = matches >= 0
    nodes, formulas = np.nonzero(kept)
    if not len(nodes):
        return np.zeros(len(trees)), kept, np.zeros(len(trees), dtype=bool)
    others = trees.symbols[matches[nodes, formulas]]
    own = query.tree.symbols[nodes]
    weights = query.weights[nodes]
    same = own == others
    credit = np.where(same, 1.0, query.credits[nodes])
    is_variable = query.tree.classes[nodes] == variable
    variables = np.flatnonzero(is_variable)
    if len(variables):
        keeps = _consistent(
            formulas[variables], own[variables], others[variables], weights[variables] * (1 + 1e-6 * same[variables])
        )
        broken = variables[~keeps]
        credit[broken] = scoring.inconsistent
        kept[nodes[broken], formulas[broken]] = False
    whole = kept.all(axis=0) & (np.diff(trees.bounds) == len(query))
    credit[whole[formulas] & is_variable & ~same] = scoring.equal
    equal = whole.copy()
    equal[formulas[~same & ~is_variable]] = False  # another number
    totals: Floats = np.bincount(formulas, weights=weights * credit, minlength=len(trees)).astype(np.float64)
    return totals, kept, equal


def _consistent(
    formulas: Integers, own: npt.NDArray[np.int32], others: npt.NDArray[np.int32], weights: Floats
) -> npt.NDArray[np.bool_]:
    """Return which of the aligned variables keep the renaming of their formula."""
    keys = (formulas * MAX_NAMES + own) * MAX_NAMES + others  # 64 bits have room for 2^17 formulas
    _, first_of, which = np.unique(keys, return_index=True, return_inverse=True)
    pairs = np.stack([formulas, own, others], axis=1)[first_of]
    totals = np.round(np.bincount(which, weights=weights), 9)
    order = np.lexsort((pairs[:, 2], pairs[:, 1], -totals, pairs[:, 0]))
    kept = np.zeros(len(pairs), dtype=bool)
    while len(order):  # once for each pair of the longest renaming
        left = pairs[order]
        first = np.append(True, left[1:, 0] != left[:-1, 0])
        kept[order[first]] = True
        best = left[first][np.cumsum(first) - 1]  # the pair that the formula of each pair has just kept
        order = order[(left[:, 1] != best[:, 1]) & (left[:, 2] != best[:, 2])]
    return kept[which]
