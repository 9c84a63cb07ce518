"""Leak control: training pairs of a collection and of its sources, without those whose questions are topics of a test.

    pairs = CollectionPairs(corpus, PostFiles(corpus, shared, console), console)
    pairs.topic_sets = topic_sets              # their topics are not learned from
    own = pairs(settings.train)
    own.kept, own.left_out                     # pairs
    own.leaks                                  # Leak(question_id='7', topic_id='A.1', reason='near', similarity=0.93)
    pairs.split(settings.train).train          # without the pairs that are held out
    further = SourcePairs(shared, preparation.sources, console)(settings)
    further["math"].kept                       # ids with the source's name before them: math/train-1
    write_leaks(Path("leaks.tsv"), {"": own, **further})

A question is a topic by the rules of :mod:`graphs.corpus.leaks`: the topic names it, or their texts are equal or
near-identical. Posts are streamed from their headers, which have 128 bytes of each question's text.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import PairsApart, pairs_apart
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair
from graphs.corpus.sources import Source
from graphs.counts import counted
from graphs.errors import ConfigError, TrainingError
from graphs.whole_file import write_whole
from mathamr.stages import sources
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.settings import PreparationSettings
from mathamr.stages.topic_sets import TopicSet
from mathamr.training.config import TrainConfig
from mathamr.training.pairs import PairSplit, posts_of, sample_pairs, split_pairs


def own_pairs(
    corpus: Corpus, files: PostFiles, positives: str, least_score: int, topic_sets: Sequence[TopicSet], console: Console
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
    """Return what leak control has left out, by the names of columns; empty of a system that learns from no pairs."""
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


class CollectionPairs:
    """Pairs of ``corpus``, read once for each way of making them, for reading passes over the whole collection.

    Attributes:
        topic_sets: topics that the jobs of this process are measured on, which are not learned from.
    """

    def __init__(self, corpus: Corpus, files: PostFiles, console: Console) -> None:
        self._corpus, self._files, self._console = corpus, files, console
        self.topic_sets: Sequence[TopicSet] = ()
        self._pairs_apart: dict[tuple[str, int], PairsApart] = {}
        self._learned: dict[tuple[str, int, int | None], frozenset[str]] = {}
        self._splits: dict[tuple[str, int, int | None, float], PairSplit] = {}

    def __call__(self, train: TrainConfig) -> PairsApart:
        """Return the pairs, and those left out since their questions are topics; raise ConfigError without pairs."""
        key = train.positives, train.least_score
        if key not in self._pairs_apart:
            self._pairs_apart[key] = own_pairs(self._corpus, self._files, *key, self.topic_sets, self._console)
        return self._pairs_apart[key]

    def learned(self, train: TrainConfig) -> frozenset[str]:
        """Return the posts that are learned from, if every post is available."""
        key = train.positives, train.least_score, train.max_pairs
        if key not in self._learned:
            self._learned[key] = posts_of(sample_pairs(self(train).kept, None, train.max_pairs))
        return self._learned[key]

    def split(self, train: TrainConfig) -> PairSplit:
        """Return the pairs for training and the held-out ones, if every post is available."""
        key = train.positives, train.least_score, train.max_pairs, train.validation_fraction
        if key not in self._splits:
            self._splits[key] = self.split_of(train, None)
        return self._splits[key]

    def forget_splits(self) -> None:
        """Release the memory of all splits: checks need them, and training makes its split of what has graphs."""
        self._splits.clear()

    def split_of(self, train: TrainConfig, available: frozenset[str] | None) -> PairSplit:
        """Return the pairs for training and the held-out ones, of the ``available`` posts; None: of all."""
        having = None if available is None else available.intersection
        kept = self(train).kept
        sample = sample_pairs(kept, having, train.max_pairs)
        available_ids = posts_of(sample) if available is None else available
        fraction = train.validation_fraction
        try:
            return split_pairs(
                sample, available_ids, validation_fraction=fraction, known=kept, positives=train.positives
            )
        except TrainingError as error:
            raise TrainingError(f"{error.message}, or use track=bm25, which trains nothing", path=error.path) from error


class SourcePairs:
    """Pairs of each source, compared with the topics once a process.

    Attributes:
        topic_sets: topics that the jobs of this process are measured on, which are not learned from.
    """

    def __init__(
        self, shared: Path, sources_of: Callable[[PreparationSettings], Mapping[str, Source]], console: Console
    ) -> None:
        self._shared, self._sources_of, self._console = shared, sources_of, console
        self.topic_sets: Sequence[TopicSet] = ()
        self._pairs_apart: dict[str, PairsApart] = {}

    def __call__(self, config: PreparationSettings) -> dict[str, PairsApart]:
        """Return the pairs of each source that ``config`` learns from, and those left out.

        Raises:
            ConfigError: a source has questions with the ids of topics.
        """
        for name, source in self._sources_of(config).items():
            if name not in self._pairs_apart:
                self._pairs_apart[name] = self._apart(name, source)
        return {name: self._pairs_apart[name] for name in self._sources_of(config)}

    def _apart(self, name: str, source: Source) -> PairsApart:
        topics = [topic for topic_set in self.topic_sets for topic in topic_set.topics]
        ids = {topic_id for topic in topics for topic_id in (topic.topic_id, topic.post.post_id)}
        if held := [pair.question_id for pair in source.pairs() if pair.question_id in ids]:
            raise ConfigError(
                f"data.sources.{name} holds {len(held)} topics of the experiment, {held[0]} among them: a model would "
                "learn their answers; use a source without them"
            )
        files = PostFiles(source, sources.folder_of(source, self._shared), self._console)
        files.read(texts=True)  # all of them become graphs
        apart = without_topics(source.pairs(), files, self.topic_sets)
        some = f", e.g. {apart.left_out[0].question_id}" if apart.left_out else ""
        self._console.say(
            f"  source {name}: {counted(len(source.pairs()), 'pair')}; left out, because their questions are topics: "
            f"{len(apart.left_out):,}{some}"
        )
        return PairsApart(
            sources.pairs_of(name, apart.kept),
            sources.pairs_of(name, apart.left_out),
            [replace(leak, question_id=sources.post_id_of(name, leak.question_id)) for leak in apart.leaks],
        )
