"""Overlap of similarities: right, retrieved and random documents compared (COE and ROE).

A model that puts right documents (0.9) far above random ones (0.1), with two results a query:

>>> import numpy as np
>>> found = Survey(
...     top=np.array([[0.9, 0.5], [0.9, 0.4]]), results=np.zeros((2, 2), int), correct=np.array([0.9, 0.9]),
...     rank=np.ones(2, int), random=np.array([0.1, 0.1]), hits=np.ones((2, 2), bool), num_correct=np.ones(2, int))
>>> result = overlap(found, psi=25, samples=200)
>>> result.coe.mean, result.roe.mean
(1.0, 0.0)

The paper's section II-C. For a bootstrap sample of queries, theta is the psi-th percentile of all similarities to their
top K; COE (correct-overlap estimate, Eq. 1) is the share of right documents that are more similar than theta, ROE
(random-overlap estimate, Eq. 2) that of random documents. All three sets are those of the sample's queries; both
estimates are means over the samples, with the interval between the 2.5th and the 97.5th percentile. :func:`density`
draws the three distributions of the paper's Figure 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, Survey
from mathamr.evaluation.resampling import Bootstrapped, sample_counts


@dataclass(frozen=True)
class Overlap:
    """``coe`` and ``roe``, each with its samples and interval; ``theta`` (m,) of the samples."""

    coe: Bootstrapped
    roe: Bootstrapped
    theta: Floats


def overlap(found: Survey, *, psi: float, samples: int = 1000, size: int | None = None, seed: int = 0) -> Overlap:
    """Return COE and ROE at the percentile ``psi`` of the survey's results.

    Args:
        samples: number of bootstrap samples of queries.
        size: queries in a sample; default: all queries.

    Raises:
        AnalysisError: ``psi`` outside 0 to 100.
    """
    if not 0 <= psi <= 100:
        raise AnalysisError(f"psi={psi} is not a percentile; choose a value from 0 to 100")
    k = found.top.shape[1]
    order = np.argsort(found.top, axis=None, kind="stable")
    similarities, owner = found.top.ravel()[order], order // k
    thetas, coes, roes = [], [], []
    for counts in sample_counts(len(found), samples=samples, size=size, seed=seed):
        for row in counts:  # one sample: its top-K similarities are ``similarities``, each as often as its query
            theta = _percentile(similarities, np.cumsum(row[owner]), psi)
            thetas.append(theta)
            coes.append(row @ (found.correct > theta) / row.sum())
            roes.append(row @ (found.random > theta) / row.sum())
    theta = _percentile(similarities, np.arange(1, len(similarities) + 1), psi)
    coe = Bootstrapped(float((found.correct > theta).mean()), np.array(coes))
    roe = Bootstrapped(float((found.random > theta).mean()), np.array(roes))
    return Overlap(coe, roe, np.array(thetas))


def _percentile(ascending: Floats, cumulative: NDArray[Any], psi: float) -> float:
    """Return the smallest value that at least ``psi`` percent of all values do not exceed.

    >>> _percentile(np.array([1.0, 2.0, 4.0]), np.array([1, 3, 4]), 75)  # of 1, 2, 2, 4
    2.0
    >>> _percentile(np.array([1.0, 2.0]), np.array([0, 2]), 0)  # 1 was not drawn
    2.0
    >>> _percentile(np.arange(1.0, 101.0), np.arange(1, 101), 7)  # 7 / 100 * 100 would be more than 7
    7.0
    """
    return float(ascending[np.searchsorted(cumulative, max(psi * cumulative[-1] / 100, 1))])  # 0: the first drawn


def density(values: ArrayLike, points: ArrayLike) -> Floats:
    """Return the density of ``values`` (n,) at ``points`` (m,): a Gaussian kernel of Scott's width around each value.

    >>> curve = density([0.1, 0.2, 0.6], np.linspace(-2, 3, 501))
    >>> round(float(curve.sum()) / 100, 3)  # it encloses the area 1
    1.0

    If all values are equal, the width is 0.01.

    Raises:
        AnalysisError: no values, or a value that is not a number.
    """
    from scipy.stats import gaussian_kde, norm  # slow to import

    array, at = np.asarray(values, dtype=np.float64).ravel(), np.asarray(points, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        raise AnalysisError(
            f"a density needs at least one value, all finite; there are {array.size} of shape {array.shape}"
        )
    if array.size == 1 or array.std() < 1e-9:
        curve: Floats = norm.pdf(at, loc=array[0], scale=0.01)
    else:
        curve = gaussian_kde(array)(at)
    return curve
