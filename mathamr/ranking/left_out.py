"""Rankers that are learned from some years, for the topics of the others.

>>> def topic(name, part):
...     return JudgedTopic(name, part, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 0]))
>>> topics = [topic("A.1", "2020"), topic("A.2", "2020"), topic("A.201", "2021"), topic("A.202", "2021")]
>>> fitted = fit_left_out(topics, "ridge", ["text", "bm25"])
>>> [(own.left_out, own.trained_on) for own in fitted.rankers]
[('2020', ('2021',)), ('2021', ('2020',)), (None, ('2020', '2021'))]
>>> fitted.of("2021").trained_on                        # the ranker that has not seen the year
('2020',)
>>> fitted.of("2022").trained_on                        # a new year: all others train
('2020', '2021')

A setting is chosen among those of a learner inside the training years: a year of them is left out in turn, or a fifth
of the topics where there is one year. A year that trained every ranker is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from graphs.errors import RetrievalError
from mathamr.evaluation.metrics import RELEVANT
from mathamr.ranking.judged import JudgedTopic, mean_ndcg
from mathamr.ranking.linear import LinearRanker, fit_convex, fit_logistic, fit_ridge, read_linear
from mathamr.ranking.trees import TreeRanker, fit_lambdamart, read_trees

Ranker = LinearRanker | TreeRanker
_FOLDS = 5
_READ: Mapping[str, Callable[[Mapping[str, Any], int], Ranker]] = {"linear": read_linear, "trees": read_trees}
_PENALTIES = [{"penalty": penalty} for penalty in (0.001, 0.01, 0.1, 1.0, 10.0)]
_SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "ridge": _PENALTIES,
    "logistic": _PENALTIES,
    "convex": [{}],
    "lambdamart": [{"leaves": leaves, "trees": trees} for leaves, trees in product((3, 6), (40, 120))],
}
LEARNERS = tuple(_SETTINGS)


def _fit(learner: str, topics: Sequence[JudgedTopic], setting: Mapping[str, Any], relevant: int) -> Ranker:
    """Return the ranker that a learner makes of judged topics."""
    if learner == "ridge":
        return fit_ridge(topics, **setting)
    if learner == "logistic":
        return fit_logistic(topics, relevant=relevant, **setting)
    return fit_convex(topics) if learner == "convex" else fit_lambdamart(topics, **setting)


@dataclass(frozen=True)
class Fitted:
    """A ranker, and the years that it has seen.

    Attributes:
        trained_on: years, or folds, of the topics that it was fitted to.
        left_out: the year that it is for; None: every year that it has not seen.
        setting: setting that was chosen inside the training years.
        topics: number of topics in training.
    """

    trained_on: tuple[str, ...]
    left_out: str | None
    setting: Mapping[str, float]
    topics: int
    ranker: Ranker


@dataclass(frozen=True)
class LeftOut:
    """Rankers by their training years: one that leaves each year out, and one that leaves none out."""

    learner: str
    features: Sequence[str]
    rankers: Sequence[Fitted]

    def of(self, part: str) -> Fitted:
        """Return the ranker that has seen most other years; raise RetrievalError if all have seen this one."""
        able = [own for own in self.rankers if part not in own.trained_on]
        if not able:
            seen = ", ".join(sorted({one for own in self.rankers for one in own.trained_on}))
            raise RetrievalError(f"topics of {part} trained these weights ({seen}); report topics of another year")
        return max(able, key=lambda own: len(own.trained_on))

    def record(self) -> dict[str, Any]:
        """Return the rankers as JSON, with the weight of each feature by its name."""
        rankers = [
            {
                "left_out": own.left_out,
                "trained_on": list(own.trained_on),
                "topics": own.topics,
                "setting": dict(own.setting),
                "weights": dict(zip(self.features, own.ranker.importances().tolist(), strict=True)),
                "ranker": own.ranker.record(),
            }
            for own in self.rankers
        ]
        return {"learner": self.learner, "features": list(self.features), "rankers": rankers}


def fit_left_out(
    topics: Sequence[JudgedTopic], learner: str, features: Sequence[str], relevant: int = RELEVANT
) -> LeftOut:
    """Fit a ranker for each year, to the topics of all other years, and one to all.

    Args:
        topics: judged topics of two years or more.
        relevant: lowest relevant grade.

    Raises:
        RetrievalError: topics of one year only, or no document with a grade in a training set.
    """
    parts = sorted({topic.part for topic in topics})
    if len(parts) < 2:
        raise RetrievalError(
            f"weights are learned on other years than the reported one, and all judged topics are of "
            f"{', '.join(parts) or 'no year'}; name two years or more"
        )
    rankers = [_fitted([topic for topic in topics if topic.part != part], part, learner, relevant) for part in parts]
    return LeftOut(learner, features, [*rankers, _fitted(topics, None, learner, relevant)])


def _fitted(topics: Sequence[JudgedTopic], left_out: str | None, learner: str, relevant: int) -> Fitted:
    some = [topic for topic in topics if len(topic.grades)]
    if not some:
        raise RetrievalError(f"no judged document to learn from beside {left_out}; judgments are of other posts")
    setting = _best_setting(learner, some, relevant)
    trained_on = tuple(sorted({topic.part for topic in topics}))
    return Fitted(trained_on, left_out, setting, len(some), _fit(learner, some, setting, relevant))


def _best_setting(learner: str, topics: Sequence[JudgedTopic], relevant: int) -> Mapping[str, Any]:
    """Return the setting with the best nDCG' on topics that are held out inside training; the first of equals."""
    settings = _SETTINGS[learner]
    if len(settings) < 2 or len(topics) < 2:
        return settings[0]
    parts = sorted({topic.part for topic in topics})
    ordered = sorted(topics, key=lambda topic: topic.topic)
    folds = [parts.index(own.part) if len(parts) > 1 else place % _FOLDS for place, own in enumerate(ordered)]
    means = []
    for setting in settings:
        found = []
        for fold in sorted(set(folds)):
            kept = [own for own, other in zip(ordered, folds, strict=True) if other != fold]
            held = [own for own, other in zip(ordered, folds, strict=True) if other == fold]
            ranker = _fit(learner, kept, setting, relevant)
            found += [mean_ndcg([own], ranker.scores) for own in held]
        means.append(float(np.mean(found)))
    return settings[int(np.argmax(means))]


def read_left_out(content: Mapping[str, Any]) -> LeftOut:
    """Return the rankers of a file of weights; raise RetrievalError unless :meth:`LeftOut.record` made it."""
    try:
        features = [str(name) for name in content["features"]]
        rankers = []
        for own in content["rankers"]:
            kind = own["ranker"]["kind"]
            if kind not in _READ:
                raise RetrievalError(f"weights of a ranker {kind!r}; known are {', '.join(_READ)}")
            left_out = None if own["left_out"] is None else str(own["left_out"])
            trained_on = tuple(str(part) for part in own["trained_on"])
            ranker = _READ[kind](own["ranker"], len(features))
            rankers.append(Fitted(trained_on, left_out, dict(own["setting"]), int(own["topics"]), ranker))
        return LeftOut(str(content["learner"]), features, rankers)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RetrievalError(f"this is no file of learned weights: {error}") from error
