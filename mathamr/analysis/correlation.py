"""Correlation between a measure of a space and retrieval accuracy, over models.

The eight models of the paper's Table II, and their isotropy before any transformation from its Table III:

>>> accuracy = [66.87, 62.64, 81.61, 81.67, 70.06, 57.12, 81.58, 80.37]
>>> coe = [87.98, 85.94, 91.98, 91.06, 87.26, 84.88, 90.73, 90.74]
>>> isoscore = [27.81, 23.77, 40.58, 45.27, 14.54, 15.4, 22.1, 25.01]
>>> [round(correlation(accuracy, measure).pearson, 3) for measure in (coe, isoscore)]
[0.978, 0.615]

Its Table I has 0.882 for the COE and 0.05 for the IsoScore, over more models than Table II lists, and for isotropy also
over transformed embeddings. A correlation over few models says little: :attr:`Correlation.p` is of Pearson's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError

FEWEST = 3
"""Fewest models of a correlation: two models always lie on a line."""


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation with its two-sided ``p``, and Spearman's, over ``models`` models."""

    pearson: float
    p: float
    spearman: float
    models: int


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
    return Correlation(float(pearson.statistic), float(pearson.pvalue), float(spearman.statistic), len(a))
