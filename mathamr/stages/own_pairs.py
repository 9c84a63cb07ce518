"""Training pairs of the searched collection, without those whose questions are topics.

kept, left_out = own_pairs(corpus, PostFiles(corpus, shared, console), "accepted", 0, topic_sets, console)
"""

from __future__ import annotations

from collections.abc import Sequence

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import pairs_apart
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.topic_sets import TopicSet


def own_pairs(
    corpus: Corpus,
    files: PostFiles,
    positives: str,
    least_score: int,
    topic_sets: Sequence[TopicSet],
    console: Console,
) -> tuple[list[Pair], list[Pair]]:
    """Return the training pairs of the searched collection, and those left out since their questions are topics.

    Args:
        files: the posts of ``corpus``, which are read where they are not kept yet.
        positives: answers that make a pair (:data:`graphs.corpus.pairs.POSITIVES`).
        least_score: votes that an answer needs, where it is not accepted.
        topic_sets: tests that the experiment is measured on.

    Raises:
        ConfigError: there are no training pairs.
    """
    files.read(texts=False)
    with console.stage("training pairs", unit="pairs") as advance:
        kept, left_out = training_pairs(corpus, positives, least_score, files.outlines), list[Pair]()
        advance(len(kept))
    if kept and topics_may_be_posts(corpus):
        topics = [topic for topic_set in topic_sets for topic in topic_set.topics]
        with files.catalogue() as catalogue:
            kept, left_out = pairs_apart(kept, catalogue.with_digests(), topics)
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
