r"""Formulas by the posts around them: the words of a topic's post against those of the posts that have the formula.

>>> posts = [["integral", "of", "sine"], ["ring", "of", "integers"]]
>>> context = Context.build(posts, [(0, 0), (1, 1), (2, 0), (2, 1)], 3)  # the third formula occurs in both posts
>>> context.scores(["which", "ring"]).tolist()
[0.0, 1.0, 1.0]

A formula has the BM25 score of its best post, as a share of the best score of all posts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.formulas.tree import ParsedFormula
from mathamr.evaluation.order import best_first
from mathamr.retrieval.bm25 import BM25Index
from mathamr.structure.alignment import Floats, Integers
from mathamr.structure.index import StructureIndex

SHARE_OF_STRUCTURE = 0.3  # of a structure score beside that of the words, both at most 1
POOL = 10  # formulas of similar posts that are aligned, for each that is wanted


@dataclass(frozen=True)
class Context:
    """Words of P posts, and which of F formulas each of them has.

    Attributes:
        posts: index of the posts, named by their numbers.
        formulas: number of a formula for each occurrence.
        places: number of its post for each occurrence.
        size: number of formulas.
    """

    posts: BM25Index
    formulas: Integers
    places: Integers
    size: int

    @classmethod
    def build(cls, posts: Sequence[Sequence[str]], occurrences: Iterable[tuple[int, int]], size: int) -> Context:
        """Index the words of posts; ``occurrences``: number of a formula and of a post that has it."""
        pairs = np.array(list(occurrences), dtype=np.int64).reshape(-1, 2)
        return cls(BM25Index.build([str(place) for place in range(len(posts))], posts), pairs[:, 0], pairs[:, 1], size)

    def scores(self, words: Sequence[str]) -> Floats:
        """Return the score of each formula for the words of a topic (F,), from 0 to 1."""
        (ranking,) = self.posts.search([words], max(len(self.posts), 1))
        of_posts = np.zeros(len(self.posts))
        for name, score in ranking:
            of_posts[int(name)] = score / ranking[0][1]
        scores = np.zeros(self.size)
        np.maximum.at(scores, self.formulas, of_posts[self.places])
        return scores


def with_similar_posts(
    ranking: Sequence[tuple[int, float]],
    similar: Floats,
    index: StructureIndex,
    query: ParsedFormula,
    places: int,
    k: int,
    names: npt.NDArray[np.str_],
) -> list[tuple[int, float]]:
    """Return the first ``k - places`` of a ranking, and after them formulas of similar posts.

    Those are ordered by the score of the posts, to which a share of their own structure score is added. Places that
    they leave empty go to the rest of the ranking.

    Args:
        similar: score of the posts of each formula, as of :meth:`Context.scores`.
        places: number of the last places that are given to similar posts.
        names: ids of all formulas, by which equal scores are ordered (F,).
    """
    kept = list(ranking[: max(k - places, 0)])
    left = similar.copy()
    left[[number for number, _ in kept]] = 0.0
    pool = np.flatnonzero(left > 0)
    pool = pool[best_first(names[pool], left[pool])][: POOL * places]
    values = left[pool] + SHARE_OF_STRUCTURE * index.scores(query, pool)
    best = best_first(names[pool], values)[: k - len(kept)]
    promoted = set(pool[best].tolist())
    rest = [(number, score) for number, score in ranking[len(kept) :] if number not in promoted]
    kept += rest[: k - len(kept) - len(best)]
    scale = (kept[-1][1] if kept else 1.0) / (1 + SHARE_OF_STRUCTURE) * 0.999  # all are below the last one that is kept
    return [*kept, *((int(pool[place]), float(values[place]) * scale) for place in best)]
