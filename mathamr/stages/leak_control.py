"""Leak control: training pairs of a collection, without those whose questions are topics of a test.

    own = own_pairs(corpus, PostFiles(corpus, shared, console), "accepted", 0, topic_sets, console)
    own.kept, own.left_out                     # pairs
    own.leaks                                  # Leak(question_id='7', topic_id='A.1', reason='near', similarity=0.93)
    write_leaks(Path("leaks.tsv"), {"": own})

A question is a topic by the rules of :mod:`graphs.corpus.leaks`: the topic names it, or their texts are equal or
near-identical. Posts are streamed from their headers, which have 128 bytes of each question's text.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import PairsApart, pairs_apart
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.whole_file import write_whole
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
) -> PairsApart:
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
        pairs = training_pairs(corpus, positives, least_score, files.outlines)
        advance(len(pairs))
    apart = without_topics(pairs, files, topic_sets, parts=topics_may_be_posts(corpus))
    if apart.left_out:
        console.say(
            f"  training pairs left out, because their questions are topics: {len(apart.left_out):,} of "
            f"{len(pairs):,}, e.g. {apart.left_out[0].question_id}"
        )
    if not apart.kept:
        raise ConfigError(
            f"collection {corpus.name} has no training pairs; use a track that trains nothing, e.g. track=bm25, or a "
            "collection with questions and answers (accepted_answer_id of a question or parent_id of its answers; "
            "train.positives selects the pairs), or with a split train"
        )
    return apart


def without_topics(
    pairs: Iterable[Pair], files: PostFiles, topic_sets: Sequence[TopicSet], *, parts: bool = True
) -> PairsApart:
    """Return ``pairs`` without the topics of ``topic_sets``, and those left out.

    Args:
        files: posts of the collection that the pairs are of.
        topic_sets: tests; those whose queries are ``learned`` on purpose are passed over.
        parts: an equal title, or an equal body, makes a question a topic.
    """
    topics = [topic for topic_set in topic_sets if not topic_set.learned for topic in topic_set.topics]
    with files.headers() as headers:
        return pairs_apart(pairs, headers.with_marks(), topics, parts=parts)


def counts(leaks: Mapping[str, PairsApart]) -> dict[str, int]:
    """Return what leak control has left out, by the names of columns; empty of a system that learns from no pairs.

    Args:
        leaks: pairs of each source, and of the collection itself under "".
    """
    if not leaks:
        return {}
    return {
        "pairs_left_out": sum(len(apart.left_out) for apart in leaks.values()),
        "questions_left_out": sum(len(apart.leaks) for apart in leaks.values()),
    }


def write_leaks(path: Path, leaks: Mapping[str, PairsApart]) -> None:
    """Write a line for each question that asks what a topic asks, with the number of pairs left out for it.

    A pair of a question with an answer to another one, which is a topic, has a line without a topic.
    """
    text = io.StringIO()
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerow(("source", "question", "topic", "reason", "similarity", "pairs"))
    for source, apart in leaks.items():
        counts = Counter(pair.question_id for pair in apart.left_out)
        for leak in apart.leaks:
            number = counts.pop(leak.question_id, 0)
            table.writerow((source, leak.question_id, leak.topic_id, leak.reason, f"{leak.similarity:.2f}", number))
        for question_id, number in counts.items():
            table.writerow((source, question_id, "", "shares an answer", "", number))
    write_whole(path, text.getvalue())
