"""Isotropy, shift and collapse: published limits, invariances, naive references."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from graphs.errors import AnalysisError
from mathamr.analysis.collapse import collapse, effective_rank, mean_cosine
from mathamr.analysis.isotropy import Standardizing, TopRemoval, Whitening, isoscore, partition_isotropy
from mathamr.analysis.shift import nearest_distances, shift


def cloud(n: int = 400, d: int = 6, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, d)) * np.arange(1, d + 1) + 2.0


@pytest.mark.parametrize("measure", [isoscore, partition_isotropy, mean_cosine, effective_rank])
def test_measures_do_not_depend_on_rotation_or_order(measure: Callable[[np.ndarray], float]) -> None:
    vectors = cloud()
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
    standardized = Standardizing.fit(vectors)(vectors)
    np.testing.assert_allclose(standardized.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(standardized.std(axis=0), 1)
    whitened = Whitening.fit(vectors)(vectors)
    np.testing.assert_allclose(np.cov(whitened, rowvar=False), np.eye(6), atol=1e-9)
    removal = TopRemoval.fit(vectors, 2)
    assert np.linalg.matrix_rank(removal(vectors)) == 4
    assert removal(vectors[:1]).shape == (1, 6)
    assert isoscore(whitened) > isoscore(standardized) > isoscore(vectors)


def test_a_dimension_without_variance_is_no_division_by_zero() -> None:
    flat = np.c_[cloud(), np.ones(400)]
    assert np.isfinite(Standardizing.fit(flat)(flat)).all()
    assert Whitening.fit(flat)(flat).shape == (400, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: isoscore(np.ones((3, 4))), "without variance"),
        (lambda: isoscore(np.ones((1, 4))), "two vectors of two dimensions"),
        (lambda: Whitening.fit(np.ones((3, 4))), "all vectors are equal"),
        (lambda: TopRemoval.fit(cloud(), 6), "6 principal components cannot be removed"),
        (lambda: mean_cosine(np.ones((1, 4))), "two vectors at least"),
        (lambda: collapse(np.ones((3, 2)), np.array([0, 2]), np.zeros(3, int)), "do not fit"),
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
    np.testing.assert_allclose(nearest_distances(domain, general), naive, atol=1e-3)
    assert shift(np.zeros(50), np.zeros(50)).p == 1.0


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
