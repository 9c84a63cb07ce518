"""How far do right answers stand out? Similarities of right, retrieved and random documents, and how they overlap.

A model that puts right documents (0.9) far above random ones (0.1), with two results a query:

>>> import numpy as np
>>> found = Survey(
...     top=np.array([[0.9, 0.5], [0.9, 0.4]]), results=np.zeros((2, 2), int), correct=np.array([0.9, 0.9]),
...     rank=np.ones(2, int), random=np.array([0.1, 0.1]), hits=np.ones((2, 2), bool), num_correct=np.ones(2, int))
>>> result = overlap(found, psi=25, samples=200)
>>> result.coe.mean, result.roe.mean
(1.0, 0.0)

The paper's section II-C. Of a bootstrap sample of queries, theta is the psi-th percentile of all similarities to their
top K; COE (correct-overlap estimate, Eq. 1) is the share of right documents that are more similar than theta, ROE
(random-overlap estimate, Eq. 2) that of random documents; both are means over the samples, with the interval between
the 2.5th and the 97.5th percentile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, Survey
from mathamr.evaluation.resampling import Bootstrapped, sample_counts


@dataclass(frozen=True)
class Overlap:
    """``coe`` and ``roe``, each with its samples and interval; ``theta`` (m,) of the samples."""

    coe: Bootstrapped
    roe: Bootstrapped
    theta: Floats


def overlap(found: Survey, *, psi: float, samples: int = 1000, seed: int = 0) -> Overlap:
    """COE and ROE at the percentile ``psi``, over the survey's results.

    Raises:
        AnalysisError: ``psi`` is not between 0 and 100.
    """
    if not 0 <= psi <= 100:
        raise AnalysisError(f"psi={psi} is a percentile, from 0 to 100")
    k = found.top.shape[1]
    order = np.argsort(found.top, axis=None, kind="stable")
    similarities, owner = found.top.ravel()[order], order // k
    thetas, coes, roes = [], [], []
    for counts in sample_counts(len(found), samples=samples, seed=seed):
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
    """The smallest value that at least ``psi`` percent of all values do not exceed.

    >>> _percentile(np.array([1.0, 2.0, 4.0]), np.array([1, 3, 4]), 75)  # of 1, 2, 2, 4
    2.0
    >>> _percentile(np.array([1.0, 2.0]), np.array([0, 2]), 0)  # 1 was not drawn
    2.0
    """
    return float(ascending[np.searchsorted(cumulative, max(psi / 100 * cumulative[-1], 1))])  # 0: the first drawn


def ecdf(values: Floats) -> tuple[Floats, Floats]:
    """The empirical distribution function: values in ascending order, and the share of values up to each.

    >>> ecdf(np.array([0.3, 0.1]))
    (array([0.1, 0.3]), array([0.5, 1. ]))
    """
    return np.sort(values), np.arange(1, len(values) + 1) / len(values)
