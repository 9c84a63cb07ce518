"""Means over samples of queries, against a naive loop and the normal distribution."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.errors import AnalysisError
from mathamr.evaluation import resampling
from mathamr.evaluation.resampling import bootstrap, sample_counts


def test_samples_in_blocks_equal_a_naive_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).random(40)
    monkeypatch.setattr(resampling, "BLOCK", 40 * 7)
    result = bootstrap(values, samples=30, seed=3)
    counts = np.concatenate(list(sample_counts(40, samples=30, seed=3)))
    assert (counts.sum(axis=1) == 40).all()
    for mean, row in zip(result.means, counts, strict=True):
        resampled = np.repeat(values, row.astype(int))
        assert mean == pytest.approx(resampled.mean())
    assert result.point == pytest.approx(values.mean())


def test_the_interval_is_as_wide_as_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(size=2_000)
    low, high = bootstrap(values, samples=4_000).interval()
    assert (high - low) / (2 * 1.96 / np.sqrt(2_000)) == pytest.approx(1.0, abs=0.08)


def test_equal_seeds_draw_equal_samples_and_others_do_not() -> None:
    values = np.arange(10.0)
    assert (bootstrap(values, seed=1).means == bootstrap(values, seed=1).means).all()
    assert (bootstrap(values, seed=1).means != bootstrap(values, seed=2).means).any()


def test_one_query_has_an_interval_without_width() -> None:
    assert bootstrap([0.25], samples=5).interval() == (0.25, 0.25)


@pytest.mark.parametrize("values", [[], [np.nan], [[1.0]]])
def test_no_values_are_refused(values: list[float]) -> None:
    with pytest.raises(AnalysisError, match="one finite value for each query"):
        bootstrap(values)


def test_no_samples_and_samples_of_nothing_are_refused() -> None:
    for samples, size in ((0, 5), (5, 0)):
        with pytest.raises(AnalysisError, match=f"{samples} bootstrap samples of {size} queries"):
            sample_counts(5, samples=samples, size=size)
