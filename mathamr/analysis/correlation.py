"""Correlation between a measure of a space and retrieval accuracy, over models.

The eight models of the paper's Table II, and their isotropy before any transformation from its Table III:

>>> accuracy = [66.87, 62.64, 81.61, 81.67, 70.06, 57.12, 81.58, 80.37]
>>> coe = [87.98, 85.94, 91.98, 91.06, 87.26, 84.88, 90.73, 90.74]
>>> isoscore = [27.81, 23.77, 40.58, 45.27, 14.54, 15.4, 22.1, 25.01]
>>> [round(correlation(accuracy, measure).pearson, 3) for measure in (coe, isoscore)]
[0.978, 0.615]

Its Table I has 0.882 for the COE and 0.05 for the IsoScore, over more models than Table II lists, and for isotropy also
over transformed embeddings. A correlation over few models says little: with eight models the interval is wide, and four
models have the same order in both quantities by chance once in 24 times.

>>> result = correlation(accuracy, coe)
>>> [round(end, 2) for end in result.interval], result.permuted < 0.01
([0.88, 1.0], True)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError

_ONE = 1 - 1e-12  # Fisher's transformation of 1 is infinite

FEWEST = 3
"""Fewest models of a correlation: two models always lie on a line."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's and Spearman's correlation over ``models`` models.

    Attributes:
        p: two-sided p-value of Pearson's correlation, for normal quantities.
        interval: 95 % interval of Pearson's correlation by Fisher's transformation; -1 to 1 for three models.
        permuted: two-sided p-value of Pearson's correlation over permutations of the models, all of them up to seven
            models, else 9,999.
        spearman_permuted: the same of Spearman's correlation, on which an outlier has little weight.
    """

    pearson: float
    p: float
    spearman: float
    models: int
    interval: tuple[float, float]
    permuted: float
    spearman_permuted: float


def correlation(one: ArrayLike, other: ArrayLike) -> Correlation:
    """Correlate two quantities over models; each has one value for each model (M,).

    Raises:
        AnalysisError: missing or infinite values, fewer than three models, or a quantity equal in all models.
    """
    a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise AnalysisError(f"a correlation needs two values for each model, not shapes {a.shape} and {b.shape}")
    if len(a) < FEWEST:
        raise AnalysisError(f"{len(a)} models; a correlation needs at least {FEWEST}")
    if not (np.isfinite(a) & np.isfinite(b)).all():
        raise AnalysisError("a correlation needs finite values; leave out models without one")
    for values in (a, b):
        if np.ptp(values) <= 1e-12 * np.abs(values).max():
            raise AnalysisError(f"all {len(a)} models have the value {values[0]:g}; a constant has no correlation")
    from scipy import stats  # slow to import

    pearson, spearman = stats.pearsonr(a, b), stats.spearmanr(a, b)
    z = np.arctanh(np.clip(pearson.statistic, -_ONE, _ONE))
    low, high = np.tanh(z + np.array([-1.96, 1.96]) / np.sqrt(len(a) - 3)) if len(a) > FEWEST else (-1, 1)
    return Correlation(
        pearson=float(pearson.statistic),
        p=float(pearson.pvalue),
        spearman=float(spearman.statistic),
        models=len(a),
        interval=(float(low), float(high)),
        permuted=_permuted(a, b),
        spearman_permuted=_permuted(stats.rankdata(a), stats.rankdata(b)),
    )


def _permuted(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of Pearson's correlation over permutations of the models."""
    from scipy import stats  # slow to import

    a, b = stats.zscore(a), stats.zscore(b)  # once: pearsonr standardizes each permutation

    def product(some: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        """Return the correlations times M; rounded, so that equal ones of several orders are equal."""
        return np.round(some @ b, 10)

    rng = np.random.default_rng(0)
    return float(stats.permutation_test((a,), product, permutation_type="pairings", rng=rng).pvalue)
