"""Principal components of vectors, and the plane of the first two.

>>> line = np.outer([-1.0, 0.0, 1.0, 4.0], [3.0, 4.0, 0.0])  # along one direction
>>> _, variances, components = principal_components(line)
>>> [round(float(value), 6) for value in variances], components[:, 0].round(6).tolist()
([116.666667, 0.0, 0.0], [0.6, 0.8, 0.0])
>>> plane(line)[:, 0].round(6).tolist()
[-10.0, -5.0, 0.0, 15.0]

The same vectors give the same components on every machine, up to rounding: the largest entry of a component is
positive. The plane shows what Figure 13 of the ModernBERT thesis shows with t-SNE. Unlike t-SNE, it keeps distances
between groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, checked

ROWS = 8_192  # rows of a block: 50 MB at 768 dimensions
NOISE = 1e-10  # a deviation below this share of the mean is a rounding error of equal values


def principal_components(vectors: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return mean (d,), variances (d,), descending, and components (d, d) as columns, of vectors (n, d).

    Raises:
        AnalysisError: fewer than two vectors, or all vectors equal.
    """
    array = checked(vectors)
    if len(array) < 2:
        raise AnalysisError("principal components need at least two vectors")
    mean, matrix = covariance(array)
    variances, components = np.linalg.eigh(matrix)
    if variances[-1] <= np.sum((NOISE * mean) ** 2):
        raise AnalysisError("all vectors are equal, so they have no principal component")
    components = components[:, ::-1]
    largest = np.abs(components).argmax(axis=0)
    signs = np.sign(components[largest, np.arange(len(mean))])
    return mean, np.clip(variances[::-1], 0.0, None), components * signs


def plane(vectors: ArrayLike) -> Floats:
    """Return coordinates (n, 2) of vectors (n, d), d >= 2, along their first two principal components.

    Raises:
        AnalysisError: the errors of :func:`principal_components`, or vectors of one dimension.
    """
    array = checked(vectors)
    if array.shape[1] < 2:
        raise AnalysisError(f"a plane needs two dimensions, not shape {array.shape}")
    mean, _, components = principal_components(array)
    return (array - mean) @ components[:, :2]


def covariance(array: Floats) -> tuple[Floats, Floats]:
    """Return mean (d,) and covariance (d, d) of the rows of (n, d), n >= 2, in float64."""
    mean: Floats = array.mean(axis=0, dtype=np.float64)
    return mean, products(array, mean) / (len(array) - 1)


def products(array: Floats, mean: Floats) -> Floats:
    """Return (V - mean)^T (V - mean) (d, d) in float64. Blocks of rows avoid a second copy of V."""
    total: Floats = np.zeros((array.shape[1],) * 2)
    for start in range(0, len(array), ROWS):
        centred = array[start : start + ROWS] - mean
        total += centred.T @ centred
    return total
