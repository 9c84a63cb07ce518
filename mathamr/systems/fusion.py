"""Fusion: the rankings of other conditions of the experiment, of the same seed, made one.

Their jobs run first (:attr:`experiments.plan.Job.needs`), and what they left in ``outputs/EXP/jobs`` is read: run files
and costs. A query costs what all parts take one after the other, and the fusion itself; the index is all of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import Hit
from mathamr.retrieval.fusion import merge_by_visual_id, rankings_of, standard_sum
from mathamr.retrieval.index import Ranking
from mathamr.search.searchable import Searchable
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.parts import joint_size, joint_speed, places_of, run_left, scores_left
from mathamr.systems.registry import system
from mathamr.systems.searchable.fusion import FusionRule, open_fusion
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch
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
        if settings.fusion.how == "standard":
            places, k = places_of(settings, settings.fusion.of), settings.retrieval.k
            scores = [scores_left(place, topic_set.test_name, k) for place in places]
            with Stopwatch() as watch:
                summed = standard_sum(scores, settings.fusion.weights, limit=k)
            return Retrieved(summed, joint_speed(settings, settings.fusion.of, topic_set, watch.seconds))
        second = topic_set.task == 2
        places = places_of(settings, settings.fusion.of)
        runs = [run_left(place, topic_set.test_name, topic_set.task) for place in places]
        rankings: list[dict[str, Ranking]] = [rankings_of(run) for run in runs]
        visual_ids = self.visual_ids(settings) if second else None
        with Stopwatch() as watch:
            if visual_ids is not None:
                rankings = merge_by_visual_id(rankings, visual_ids)
            fused = _rule(settings).fused(rankings)
        costs = joint_speed(settings, settings.fusion.of, topic_set, watch.seconds)
        if visual_ids is None:
            return Retrieved(fused, costs)
        post_of = {hit.doc_id: hit.post_id for run in runs for hits in run.rankings.values() for hit in hits}
        found = {topic: [Hit(own, score, post_of[own]) for own, score in ranking] for topic, ranking in fused.items()}
        return Retrieved(found, costs, visual_ids)

    def keep(self, job: FinishedSearch, folder: Path) -> Mapping[str, Any]:
        """Keep the rule; the parts are kept beside it."""
        settings = cast(FusionSettings, job.settings)
        return {"of": list(settings.fusion.of), **asdict(_rule(settings))}

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the rule with the parts."""
        return open_fusion(kept.record, kept.parts)


def _rule(settings: FusionSettings) -> FusionRule:
    own = settings.fusion
    return FusionRule(own.how, own.k, own.weights, settings.retrieval.k)
