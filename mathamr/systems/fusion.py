"""Fusion: the rankings of other conditions of the experiment, of the same seed, made one.

Their jobs run first (:attr:`experiments.plan.Job.needs`), and what they left in ``outputs/EXP/jobs`` is read: run files
and costs. A query costs what all parts take one after the other, and the fusion itself; the index is all of theirs.

In a search of an index, each part is searched with the query:

>>> from graphs.corpus.post import Post
>>> class Fixed:
...     def __init__(self, *names): self.names = names
...     def rank(self, topic): return [(name, 1 / place) for place, name in enumerate(self.names, 1)]
...     def close(self): ...
>>> parts = [Part(Fixed(*names), depth=None) for names in ("ab", "bc")]
>>> search = FusionSearch(parts, how="rrf", rrf_k=60, weights=None, results=2)
>>> [name for name, score in search.rank(Topic("A.1", Post("A.1", "topic")))]
['b', 'a']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.corpus.post import Topic
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import Run
from mathamr.retrieval.fusion import fuse, merge_by_visual_id, rankings_of, standard_sum, with_posts
from mathamr.retrieval.index import Ranking
from mathamr.search.searchable import Searchable
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.parts import joint_size, joint_speed, places_of, run_left, scores_left
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, Part, entry
from mathamr.systems.settings.combined import FusionSettings
from mathamr.systems.system import System


@system("fusion")
class FusionSystem(System[FusionSettings]):
    """Fuse the rankings of other conditions."""

    def index(self, settings: FusionSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Return the sums of the parts' costs; nothing is indexed again."""
        return Indexed(None, joint_size(settings, settings.fusion.of, topic_set))

    def retrieve(self, settings: FusionSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Fuse the rankings that the parts have left."""
        own, k = settings.fusion, settings.retrieval.k
        places = places_of(settings, own.of)
        if own.how == "standard":
            scores = [scores_left(place, topic_set.test_name, k) for place in places]
            with Stopwatch() as watch:
                summed = standard_sum(scores, own.weights, limit=k)
            return Retrieved(summed, joint_speed(settings, own.of, topic_set, watch.seconds))
        runs = [run_left(place, topic_set.test_name, topic_set.task) for place in places]
        rankings: list[dict[str, Ranking]] = [rankings_of(run) for run in runs]
        visual_ids = self.visual_ids(settings) if topic_set.task == 2 else None
        with Stopwatch() as watch:
            if visual_ids is not None:
                rankings = merge_by_visual_id(rankings, visual_ids)
            fused = fuse(rankings, own.weights, k=own.k, limit=k)
        costs = joint_speed(settings, own.of, topic_set, watch.seconds)
        return Retrieved(fused if visual_ids is None else with_posts(fused, runs), costs, visual_ids)

    def keep(self, job: FinishedSearch[FusionSettings], folder: Path) -> Mapping[str, Any]:
        """Keep the rule; the parts are kept beside it."""
        own = job.settings.fusion
        rule = {"how": own.how, "rrf_k": own.k, "weights": own.weights, "results": job.settings.retrieval.k}
        return {"of": list(own.of), **rule}

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the rule with the parts."""
        parts = kept.parts_named(entry(kept.record, "of"))
        rule = (entry(kept.record, name) for name in ("how", "rrf_k", "weights", "results"))
        return FusionSearch(list(parts.values()), *rule)


@dataclass(frozen=True)
class FusionSearch(Searchable):
    """Fusion of the rankings of other conditions, which their owner closes.

    Attributes:
        how: rrf, weighted or standard.
        rrf_k: constant of reciprocal rank fusion.
        weights: weight of each ranking; None: equal ones.
    """

    parts: Sequence[Part]
    how: str
    rrf_k: int
    weights: Sequence[float] | None
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the fused ranking; each part is searched."""
        if self.how == "standard":
            scores = [{topic.topic_id: part.scores(topic)} for part in self.parts]
            fused = standard_sum(scores, self.weights, limit=self.results)
        else:
            runs = [Run("part", {topic.topic_id: hits} if (hits := part.run(topic)) else {}) for part in self.parts]
            fused = fuse([rankings_of(run) for run in runs], self.weights, k=self.rrf_k, limit=self.results)
        return fused.get(topic.topic_id, [])
