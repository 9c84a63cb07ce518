"""Domain shift: distances from each domain vector to its nearest general vector, before and after adaptation.

Before adaptation the domain lies beside the general set; afterwards it lies at a right angle to it:

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
    """Nearest distances ``before`` (n,) and ``after`` (m,), the largest gap between their distributions, and its p."""

    before: Floats
    after: Floats
    statistic: float
    p: float


def nearest_distances(domain: ArrayLike, general: ArrayLike) -> Floats:
    """Return the distance of each domain vector to the nearest general one, all at unit length (n,).

    Args:
        domain: domain vectors (n, d) of any length but zero.
        general: general vectors (m, d) of the same model.

    Raises:
        AnalysisError: the errors of :func:`mathamr.analysis.similarities.cosine`.
    """
    similarities = cosine(domain, general)
    mine, others = unit_vectors(domain), unit_vectors(general)
    distances = np.empty(len(mine))
    for start, block in blocks(similarities):
        # Computed from the vectors, not from the cosine: sqrt(2 - 2 cos) turns a rounding error near 1 into 0.0005.
        gaps = mine[start : start + len(block)] - others[block.argmax(axis=1)]
        distances[start : start + len(block)] = np.linalg.norm(gaps, axis=1)
    return distances


def shift(before: Floats, after: Floats) -> Shift:
    """Compare the nearest distances of two models; each has one distance for each domain vector (n,).

    Raises:
        AnalysisError: no distances, or a distance that is not a number.
    """
    for name, distances in (("before", before), ("after", after)):
        if not len(distances) or not np.isfinite(distances).all():
            raise AnalysisError(f"the distances {name} must be at least one finite number, not {list(distances)[:3]}")
    from scipy import stats  # slow to import

    test = stats.ks_2samp(before, after)
    return Shift(before, after, float(test.statistic), float(test.pvalue))
