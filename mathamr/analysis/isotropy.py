"""Isotropy: two measures of how evenly embeddings use all directions, and transformations that raise them.

>>> generator = np.random.default_rng(0)
>>> ball, line = generator.normal(size=(5000, 8)), np.outer(generator.normal(size=5000), np.ones(8))
>>> round(isoscore(ball), 2), round(isoscore(line), 2)
(1.0, 0.0)
>>> partition_isotropy(ball) > 0.8, partition_isotropy(line + 5) < 0.05
(True, True)
>>> cigar = ball * [9, 1, 1, 1, 1, 1, 1, 1]
>>> isoscore(cigar) < 0.1, round(isoscore(Whitening.fit(cigar)(cigar)), 2)
(True, 1.0)

``partition_isotropy`` is I_A of the paper's section II-E, ``isoscore`` its I_B. The transformations are fitted on one
set of vectors and applied to any set, so queries and documents are transformed in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.components import NOISE, covariance, principal_components, products
from mathamr.analysis.similarities import Floats, checked, unit_vectors


def partition_isotropy(vectors: ArrayLike) -> float:
    """Return I_A, the second-order approximation of min Z(c) / max Z(c) over unit vectors c.

    Z(c) is the sum of exp(c . v).
    For n vectors V at unit length: (n - |sum of V| + s_min^2 / 2) / (n + |sum of V| + s_max^2 / 2), with the singular
    values s of V. Between 0 and 1; source: Mu and Viswanath, *All-but-the-Top* (2018), section 2.2.

    Args:
        vectors: vectors (n, d) of any length but zero. With n <= d the smallest of the d singular values is 0.
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
    *IsoScore: Measuring the Uniformity of Embedding Space Utilization* (2022), algorithm 1.

    Args:
        vectors: vectors (n, d), not brought to unit length.

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


@dataclass(frozen=True)
class Standardizing:
    """Mean 0 and standard deviation 1 in every dimension (Timkey and van Schijndel, 2021).

    A dimension without variance is set to 0.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, vectors: ArrayLike) -> Self:
        """Fit the transformation to vectors (n, d)."""
        array = checked(vectors)
        return cls(array.mean(axis=0, dtype=np.float64), array.std(axis=0, dtype=np.float64))

    def __call__(self, vectors: ArrayLike) -> Floats:
        """Transform vectors (m, d)."""
        centred, varied = _centred(vectors, self.mean), self.deviation > NOISE * np.abs(self.mean)
        deviation = np.where(varied, self.deviation, np.inf)
        moved: Floats = centred / deviation.astype(centred.dtype)
        return moved


@dataclass(frozen=True)
class Whitening:
    """Mean 0 and the unit matrix as covariance, in the basis of the principal components (r of d dimensions remain).

    Directions with less than a millionth of the largest variance carry only noise and are removed.
    """

    mean: Floats
    projection: Floats  # (d, r)

    @classmethod
    def fit(cls, vectors: ArrayLike) -> Self:
        """Fit the transformation to vectors (n, d), not all equal."""
        array = checked(vectors)
        mean, variances, components = principal_components(array)
        kept = variances > 1e-6 * variances[0]
        return cls(mean, components[:, kept] / np.sqrt(variances[kept]))

    def __call__(self, vectors: ArrayLike) -> Floats:
        """Transform vectors (m, d) into (m, r)."""
        centred = _centred(vectors, self.mean)
        moved: Floats = centred @ self.projection.astype(centred.dtype)
        return moved


@dataclass(frozen=True)
class TopRemoval:
    """Mean 0 and no variance along the first principal components (Mu and Viswanath, 2018, algorithm 1)."""

    mean: Floats
    top: Floats  # (d, number removed)

    @classmethod
    def fit(cls, vectors: ArrayLike, components: int | None = None) -> Self:
        """Fit the transformation to vectors (n, d); ``components`` defaults to max(1, d / 100), as in the source."""
        array = checked(vectors)
        d = array.shape[1]
        count = max(1, round(d / 100)) if components is None else components
        if not 1 <= count < d:
            raise AnalysisError(f"{count} principal components cannot be removed from vectors of {d} dimensions")
        mean, _, directions = principal_components(array)
        return cls(mean, directions[:, :count])

    def __call__(self, vectors: ArrayLike) -> Floats:
        """Transform vectors (m, d)."""
        centred = _centred(vectors, self.mean)
        top = self.top.astype(centred.dtype)
        moved: Floats = centred - centred @ top @ top.T
        return moved


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

TRANSFORMATIONS: dict[str, Callable[[ArrayLike], Callable[[ArrayLike], Floats]]] = {
    "standardized": Standardizing.fit,
    "whitened": Whitening.fit,
    "top components removed": TopRemoval.fit,
}
"""Each transformation under its name: a function that fits it to vectors (n, d)."""
