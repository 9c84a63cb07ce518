"""Isotropy, shift and collapse: published limits, invariances, naive references."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from graphs.errors import AnalysisError
from mathamr.analysis import components
from mathamr.analysis.collapse import collapse, effective_rank, mean_cosine
from mathamr.analysis.components import plane, principal_components
from mathamr.analysis.correlation import correlation
from mathamr.analysis.isotropy import isoscore, partition_isotropy, standardizing, top_removal, whitening
from mathamr.analysis.shift import mean_discrepancy, nearest_distances, shift
from mathamr.analysis.similarities import unit_vectors


def cloud(n: int = 400, d: int = 6, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) * np.arange(1, d + 1) + 2.0


@pytest.mark.parametrize("measure", [isoscore, partition_isotropy, mean_cosine, effective_rank])
def test_measures_do_not_depend_on_rotation_or_order(measure: Callable[[np.ndarray], float]) -> None:
    vectors = unit_vectors(cloud())
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    assert measure(vectors @ rotation) == pytest.approx(measure(vectors), rel=1e-4)
    assert measure(vectors[::-1]) == pytest.approx(measure(vectors), rel=1e-5)


def test_isoscore_counts_the_dimensions_that_are_used_alike() -> None:
    # Rudman et al.: k of d dimensions with equal variance, the rest with none, have the score (k - 1) / (d - 1).
    d, n = 9, 200_000
    for k in (2, 5, 9):
        vectors = np.zeros((n, d))
        vectors[:, :k] = np.random.default_rng(k).normal(size=(n, k))
        assert isoscore(vectors) == pytest.approx((k - 1) / (d - 1), abs=0.01)


def test_partition_isotropy_approximates_its_definition() -> None:
    # Vectors near the origin's opposite pairs: Z is nearly constant; compare with Z over the principal directions.
    unit = cloud(50, 4) / np.linalg.norm(cloud(50, 4), axis=1, keepdims=True)
    n, total = len(unit), np.linalg.norm(unit.sum(axis=0))
    singular = np.linalg.svd(unit, compute_uv=False)
    expected = (n - total + singular[-1] ** 2 / 2) / (n + total + singular[0] ** 2 / 2)
    assert partition_isotropy(cloud(50, 4)) == pytest.approx(expected, rel=1e-5)


def test_transformations_do_what_they_say_also_to_other_vectors() -> None:
    vectors = cloud()
    standardized = standardizing(vectors)(vectors)
    np.testing.assert_allclose(standardized.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(standardized.std(axis=0), 1)
    whitened = whitening(vectors)(vectors)
    np.testing.assert_allclose(np.cov(whitened, rowvar=False), np.eye(6), atol=1e-9)
    removal = top_removal(vectors, 2)
    assert np.linalg.matrix_rank(removal(vectors)) == 4
    assert removal(vectors[:1]).shape == (1, 6)
    assert np.linalg.matrix_rank(top_removal(cloud(300, 250))(cloud(300, 250))) == 248  # a hundredth of the dimensions
    assert whitening(vectors * [1, 1, 1, 1, 1, 0.01])(vectors).shape == (400, 6)  # small variances are kept
    assert isoscore(whitened) > isoscore(standardized) > isoscore(vectors)


def test_a_dimension_without_variance_is_no_division_by_zero() -> None:
    flat = np.c_[cloud(), np.ones(400)]
    assert np.isfinite(standardizing(flat)(flat)).all()
    assert whitening(flat)(flat).shape == (400, 6)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])  # 400 times 0.1 are not 40
def test_what_is_constant_up_to_rounding_is_constant(value: float) -> None:
    flat = np.c_[cloud(), np.full(400, value)]
    assert not standardizing(flat)(flat)[:, 6].any()
    equal = np.full((400, 3), value)
    for call in (isoscore, principal_components, whitening):
        with pytest.raises(AnalysisError, match="all vectors are equal"):
            call(equal)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: isoscore(np.ones((3, 4))), "without variance"),
        (lambda: isoscore(np.ones((1, 4))), "two vectors of two dimensions"),
        (lambda: plane(np.ones((3, 1))), "a plane needs two dimensions"),
        (lambda: principal_components(np.ones((1, 2))), "at least two vectors"),
        (lambda: whitening(cloud())(cloud()[:, :3]), "3 dimensions; the transformation was fitted to 6"),
        (lambda: shift(np.zeros(0), np.zeros(3)), "distances before must be at least one finite number"),
        (lambda: whitening(np.ones((3, 4))), "all vectors are equal"),
        (lambda: top_removal(cloud(), 6), "6 principal components cannot be removed"),
        (lambda: collapse(np.ones((3, 2)), np.array([0, 2]), np.zeros(3, int)), "do not agree"),
        (lambda: partition_isotropy(np.zeros((2, 2))), "row 0 of the vectors is zero"),
    ],
)
def test_what_has_no_measure_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        call()


def test_nearest_distances_equal_a_naive_loop() -> None:
    domain, general = cloud(20, seed=1), cloud(30, seed=2)
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (domain, general))
    naive = [min(np.linalg.norm(one - other) for other in b) for one in a]
    np.testing.assert_allclose(nearest_distances(domain, general), naive, atol=1e-6)
    assert shift(np.zeros(50), np.zeros(50)).p == 1.0


def test_a_mean_discrepancy_equals_its_definition() -> None:
    one, other = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (cloud(15, 4, 1), cloud(22, 4, 2) - 3))
    both = np.concatenate([one, other])
    squares = ((both[:, None] - both) ** 2).sum(axis=-1)
    width = np.median(squares[np.triu_indices(37, 1)])

    def kernel(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-((a[:, None] - b) ** 2).sum(axis=-1) / (2 * width)).mean())

    expected = kernel(one, one) + kernel(other, other) - 2 * kernel(one, other)
    assert mean_discrepancy(one * 7, other).squared == pytest.approx(expected, rel=1e-5)
    assert mean_discrepancy(np.ones((20, 4)), [*np.ones((19, 4)), [-1, 1, 1, 1]]).p == 1.0  # median distance 0


def test_collapse_by_kind_equals_a_naive_loop() -> None:
    vectors = cloud(12)
    ptr, kinds = np.array([0, 5, 6, 12]), np.array([0, 0, 1, 1, 2, 2, 0, 0, 0, 1, 1, 2])
    table = collapse(vectors, ptr, kinds)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def pairs(rows: list[int]) -> float:
        return float(np.mean([unit[i] @ unit[j] for i in rows for j in rows if i < j]))

    assert table["formula"].cosine == pytest.approx((pairs([0, 1]) + pairs([6, 7, 8])) / 2, abs=1e-6)
    assert table["sentence"].cosine == pytest.approx((pairs([2, 3]) + pairs([9, 10])) / 2, abs=1e-6)
    assert table["all"].documents == 2  # the second document has one vector only
    assert table["formula"].vectors == 2.5
    alone = collapse(vectors[:2], np.array([0, 1, 2]), np.array([2, 2]))
    assert alone["all"].documents == 0
    assert np.isnan(alone["all"].cosine)


def test_isoscore_equals_the_participation_ratio_of_the_variances() -> None:
    # Algorithm 1 of Rudman et al. in closed form: (tr C)^2 / |C|^2 directions take part in the covariance C, of d.
    vectors = cloud()
    covariance = np.array([[np.mean(a * b) for b in centred(vectors)] for a in centred(vectors)])
    ratio = np.trace(covariance) ** 2 / np.sum(covariance**2)
    assert isoscore(vectors) == pytest.approx((ratio - 1) / 5)


def centred(vectors: np.ndarray) -> np.ndarray:
    return (vectors - vectors.mean(axis=0)).T


def test_isoscore_is_of_the_cloud_alone_and_partition_isotropy_of_directions_from_the_origin() -> None:
    vectors = cloud()
    assert isoscore(vectors * 7 - 100) == pytest.approx(isoscore(vectors))
    assert partition_isotropy(vectors * 7) == pytest.approx(partition_isotropy(vectors), rel=1e-6)
    assert partition_isotropy(vectors - 100) < 0.5 * partition_isotropy(vectors)


def test_sums_in_blocks_and_in_single_precision_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = cloud()
    expected = isoscore(vectors), partition_isotropy(vectors), whitening(vectors)(vectors)
    monkeypatch.setattr(components, "ROWS", 7)
    single = vectors.astype(np.float32)
    assert isoscore(single) == pytest.approx(expected[0], rel=1e-5)
    assert partition_isotropy(single) == pytest.approx(expected[1], rel=1e-5)
    np.testing.assert_allclose(whitening(single)(single), expected[2], atol=1e-4)


def test_principal_components_equal_those_of_the_singular_values_and_have_one_sign() -> None:
    vectors = cloud()
    mean, variances, found = principal_components(vectors)
    np.testing.assert_allclose(mean, vectors.mean(axis=0))
    singular = np.linalg.svd(vectors - mean, compute_uv=False)
    np.testing.assert_allclose(variances, singular**2 / 399)
    np.testing.assert_allclose(np.cov(vectors @ found, rowvar=False), np.diag(variances), atol=1e-9)
    np.testing.assert_array_equal(np.abs(found).argmax(axis=0), found.argmax(axis=0))
    np.testing.assert_allclose(plane(vectors + 3), ((vectors - mean) @ found)[:, :2], atol=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ([1, 2], [1, 2], "2 models; a correlation needs at least 3"),
        ([1, 2, 3], [1, 2], "two values for each model"),
        ([1, 2, np.nan], [1, 2, 3], "finite values"),
        ([1, 2, 3], [5, 5, 5], "all 3 models have the value 5"),
    ],
)
def test_what_does_not_correlate_is_refused(one: list[float], other: list[float], words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        correlation(one, other)


def test_a_correlation_equals_its_definition() -> None:
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, 9))
    result = correlation(one, other)
    a, b = one - one.mean(), other - other.mean()
    assert result.pearson == pytest.approx((a @ b) / np.sqrt((a @ a) * (b @ b)))
    ranks = [np.argsort(np.argsort(values)) for values in (one, other)]
    assert result.spearman == pytest.approx(correlation(*ranks).pearson)
    assert correlation(one * 3 + 1, other).pearson == pytest.approx(result.pearson)
    assert result.interval[0] < result.pearson < result.interval[1]
    assert result.permuted == pytest.approx(result.p, abs=0.05)
    method = stats.PermutationMethod(n_resamples=9_999, rng=np.random.default_rng(0))
    assert result.permuted == stats.pearsonr(other, one, method=method).pvalue


def test_a_permutation_test_counts_orders() -> None:
    result = correlation([1, 2, 3, 4], [1, 2, 3, 4.5])
    assert result.spearman_permuted == pytest.approx(2 / 24)  # this order and its reverse, of 24
    outlier = correlation([0, 0.1, 0.05, 0.02, 9], [0.3, 0.1, 0.2, 0.4, 9])
    assert outlier.pearson > 0.99
    assert outlier.spearman_permuted > 0.5
    without = correlation([2, 1, 2], [1, 2, 3])  # 0, as in two of six orders; two are above, two below
    assert (without.permuted, without.spearman_permuted) == (1, 1)
