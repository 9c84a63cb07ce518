"""Similarity thresholds: results below them can be dropped without harm.

Four queries with two results each; the right document of the last query is not found:

>>> import numpy as np
>>> found = Survey(
...     top=np.array([[0.9, 0.3], [0.8, 0.4], [0.7, 0.2], [0.3, 0.2]]), results=np.zeros((4, 2), int),
...     correct=np.array([0.9, 0.8, 0.7, 0.1]), rank=np.array([1, 1, 1, 3]), random=np.zeros(4),
...     hits=np.array([[True, False], [True, False], [True, False], [False, False]]), num_correct=np.ones(4, int))
>>> curve = threshold_curve(found, k=2, psis=[0, 50, 100], samples=500)
>>> [(one.psi, round(one.tau, 2), one.metric.point, one.removed) for one in curve]
[(0, 0.2, 0.75, 0.0), (50, 0.2, 0.75, 0.0), (100, 0.4, 0.75, 0.5)]
>>> chosen(curve).tau
0.4

The paper's section II-B: each bootstrap sample of queries has a smallest similarity among its top K; tau(psi) is the
psi-th percentile of those. A result below tau is removed. The chosen tau is the highest at which the metric does not
differ significantly from the metric without a threshold: the mean of the latter over the samples lies in the 95 %
interval of the former. The choice depends on ``size``, the number of queries in a sample (the paper's l): more
queries give a narrower interval and a lower threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphs.errors import AnalysisError
from mathamr.analysis.bootstrap import accuracy
from mathamr.analysis.similarities import Floats, Survey
from mathamr.evaluation.resampling import Bootstrapped, bootstrap, sample_counts

PSIS = (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100)


@dataclass(frozen=True)
class Threshold:
    """One point of the curve: percentile ``psi``, threshold ``tau``, the metric with it, and without it.

    ``removed`` is the share of the top-k results with a similarity below ``tau``.
    """

    psi: float
    tau: float
    metric: Bootstrapped
    without: Bootstrapped
    removed: float

    @property
    def harmless(self) -> bool:
        """Test that the metric does not differ significantly from the metric without a threshold."""
        low, high = self.metric.interval()
        return low <= self.without.mean <= high


def smallest_similarities(
    found: Survey, k: int, *, samples: int = 1000, size: int | None = None, seed: int = 0
) -> Floats:
    """Return Gamma: the smallest similarity among the top-k results of each bootstrap sample of queries (m,)."""
    smallest = found.top[:, :k].min(axis=1).astype(np.float64)
    counts = sample_counts(len(found), samples=samples, size=size, seed=seed)
    return np.concatenate([np.where(block > 0, smallest, np.inf).min(axis=1) for block in counts])


def threshold_curve(
    found: Survey,
    k: int,
    *,
    metric: Callable[[Survey, int], Floats] = accuracy,
    psis: Sequence[float] = PSIS,
    samples: int = 1000,
    size: int | None = None,
    seed: int = 0,
) -> list[Threshold]:
    """Return the curve of a metric over tau(psi), in the order of ``psis``.

    Args:
        metric: function from the first k results to a value for each query (Q,) that only falls when results are
            removed: :func:`mathamr.analysis.bootstrap.accuracy` or ``ndcg``.
        samples: number of bootstrap samples of queries.
        size: queries in a sample; default: all queries.

    Raises:
        AnalysisError: a psi outside 0 to 100, or a k above the results that the survey kept.
    """
    if not all(0 <= psi <= 100 for psi in psis):
        raise AnalysisError(f"psi must be percentiles from 0 to 100, not {list(psis)}")
    without = bootstrap(metric(found, k), samples=samples, size=size, seed=seed)
    gamma = smallest_similarities(found, k, samples=samples, size=size, seed=seed)
    top = found.top.astype(np.float64)
    curve = []
    for psi in psis:
        tau = float(np.percentile(gamma, psi))
        kept = metric(replace(found, hits=found.hits & (top >= tau)), k)
        with_it = bootstrap(kept, samples=samples, size=size, seed=seed)
        curve.append(Threshold(psi, tau, with_it, without, float((top[:, :k] < tau).mean())))
    return curve


def chosen(curve: Sequence[Threshold]) -> Threshold:
    """Return the highest harmless threshold; psi = 0 is always harmless."""
    harmless = [one for one in curve if one.harmless]
    if not harmless:
        raise AnalysisError("every threshold of the curve changes the metric; start the curve at psi = 0")
    return max(harmless, key=lambda one: (one.tau, -one.psi))
