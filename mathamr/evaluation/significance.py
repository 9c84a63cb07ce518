"""Significance of differences between systems: paired t-test over topics, corrected for the family of tests.

Three topics, a baseline and a system that scores 0.1, 0.2 and 0.3 higher:

>>> baseline = {"A.1": 0.1, "A.2": 0.2, "A.3": 0.3}
>>> system = {"A.1": 0.2, "A.2": 0.4, "A.3": 0.6}
>>> test = paired_t_test(baseline, system)
>>> round(test.t, 4), test.df, round(test.p, 4)  # by hand: t = 0.2 / (0.1 / sqrt(3)) = 3.4641
(3.4641, 2, 0.0742)
>>> [round(p, 3) for p in bonferroni([0.01, 0.04, 0.03])], [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
([0.03, 0.12, 0.09], [0.03, 0.06, 0.06])

The thesis tests each condition against the baseline on each metric, two-sided, and divides the threshold by the number
of tests in the experiment (Section 4.2). Its family is metrics x non-baseline conditions, as in :func:`compare`. Here
the p-value is multiplied instead, so a corrected p-value is compared with 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphs.errors import EvaluationError
from mathamr.evaluation.resampling import bootstrap

TopicScores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TTest:
    """Two-sided paired t-test: ``difference`` is the mean of system - baseline, ``df`` the number of topics - 1."""

    difference: float
    t: float
    df: int
    p: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Condition against baseline on one metric; ``low`` and ``high`` bound the mean difference (bootstrap)."""

    condition: str
    metric: str
    test: TTest
    p_bonferroni: float
    p_holm: float
    low: float
    high: float

    def stars(self, alpha: float = 0.05) -> str:
        """``*`` if the difference is significant after Bonferroni, as in the thesis's tables."""
        return "*" if self.p_bonferroni < alpha else ""


def paired_t_test(baseline: TopicScores, system: TopicScores) -> TTest:
    """Run a two-sided paired t-test over the topics' scores.

    Equal scores on every topic give t = 0 and p = 1; one and the same difference everywhere gives an infinite t and
    p = 0 (scipy leaves both undefined). Raises :class:`EvaluationError` for different topics or fewer than two.
    """
    a, b = _paired(baseline, system)
    differences = b - a
    mean = float(differences.mean())
    df = len(differences) - 1
    # A spread below rounding error counts as none: scipy would warn of catastrophic cancellation and return noise.
    if float(np.ptp(differences)) <= 1e-12 * max(1.0, float(np.abs(differences).max())):
        if abs(mean) <= 1e-12:
            return TTest(mean, 0.0, df, 1.0)
        return TTest(mean, math.copysign(math.inf, mean), df, 0.0)
    from scipy import stats  # slow to import

    result = stats.ttest_rel(b, a)
    return TTest(mean, float(result.statistic), df, float(result.pvalue))


def bonferroni(p_values: Sequence[float]) -> list[float]:
    """Multiply p-values by their number, up to 1; this controls the chance of any false find in the family."""
    return [min(1.0, p * len(p_values)) for p in p_values]


def holm(p_values: Sequence[float]) -> list[float]:
    """Apply Holm's step-down correction (1979): the same guarantee as Bonferroni, with p-values at most as large.

    The k-th smallest of m p-values is multiplied by m - k + 1; none may be smaller than the one before.
    """
    ascending = np.argsort(p_values, kind="stable")
    multiplied = np.asarray(p_values, dtype=float)[ascending] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[ascending] = np.maximum.accumulate(np.minimum(multiplied, 1.0))
    return list(map(float, corrected))


def bootstrap_interval(baseline: TopicScores, system: TopicScores, *, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean difference, system - baseline, over 10,000 samples of the topics.

    The same ``seed`` gives the same interval. Errors are those of :func:`paired_t_test`.
    """
    a, b = _paired(baseline, system)
    return bootstrap(b - a, samples=10_000, seed=seed).interval()


def compare(scores: Mapping[str, Mapping[str, TopicScores]], baseline: str | Mapping[str, str]) -> list[Comparison]:
    """Compare every condition with ``baseline`` on every metric, corrected over all these tests together.

    ``scores[condition][metric][topic_id]``. If conditions have different baselines (thesis Table 4.17: each loss
    weight against weight 1 under the same retrieval strategy), ``baseline[condition]`` names them; a condition that is
    its own baseline is not tested. Returns metrics x tested conditions comparisons, conditions outermost, in the order
    given. Raises :class:`EvaluationError` if a baseline is not a condition, or metrics or topics differ.
    """
    baselines = dict.fromkeys(scores, baseline) if isinstance(baseline, str) else baseline
    pairs = []
    for condition, metrics in scores.items():
        other = baselines.get(condition, "")
        if other not in scores:
            raise EvaluationError(f"baseline {other!r} is not among the conditions {', '.join(scores)}")
        if condition == other:
            continue
        if metrics.keys() != scores[other].keys():
            raise EvaluationError(
                f"condition {condition!r} has the metrics {', '.join(metrics)}, the baseline {other!r} "
                f"{', '.join(scores[other])}"
            )
        pairs += [(condition, metric) for metric in metrics]
    tests = [paired_t_test(scores[baselines[name]][metric], scores[name][metric]) for name, metric in pairs]
    p_values = [test.p for test in tests]
    comparisons = []
    for (condition, metric), test, p_b, p_h in zip(pairs, tests, bonferroni(p_values), holm(p_values), strict=True):
        low, high = bootstrap_interval(scores[baselines[condition]][metric], scores[condition][metric])
        comparisons.append(Comparison(condition, metric, test, p_b, p_h, low, high))
    return comparisons


def _paired(baseline: TopicScores, system: TopicScores) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of both in one order of topics, ``(num_topics,)`` each."""
    if baseline.keys() != system.keys():
        odd = sorted(baseline.keys() ^ system.keys())
        raise EvaluationError(
            f"{len(odd)} topics, e.g. {odd[0]}, have a score in only one of the two; score both on the same topics"
        )
    if len(baseline) < 2:
        raise EvaluationError(f"{len(baseline)} topics; a paired test needs at least 2")
    topics = sorted(baseline)
    return np.array([baseline[t] for t in topics]), np.array([system[t] for t in topics])
