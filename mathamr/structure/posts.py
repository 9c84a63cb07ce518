r"""Posts by their formulas: each formula of a topic is compared with all formulas of a post, and its best one counts.

>>> from graphs.formulas.latex import parse_latex
>>> from mathamr.structure.scoring import Scoring
>>> rules = Scoring.by_default()
>>> index = StructureIndex.build([parse_latex(latex) for latex in ("x^2+1", r"\sqrt{2}", "y^2+1")], rules)
>>> posts = FormulasOfPosts.build([(0, 0), (1, 0), (2, 1)], 2)  # the first post has the first two formulas
>>> scores = posts.scores(index, [parse_latex("x^2+1"), parse_latex(r"\sqrt{2}")])
>>> bool(scores[0] > scores[1] > 0)
True

A post's score is the mean of these best scores, weighted by the numbers of symbols of the topic's formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphs.formulas.tree import ParsedFormula
from mathamr.structure.alignment import Floats, Integers
from mathamr.structure.index import StructureIndex

LEAST_SYMBOLS = 3  # of a topic's formula that is searched with
MOST_FORMULAS = 8  # of a topic, the largest ones
FOUND = 1000  # formulas that a topic's formula can find


@dataclass(frozen=True)
class FormulasOfPosts:
    """Formulas of P posts.

    Attributes:
        starts: first occurrence of each formula, and the end of those of the last one (F + 1,).
        places: number of the post of each occurrence, ordered by formula.
        size: number of posts.
    """

    starts: Integers
    places: Integers
    size: int

    @classmethod
    def build(cls, occurrences: Iterable[tuple[int, int]], size: int) -> FormulasOfPosts:
        """Keep the posts of each formula; ``occurrences``: number of a formula and of a post that has it."""
        pairs = np.array(sorted(occurrences), dtype=np.int64).reshape(-1, 2)
        counts = np.bincount(pairs[:, 0]) if len(pairs) else np.zeros(0, np.int64)
        return cls(np.concatenate([[0], np.cumsum(counts)]), pairs[:, 1], size)

    def scores(self, index: StructureIndex, formulas: Sequence[ParsedFormula]) -> Floats:
        """Return the score of each post for the formulas of a topic (P,), from 0 to 1."""
        totals, weights = np.zeros(self.size), 0
        for formula in formulas:
            best = np.zeros(self.size)
            for number, score in reversed(index.search(formula, FOUND)):  # the best one is written last
                best[self.places[self.starts[number] : self.starts[number + 1]]] = score
            totals += symbols_of(formula) * best
            weights += symbols_of(formula)
        return totals / max(weights, 1)


def searched_formulas(formulas: Iterable[ParsedFormula]) -> list[ParsedFormula]:
    """Return the different formulas of a topic that are searched with, the largest first."""
    different = {(formula.slt, formula.opt): formula for formula in formulas}
    able = [formula for formula in different.values() if symbols_of(formula) >= LEAST_SYMBOLS]
    return sorted(able, key=symbols_of, reverse=True)[:MOST_FORMULAS]


def symbols_of(formula: ParsedFormula) -> int:
    """Return the number of symbols of the larger tree."""
    return max(len(tree) if tree is not None else 0 for tree in (formula.slt, formula.opt))
