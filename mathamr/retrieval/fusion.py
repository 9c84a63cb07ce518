"""Fusing the runs of several systems: by ranks (RRF) or by scores (convex interpolation, sums of standard scores).

>>> text = {"A.1": [("a", 9.0), ("b", 8.0), ("c", 1.0)]}
>>> graph = {"A.1": [("b", 0.9), ("d", 0.8)]}
>>> [post_id for post_id, score in reciprocal_rank_fusion([text, graph])["A.1"]]
['b', 'a', 'd', 'c']
>>> interpolate([text, graph], [0.5, 0.5])["A.1"]
[('b', 0.9375), ('a', 0.5), ('d', 0.0), ('c', 0.0)]

Weights are tuned on named topics only, and never on those that are reported: see :func:`tune_weight`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from graphs.errors import RetrievalError
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run, official_order
from mathamr.retrieval.index import Ranking, ranked
from mathamr.retrieval.scores import TopicScores, documents_of, scores_in, standard_scores

STEPS = 20  # of the weight, from 0 to 1
Rankings = Mapping[str, Ranking]
"""For each topic ``(document id, score)``, best first."""


def rankings_of(run: Run) -> dict[str, Ranking]:
    """Read the rankings of a run file, whose lines can be in any order, in that of :func:`official_order`."""
    return {
        topic_id: [(hit.doc_id, hit.score) for hit in official_order(hits, run.task)]
        for topic_id, hits in run.rankings.items()
    }


def merge_by_visual_id(rankings: Sequence[Rankings], visual_ids: Mapping[str, str]) -> list[dict[str, Ranking]]:
    """Return rankings of Task 2 in which all formulas of a visual id have one id, that of the first in any run.

    >>> merge_by_visual_id([{"B.1": [("f1", 2.0)]}, {"B.1": [("f2", 0.9), ("f1", 0.8)]}], {"f1": "v", "f2": "v"})
    [{'B.1': [('f1', 2.0)]}, {'B.1': [('f1', 0.9)]}]
    """
    representative: dict[str, str] = {}
    changed = []
    for run in rankings:
        own: dict[str, Ranking] = {}
        for topic, ranking in run.items():
            best: dict[str, float] = {}
            for name, score in ranking:
                best.setdefault(representative.setdefault(visual_ids.get(name, f"formula {name}"), name), score)
            own[topic] = list(best.items())
        changed.append(own)
    return changed


def with_posts(rankings: Rankings, runs: Sequence[Run]) -> dict[str, list[Hit]]:
    """Return rankings of formulas as results with their posts, which ``runs`` name."""
    post_of = {hit.doc_id: hit.post_id for run in runs for hits in run.rankings.values() for hit in hits}
    return {topic: [Hit(name, score, post_of[name]) for name, score in own] for topic, own in rankings.items()}


def fuse(
    runs: Sequence[Rankings], weights: Sequence[float] | None, *, k: int = 60, limit: int = MAX_PER_TOPIC
) -> dict[str, Ranking]:
    """Fuse rankings by :func:`interpolate`, or without weights by :func:`reciprocal_rank_fusion` with ``k``."""
    if weights is not None:
        return interpolate(runs, weights, limit=limit)
    return reciprocal_rank_fusion(runs, k=k, limit=limit)


def reciprocal_rank_fusion(runs: Sequence[Rankings], *, k: int = 60, limit: int = MAX_PER_TOPIC) -> dict[str, Ranking]:
    """Score each document by the sum of 1 / (k + rank) over the runs that have it (Cormack et al., SIGIR 2009).

    Ranks begin at 1. The result has the topics of all runs; equal scores go by document id, descending.
    """
    if k < 0:
        raise RetrievalError(f"k={k}; reciprocal rank fusion takes k from 0, 60 is usual")

    def points(ranking: Ranking) -> dict[str, float]:
        return {doc_id: 1 / (k + rank) for rank, (doc_id, _) in enumerate(ranking, start=1)}

    return _fuse(runs, [1.0] * len(runs), points, limit)


def interpolate(
    runs: Sequence[Rankings], weights: Sequence[float], *, limit: int = MAX_PER_TOPIC
) -> dict[str, Ranking]:
    """Score each document by the weighted mean of its scores, scaled in each run and topic to 0 (worst) to 1 (best).

    A document that is missing from a run scores 0 in it. If all scores of a topic are equal, they count as 1. Weights
    are not negative and are divided by their sum.
    """
    if len(weights) != len(runs) or not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise RetrievalError(f"weights {list(weights)} for {len(runs)} runs; one from 0 is needed for each, not all 0")

    def points(ranking: Ranking) -> dict[str, float]:
        if not ranking:
            return {}
        low, high = min(score for _, score in ranking), max(score for _, score in ranking)
        return {doc_id: (score - low) / (high - low) if high > low else 1.0 for doc_id, score in ranking}

    return _fuse(runs, [weight / sum(weights) for weight in weights], points, limit)


def standard_sum(
    parts: Sequence[Mapping[str, TopicScores]], weights: Sequence[float] | None = None, *, limit: int = MAX_PER_TOPIC
) -> dict[str, Ranking]:
    """Score each document by the weighted sum of its standard scores over all documents that any system found.

    >>> from mathamr.retrieval.scores import topic_scores
    >>> answers, questions = ({"A.1": topic_scores(r, 9)} for r in ([("a", 2.0), ("b", 1.0)], [("b", 9.0)]))
    >>> standard_sum([answers, questions], [0.5, 1.0])
    {'A.1': [('b', 0.5), ('a', -0.5)]}

    Args:
        weights: a weight for each system; None: 1 for each.

    Raises:
        RetrievalError: another number of weights than of systems.
    """
    weights = [1.0] * len(parts) if weights is None else weights
    if len(weights) != len(parts):
        raise RetrievalError(f"weights {list(weights)} for {len(parts)} runs; one is needed for each")
    fused: dict[str, Ranking] = {}
    for topic in dict.fromkeys(topic for part in parts for topic in part):
        documents = documents_of(parts, topic)
        total = np.zeros(len(documents))
        for weight, part in zip(weights, parts, strict=True):
            total += weight * standard_scores(scores_in(part, topic, documents))
        fused[topic] = ranked(documents, total, limit)
    return fused


def tune_weight(
    first: Rankings, second: Rankings, topics: Collection[str], score: Callable[[dict[str, Ranking]], float]
) -> float:
    """Return the weight of ``first`` in 0 ... 1 with the best interpolation on ``topics``, and no others.

    ``score`` gives a fused run of these topics a number, e.g. nDCG'. Of equal weights the one nearest to 0.5 is taken.
    """
    of_topics = [{t: ranking for t, ranking in run.items() if t in topics} for run in (first, second)]
    weights = sorted((i / STEPS for i in range(STEPS + 1)), key=lambda weight: abs(weight - 0.5))
    return max(weights, key=lambda weight: score(interpolate(of_topics, [weight, 1 - weight])))


def _fuse(
    runs: Sequence[Rankings], weights: Sequence[float], points: Callable[[Ranking], dict[str, float]], limit: int
) -> dict[str, Ranking]:
    if not runs:
        raise RetrievalError("no runs were given to fuse")
    fused: dict[str, Ranking] = {}
    for topic_id in dict.fromkeys(topic_id for run in runs for topic_id in run):
        totals: dict[str, float] = {}
        for run, weight in zip(runs, weights, strict=True):
            for doc_id, value in points(list(run.get(topic_id, []))).items():
                totals[doc_id] = totals.get(doc_id, 0.0) + weight * value
        fused[topic_id] = ranked(list(totals), list(totals.values()), limit)
    return fused
