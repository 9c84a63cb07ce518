"""Values of queries, and what is built on samples of them: thresholds and overlaps, against naive loops."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.errors import AnalysisError
from mathamr.analysis.bootstrap import accuracy, ndcg, of_run, reciprocal_rank
from mathamr.analysis.overlap import overlap
from mathamr.analysis.similarities import Survey, cosine, survey
from mathamr.analysis.thresholds import chosen, smallest_similarities, threshold_curve
from mathamr.evaluation.resampling import sample_counts
from mathamr.evaluation.runs import Run


@pytest.fixture(scope="module")
def found() -> Survey:
    generator = np.random.default_rng(5)
    documents = generator.normal(size=(60, 6))
    queries = documents[:25] + generator.normal(size=(25, 6)) * 0.8
    return survey(cosine(queries, documents), [[i, i + 30] for i in range(25)], k=8)


def test_metrics_of_a_survey_equal_their_definitions(found: Survey) -> None:
    for i in range(len(found)):
        right = np.flatnonzero(found.hits[i])
        assert accuracy(found, 3)[i] == float(bool(len(right) and right[0] < 3))
        if len(right):
            assert reciprocal_rank(found)[i] == pytest.approx(1 / (right[0] + 1))
        gain = sum(1 / np.log2(place + 2) for place in right if place < 5)
        assert ndcg(found, 5)[i] == pytest.approx(gain / (1 + 1 / np.log2(3)))  # two right documents a query
    with pytest.raises(AnalysisError, match="k=9"):
        accuracy(found, 9)


def test_a_run_file_is_bootstrapped_over_its_topics() -> None:
    run = Run.from_results("demo", {"A.2": [("b", 1.0)]})
    values = of_run(run, {"A.1": {"a": 3}, "A.2": {"b": 3}})
    assert list(values) == [0.0, 1.0]


def test_tau_is_a_percentile_of_the_smallest_similarities(found: Survey) -> None:
    gamma = smallest_similarities(found, 5, samples=40, seed=2)
    rows = np.concatenate(list(sample_counts(25, samples=40, seed=2)))
    naive = [found.top[row > 0, :5].min() for row in rows]
    np.testing.assert_allclose(gamma, naive)
    (threshold,) = threshold_curve(found, 5, psis=[30], samples=40, seed=2)
    assert threshold.tau == pytest.approx(np.percentile(naive, 30))
    kept = [(found.hits[i, :5] & (found.top[i, :5] >= threshold.tau)).any() for i in range(25)]
    assert threshold.metric.point == pytest.approx(np.mean(kept))
    assert threshold.removed == pytest.approx((found.top[:, :5] < threshold.tau).mean())


def test_a_threshold_that_costs_accuracy_is_not_chosen() -> None:
    # All right answers have the similarity 0.5 and all wrong ones 0.9: a threshold above 0.5 loses everything.
    n = 50
    top, hits = np.tile([0.9, 0.5], (n, 1)), np.tile([False, True], (n, 1))
    top[0] = [0.9, 0.8]  # a query whose smallest similarity is high
    found = Survey(top, np.zeros((n, 2), int), top[:, 1], np.full(n, 2), np.zeros(n), hits, np.ones(n, int))
    curve = threshold_curve(found, 2, samples=200)
    assert chosen(curve).tau == 0.5
    assert all(one.metric.mean <= one.without.mean for one in curve)
    with pytest.raises(AnalysisError, match="percentile"):
        threshold_curve(found, 2, psis=[120])


def test_overlaps_equal_a_naive_loop(found: Survey) -> None:
    result = overlap(found, psi=40, samples=50, seed=7)
    for sample, row in enumerate(np.concatenate(list(sample_counts(25, samples=50, seed=7)))):
        drawn = np.repeat(np.arange(25), row.astype(int))
        theta = np.percentile(found.top[drawn].ravel(), 40, method="inverted_cdf")
        assert result.theta[sample] == pytest.approx(theta)
        assert result.coe.means[sample] == pytest.approx((found.correct[drawn] > theta).mean())
        assert result.roe.means[sample] == pytest.approx((found.random[drawn] > theta).mean())
    with pytest.raises(AnalysisError, match="psi=101"):
        overlap(found, psi=101)
