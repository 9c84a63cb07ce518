"""Calibration against plain definitions, and its degenerate inputs."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.errors import AnalysisError
from mathamr.evaluation import calibration
from mathamr.evaluation.calibration import auc, auc_interval, calibration_error, error_by_chance, reliability


def drawn(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    confidences = generator.random(count)
    return confidences, (generator.random(count) < confidences).astype(int)


def test_the_area_is_the_share_of_ordered_pairs() -> None:
    values, success = drawn(60)
    values = values.round(1)  # with equal values
    won, lost = values[success == 1], values[success == 0]
    pairs = (won[:, None] > lost[None, :]) + 0.5 * (won[:, None] == lost[None, :])
    assert auc(values, success) == pytest.approx(pairs.mean())
    assert auc(np.ones(4), [1, 0, 0, 1]) == 0.5
    low, high = auc_interval(values, success, samples=200)
    assert low < auc(values, success) < high


@pytest.mark.parametrize(("count", "seed"), [(12, 0), (4, 2)])
def test_samples_taken_together_have_the_values_of_each_alone(
    count: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four questions, some samples have only successes or only failures; they are left out."""
    values, success = drawn(count, seed)
    values = values.round(1)
    rows = np.random.default_rng(0).integers(count, size=(50, count))
    areas = [auc(values[one], success[one]) for one in rows if 0 < success[one].sum() < count]
    assert (len(areas) < 50) == (count == 4)
    for block in (calibration.BLOCK, 3 * count, 1):
        monkeypatch.setattr(calibration, "BLOCK", block)
        assert auc_interval(values, success, samples=50) == tuple(np.quantile(areas, [0.025, 0.975]))
    outcomes = np.random.default_rng(0).random((50, count)) < values
    errors = [calibration_error(values, one) for one in outcomes]
    assert error_by_chance(values, samples=50).tolist() == pytest.approx(errors, abs=1e-12)


def test_the_error_is_that_of_its_bins() -> None:
    confidences, success = drawn(500)
    plain = 0.0
    for low in range(10):
        mine = (confidences >= low / 10) & (confidences < (low + 1) / 10)
        plain += mine.sum() / 500 * abs(confidences[mine].mean() - success[mine].mean())
    assert calibration_error(confidences, success) == pytest.approx(plain)
    assert sum(count for *_, count in reliability(confidences, success)) == 500
    assert [count for *_, count in reliability([0.0, 1.0], [0, 1])] == [1, 1]  # 1 is in the last bin
    assert calibration_error([0.0, 1.0], [1, 0]) == 1.0


def test_perfect_confidences_have_an_error_by_chance_that_falls_with_their_number() -> None:
    few, many = (error_by_chance(drawn(count)[0], samples=200).mean() for count in (50, 5_000))
    assert 0.08 < few < 0.18
    assert many < 0.02
    confidences, success = drawn(5_000)
    assert calibration_error(confidences, success) < np.quantile(error_by_chance(confidences, samples=200), 0.99)


@pytest.mark.parametrize("success", [[1, 1], [0, 0]])
def test_no_area_without_successes_and_failures(success: list[int]) -> None:
    with pytest.raises(AnalysisError, match=rf"{sum(success)} of 2 succeed"):
        auc([0.1, 0.2], success)


def test_confidences_that_are_none_are_refused() -> None:
    with pytest.raises(AnalysisError, match="from 0 to 1"):
        calibration_error([1.2], [1])
    with pytest.raises(AnalysisError, match="from 0 to 1"):
        calibration_error([float("nan")], [1])
    with pytest.raises(AnalysisError, match="one confidence for each question"):
        reliability([], [])
    with pytest.raises(AnalysisError, match="one confidence for each question"):
        reliability([0.5], [1, 0])
