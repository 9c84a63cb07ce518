"""Values of queries, and what is built on samples of them: thresholds and overlaps, against naive loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from graphs.errors import AnalysisError
from mathamr.analysis.bootstrap import accuracy, hits_of_run, ndcg, reciprocal_rank
from mathamr.analysis.overlap import density, overlap
from mathamr.analysis.similarities import Hits, Survey, cosine, survey
from mathamr.analysis.thresholds import highest_harmless, smallest_similarities, threshold_curve
from mathamr.evaluation.resampling import sample_counts
from mathamr.evaluation.runs import Hit, Run


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
    many = Hits(np.ones((1, 2), bool), np.ones(1, int), np.array([5]))  # more right documents than results
    assert ndcg(many, 2) == 1.0


def test_a_run_of_a_survey_has_the_survey_s_values(found: Survey) -> None:
    ranked = {f"A.{i:02}": [(str(d), -float(place)) for place, d in enumerate(found.results[i])] for i in range(25)}
    qrels = {f"A.{i:02}": {str(i): 3, str(i + 30): 2, str(i + 1): 1} for i in range(25)}
    ours = hits_of_run(Run.from_results("demo", ranked), qrels, 8)
    np.testing.assert_array_equal(ours.hits, found.hits)
    np.testing.assert_array_equal(ours.num_correct, found.num_correct)
    np.testing.assert_array_equal(ndcg(ours, 8), ndcg(found, 8))
    among = found.rank <= 8
    np.testing.assert_array_equal(reciprocal_rank(ours)[among], reciprocal_rank(found)[among])
    assert not reciprocal_rank(ours)[~among].any()  # a run ends somewhere, a survey does not
    with pytest.raises(AnalysisError, match="0 topics have a document of grade 4"):
        hits_of_run(Run("demo"), qrels, 8, relevant=4)


def test_results_of_a_run_are_ordered_by_score() -> None:
    lines = [Hit("wrong", 1.0), Hit("right", 3.0), Hit("right", 0.5), Hit("other", 2.0)]
    found = hits_of_run(Run("demo", {"A.1": lines}), {"A.1": {"right": 3, "other": 2}}, 3)
    assert found.hits.tolist() == [[True, True, False]]
    assert hits_of_run(Run("demo", {"A.1": lines}), {"A.1": {"other": 2}}, 2).hits.tolist() == [[False, True]]
    assert reciprocal_rank(found).tolist() == [1.0]
    first = hits_of_run(Run("demo", {"A.1": lines}), {"A.1": {"other": 2}}, 1)
    assert (first.hits.tolist(), first.rank.tolist()) == ([[False]], [2.0])


def test_tau_is_a_percentile_of_the_smallest_similarities(found: Survey) -> None:
    gamma = smallest_similarities(found, 5, samples=40, seed=2)
    rows = np.concatenate(list(sample_counts(25, samples=40, seed=2)))
    naive = [found.top[row > 0, :5].min() for row in rows]
    np.testing.assert_allclose(gamma, naive)
    (threshold,) = threshold_curve(found, 5, psis=[30], higher=[], samples=40, seed=2)
    assert threshold.tau == pytest.approx(np.percentile(naive, 30))
    kept = [(found.hits[i, :5] & (found.top[i, :5] >= threshold.tau)).any() for i in range(25)]
    assert threshold.metric.point == pytest.approx(np.mean(kept))
    assert threshold.removed == pytest.approx((found.top[:, :5] < threshold.tau).mean())


def test_thresholds_above_the_lowest_similarities_are_tried() -> None:
    # Right answers have 0.9 and wrong ones 0.5, but one query's smallest similarity is 0.1: psi = 100 is 0.5 at most.
    n = 100
    top, hits = np.tile([0.9, 0.5], (n, 1)), np.tile([True, False], (n, 1))
    top[0, 1] = 0.1
    found = Survey(hits, np.ones(n, int), np.ones(n, int), top, np.zeros((n, 2), int), top[:, 0], np.zeros(n))
    curve = threshold_curve(found, 2, samples=50)
    highest = max(one.tau for one in curve if one.psi is not None)
    assert highest <= 0.5
    further = [one.tau for one in curve if one.psi is None]
    assert all(one < other for one, other in pairwise([highest, *further]))
    assert [one.tau for one in threshold_curve(found, 2, psis=[], higher=[10, 90], samples=5)] == [0.5, 0.9]
    best = highest_harmless(curve)
    assert (best.tau, best.psi, best.metric.point) == (0.9, None, 1.0)
    assert best.removed == 0.5


def test_a_threshold_that_costs_accuracy_is_not_chosen() -> None:
    # All right answers have the similarity 0.5 and all wrong ones 0.9: a threshold above 0.5 loses everything.
    n = 50
    top, hits = np.tile([0.9, 0.5], (n, 1)), np.tile([False, True], (n, 1))
    top[0] = [0.9, 0.8]  # a query whose smallest similarity is high
    found = Survey(hits, np.full(n, 2), np.ones(n, int), top, np.zeros((n, 2), int), top[:, 1], np.zeros(n))
    curve = threshold_curve(found, 2, samples=200)
    assert highest_harmless(curve).tau == 0.5
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
    theta = np.percentile(found.top, 40, method="inverted_cdf")
    assert result.coe.point == (found.correct > theta).mean() != (found.random > theta).mean() == result.roe.point
    with pytest.raises(AnalysisError, match="psi=101"):
        overlap(found, psi=101)


def test_a_similarity_equal_to_theta_does_not_count() -> None:
    ones = np.ones(2)
    equal = Survey(np.ones((2, 1), bool), ones, ones.astype(int), ones[:, None], np.zeros((2, 1), int), ones, ones)
    result = overlap(equal, psi=50, samples=5)
    assert [result.coe.point, result.coe.mean, result.roe.point, result.roe.mean] == [0.0] * 4
    assert highest_harmless(threshold_curve(equal, 1, samples=5)).psi == 0  # of equal thresholds the lowest percentile


def test_thresholds_and_overlaps_take_another_metric_and_samples_of_another_size(found: Survey) -> None:
    curve = threshold_curve(found, 5, metric=ndcg, psis=[0, 60], samples=30, size=4, seed=1)
    for one in curve:
        kept = found.hits[:, :5] & (found.top[:, :5] >= one.tau)
        naive = [sum(hit / np.log2(place + 2) for place, hit in enumerate(row)) for row in kept]
        assert one.metric.point == pytest.approx(np.mean(naive) / (1 + 1 / np.log2(3)))
    rows = np.concatenate(list(sample_counts(25, samples=30, size=4, seed=1)))
    assert (rows.sum(axis=1) == 4).all()
    gamma = [found.top[row > 0, :5].min() for row in rows]
    assert curve[1].tau == pytest.approx(np.percentile(gamma, 60))
    thetas = overlap(found, psi=50, samples=30, size=4, seed=1).theta
    drawn = np.repeat(np.arange(25), rows[7].astype(int))
    assert thetas[7] == pytest.approx(np.percentile(found.top[drawn].ravel(), 50, method="inverted_cdf"))


def test_results_of_one_query_have_measures(found: Survey) -> None:
    generator = np.random.default_rng(0)
    one = survey(
        cosine(generator.normal(size=(1, 4)), generator.normal(size=(9, 4))), [[3]], k=20
    )  # k > 9: all of them
    assert one.top.shape == (1, 9)
    result = overlap(one, psi=50, samples=20)
    assert result.coe.interval() in ((0.0, 0.0), (1.0, 1.0))
    assert highest_harmless(threshold_curve(one, 9, samples=20)).metric.point == 1.0


def test_measures_do_not_depend_on_the_order_of_queries() -> None:
    generator = np.random.default_rng(3)
    queries, documents = generator.normal(size=(40, 5)), generator.normal(size=(70, 5))
    turned = generator.permutation(40)
    a = survey(cosine(queries, documents), [[i] for i in range(40)], k=6)
    b = survey(cosine(queries[turned], documents), [[i] for i in turned], k=6)
    first, second = (overlap(one, psi=25, samples=10) for one in (a, b))
    assert first.coe.point == second.coe.point  # whole sets; the samples are others
    assert threshold_curve(a, 6, samples=10)[0].without.point == threshold_curve(b, 6, samples=10)[0].without.point


def test_a_density_equals_scipy_s_and_bears_equal_values() -> None:
    values, points = np.random.default_rng(0).normal(size=200), np.linspace(-4, 4, 33)
    np.testing.assert_allclose(density(values, points), stats.gaussian_kde(values)(points))
    assert density([0.5, 0.5], [0.5])[0] == pytest.approx(100 / np.sqrt(2 * np.pi))
    with pytest.raises(AnalysisError, match="all finite"):
        density([], points)
