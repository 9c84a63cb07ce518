"""Settings of systems that are made of other conditions: fusion, learned weights, a second stage.

>>> list(RerankSettings.groups())
['retrieval', 'rerank', 'train']
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName
from mathamr.evaluation.runs import MAX_PER_TOPIC
from mathamr.stages.settings import JobSettings, PreparationSettings, RetrievalConfig, SearchSettings
from mathamr.systems.settings.ranking import RankingSettings
from mathamr.text.encoder import identity
from mathamr.training.config import TrainConfig

HOW = ("rrf", "weighted", "standard")
"""Ways to fuse rankings."""


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """Conditions to fuse, and the method, as in :mod:`mathamr.retrieval.fusion`.

    ``of``: two or more conditions of the experiment. ``how``: rrf, by ranks with the constant
    ``k``; weighted, by scores with one of ``weights`` each; or standard, by sums of standard scores. Weights are named
    here, before anything is measured.
    """

    of: list[str]
    how: str
    k: int
    weights: list[float] | None = None


@dataclass(frozen=True, kw_only=True)
class FusionSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.fusion.FusionSystem`."""

    group: ClassVar = "fusion"
    version: ClassVar = 2  # missing documents are scored by the limit of each part

    fusion: FusionConfig

    def needs(self) -> Sequence[str]:
        """Return the conditions that are fused."""
        parts = self.fusion.of
        if len(set(parts)) < max(2, len(parts)):
            raise ConfigError(f"fusion.of={parts}; fusing takes two or more different conditions")
        return parts

    def check_tasks(self, tasks: Sequence[TestName]) -> None:
        """Check how rankings are fused, and the constant and weights of this fusion."""
        how, weights, count = self.fusion.how, self.fusion.weights, len(self.fusion.of)
        if how not in HOW:
            raise ConfigError(f"fusion.how={how} is not one of {', '.join(HOW)}")
        if how != "standard" and (how == "weighted") != (weights is not None):
            raise ConfigError(f"fusion.weights={weights} with fusion.how={how}; weighted needs weights, rrf takes none")
        if weights is not None and len(weights) != count:
            raise ConfigError(f"fusion.weights={weights} for {count} conditions; one is needed for each")
        if weights is not None and (not all(map(math.isfinite, weights)) or not any(weights)):
            raise ConfigError(f"fusion.weights={weights}; weights are numbers, and not all 0")
        if how == "weighted" and weights is not None and min(weights) < 0:
            raise ConfigError(f"fusion.weights={weights}; weights are at least 0")
        if how == "rrf" and self.fusion.k < 0:
            raise ConfigError(f"fusion.k={self.fusion.k}; reciprocal rank fusion takes k from 0, 60 is usual")
        if how == "standard" and 2 in tasks:
            raise ConfigError("fusion.how=standard is for answers; use rrf or weighted in Task 2")


@dataclass(frozen=True, kw_only=True)
class LearnedConfig:
    """Conditions whose scores are weighted, and how weights are learned (:mod:`mathamr.systems.learned`).

    Attributes:
        of: conditions of the experiment.
        learner: ridge, logistic, convex or lambdamart.
        features: families of features (:mod:`mathamr.ranking.features`).
        weights: weights.json of a job; None: weights are learned.
    """

    of: list[str]
    learner: str
    features: list[str]
    weights: str | None = None


@dataclass(frozen=True, kw_only=True)
class LearnedSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.learned.LearnedSystem`."""

    group: ClassVar = "learned"
    version: ClassVar = 2  # as of a fusion

    learned: LearnedConfig

    learns_from_judgments: ClassVar = True

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings, the number of results, and the content hash of given weights."""
        path = self.weights_path
        given = {} if path is None else {"weights": hashlib.sha256(path.read_bytes()).hexdigest()}
        return {"learned": self.key_settings("learned") | given, "k": self.retrieval.k, "version": self.version}

    @property
    def weights_path(self) -> Path | None:
        """File of given weights; raises ConfigError if it does not exist."""
        if self.learned.weights is None:
            return None
        path = Path(self.learned.weights)
        if not path.is_file():
            raise ConfigError(f"learned.weights={path} is no file; name the weights.json of a job")
        return path

    def needs(self) -> Sequence[str]:
        """Return the conditions whose scores are weighted."""
        parts = self.learned.of
        if not parts or len(set(parts)) < len(parts):
            raise ConfigError(f"learned.of={parts}; learning takes one or more different conditions")
        return parts

    def check_needs(self, needed: Mapping[str, JobSettings]) -> None:
        """Check that judgments have taught no score that is weighted, neither of a part nor of a part's parts.

        The scores of other years, which teach the weights of a year, would otherwise depend on that year's own
        judgments; so would scores with saved weights, if these were learned on the same topics.
        """
        for name, other in needed.items():
            if self.learned.weights is None and other.learns_from_judgments:
                raise ConfigError(
                    f"learned.of={self.learned.of} reaches {name}, whose scores judgments of all years have taught; "
                    f"name conditions that {name} needs instead"
                )


@dataclass(frozen=True, kw_only=True)
class RerankConfig:
    """Condition whose first results are scored again, and the scorer (:mod:`mathamr.systems.rerank`).

    Attributes:
        of: condition of the experiment.
        questions: condition with the same model and ``thread.read=question``, whose vectors the attention learns from.
        depth: number of its first results that are scored again.
        scorer: attention or cross_encoder.
        encoder: folder or name of a cross-encoder.
        max_length: tokens that a cross-encoder reads of topic and answer together.
        hidden_dim: width of the attention.
        epochs: passes over the training pairs of the attention.
        learning_rate: learning rate of the attention.
        negatives: mined answers beside the right one of each question.
    """

    of: str | None
    questions: str | None
    depth: int
    scorer: str
    encoder: str | None
    max_length: int
    hidden_dim: int
    epochs: int
    learning_rate: float
    negatives: int


@dataclass(frozen=True, kw_only=True)
class RerankSettings(JobSettings):
    """Settings of :class:`mathamr.systems.rerank.RerankSystem`; the attention learns from the pairs of ``train``."""

    retrieval: RetrievalConfig
    rerank: RerankConfig
    train: TrainConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings; of attention also the pairs and the seed, of a cross-encoder its weights."""
        own = self.key_settings("rerank")
        if self.rerank.encoder is not None:
            own["encoder"] = identity(self.rerank.encoder)
        parts: dict[str, Any] = {"rerank": own, "k": self.retrieval.k}
        if self.rerank.depth < MAX_PER_TOPIC:
            parts["others"] = 2  # 2: scores of results that are not scored again descend in small steps
        if self.rerank.scorer == "attention":
            pairs = {name: getattr(self.train, name) for name in ("positives", "least_score", "negative_closest")}
            parts |= {"train": pairs, "seed": self.seed, "version": 2}  # 2: of the posts that its topics search
        return parts

    def needs(self) -> Sequence[str]:
        """Return the condition whose results are scored again, and the one that has vectors of questions.

        Raises:
            ConfigError: one of them is not named.
        """
        own = self.rerank
        if own.of is None:
            raise ConfigError("track=rerank needs rerank.of, the condition whose results are scored again")
        if own.scorer != "attention":
            return [own.of]
        if own.questions is None or own.questions == own.of:
            raise ConfigError(
                "rerank.scorer=attention needs rerank.questions, a condition with the model of rerank.of and "
                "thread.read=question, or use rerank.scorer=cross_encoder"
            )
        return [own.of, own.questions]

    def check_needs(self, needed: Mapping[str, JobSettings]) -> None:
        """Check that both conditions of the attention have one model, whose vectors of answers it can learn from.

        Raises:
            ConfigError: they have no model or two, or answers are read with the question that they are the positive of.
        """
        own = self.rerank
        if own.scorer != "attention" or own.of is None or own.questions is None:
            return
        first, second = needed[own.of], needed[own.questions]
        model = first.model_key_parts()
        if model is None:
            raise ConfigError(
                f"rerank.of={own.of} makes no vectors for rerank.scorer=attention; name a condition of track=graph or "
                "text, or use rerank.scorer=cross_encoder"
            )
        if (first.track, model) != (second.track, second.model_key_parts()):
            raise ConfigError(
                f"rerank.of={own.of} and rerank.questions={own.questions} have different models; give both the same "
                "settings but thread.read"
            )
        if any(one.result_key_parts().get("late_interaction") for one in (first, second)):
            raise ConfigError(
                f"rerank.of={own.of} and rerank.questions={own.questions} make a vector of each token; use "
                "text.late_interaction=false in both, or rerank.scorer=cross_encoder"
            )
        if isinstance(first, SearchSettings) and first.thread.read == "question":
            raise ConfigError(
                f"rerank.of={own.of} has thread.read=question, so answers have no vectors; use thread.read=answer there"
            )
        if isinstance(first, PreparationSettings) and first.graph.thread != "none":
            raise ConfigError(
                f"rerank.of={own.of} has graph.thread={first.graph.thread}: vectors of answers contain their question, "
                "which tells rerank.scorer=attention the pairs that it learns from; use graph.thread=none, or "
                "rerank.scorer=cross_encoder"
            )
