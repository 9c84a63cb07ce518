"""Significance: agreement with scipy, hand-worked and published values, degenerate differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from graphs.errors import EvaluationError
from mathamr.evaluation.significance import bonferroni, bootstrap_interval, compare, holm, paired_t_test

# Student's own data (1908, after Cushny and Peebles): extra hours of sleep under two drugs for ten patients.
# R's sleep example, t.test(extra ~ group, paired = TRUE): t = -4.0621, df = 9, p-value = 0.002833.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def topics(values: list[float] | np.ndarray) -> dict[str, float]:
    return {f"A.{i}": float(value) for i, value in enumerate(values)}


def test_published_paired_t_test() -> None:
    test = paired_t_test(topics(SLEEP_1), topics(SLEEP_2))
    assert test.t == pytest.approx(4.0621, abs=5e-5)
    assert test.p == pytest.approx(0.002833, abs=5e-7)
    assert (test.df, test.difference) == (9, pytest.approx(1.58))


def test_agreement_with_scipy_whatever_the_order_of_topics() -> None:
    generator = np.random.default_rng(3)
    a, b = generator.random(78), generator.random(78)
    reversed_b = dict(reversed(topics(b).items()))
    expected = stats.ttest_rel(b, a)
    test = paired_t_test(topics(a), reversed_b)
    assert (test.t, test.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


def test_no_spread_between_the_systems() -> None:
    same = topics([0.1, 0.2, 0.3])
    assert paired_t_test(same, same).p == 1.0
    better = topics([0.2, 0.3, 0.4])
    assert (paired_t_test(same, better).t, paired_t_test(same, better).p) == (math.inf, 0.0)
    assert paired_t_test(better, same).t == -math.inf


def test_different_topics_and_a_single_topic_are_refused() -> None:
    with pytest.raises(EvaluationError, match=r"the first is A\.2"):
        paired_t_test(topics([0.1, 0.2]), topics([0.1, 0.2, 0.3]))
    with pytest.raises(EvaluationError, match="at least 2"):
        paired_t_test(topics([0.1]), topics([0.2]))


def test_corrections_by_hand() -> None:
    """p .01 .02 .03 .04: Bonferroni x 4; Holm .01 x 4, .02 x 3, .03 x 2 (below .06: .06), .04 x 1 (.06)."""
    p = [0.04, 0.01, 0.03, 0.02]
    assert bonferroni(p) == pytest.approx([0.16, 0.04, 0.12, 0.08])
    assert holm(p) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert bonferroni([0.9, 0.5]) == [1.0, 1.0]
    assert holm([]) == bonferroni([]) == []
    with pytest.raises(EvaluationError, match="not a p-value"):
        holm([1.2])


def test_bootstrap_is_seeded_and_close_to_the_t_interval() -> None:
    generator = np.random.default_rng(5)
    a = generator.random(200)
    b = a + generator.normal(0.1, 0.2, 200)
    low, high = bootstrap_interval(topics(a), topics(b), seed=1)
    assert (low, high) == bootstrap_interval(topics(a), topics(b), seed=1)
    assert (low, high) != bootstrap_interval(topics(a), topics(b), seed=2)
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert (low, high) == (pytest.approx(expected.low, abs=0.005), pytest.approx(expected.high, abs=0.005))


def test_the_family_is_every_metric_of_every_other_condition() -> None:
    generator = np.random.default_rng(7)
    base = {m: generator.random(30) for m in ("ndcg_prime", "bpref")}
    scores = {
        name: {m: topics(values + shift + generator.normal(0, 0.05, 30)) for m, values in base.items()}
        for name, shift in (("none", 0.0), ("circular", 0.2), ("sequential", 0.0))
    }
    found = compare(scores, "none", resamples=200)
    assert [(c.condition, c.metric) for c in found] == [
        ("circular", "ndcg_prime"),
        ("circular", "bpref"),
        ("sequential", "ndcg_prime"),
        ("sequential", "bpref"),
    ]
    assert all(c.p_bonferroni == pytest.approx(min(1.0, 4 * c.test.p)) for c in found)
    assert [c.stars() for c in found] == ["*", "*", "", ""]
    assert all(c.low < c.test.difference < c.high for c in found)
    with pytest.raises(EvaluationError, match="baseline 'full' is not among the conditions none, circular"):
        compare(scores, "full")
