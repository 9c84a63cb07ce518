"""Calibration of confidences: is an answer given with 70 % confidence right in 70 % of the cases?

Four questions, and whether the search succeeded:

>>> confidences, success = [0.9, 0.8, 0.7, 0.2], [1, 1, 0, 0]
>>> auc(confidences, success)  # a success is always more confident than a failure
1.0
>>> [(round(mean, 2), share, count) for mean, share, count in reliability(confidences, success, bins=2)]
[(0.2, 0.0, 1), (0.8, 0.6666666666666666, 3)]
>>> round(calibration_error(confidences, success, bins=2), 3)  # 1/4 * 0.2 + 3/4 * (0.8 - 0.667)
0.15

The expected calibration error (ECE) is the mean distance between confidence and share of successes over bins of equal
width, weighted by their counts (Guo et al., *On Calibration of Modern Neural Networks*, 2017, Eq. 3). With few
questions it is above 0 even for perfect confidences; :func:`error_by_chance` gives the size of this error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError

BINS = 10
BLOCK = 500_000  # questions drawn at once: 4 MB

Floats = NDArray[np.float64]


def reliability(confidences: ArrayLike, success: ArrayLike, bins: int = BINS) -> list[tuple[float, float, int]]:
    """Return the points of a reliability plot: bins of equal width from 0 to 1, without empty ones.

    Each has the mean confidence of its questions, their share of successes, and their number.

    Args:
        confidences: confidence of each question (Q,), from 0 to 1.
        success: 1 for each question that succeeded, else 0 (Q,).

    Raises:
        AnalysisError: no questions, different lengths, or values outside 0 to 1.
    """
    values, came = _checked(confidences, success)
    number = _bin_of(values, bins)
    return [
        (float(values[mine].mean()), float(came[mine].mean()), int(mine.sum()))
        for mine in (number == one for one in np.unique(number))
    ]


def calibration_error(confidences: ArrayLike, success: ArrayLike, bins: int = BINS) -> float:
    """Return the expected calibration error, from 0 (calibrated) to 1; errors as :func:`reliability`."""
    points = reliability(confidences, success, bins)
    total = sum(count for *_, count in points)
    return sum(count / total * abs(confidence - share) for confidence, share, count in points)


def error_by_chance(confidences: ArrayLike, bins: int = BINS, *, samples: int = 1000, seed: int = 0) -> Floats:
    """Return the errors (samples,) of these confidences if each were exactly the probability of success."""
    values, _ = _checked(confidences, np.zeros(np.shape(confidences)))
    generator = np.random.default_rng(seed)
    drawn = generator.random((samples, len(values))) < values
    number, errors = _bin_of(values, bins), np.zeros(samples)
    for mine in (number == one for one in np.unique(number)):
        errors += int(mine.sum()) / len(values) * np.abs(values[mine].mean() - drawn[:, mine].mean(axis=1))
    return errors


def auc(values: ArrayLike, success: ArrayLike) -> float:
    """Return the area under the ROC curve: the probability that a success has a higher value than a failure.

    Ties count one half.

    Raises:
        AnalysisError: no success, no failure, or a value that is not finite.
    """
    from scipy.stats import rankdata  # slow to import

    array, came = np.asarray(values, dtype=np.float64), np.asarray(success, dtype=bool)
    count = int(came.sum())
    if array.shape != came.shape or not 0 < count < came.size or not np.isfinite(array).all():
        raise AnalysisError(f"the AUC needs successes and failures, with finite values; {count} of {came.size} succeed")
    ranks = rankdata(array)
    return float((ranks[came].sum() - count * (count + 1) / 2) / (count * (came.size - count)))


def auc_interval(
    values: ArrayLike, success: ArrayLike, *, samples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of the AUC over bootstrap samples of questions with successes and failures."""
    from scipy.stats import rankdata  # slow to import

    array, came = np.asarray(values, dtype=np.float64), np.asarray(success, dtype=bool)
    auc(array, came)  # raises for values that have no AUC
    generator, found = np.random.default_rng(seed), []
    step = max(1, BLOCK // came.size)
    for start in range(0, samples, step):
        drawn = generator.integers(came.size, size=(min(step, samples - start), came.size))
        count = came[drawn].sum(axis=1)
        drawn, count = (one[(count > 0) & (count < came.size)] for one in (drawn, count))
        sums = np.where(came[drawn], rankdata(array[drawn], axis=1), 0).sum(axis=1)
        found.append((sums - count * (count + 1) / 2) / (count * (came.size - count)))
    low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _bin_of(values: Floats, bins: int) -> NDArray[np.int64]:
    """Return the number of the bin of each confidence (Q,), from 0."""
    return np.minimum((values * bins).astype(np.int64), bins - 1)


def _checked(confidences: ArrayLike, success: ArrayLike) -> tuple[Floats, Floats]:
    values, came = np.asarray(confidences, dtype=np.float64), np.asarray(success, dtype=np.float64)
    if values.ndim != 1 or values.shape != came.shape or not values.size:
        raise AnalysisError(f"calibration needs one confidence for each question, not {values.shape} for {came.shape}")
    if not ((values >= 0) & (values <= 1)).all():
        raise AnalysisError("confidences must be numbers from 0 to 1")
    return values, came
