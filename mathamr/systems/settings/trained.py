"""Settings of systems that train a model of posts: graphs and text encoders.

>>> list(GraphSettings.groups())
['graph', 'train', 'index', 'retrieval', 'thread', 'model']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from graphs import digests
from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName
from mathamr.model.config import EncoderConfig
from mathamr.stages import parsers, sources
from mathamr.stages.needed import extent_of
from mathamr.stages.settings import PreparationSettings, SearchSettings
from mathamr.text.config import TextConfig
from mathamr.text.encoder import Opening, identity
from mathamr.text.training import batches
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(EncoderConfig):
    """Settings of the encoder; ``checkpoint``: folder of a model from elsewhere (None: one is trained)."""

    checkpoint: str | None = None

    @property
    def encoder(self) -> EncoderConfig:
        """Settings of the encoder alone, as a checkpoint keeps them."""
        return EncoderConfig(**{one.name: getattr(self, one.name) for one in fields(EncoderConfig)})


@dataclass(frozen=True, kw_only=True)
class GraphSettings(SearchSettings, PreparationSettings):
    """Settings of :class:`mathamr.systems.graph.GraphSystem`."""

    model: ModelConfig

    free: ClassVar = {"train": ("device", "processes", "workers", "checkpoint_every"), "index": ("location", "keep")}

    def model_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of graphs, model and training, and the further collections that are learned from."""
        parts = {"graph": self.graph.key_parts(), "model": self.key_settings("model")}
        free = self.free["train"]
        parts["train"] = {name: value for name, value in self.train.key_parts().items() if name not in free}
        if self.model.checkpoint:
            parts["model"] = {"checkpoint": _weights(self.model.checkpoint)}
        parts["graph"]["parser"] = _parser(self)
        for group, key in _TEXT_ENCODERS:  # what a model depends on is their weights
            if parts[group].get(key):
                parts[group][key] = identity(parts[group][key])
        learned_from = sources.fingerprints(self)
        return {"posts": extent_of(self.data), **parts, **({"sources": learned_from} if learned_from else {})}

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the search."""
        return {group: self.key_settings(group) for group in ("index", "retrieval")} | self.thread.key_parts()

    def check_tasks(self, tasks: Sequence[TestName]) -> None:
        """Check ``graph.thread``: an answer as one graph with its question, or also with its siblings.

        In training an answer is never read with the question that it is the positive of. So only answers of duplicates
        train the virtual nodes of questions.
        """
        thread, model, train = self.graph.thread, self.model, self.train
        if thread == "none":
            return
        some = extent_of(self.data) != "all"
        unread = train.positives in ("accepted", "answers") and model.checkpoint is None
        wrong = {
            "finds answers, and Task 2 formulas; use experiment.tasks=[1]": 2 in tasks,
            "reads questions beside answers, and data.posts=needed parses some posts only; use data.posts=all": some,
            "has labels without words; use model.label_vectors=null": model.label_vectors is not None,
            "has several document nodes in a graph; use model.vn_init=zero or random": model.vn_init == "mean",
            "has no views of formulas; use train.formula_view_weight=0": train.formula_view_weight > 0,
            f"and train.positives={train.positives} read no answer with its question in training; use "
            "train.positives=duplicates or all": thread == "question" and unread,
        }
        for message, applies in wrong.items():
            if applies:
                raise ConfigError(f"graph.thread={thread} {message}")


# Settings that may name a text encoder.
_TEXT_ENCODERS = (("model", "label_vectors"), ("model", "sentence_vectors"), ("train", "teacher"))


def _weights(path: str) -> str:
    """Return the hash of a checkpoint's weights."""
    if not checkpoint.exists(path):
        raise ConfigError(f"model.checkpoint={path} holds no checkpoint; name a folder such as model/best")
    return checkpoint.weights_hash(path)


def _parser(settings: GraphSettings) -> str:
    """Return the parser of the graphs: of a given collection the one that made it."""
    from mathamr.stages.collection import given_parser  # imports the parser of formulas

    given = settings.data.collection
    return parsers.name(settings) if given is None else given_parser(Path(given))


@dataclass(frozen=True, kw_only=True)
class TextSettings(SearchSettings):
    """Settings of :class:`mathamr.systems.text.TextSystem`."""

    text: TextConfig
    train: TrainConfig

    def __post_init__(self) -> None:
        """Raise ConfigError for vectors of tokens that the search does not use, or that several processes train."""
        if not (self.text.epochs and self.text.learns_tokens):
            return
        if not self.text.late_interaction:
            raise ConfigError(
                "text.loss=maxsim trains vectors of tokens, which the search does not use; use "
                "text.late_interaction=true, or text.loss=mnrl"
            )
        if self.train.processes != 1:
            raise ConfigError(
                f"text.loss=maxsim trains in one process; use train.processes=1, not {self.train.processes}"
            )

    free: ClassVar = {"text": ("checkpoint_every", "gradient_checkpointing"), "index": ("location", "keep")}

    def replacement(self, group: str, name: str) -> str | None:
        """Return the setting of the encoder's training that is read in place of one of ``train``."""
        replaced = group == "train" and name not in _PAIRS and name in {one.name for one in fields(TextConfig)}
        return f"text.{name}" if replaced else None

    @property
    def is_trained(self) -> bool:
        """True if the encoder is pretrained or fine-tuned, instead of taken as it is."""
        return bool(self.text.epochs or self.text.pretraining_epochs)

    @property
    def texts_hash(self) -> str | None:
        """Hash of ``data.texts``, if the encoder is pretrained on it; raises ConfigError without such a file."""
        if self.data.texts is None or not self.text.pretraining_epochs:
            return None
        try:
            return digests.of_file_once(Path(self.data.texts))
        except OSError as error:
            raise ConfigError(f"data.texts={self.data.texts} cannot be read: {error.strerror}") from error

    def model_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the encoder; of one that is trained, also the seed and what makes pairs."""
        free = self.free["text"]
        text = {name: value for name, value in self.text.set_away_from_default().items() if name not in free}
        text["encoder"] = identity(text["encoder"])
        if "guide" in text:
            text["guide"] = identity(text["guide"])
        del text["late_interaction"]  # the search alone
        if text.get("linearize"):
            from mathamr.text import linearize  # imports the parser of formulas

            text["linearize"] = linearize.VERSION
        if self.is_trained:
            train = {name: getattr(self.train, name) for name in _PAIRS}
            texts = {} if (found := self.texts_hash) is None else {"texts": found}
            return {"text": text, "train": train, "batches": batches.VERSION, **texts}
        kept = {name: text[name] for name in _AS_IT_IS if name in text}
        return {"text": kept if self.text.precision == "fp32" else {**kept, "precision": self.text.precision}}

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the search."""
        search = {group: self.key_settings(group) for group in ("index", "retrieval")}
        return {**search, "late_interaction": self.text.late_interaction, **self.thread.key_parts()}


# Settings that the vectors of an encoder depend on that is not trained, and those that make the pairs of one that is.
_AS_IT_IS = ("encoder", "max_length", "linearize", *(one.name for one in fields(Opening)))
_PAIRS = ("positives", "least_score", "max_pairs", "validation_fraction", "seed")
