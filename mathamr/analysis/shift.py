"""Domain shift: distances from each domain vector to its nearest general vector, before and after adaptation.

Before adaptation the domain lies beside the general set; afterwards it lies at a right angle to it:

>>> general = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
>>> before, after = np.array([[1.0, 0.1, 0.0], [1.0, 0.0, 0.1]]), np.array([[0.0, 0.0, 1.0], [0.0, 0.1, 1.0]])
>>> result = shift(nearest_distances(before, general), nearest_distances(after, general))
>>> bool(result.before.mean() < 0.1), bool(result.after.mean() > 1.3), result.statistic
(True, True, 1.0)

The paper's section II-F, with Euclidean distances between vectors of unit length (0 to 2). The two distributions are
compared by the two-sample test of Kolmogorov and Smirnov, and by Wasserstein's distance. :func:`mean_discrepancy`
compares the vectors themselves:

>>> generator = np.random.default_rng(0)
>>> here, there = generator.normal(size=(2, 40, 3)) + [[[3.0, 0.0, 0.0]], [[0.0, 3.0, 0.0]]]
>>> mean_discrepancy(here, there).p, mean_discrepancy(here[:20], here[20:]).p > 0.05
(0.001, True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, blocks, cosine, unit_vectors


@dataclass(frozen=True)
class Shift:
    """Distances ``before`` (n,) and ``after`` (m,), and how far apart their distributions are.

    ``statistic`` is the largest gap between the distributions, ``p`` the p-value of the Kolmogorov-Smirnov test, and
    ``wasserstein`` the Wasserstein distance of the distributions, in the unit of the distances.
    """

    before: Floats
    after: Floats
    statistic: float
    p: float
    wasserstein: float


@dataclass(frozen=True)
class Discrepancy:
    """Squared maximum mean discrepancy (MMD) of two sets of vectors, and its ``p`` over permutations."""

    squared: float
    p: float


def nearest_distances(domain: ArrayLike, general: ArrayLike) -> Floats:
    """Return the distance of each domain vector (n, d) to the nearest general one (m, d), all at unit length (n,).

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
    """Compare the nearest distances of two models, or other lengths of two kinds, (n,) and (m,).

    Raises:
        AnalysisError: no distances, or a distance that is not a number.
    """
    for name, distances in (("before", before), ("after", after)):
        if not len(distances) or not np.isfinite(distances).all():
            raise AnalysisError(f"the distances {name} must be at least one finite number, not {list(distances)[:3]}")
    from scipy import stats  # slow to import

    test = stats.ks_2samp(before, after)
    way = float(stats.wasserstein_distance(before, after))
    return Shift(before, after, float(test.statistic), float(test.pvalue), way)


def mean_discrepancy(one: ArrayLike, other: ArrayLike, *, permutations: int = 999, seed: int = 0) -> Discrepancy:
    """Test that two sets of vectors of one model, (n, d) and (m, d), at unit length, come from one distribution.

    MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y) over all pairs, with the Gaussian kernel k of the median
    distance (Gretton et al., *A Kernel Two-Sample Test*, 2012, Eq. 5). The test draws ``permutations`` of all vectors.
    Memory is quadratic in their number.

    Raises:
        AnalysisError: the errors of :func:`mathamr.analysis.similarities.cosine`, or all vectors are equal.
    """
    cosine(one, other)  # checks both
    both = np.concatenate([unit_vectors(one), unit_vectors(other)]).astype(np.float64)
    squares = np.clip(2 - 2 * both @ both.T, 0, None)  # (n + m, n + m) squared distances
    width = float(np.median(squares[np.triu_indices(len(both), 1)])) or float(squares.mean())
    if width < 1e-12:
        raise AnalysisError("all vectors are equal; they have no discrepancy")
    kernel = np.exp(-squares / (2 * width))
    n = len(np.asarray(one))
    sides = np.where(np.arange(len(both)) < n, 1 / n, -1 / (len(both) - n))
    generator = np.random.default_rng(seed)
    drawn = np.stack([sides, *(generator.permutation(sides) for _ in range(permutations))])
    found = np.einsum("pi,pi->p", drawn @ kernel, drawn)
    return Discrepancy(float(found[0]), float((found >= found[0] - 1e-12).mean()))
