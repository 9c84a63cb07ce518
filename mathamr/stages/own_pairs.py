"""Training pairs of the searched collection, without those whose questions are topics.

kept, left_out = own_pairs(corpus, "accepted", 0, questions, console)
"""

from __future__ import annotations

from collections.abc import Sequence

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import pairs_without_topics
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import TopicSet


def own_pairs(
    corpus: Corpus, positives: str, least_score: int, topic_sets: Sequence[TopicSet], console: Console
) -> tuple[list[Pair], list[Pair]]:
    """Return the training pairs of the searched collection, and those left out since their questions are topics.

    Raises:
        ConfigError: there are no training pairs.
    """
    kept, left_out = training_pairs(corpus, positives, least_score), list[Pair]()
    if kept and topics_may_be_posts(corpus):
        topics = [topic for topic_set in topic_sets for topic in topic_set.topics]
        kept, left_out = pairs_without_topics(kept, corpus.posts(), topics)
    if left_out:
        console.say(
            f"  {len(left_out):,} of {len(kept) + len(left_out):,} training pairs are left out, for their questions "
            f"are topics, e.g. {left_out[0].question_id}"
        )
    if not kept:
        raise ConfigError(
            f"collection {corpus.name} has no training pairs; use a track that trains nothing, e.g. track=bm25, or a "
            "collection with questions and answers, or with a split train"
        )
    return kept, left_out
