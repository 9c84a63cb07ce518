"""Linear rankers: ridge and logistic regression of grades on features, and convex sums of standard scores.

>>> features = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 1.0]])
>>> topics = [JudgedTopic("A.1", "2020", features, np.array([3, 0, 2, 0]))]
>>> ranker = fit_ridge(topics, penalty=0.1)
>>> [round(float(weight), 2) for weight in ranker.weights]
[0.57, -0.67]
>>> [round(float(weight), 2) for weight in fit_convex(topics).weights]
[0.55, 0.45]

The convex sum is the fusion of Bruch, Gai and Ingber (TOIS 2023): a_1 s_1 + ... + a_n s_n with weights of sum 1 that
are learned from few judgments. Ridge: w = (X'X + n penalty I)^-1 X'y with features in standard deviations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphs.errors import RetrievalError, faults_as
from mathamr.ranking.judged import Floats, JudgedTopic, mean_ndcg

_STEPS = 40  # of Newton's method, which ends long before
_ROUNDS = 4
_SHARES = tuple(share / 20 for share in range(20))


@dataclass(frozen=True)
class LinearRanker:
    """A weighted sum of standardized features.

    Attributes:
        weights: a weight for each feature (features,).
        mean: mean of each feature in training (features,).
        scale: standard deviation of each feature in training (features,).
    """

    weights: Floats
    mean: Floats
    scale: Floats

    def scores(self, features: Floats) -> Floats:
        """Return a score for each document (documents,), of its features (documents, features)."""
        result: Floats = ((features - self.mean) / self.scale) @ self.weights
        return result

    def importances(self) -> Floats:
        """Return the weights (features,), which a reader compares: features have one scale."""
        return self.weights

    def record(self) -> dict[str, Any]:
        """Return the ranker as JSON."""
        return {"kind": "linear"} | {name: getattr(self, name).tolist() for name in ("weights", "mean", "scale")}


def read_linear(record: Mapping[str, Any], features: int) -> LinearRanker:
    """Return the ranker that :meth:`LinearRanker.record` describes.

    Raises:
        RetrievalError: lists of another length, or values that are no finite numbers.
    """
    with faults_as(RetrievalError, "a linear ranker lacks numbers: {}"):
        arrays = [np.array(record[name], dtype=np.float64) for name in ("weights", "mean", "scale")]
    if any(own.shape != (features,) or not np.isfinite(own).all() for own in arrays) or (arrays[2] == 0).any():
        raise RetrievalError(f"a linear ranker needs {features} finite weights, means and scales above 0")
    return LinearRanker(*arrays)


def _stacked(topics: Sequence[JudgedTopic]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return standardized features, grades, means and scales."""
    features = np.concatenate([topic.features for topic in topics])
    grades = np.concatenate([topic.grades for topic in topics]).astype(np.float64)
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    return (features - mean) / scale, grades, mean, scale


def fit_ridge(topics: Sequence[JudgedTopic], penalty: float) -> LinearRanker:
    """Return the ridge regression of grades, both less their means over the topic: only the order within it counts."""
    _, _, mean, scale = _stacked(topics)
    x = np.concatenate([(topic.features - topic.features.mean(axis=0)) / scale for topic in topics])
    y = np.concatenate([topic.grades - topic.grades.mean() for topic in topics])
    ridge = len(x) * penalty * np.eye(x.shape[1])
    return LinearRanker(np.linalg.solve(x.T @ x + ridge, x.T @ y), mean, scale)


def fit_logistic(topics: Sequence[JudgedTopic], penalty: float, relevant: int) -> LinearRanker:
    """Return the logistic regression of relevance, by Newton's method; ``relevant`` is the lowest relevant grade."""
    x, grades, mean, scale = _stacked(topics)
    y = (grades >= relevant).astype(np.float64)
    x1 = np.column_stack([x, np.ones(len(x))])
    ridge = np.diag([*[len(x) * penalty] * x.shape[1], 1e-6])
    weights = np.zeros(x1.shape[1])
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-np.clip(x1 @ weights, -30, 30)))
        gradient = x1.T @ (likely - y) + ridge @ weights
        step = np.linalg.solve((x1 * (likely * (1 - likely))[:, None]).T @ x1 + ridge, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return LinearRanker(weights[:-1], mean, scale)


def fit_convex(topics: Sequence[JudgedTopic]) -> LinearRanker:
    """Return weights of sum 1 with the best nDCG' in training, found feature by feature from equal ones."""
    count = topics[0].features.shape[1]
    weights = np.full(count, 1 / count)
    best = _weighted(topics, weights)
    for _ in range(_ROUNDS):
        before = best
        for feature in range(count):
            for own in _moved(weights, feature):
                if (score := _weighted(topics, own)) > best + 1e-9:
                    best, weights = score, own
        if best - before < 1e-6:
            break
    return LinearRanker(weights, np.zeros(count), np.ones(count))


def _weighted(topics: Sequence[JudgedTopic], weights: Floats) -> float:
    """Return the mean nDCG' of a weighted sum of features."""
    return mean_ndcg(topics, lambda features: features @ weights)


def _moved(weights: Floats, feature: int) -> list[Floats]:
    """Return weights of sum 1 with other shares of one feature, the others in proportion; 0 is one of the shares."""
    alone = np.eye(len(weights))[feature]
    others = weights * (1 - alone)
    if others.sum() <= 0:
        return []
    return [share * alone + (1 - share) * others / others.sum() for share in _SHARES]
