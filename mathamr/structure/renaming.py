"""Consistent renamings of variables in alignments: each variable of the query is renamed to one of the formula.

The renaming of an alignment is chosen greedily, the pair of variables with the greatest aligned weight first, as in
Tangent-S (Davila and Zanibbi, SIGIR 2017). Variables of equal names are preferred where weights are equal.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mathamr.structure.alignment import Floats, Integers, Query
from mathamr.structure.forest import MAX_NAMES, Forest
from mathamr.structure.scoring import Scoring


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
