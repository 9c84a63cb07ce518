"""Training pairs of the searched collection, as settings of training take them.

pairs = CollectionPairs(corpus, post_files, console)
pairs.topic_sets = topic_sets                 # their topics are not learned from
pairs(settings.train).kept                    # and what leak control has left out: .left_out
pairs.split(settings.train).train             # without the pairs that are held out
"""

from __future__ import annotations

from collections.abc import Sequence

from graphs.corpus.corpus import Corpus
from graphs.corpus.leaks import PairsApart
from graphs.errors import TrainingError
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.leak_control import own_pairs
from mathamr.stages.topic_sets import TopicSet
from mathamr.training.config import TrainConfig
from mathamr.training.pairs import PairSplit, posts_of, sample_pairs, split_pairs


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
        """Return the pairs, and those left out since their questions are topics.

        Raises:
            ConfigError: there are no training pairs.
        """
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
        there = posts_of(sample) if available is None else available
        fraction = train.validation_fraction
        try:
            return split_pairs(sample, there, validation_fraction=fraction, known=kept, positives=train.positives)
        except TrainingError as error:
            raise TrainingError(f"{error.message}, or use track=bm25, which trains nothing", path=error.path) from error
