"""Sample of the posts for an analysis: all that are relevant, or judged, and others drawn at random.

>>> sampled = sampler({"A.1": {"7": 3}}, 3)
>>> len(sampled.select([str(number) for number in range(9)])), "7" in sampled.select([str(n) for n in range(9)])
(3, True)
>>> sampled.counts
{'posts': 3, 'of_posts': 9}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.plan import Job
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.runs import Qrels
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, SelectPosts, TopicSet

if TYPE_CHECKING:
    from mathamr.systems.system import System


@dataclass(frozen=True)
class Sampled:
    """Choice of posts; after it is made, ``counts`` has the numbers of ``posts`` chosen and ``of_posts`` in all."""

    select: SelectPosts
    counts: dict[str, int]


def sampler(qrels: Qrels, limit: int, relevant: int = RELEVANT) -> Sampled:
    """Return a choice of all relevant posts, and of others drawn at random until there are ``limit`` posts."""
    right = {post for grades in qrels.values() for post, grade in grades.items() if grade >= relevant}
    counts: dict[str, int] = {}

    def select(post_ids: Sequence[str]) -> Sequence[str]:
        kept = set(range(len(post_ids)))
        if len(post_ids) > limit:
            needed = [place for place, post_id in enumerate(post_ids) if post_id in right]
            others = sorted(kept - set(needed))
            drawn = np.random.default_rng(0).permutation(len(others))[: max(0, limit - len(needed))]
            kept = {*needed, *(others[place] for place in drawn)}
        counts.update({"posts": len(kept), "of_posts": len(post_ids)})
        return [post_ids[place] for place in sorted(kept)]

    return Sampled(select, counts)


def judged_space(
    system: System[Any], job: Job, encoded: Encoded, topic_set: TopicSet, qrels: Qrels
) -> EmbeddingSpace | None:
    """Return the space with every judged post, and others drawn at random; None of a system without sets of vectors."""
    judged = {topic: dict.fromkeys(grades, RELEVANT) for topic, grades in qrels.items()}
    select = sampler(judged, job.config.geometry.posts).select
    space = system.space(job.settings, encoded, topic_set, select)
    return None if space is None or len(space.documents.vectors) == len(space.documents) else space
