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
from scipy import stats

from mathamr.analysis.similarities import Floats, blocks, cosine


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
        domain: (n, d).
        general: (m, d).
    """
    nearest = np.concatenate([block.max(axis=1) for _, block in blocks(cosine(domain, general))])
    distances: Floats = np.sqrt(np.clip(2.0 - 2.0 * nearest.astype(np.float64), 0.0, None))
    return distances


def shift(before: Floats, after: Floats) -> Shift:
    """Compare the nearest distances of two models."""
    test = stats.ks_2samp(before, after)
    return Shift(before, after, float(test.statistic), float(test.pvalue))
