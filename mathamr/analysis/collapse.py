"""Measures of collapse: whether a document's virtual nodes have become one vector (thesis 4.3.3).

A document with two formulas, a sentence and the document node. The two formulas are equal, the others differ:

>>> vectors = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
>>> table = collapse(vectors, ptr=np.array([0, 4]), kinds=np.array([0, 0, 1, 2]))
>>> table["formula"].cosine, table["all"].cosine
(1.0, 0.16666666666666666)
>>> round(table["formula"].rank, 2), round(table["all"].rank, 2)
(1.0, 2.96)

Mean pairwise cosine 1 and effective rank 1 is collapse; m vectors at right angles have 0 and m. The effective rank is
the exponential of the entropy of the normalised singular values (Roy and Vetterli, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, unit_vectors

KINDS = ("formula", "sentence", "document", "token")
"""Names of kinds: 0, 1, 2 as in :class:`graphs.graph.batching.GraphBatch`; 3 is a text encoder's token vector."""


@dataclass(frozen=True)
class Collapse:
    """Means over documents with at least two vectors of a kind: pairwise ``cosine``, effective ``rank``, number.

    ``documents`` is the number of such documents; without any the means are NaN.
    """

    cosine: float
    rank: float
    vectors: float
    documents: int


def collapse(vectors: ArrayLike, ptr: NDArray[np.integer], kinds: NDArray[np.integer]) -> dict[str, Collapse]:
    """Return cosines and ranks within documents, for each kind that occurs twice in one of them, and for ``all``.

    Args:
        vectors: vectors (V, p) of all documents, one document after the other.
        ptr: start of each document (B + 1,).
        kinds: kind of each vector (V,): 0 formula, 1 sentence, 2 document, 3 token.
    """
    unit = unit_vectors(vectors).astype(np.float64)
    if len(kinds) != len(unit) or ptr[-1] != len(unit):
        raise AnalysisError(
            f"{len(unit)} vectors, {len(kinds)} kinds and {ptr[-1]} vectors in documents do not agree; give each "
            "vector one kind and one document"
        )
    table = {}
    for name in (*KINDS, "all"):
        among = np.ones(len(unit), bool) if name == "all" else kinds == KINDS.index(name)
        sets = [unit[start:end][among[start:end]] for start, end in pairwise(ptr.tolist())]
        several = [one for one in sets if len(one) > 1]
        if several or name == "all":
            table[name] = _mean(several)
    return table


def _mean(sets: list[Floats]) -> Collapse:
    if not sets:
        return Collapse(float("nan"), float("nan"), float("nan"), 0)
    return Collapse(
        float(np.mean([mean_cosine(one) for one in sets])),
        float(np.mean([effective_rank(one) for one in sets])),
        float(np.mean([len(one) for one in sets])),
        len(sets),
    )


def mean_cosine(unit: Floats) -> float:
    """Return the mean cosine of all pairs of different rows of unit length (n >= 2, d)."""
    n = len(unit)
    return float((np.sum(unit.sum(axis=0) ** 2) - n) / (n * (n - 1)))


def effective_rank(unit: Floats) -> float:
    """Return the exponential of the entropy of the singular values as shares of their sum; unit rows (n, d)."""
    values = np.linalg.svd(unit, compute_uv=False)
    shares = values[values > 1e-12 * values[0]] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))
