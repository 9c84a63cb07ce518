"""Fusion kept for search: the rankings of its parts for a query, made one as in the experiment.

>>> from graphs.corpus.post import Post
>>> class Fixed:
...     def __init__(self, *names): self.names = names
...     def rank(self, topic): return [(name, 1 / place) for place, name in enumerate(self.names, 1)]
...     def close(self): ...
>>> parts = {name: Part(Fixed(*own), depth=None) for name, own in {"words": "ab", "text": "bc"}.items()}
>>> record = {"of": ["words", "text"], "how": "rrf", "rrf_k": 60, "weights": None, "results": 2}
>>> [name for name, score in open_fusion(record, parts).rank(Topic("A.1", Post("A.1", "topic")))]
['b', 'a']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphs.corpus.post import Topic
from graphs.errors import StoreError
from mathamr.evaluation.runs import Run
from mathamr.retrieval.fusion import Rankings, interpolate, rankings_of, reciprocal_rank_fusion, standard_sum
from mathamr.retrieval.index import Ranking
from mathamr.systems.searchable.kept import Part, entry


@dataclass(frozen=True)
class FusionRule:
    """Rule of a fusion.

    Attributes:
        how: rrf, weighted or standard.
        rrf_k: constant of reciprocal rank fusion.
        weights: weight of each ranking; None: equal ones.
        results: most results of a topic.
    """

    how: str
    rrf_k: int
    weights: Sequence[float] | None
    results: int

    def fused(self, rankings: Sequence[Rankings]) -> dict[str, Ranking]:
        """Fuse rankings by ranks or by scores between 0 and 1.

        Raises:
            RetrievalError: weights or a constant that cannot be.
        """
        if self.weights is not None:
            return interpolate(rankings, self.weights, limit=self.results)
        return reciprocal_rank_fusion(rankings, k=self.rrf_k, limit=self.results)


@dataclass(frozen=True)
class FusionSearch:
    """Fusion of the rankings of other conditions.

    Attributes:
        parts: the conditions, in order.
        rule: how they are fused.
    """

    parts: Sequence[Part]
    rule: FusionRule

    def rank(self, topic: Topic) -> Ranking:
        """Return the fused ranking; each part is searched."""
        if self.rule.how == "standard":
            scores = [{topic.topic_id: part.scores(topic)} for part in self.parts]
            fused = standard_sum(scores, self.rule.weights, limit=self.rule.results)
        else:
            runs = [Run("part", {topic.topic_id: hits} if (hits := part.run(topic)) else {}) for part in self.parts]
            fused = self.rule.fused([rankings_of(run) for run in runs])
        return fused.get(topic.topic_id, [])

    def close(self) -> None:
        """Do nothing: the parts are closed by their owner."""


def chosen(parts: Mapping[str, Part], names: Sequence[str]) -> list[Part]:
    """Return parts by name, in order.

    Raises:
        StoreError: one of them is missing.
    """
    if missing := [name for name in names if name not in parts]:
        raise StoreError(f"the index lacks its part {missing[0]}; build it again with mathamr index")
    return [parts[name] for name in names]


def open_fusion(record: Mapping[str, Any], parts: Mapping[str, Part]) -> FusionSearch:
    """Open the fusion that a record describes.

    Raises:
        StoreError: a part or a setting is missing.
    """
    rule = FusionRule(*(entry(record, name) for name in ("how", "rrf_k", "weights", "results")))
    return FusionSearch(chosen(parts, entry(record, "of")), rule)
