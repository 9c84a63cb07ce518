"""Similarity thresholds: results below them can be dropped without harm.

Four queries with two results each; the right document of the last query is not found:

>>> import numpy as np
>>> found = Survey(
...     top=np.array([[0.9, 0.3], [0.8, 0.4], [0.7, 0.2], [0.3, 0.2]]), results=np.zeros((4, 2), int),
...     correct=np.array([0.9, 0.8, 0.7, 0.1]), rank=np.array([1, 1, 1, 3]), random=np.zeros(4),
...     hits=np.array([[True, False], [True, False], [True, False], [False, False]]), num_correct=np.ones(4, int))
>>> curve = threshold_curve(found, k=2, psis=[0, 50, 100], samples=500)
>>> [(one.psi, round(one.tau, 2), one.metric.point, one.removed) for one in curve if one.psi is not None]
[(0, 0.2, 0.75, 0.0), (50, 0.2, 0.75, 0.0), (100, 0.4, 0.75, 0.5)]
>>> round(highest_harmless(curve).tau, 2), highest_harmless(curve).psi  # the interval of four queries is wide
(0.89, None)

The paper's section II-B: each bootstrap sample of queries has a smallest similarity among its top K; tau(psi) is the
psi-th percentile of those. A result below tau is removed. The chosen tau is the highest at which the metric does not
differ significantly from the metric without a threshold: the mean of the latter over the samples lies in the 95 %
interval of the former. The choice depends on ``size``, the number of queries in a sample (the paper's l): more
queries give a narrower interval and a lower threshold.

A sample's minimum is among the lowest similarities of all, so psi = 100 is a low threshold, and the paper's curve often
ends before the metric falls. We continue the curve at percentiles of all top-K similarities, which have no psi.
:func:`highest_harmless` takes the highest threshold of the whole curve, :func:`of_paper` the highest with a psi.
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
HIGHER = tuple(range(1, 100))  # percentiles of all top-k similarities, for thresholds above psi = 100


@dataclass(frozen=True)
class Threshold:
    """A point of the curve: percentile ``psi``, threshold ``tau``, the metric with the threshold, and without it.

    Above the smallest similarities of all samples there is no ``psi``: None. ``removed`` is the share of the top-k
    results with a similarity below ``tau``.
    """

    psi: float | None
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
    higher: Sequence[float] = HIGHER,
    samples: int = 1000,
    size: int | None = None,
    seed: int = 0,
) -> list[Threshold]:
    """Return the curve of a metric over tau(psi), in the order of ``psis``, then over higher thresholds.

    Args:
        metric: function from the first k results to a value for each query (Q,) that only falls when results are
            removed: :func:`mathamr.analysis.bootstrap.accuracy` or ``ndcg``.
        higher: percentiles of all top-k similarities; those above every tau(psi) continue the curve.
        samples: number of bootstrap samples, of ``size`` queries each; default: of all queries.

    Raises:
        AnalysisError: a percentile outside 0 to 100, or a k above the results that the survey kept.
    """
    if not all(0 <= percentile <= 100 for percentile in (*psis, *higher)):
        raise AnalysisError(f"psi must be percentiles from 0 to 100, not {[*psis, *higher]}")
    without = bootstrap(metric(found, k), samples=samples, size=size, seed=seed)
    gamma = smallest_similarities(found, k, samples=samples, size=size, seed=seed)
    top = found.top.astype(np.float64)
    taus: list[tuple[float | None, float]] = [(psi, float(np.percentile(gamma, psi))) for psi in psis]
    highest = max((tau for _, tau in taus), default=-np.inf)
    others = np.unique([np.percentile(top[:, :k], percentile) for percentile in higher])
    taus += [(None, float(tau)) for tau in others if tau > highest]
    curve = []
    for psi, tau in taus:
        kept = metric(replace(found, hits=found.hits & (top >= tau)), k)
        with_it = bootstrap(kept, samples=samples, size=size, seed=seed)
        curve.append(Threshold(psi, tau, with_it, without, float((top[:, :k] < tau).mean())))
    return curve


def of_paper(curve: Sequence[Threshold]) -> Threshold:
    """Return the highest harmless threshold that has a ``psi``: the paper's rule."""
    return highest_harmless([one for one in curve if one.psi is not None])


def highest_harmless(curve: Sequence[Threshold]) -> Threshold:
    """Return the highest harmless threshold; psi = 0 is always harmless."""
    harmless = [one for one in curve if one.harmless]
    if not harmless:
        raise AnalysisError("every threshold of the curve changes the metric; start the curve at psi = 0")
    return max(harmless, key=lambda one: (one.tau, -(one.psi or 0)))
