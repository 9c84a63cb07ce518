"""Confidence of single questions: fitted, kept, and refused where scores say nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphs.errors import AnalysisError
from mathamr.analysis.confidence import EVIDENCE, Confidence, evidence
from mathamr.evaluation.calibration import auc, calibration_error


def questions(count: int, seed: int) -> tuple[list[list[float]], list[int]]:
    """Questions whose first score is the higher the likelier they succeed."""
    generator = np.random.default_rng(seed)
    likely = generator.random(count)
    scores = [np.sort(np.r_[0.4 + value, 0.3 * generator.random(30)])[::-1].tolist() for value in likely]
    return scores, (generator.random(count) < likely).astype(int).tolist()


def test_a_confidence_is_calibrated_on_questions_that_it_has_not_seen() -> None:
    fitted = Confidence.fit(*questions(600, seed=0))
    scores, success = questions(600, seed=1)
    confidences = [fitted(one) for one in scores]
    assert auc(confidences, success) > 0.75
    assert calibration_error(confidences, success) < 0.1


def test_the_fit_is_that_of_a_library() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    scores, success = questions(80, seed=0)
    fitted = Confidence.fit(scores, success, penalties=[1.0])
    found = np.stack([evidence(one, fitted.k, fitted.theta) for one in scores])
    standard = (found - found.mean(axis=0)) / found.std(axis=0)
    library = linear_model.LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(standard, success)
    assert fitted.weights == pytest.approx(library.coef_[0].tolist(), abs=1e-3)
    assert fitted.bias == pytest.approx(float(library.intercept_[0]), abs=1e-3)


def test_evidence_without_meaning_has_little_weight() -> None:
    scores, success = questions(60, seed=0)
    shuffled = np.random.default_rng(1).permutation(success).tolist()
    chosen, loose = Confidence.fit(scores, shuffled), Confidence.fit(scores, shuffled, penalties=[1.0])
    assert np.linalg.norm(chosen.weights) < 0.5 * np.linalg.norm(loose.weights)


def test_a_confidence_is_kept_as_json() -> None:
    fitted = Confidence.fit(*questions(50, seed=0), k=5)
    kept = json.loads(json.dumps(fitted.record(), allow_nan=False))
    assert (kept["evidence"], kept["weights"]) == (list(EVIDENCE), list(fitted.weights))
    assert (kept["k"], kept["bias"]) == (5, fitted.bias)


def test_equal_scores_and_short_rankings_have_evidence() -> None:
    assert evidence([0.5], k=10, theta=0.4).tolist() == [0.5, 0.0, 0.0, 0.0, 1.0]
    assert evidence([0.5] * 20, k=10, theta=0.5).tolist() == [0.5, 0.0, 0.0, 0.0, 0.0]
    assert len(evidence([0.5, 0.1], k=10, theta=0.4)) == len(EVIDENCE)
    equal = Confidence.fit([[0.5, 0.5]] * 4, [1, 0, 1, 1])  # no evidence differs: the share of successes
    assert equal([0.5, 0.5]) == pytest.approx(0.75, abs=1e-3)


@pytest.mark.parametrize("scores", [[], [float("nan")], [0.1, 0.2]])
def test_scores_that_are_none_are_refused(scores: list[float]) -> None:
    with pytest.raises(AnalysisError, match="finite scores of at least one result, best first"):
        evidence(scores, 10, 0.5)


def test_a_confidence_needs_successes_and_failures() -> None:
    with pytest.raises(AnalysisError, match="2 of 2 questions succeed"):
        Confidence.fit([[0.5], [0.4]], [1, 1])
