"""Documents of a topic with their features and grades, and nDCG' over them.

>>> topic = JudgedTopic("A.1", "2020", np.array([[0.9], [0.1], [0.5]]), np.array([0, 3, 2]))
>>> round(ndcg(topic, topic.features[:, 0]), 4)        # 0 2 3: (2/log2(3) + 3/2) / (3 + 2/log2(3))
0.648

Unjudged documents are left out, as nDCG' does, so what is learned is what is measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphs.corpus.arqmath import recognition
from mathamr.evaluation.runs import MAX_PER_TOPIC

Floats = NDArray[np.float64]
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class JudgedTopic:
    """Judged documents of one topic.

    Attributes:
        part: year of the topic, or its fold where topics have no year.
        features: features of the documents (documents, features).
        grades: grades of the documents (documents,).
        unfound: grades of judged documents that no system found.
    """

    topic: str
    part: str
    features: Floats
    grades: NDArray[np.int64]
    unfound: NDArray[np.int64] = field(default_factory=lambda: _NONE)


def ndcg(topic: JudgedTopic, scores: Floats) -> float:
    """Return nDCG' of the judged documents by ``scores`` (documents,), with linear gains; 0 without a grade above 0."""
    gained = topic.grades[np.argsort(-scores.astype(np.float32), kind="stable")][:MAX_PER_TOPIC]
    ideal = np.sort(np.concatenate([topic.grades, topic.unfound]))[::-1][:MAX_PER_TOPIC]
    best = float((ideal / np.log2(np.arange(len(ideal)) + 2)).sum())
    return float((gained / np.log2(np.arange(len(gained)) + 2)).sum()) / best if best > 0 else 0.0


def mean_ndcg(topics: Sequence[JudgedTopic], score: Callable[[Floats], Floats]) -> float:
    """Return the mean nDCG' of one topic or more; ``score`` gives (documents,) for features (documents, features)."""
    return float(np.mean([ndcg(topic, score(topic.features)) for topic in topics]))


def year_of(topic: str) -> int | None:
    """Return the year of a topic of ARQMath; None for any other name.

    >>> year_of("A.77"), year_of("B.237"), year_of("A.301"), year_of("q17")
    (2020, 2021, 2022, None)
    """
    found = re.fullmatch(r"[AB]\.(\d+)", topic)
    return recognition.year_of(int(found[1])) or None if found else None
