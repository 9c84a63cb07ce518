"""Isotropy: two measures of how evenly embeddings use all directions, and transformations that raise them.

>>> generator = np.random.default_rng(0)
>>> ball, line = generator.normal(size=(5000, 8)), np.outer(generator.normal(size=5000), np.ones(8))
>>> round(isoscore(ball), 2), round(isoscore(line), 2)
(1.0, 0.0)
>>> partition_isotropy(ball) > 0.8, partition_isotropy(line + 5) < 0.05
(True, True)
>>> cigar = ball * [9, 1, 1, 1, 1, 1, 1, 1]
>>> isoscore(cigar) < 0.1, round(isoscore(whitening(cigar)(cigar)), 2)
(True, 1.0)

``partition_isotropy`` is I_A of the paper's section II-E, ``isoscore`` its I_B. The transformations are fitted on one
set of vectors and applied to any set, so queries and documents are transformed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.components import NOISE, covariance, principal_components, products
from mathamr.analysis.similarities import Floats, checked, unit_vectors

Transformation = Callable[[ArrayLike], Floats]
"""Function from vectors (m, d) to transformed ones."""


def partition_isotropy(vectors: ArrayLike) -> float:
    """Return I_A of vectors (n, d), the second-order approximation of min Z(c) / max Z(c) over unit vectors c.

    Z(c) is the sum of exp(c . v).
    For n vectors V at unit length: (n - |sum of V| + s_min^2 / 2) / (n + |sum of V| + s_max^2 / 2), with the singular
    values s of V; with n <= d the smallest of the d is 0. Between 0 and 1; source: Mu and Viswanath, *All-but-the-Top*
    (2018), section 2.2.
    """
    unit = unit_vectors(vectors)
    n = len(unit)
    drift = float(np.linalg.norm(unit.sum(axis=0, dtype=np.float64)))
    squares = np.linalg.eigvalsh(products(unit, np.zeros(unit.shape[1])))  # of V: d values, ascending
    return float((n - drift + max(squares[0], 0.0) / 2) / (n + drift + squares[-1] / 2))


def isoscore(vectors: ArrayLike) -> float:
    """Return I_B, the IsoScore: 1 where all directions have equal variance, 0 where one direction has all of it.

    The variances along the principal components, scaled to the length sqrt(d), are compared with d ones; the distance
    determines the share of dimensions that are used equally, which is scaled to [0, 1]. Source: Rudman et al.,
    *IsoScore: Measuring the Uniformity of Embedding Space Utilization* (2022), algorithm 1. Vectors (n, d) are not
    brought to unit length.

    Raises:
        AnalysisError: fewer than two vectors or dimensions, or all vectors equal.
    """
    array = checked(vectors)
    n, d = array.shape
    if n < 2 or d < 2:
        raise AnalysisError(f"IsoScore needs at least two vectors of two dimensions, not shape {array.shape}")
    mean, matrix = covariance(array)
    variances = np.clip(np.linalg.eigvalsh(matrix), 0.0, None)
    if variances[-1] <= np.sum((NOISE * mean) ** 2):
        raise AnalysisError("all vectors are equal: IsoScore is not defined without variance")
    scaled = variances * np.sqrt(d) / np.linalg.norm(variances)
    defect = np.linalg.norm(scaled - 1.0) / np.sqrt(2 * (d - np.sqrt(d)))
    used = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2  # share of the dimensions
    return max(0.0, float((d * used - 1) / (d - 1)))  # only rounding makes it negative


def standardizing(vectors: ArrayLike) -> Transformation:
    """Fit mean 0 and standard deviation 1 in every dimension to vectors (n, d) (Timkey and van Schijndel, 2021).

    A dimension without variance is set to 0.
    """
    array = checked(vectors)
    mean, deviation = array.mean(axis=0, dtype=np.float64), array.std(axis=0, dtype=np.float64)
    deviation = np.where(deviation > NOISE * np.abs(mean), deviation, np.inf)

    def transformed(others: ArrayLike) -> Floats:
        centred = _centred(others, mean)
        return centred / deviation.astype(centred.dtype)

    return transformed


def whitening(vectors: ArrayLike) -> Transformation:
    """Fit mean 0 and the unit matrix as covariance to vectors (n, d), in the basis of the principal components.

    Directions with less than a millionth of the largest variance carry only noise: r of d dimensions remain.
    """
    mean, variances, components = principal_components(vectors)
    kept = variances > 1e-6 * variances[0]
    projection = components[:, kept] / np.sqrt(variances[kept])  # (d, r)

    def transformed(others: ArrayLike) -> Floats:
        centred = _centred(others, mean)
        return centred @ projection.astype(centred.dtype)

    return transformed


def top_removal(vectors: ArrayLike, components: int | None = None) -> Transformation:
    """Fit mean 0 and no variance along the first principal components to vectors (n, d) (Mu and Viswanath, 2018).

    ``components`` defaults to max(1, d / 100), as in their algorithm 1.
    """
    array = checked(vectors)
    d = array.shape[1]
    count = max(1, round(d / 100)) if components is None else components
    if not 1 <= count < d:
        raise AnalysisError(f"{count} principal components cannot be removed from vectors of {d} dimensions")
    mean, _, directions = principal_components(array)

    def transformed(others: ArrayLike) -> Floats:
        centred = _centred(others, mean)
        top = directions[:, :count].astype(centred.dtype)  # (d, count)
        return centred - centred @ top @ top.T

    return transformed


def _centred(vectors: ArrayLike, mean: Floats) -> Floats:
    """Return the vectors without the mean, in their own precision."""
    array = checked(vectors)
    if array.shape[1] != len(mean):
        raise AnalysisError(
            f"vectors of {array.shape[1]} dimensions; the transformation was fitted to {len(mean)} dimensions"
        )
    return array - mean.astype(array.dtype)


AS_THEY_ARE = "as they are"
"""Name of vectors that are not transformed."""

TRANSFORMATIONS: dict[str, Callable[[ArrayLike], Transformation]] = {
    "standardized": standardizing,
    "whitened": whitening,
    "top components removed": top_removal,
}
"""Each transformation under its name: a function that fits it to vectors (n, d)."""
