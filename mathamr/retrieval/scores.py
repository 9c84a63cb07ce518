"""Scores of a system for all documents that it ranked, for systems that combine others.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_scores(folder / SCORES, {"A.1": [("7", 0.9), ("8", 0.5)], "A.2": [("8", 0.1)]}, depth=2)
>>> scores = read_scores(folder / SCORES)
>>> scores["A.1"].of(["8", "9"])          # 9 is beyond the depth: as low as the last one
array([0.5, 0.5])
>>> scores["A.2"].of(["8", "9"])          # the list is whole: 9 has nothing in common with the topic
array([0.1, 0. ])

A run file has only 1,000 documents for each topic, and standard scores depend on where a list is cut. A job therefore
writes a longer list if ``thread.depth`` is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphs.errors import RetrievalError, faults_as
from graphs.whole_file import whole_file
from mathamr.evaluation.runs import MAX_PER_TOPIC, Run

SCORES = "scores.npz"
"""The file in a job's folder; that of a test with a name is called after it."""

_ARRAYS = ("topics", "sizes", "depth", "documents", "scores")


@dataclass(frozen=True)
class TopicScores:
    """Scores of documents for one topic; ``floor`` is the score of all others."""

    scores: Mapping[str, float]
    floor: float

    def of(self, documents: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of the documents, in order (documents,)."""
        return np.array([self.scores.get(name, self.floor) for name in documents], dtype=np.float64)


def topic_scores(ranking: Sequence[tuple[str, float]], depth: int) -> TopicScores:
    """Return the scores of a ranking that was cut at ``depth``.

    A document that is missing from a complete list scores 0, or the lowest score of the list if that is negative.
    """
    scores: dict[str, float] = {}
    for name, score in ranking:
        scores.setdefault(name, float(score))
    return with_floor(scores, cut=len(ranking) >= depth)


def with_floor(scores: Mapping[str, float], *, cut: bool) -> TopicScores:
    """Return scores with the score of all other documents: the lowest one, or of a complete list 0 if that is lower.

    >>> with_floor({"7": 0.9, "8": 0.7}, cut=True).floor, with_floor({"7": 0.9, "8": 0.7}, cut=False).floor
    (0.7, 0.0)

    Args:
        cut: true if the list may lack documents that have a score.
    """
    lowest = min(scores.values(), default=0.0)
    return TopicScores(scores, lowest if cut else min(0.0, lowest))


def standard_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return scores (documents,) minus their mean, in standard deviations; 0 where all are equal.

    >>> standard_scores(np.array([1.0, 3.0])), standard_scores(np.array([2.0, 2.0]))
    (array([-1.,  1.]), array([0., 0.]))
    """
    spread = float(scores.std()) if len(scores) else 0.0
    centred: NDArray[np.float64] = scores - scores.mean() if len(scores) else scores
    return centred / spread if spread > 1e-12 else np.zeros_like(centred)


def documents_of(parts: Sequence[Mapping[str, TopicScores]], topic: str) -> list[str]:
    """Return all documents that any of the systems found for a topic, by id, descending."""
    return sorted({name for part in parts if topic in part for name in part[topic].scores}, reverse=True)


def scores_in(part: Mapping[str, TopicScores], topic: str, documents: Sequence[str]) -> NDArray[np.float64]:
    """Return the scores of documents for a topic (documents,); 0 where the system found nothing for it."""
    return part[topic].of(documents) if topic in part else np.zeros(len(documents))


def scores_of_run(run: Run, k: int = MAX_PER_TOPIC) -> dict[str, TopicScores]:
    """Return the scores of a run file by topic; the system was asked for at most ``k`` results of a topic."""
    return {
        topic: topic_scores([(hit.doc_id, hit.score) for hit in hits], min(k, MAX_PER_TOPIC))
        for topic, hits in run.rankings.items()
    }


def write_scores(path: Path, results: Mapping[str, Sequence[tuple[str, float]]], depth: int) -> None:
    """Write the first ``depth`` results of each topic."""
    cut = {topic: list(ranking)[:depth] for topic, ranking in results.items()}
    all_results = [result for ranking in cut.values() for result in ranking]
    with whole_file(path) as partial, partial.open("wb") as file:
        np.savez_compressed(
            file,
            topics=np.array(list(cut), dtype=np.str_),
            sizes=np.array([len(ranking) for ranking in cut.values()], dtype=np.int64),
            depth=np.array(depth, dtype=np.int64),
            documents=np.array([name for name, _ in all_results], dtype=np.str_),
            scores=np.array([score for _, score in all_results], dtype=np.float64),
        )


def read_scores(path: Path) -> dict[str, TopicScores]:
    """Return the scores that :func:`write_scores` wrote, by topic; raise RetrievalError for a damaged file."""
    faults = faults_as(RetrievalError, f"{path} is no file of scores: {{}}; run its job again")
    with faults, path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        topics, sizes, depth, documents, scores = (arrays[name] for name in _ARRAYS)
        ends = np.cumsum(sizes)
        if len(topics) != len(sizes) or len(documents) != len(scores) or (len(ends) and ends[-1] != len(scores)):
            raise ValueError("its arrays are of different lengths")
        found = list(zip(documents.tolist(), scores.tolist(), strict=True))
        places = zip(topics.tolist(), (ends - sizes).tolist(), ends.tolist(), strict=True)
        read = {topic: topic_scores(found[begin:end], int(depth)) for topic, begin, end in places}
    return read
