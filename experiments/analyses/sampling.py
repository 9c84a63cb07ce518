"""Sample of the posts for an analysis: all that are relevant, or judged, and others drawn at random.

>>> select, counts = sampler({"A.1": {"7": 3}}, 3)
>>> chosen = select([str(number) for number in range(9)])
>>> len(chosen), "7" in chosen
(3, True)
>>> counts
{'posts': 3, 'of_posts': 9}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.plan import Job
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.runs import Qrels
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, SelectPosts, TopicSet

if TYPE_CHECKING:
    from mathamr.systems.system import System


def sampler(qrels: Qrels, limit: int, relevant: int = RELEVANT) -> tuple[SelectPosts, dict[str, int]]:
    """Return a choice of all relevant posts, and of others drawn at random until there are ``limit`` posts.

    Once it has chosen, the dictionary has the numbers of ``posts`` chosen and ``of_posts`` in all.
    """
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

    return select, counts


def judged_space(
    system: System[Any], job: Job, encoded: Encoded, topic_set: TopicSet, qrels: Qrels
) -> EmbeddingSpace | None:
    """Return the space with every judged post, and others drawn at random; None of a system without sets of vectors."""
    judged = {topic: dict.fromkeys(grades, RELEVANT) for topic, grades in qrels.items()}
    select, _ = sampler(judged, job.config.geometry.posts)
    space = system.embedding_space(job.settings, encoded, topic_set, select)
    return None if space is None or len(space.documents.vectors) == len(space.documents) else space
