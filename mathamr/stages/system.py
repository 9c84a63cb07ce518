"""What a track is: a way to learn and search the posts of a collection, behind the same runner as every other.

The runner calls for each job ``prepare`` (what conditions share: graphs, tensors), ``train`` unless a finished model is
there, ``encode``, then for each task ``index`` and ``retrieve``. What a track needs between these calls is in the
objects it returns, or in the folder of the model. Of a track that trains nothing
(:class:`mathamr.systems.untrained.Untrained`) neither ``train`` nor ``encode`` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import pairs_without_topics
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Judgment, Pair, Topic
from graphs.errors import ConfigError
from mathamr.evaluation.metrics import RELEVANT, Regime, measures_of_grade
from mathamr.evaluation.result_names import Asked
from mathamr.evaluation.runs import Hit, Task
from mathamr.retrieval.explanation import Explanation
from mathamr.stages.console import Console

if TYPE_CHECKING:
    from ir_measures import Measure

    from graphs.stores.posts import PostText
    from mathamr.maxsim import VectorSets

Log = Callable[[dict[str, Any]], None]  # records as of mathamr.training.graph.trainer
Costs = Mapping[str, float]
Choose = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True)
class Question:
    """What every condition is asked: the topics of a task, and the judgments that their answers are measured by.

    Attributes:
        collection: ids of all posts, in the regime mini.
        name: of a test that is no task of ARQMath; what it finds are answers, as in Task 1.
        measures: by the names of their columns.
        relevant: lowest grade that counts as relevant.
        searched: ids of the answers that may be found; None: all.
        turned: the queries are such as training has as documents, and the answers such as training has as queries.
        judged_by: the files that the judgments were read from, where a collection has several.
    """

    task: Task
    topics: Sequence[Topic]
    judgments: Sequence[Judgment]
    regime: Regime
    collection: frozenset[str] | None = None
    name: str = ""
    measures: Mapping[str, Measure] = field(default_factory=lambda: measures_of_grade(RELEVANT))
    searched: frozenset[str] | None = None
    turned: bool = False
    relevant: int = RELEVANT
    judged_by: str = ""

    @property
    def asked(self) -> Asked:
        """What names its columns and files (:mod:`mathamr.evaluation.result_names`)."""
        return self.name or self.task

    @property
    def indexed(self) -> frozenset[str] | None:
        """Ids of the only answers that are searched: those asked for, or in the regime judged the judged; else None."""
        if self.regime == "judged":
            return frozenset(judgment.doc_id for judgment in self.judgments)
        return self.searched


@dataclass(frozen=True)
class Trained:
    """A trained model.

    ``folder`` is its checkpoint, below the folder that it was trained into; ``costs`` are columns of the results table
    (time_per_epoch_s, parameters, ...); ``history`` has the records of kind epoch; ``origin`` says which code and
    machine made it.
    """

    folder: Path
    costs: Costs = field(default_factory=dict)
    history: Sequence[dict[str, Any]] = ()
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Encoded:
    """What a model makes of posts and topics, and the ``costs`` of it (encode_docs_per_second, ...)."""

    vectors: Any
    costs: Costs = field(default_factory=dict)


@dataclass(frozen=True)
class Indexed:
    """A searchable index, and its ``costs`` (index_bytes, vectors, ...)."""

    index: Any
    costs: Costs = field(default_factory=dict)

    def close(self) -> None:
        """Let go of the index."""
        if self.index is not None:
            self.index.close()


@dataclass(frozen=True)
class Retrieved:
    """At most 1,000 results for each topic, best first, and the ``costs`` of finding them (queries_per_second).

    ``visual_ids`` (formula id -> visual id) are those of all formulas that could be found, in Task 2.
    """

    results: Mapping[str, Sequence[tuple[str, float]]] | Mapping[str, Sequence[Hit]]
    costs: Costs = field(default_factory=dict)
    visual_ids: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Space:
    """Where a model puts a question's topics and what it searches, for :mod:`experiments.analyses.geometry`.

    ``queries`` has a set of vectors for each of ``topics`` (topic ids), ``documents`` one for each of ``posts``. Kinds
    are those of :data:`mathamr.analysis.collapse.KINDS`, one for each vector; a model of one vector a post has the kind
    of documents alone. ``lengths`` tells of posts how long the vectors of their tokens are (T,), and the pooled ones
    (S,); None of a model without tokens.
    """

    topics: Sequence[str]
    queries: VectorSets
    query_kinds: NDArray[np.integer]
    posts: Sequence[str]
    documents: VectorSets
    document_kinds: NDArray[np.integer]
    lengths: Callable[[Sequence[str]], tuple[NDArray[np.floating], NDArray[np.floating]]] | None = None


def own_pairs(
    corpus: Corpus, positives: str, least_score: int, questions: Sequence[Question], console: Console
) -> tuple[list[Pair], list[Pair]]:
    """Return the training pairs of the searched collection, and those left out since their questions are topics.

    Raises:
        ConfigError: there are no training pairs.
    """
    kept, left_out = training_pairs(corpus, positives, least_score), list[Pair]()
    if kept and topics_may_be_posts(corpus):
        topics = [topic for question in questions for topic in question.topics]
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


class Track(Protocol):
    """The protocol; ``mathamr/systems/graph.py`` is the first to follow it."""

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Refuse settings that cannot be, with a ``MathAMRError``, before anything runs."""

    def prepare(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Make what the job of ``config`` needs and others may share; quick when it is there already."""

    def source(self, config: DictConfig) -> str:
        """Identifies what ``prepare`` has made: a model that was trained on something else is not this job's."""

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Train a model into ``folder``, going on where an interrupted run stopped; ``log`` receives its records."""

    def best(self, folder: Path) -> Path | None:
        """The checkpoint that ``train`` has left in ``folder``; ``None`` where there is none, or no whole one."""

    def tidy(self, folder: Path) -> None:
        """Remove from ``folder`` what only an unfinished training needs."""

    def encode(self, config: DictConfig, trained: Trained, questions: Sequence[Question]) -> Encoded:
        """The vectors of all posts that may be retrieved, and of the topics; kept beside the model and used again."""

    def index(self, config: DictConfig, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        """Index what may be retrieved; files go to ``folder``."""

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Search for every topic."""

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, for Task 2."""

    def explain(self, config: DictConfig, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """The similarities of a topic and a post, part by part; ``None`` where one of them has no vectors."""

    def space(self, config: DictConfig, encoded: Encoded, question: Question, choose: Choose) -> Space | None:
        """The vectors of the topics and of those searched posts that are chosen; ``None`` of a track without vectors.

        ``choose`` is told the ids of all that have vectors and says which are wanted: a collection may be too large.
        """

    def texts(self, post_ids: Sequence[str]) -> Mapping[str, PostText]:
        """Posts as they are shown."""
