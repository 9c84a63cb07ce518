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
    with pytest.raises(EvaluationError, match=r"e.g. A\.2"):
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


def test_corrections_of_r() -> None:
    """R's multtest (mt.rawp2adjp) on ten p-values, as statsmodels' own tests give them."""
    p = [
        *(0.838541367553, 0.642193923795, 0.680845947633, 0.967833824309, 0.71626938238),
        *(0.177096952723, 5.23656777208e-05, 0.0202732688798, 0.00028140506198, 0.0149877310796),
    ]
    by_bonferroni = [1, 1, 1, 1, 1, 1, 0.000523656777208, 0.202732688798, 0.0028140506198, 0.149877310796]
    by_holm = [1, 1, 1, 1, 1, 1, 0.000523656777208, 0.1419128821586, 0.00253264555782, 0.1199018486368]
    assert bonferroni(p) == pytest.approx(by_bonferroni)
    assert holm(p) == pytest.approx(by_holm)


def test_published_decisions() -> None:
    """Benjamini and Hochberg (1995, p. 295): of these 15 comparisons Bonferroni finds the first three."""
    trial = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
        *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
    ]
    assert [p < 0.05 for p in bonferroni(trial)] == [True] * 3 + [False] * 12
    # Wikipedia's example of Holm's method: the first and the fourth of four hypotheses are rejected.
    assert [p < 0.05 for p in holm([0.01, 0.04, 0.03, 0.005])] == [True, False, False, True]


@pytest.mark.parametrize("topics_judged", [2, 5, 78, 104])
def test_agreement_with_scipy_on_scores_with_ties(topics_judged: int) -> None:
    """P'@10 takes eleven values only, and most topics do not change: as real scores are."""
    generator = np.random.default_rng(topics_judged)
    a = generator.integers(0, 11, topics_judged) / 10
    b = np.clip(a + generator.choice([-0.1, 0.0, 0.0, 0.1, 0.2], topics_judged), 0, 1)
    b[0] = a[0] + 0.05
    expected = stats.ttest_rel(b, a)
    test = paired_t_test(topics(a), topics(b))
    assert (test.t, test.p, test.df) == (
        pytest.approx(expected.statistic),
        pytest.approx(expected.pvalue),
        topics_judged - 1,
    )


def test_t_test_by_hand() -> None:
    """Differences .1, .2, .3, .2: mean .2, deviation sqrt(.02/3), t = .2 / (.0816 / 2) = 4.899 with 3 degrees."""
    a, b = topics([0.1, 0.1, 0.1, 0.1]), topics([0.2, 0.3, 0.4, 0.3])
    test = paired_t_test(a, b)
    assert test.t == pytest.approx(0.2 / (math.sqrt(0.02 / 3) / 2))
    # Student's t with 3 degrees: P(|t| > x) = 1 - 2/pi (atan(x/sqrt 3) + (x/sqrt 3) / (1 + x^2/3))
    x = test.t / math.sqrt(3)
    assert test.p == pytest.approx(1 - 2 / math.pi * (math.atan(x) + x / (1 + x * x)))


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
    found = compare(scores, "none")
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


def test_conditions_with_baselines_of_their_own() -> None:
    """Two strategies, each with its own baseline: two tests of one metric, corrected together."""
    generator = np.random.default_rng(11)
    base, other = generator.random(20), generator.random(20)
    scores = {
        "maxsim": {"ndcg_prime": topics(base)},
        "maxsim_beta": {"ndcg_prime": topics(base + generator.normal(0.1, 0.1, 20))},
        "single": {"ndcg_prime": topics(other)},
        "single_beta": {"ndcg_prime": topics(other + generator.normal(0.0, 0.1, 20))},
    }
    own = {"maxsim": "maxsim", "maxsim_beta": "maxsim", "single": "single", "single_beta": "single"}
    found = compare(scores, own)
    assert [c.condition for c in found] == ["maxsim_beta", "single_beta"]
    alone = paired_t_test(scores["single"]["ndcg_prime"], scores["single_beta"]["ndcg_prime"])
    assert found[1].test == alone
    assert found[1].p_bonferroni == pytest.approx(min(1.0, 2 * alone.p))
    with pytest.raises(EvaluationError, match="baseline 'doc' is not among"):
        compare(scores, own | {"single_beta": "doc"})
