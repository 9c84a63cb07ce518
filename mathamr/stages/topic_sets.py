"""Records that pass between the stages of a job: a topic set, a model, its vectors, an index and rankings.

>>> from graphs.corpus.post import Post
>>> topic = Topic("A.1", Post("A.1", "topic", title="What is $x$?", markup="text"))
>>> topic_set = TopicSet(1, [topic], [Judgment("A.1", "7", 3)], "judged")
>>> topic_set.test_name, sorted(topic_set.indexed)
(1, ['7'])

The order is that of :class:`mathamr.systems.system.System`: ``Trained`` -> ``Encoded`` -> ``Indexed`` -> ``Retrieved``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphs.corpus.post import Judgment, Topic
from graphs.errors import ConfigError
from mathamr.evaluation.completeness import SHOWN
from mathamr.evaluation.metrics import RELEVANT, Regime, measures_of_grade
from mathamr.evaluation.result_names import TestName, title
from mathamr.evaluation.runs import Hit, Task
from mathamr.stages.console import Console

if TYPE_CHECKING:
    from ir_measures import Measure

    from mathamr.maxsim import VectorSets

Log = Callable[[dict[str, Any]], None]  # records as of mathamr.training.graph.trainer
Costs = Mapping[str, float]
Record = TypeVar("Record")
SelectPosts = Callable[[Sequence[str]], Sequence[str]]
"""Takes the ids of posts, and returns the ids of some of them."""


@dataclass(frozen=True)
class TopicSet:
    """Topics of a task or a test, with their judgments.

    Attributes:
        collection: ids of all posts; only in the regime ``mini``.
        name: name of a test that is not a task of ARQMath; such a test finds answers, as Task 1 does.
        measures: measures by column name.
        relevant: lowest grade that counts as relevant.
        searched: ids of the answers that may be found; None: all.
        swapped: True if queries and documents trade roles, compared with the training pairs.
        learned: True if the queries are part of the training on purpose, so leak control skips them.
        judged_by: files of the judgments, if the collection has several.
        kind: kind of the searched posts (:mod:`mathamr.stages.retrieval.threads`); Task 2 searches every kind.
    """

    task: Task
    topics: Sequence[Topic]
    judgments: Sequence[Judgment]
    regime: Regime
    collection: frozenset[str] | None = None
    name: str = ""
    measures: Mapping[str, Measure] = field(default_factory=lambda: measures_of_grade(RELEVANT))
    searched: frozenset[str] | None = None
    swapped: bool = False
    learned: bool = False
    relevant: int = RELEVANT
    judged_by: str = ""
    kind: Literal["answer", "question"] = "answer"

    @property
    def test_name(self) -> TestName:
        """Name of its columns and files (:mod:`mathamr.evaluation.result_names`)."""
        return self.name or self.task

    @property
    def indexed(self) -> frozenset[str] | None:
        """Return the ids of the searched answers (``searched``, or the judged ones); None: all answers."""
        if self.regime == "judged":
            return frozenset(judgment.doc_id for judgment in self.judgments)
        return self.searched

    def say_lost(self, console: Console, searched: Sequence[Topic], why: str) -> None:
        """Print the number of topics that are not ``searched``, and the first ones."""
        lost = sorted({topic.topic_id for topic in self.topics} - {topic.topic_id for topic in searched})
        if lost:
            first = f"{', '.join(lost[:SHOWN])}{' ...' * (len(lost) > SHOWN)}"
            console.say(f"  {title(self.test_name)}: topics that {why} ({len(lost)}): {first}")


@dataclass(frozen=True)
class Trained:
    """A trained model.

    ``folder`` is its checkpoint, below the folder that it was trained into; ``costs`` are columns of the results table
    (time_per_epoch_s, parameters, ...); ``origin`` says which code and machine made it.
    """

    folder: Path
    costs: Costs = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Encoded:
    """Vectors of posts and topics, and the ``costs`` of making them (encode_docs_per_second, ...)."""

    vectors: Any
    costs: Costs = field(default_factory=dict)


@dataclass(frozen=True)
class Indexed:
    """A searchable index, and its ``costs`` (index_bytes, vectors, ...)."""

    index: Any
    costs: Costs = field(default_factory=dict)

    def close(self) -> None:
        """Close the index, if it has files to close."""
        if (close := getattr(self.index, "close", None)) is not None:
            close()


@dataclass(frozen=True)
class Retrieved:
    """Up to 1,000 results for each topic, and the ``costs`` of the search (queries_per_second).

    Higher scores are better; the order of a list does not matter. ``visual_ids`` (formula id -> visual id) covers all
    searched formulas in Task 2; None, for a system of a separate package: those of the collection. There may be more
    results for conditions that learn from scores. ``records`` are JSON files for the job's folder, by name. ``cut`` are
    the topics whose list may lack further results
    (:meth:`mathamr.systems.thread_search.ThreadSearch.answers`).
    """

    results: Mapping[str, Sequence[tuple[str, float]]] | Mapping[str, Sequence[Hit]]
    costs: Costs = field(default_factory=dict)
    visual_ids: Mapping[str, str] | None = None
    records: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cut: Collection[str] = ()


@dataclass(frozen=True)
class EmbeddingSpace:
    """Vectors of topics and of posts that are searched, for :mod:`experiments.analyses.geometry`.

    Attributes:
        queries: a set of vectors for each topic.
        query_kinds: kind of each vector (:data:`mathamr.analysis.collapse.KINDS`); models with one vector for each
            post have only the kind of documents.
        documents: a set of vectors for each post.
        document_kinds: kind of each vector.
        single_vector: True if the search compares only document vectors.
        lengths: function that returns, for posts, the lengths of token vectors (T,) and of pooled vectors (S,); None
            for models without tokens.
        encode: function that returns the vectors of other texts (S, d) and the lengths of their token vectors (T,);
            None for models without tokens.
    """

    topics: Sequence[str]
    queries: VectorSets
    query_kinds: NDArray[np.integer]
    posts: Sequence[str]
    documents: VectorSets
    document_kinds: NDArray[np.integer]
    single_vector: bool = False
    lengths: Callable[[Sequence[str]], tuple[NDArray[np.floating], NDArray[np.floating]]] | None = None
    encode: Callable[[Sequence[str]], tuple[NDArray[np.floating], NDArray[np.floating]]] | None = None


def check_step(track: str, step: str, returned: Any, kind: type[Record]) -> Record:
    """Return what a step of a system returned, after a check of its type; costs become numbers of Python.

    >>> check_step("own", "index", Indexed(None, {"vectors": np.int64(7)}), Indexed).costs
    {'vectors': 7}
    >>> check_step("own", "index", Indexed(None, {"vectors": "many"}), Indexed)
    Traceback (most recent call last):
        ...
    graphs.errors.ConfigError: track=own: index() returned the cost vectors='many'; give a number

    Raises:
        ConfigError: it is of another type, or one of its costs is no number.
    """
    if not isinstance(returned, kind):
        raise ConfigError(
            f"track={track}: {step}() returned {type(returned).__name__}; return {kind.__module__}.{kind.__qualname__}"
        )
    outcome: Any = returned
    given = getattr(outcome, "costs", {})
    costs = {name: cost.item() if isinstance(cost, np.generic) else cost for name, cost in given.items()}
    for name, cost in costs.items():
        if not isinstance(cost, int | float):
            raise ConfigError(f"track={track}: {step}() returned the cost {name}={cost!r}; give a number")
    return replace(outcome, costs=costs) if costs else returned


def speed(topics: int, seconds: float) -> dict[str, float]:
    """Return the cost of a search."""
    return {"queries_per_second": topics / max(seconds, 1e-9)}
