"""What a track is: a way to learn and search the posts of a collection, behind the same runner as every other.

The runner calls for each job ``prepare`` (whatever conditions share: graphs, tensors), ``train``, ``index`` and
``retrieve``, in this order. A track keeps what it needs between these calls in the objects it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from omegaconf import DictConfig

from graphs.corpus.post import Judgment, Topic
from mathamr.evaluation.metrics import Regime

Log = Callable[[dict[str, Any]], None]  # records as of mathamr.training.trainer


@dataclass(frozen=True)
class Question:
    """What every condition is asked: the topics, and the judgments that their answers are measured by."""

    task: int
    topics: Sequence[Topic]
    judgments: Sequence[Judgment]
    regime: Regime
    collection: frozenset[str] | None = None  # ids of all posts, in the regime mini


@dataclass(frozen=True)
class Trained:
    """A trained model in ``folder``, with ``costs`` for the results table (time_per_epoch_s, parameters, ...)."""

    folder: Path
    costs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Indexed:
    """A searchable index, and its ``costs`` (index_bytes, vectors, ...)."""

    index: Any
    costs: dict[str, float] = field(default_factory=dict)


class Track(Protocol):
    """The protocol; ``experiments/tracks/graph.py`` is the first to follow it."""

    def check(self, config: DictConfig) -> None:
        """Refuse settings that cannot be, with a ``MathAMRError``, before anything runs."""

    def prepare(self, config: DictConfig, question: Question) -> None:
        """Make what the job of ``config`` needs and others may share; quick when it is there already."""

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Train a model into ``folder``, going on where an interrupted run stopped; ``log`` receives its records."""

    def index(self, config: DictConfig, trained: Trained, question: Question) -> Indexed:
        """Encode and index the posts that may be retrieved."""

    def retrieve(
        self, config: DictConfig, trained: Trained, indexed: Indexed, question: Question
    ) -> dict[str, list[tuple[str, float]]]:
        """For each topic id at most 1,000 ``(post id, score)``, best first."""
