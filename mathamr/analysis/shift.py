"""Does adaptation move a domain away from general text? Distances from each domain vector to its nearest general one.

Before adaptation the domain lies beside the general set, afterwards at a right angle to it:

>>> general = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
>>> before, after = np.array([[1.0, 0.1, 0.0], [1.0, 0.0, 0.1]]), np.array([[0.0, 0.0, 1.0], [0.0, 0.1, 1.0]])
>>> result = shift(nearest_distances(before, general), nearest_distances(after, general))
>>> bool(result.before.mean() < 0.1), bool(result.after.mean() > 1.3), result.statistic
(True, True, 1.0)

The paper's section II-F, with Euclidean distances between vectors of unit length (0 to 2). The two distributions are
compared by the two-sample test of Kolmogorov and Smirnov.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, blocks, cosine, unit_vectors


@dataclass(frozen=True)
class Shift:
    """Nearest distances ``before`` (n,) and ``after`` (m,); the largest gap between their distributions, and its p."""

    before: Floats
    after: Floats
    statistic: float
    p: float


def nearest_distances(domain: ArrayLike, general: ArrayLike) -> Floats:
    """For each domain vector the distance to the nearest general one, both at unit length (n,).

    Args:
        domain: (n, d), of any length but zero.
        general: (m, d), of the same model.

    Raises:
        AnalysisError: as :func:`mathamr.analysis.similarities.cosine`.
    """
    similarities = cosine(domain, general)
    mine, others = unit_vectors(domain), unit_vectors(general)
    distances = np.empty(len(mine))
    for start, block in blocks(similarities):
        # Of the two vectors, not of their cosine: sqrt(2 - 2 cos) makes 0.0005 of a rounding error near 1.
        gaps = mine[start : start + len(block)] - others[block.argmax(axis=1)]
        distances[start : start + len(block)] = np.linalg.norm(gaps, axis=1)
    return distances


def shift(before: Floats, after: Floats) -> Shift:
    """Compare the nearest distances of two models, each (n,), of as many domain vectors as each has.

    Raises:
        AnalysisError: one of them is empty, or has a value that is no number.
    """
    for name, distances in (("before", before), ("after", after)):
        if not len(distances) or not np.isfinite(distances).all():
            raise AnalysisError(f"the distances {name} are not finite numbers, at least one, but {list(distances)[:3]}")
    from scipy import stats  # slow to import

    test = stats.ks_2samp(before, after)
    return Shift(before, after, float(test.statistic), float(test.pvalue))
