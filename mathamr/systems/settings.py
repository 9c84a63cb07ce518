"""Settings of the systems of this package, and where each system is.

>>> list(BUILT_IN["graph"].settings.groups())
['graph', 'train', 'index', 'retrieval', 'thread', 'model']
>>> BUILT_IN["bm25"].place
'mathamr.systems.bm25:BM25System'

Settings are read, and jobs are planned, without torch: a system is imported when one of its jobs runs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName, title
from mathamr.model.config import EncoderConfig
from mathamr.stages import parsers, sources
from mathamr.stages.collection import given_parser
from mathamr.stages.needed import extent_of
from mathamr.stages.settings import JobSettings, PreparationSettings, RetrievalConfig, SearchSettings, ThreadConfig
from mathamr.structure.latent_config import LatentConfig
from mathamr.structure.scoring import StructureConfig
from mathamr.systems.rerank_settings import RerankSettings
from mathamr.text import linearize
from mathamr.text.config import TextConfig
from mathamr.text.encoder import Opening, identity
from mathamr.text.training import batches
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig

# -- track=graph -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig(EncoderConfig):
    """Settings of the encoder that is trained, or a trained one.

    Attributes:
        checkpoint: folder of a model that was trained elsewhere; None: one is trained.
    """

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


# Settings that may name a text encoder.
_TEXT_ENCODERS = (("model", "label_vectors"), ("model", "sentence_vectors"), ("train", "teacher"))


def _weights(path: str) -> str:
    """Return the hash of a checkpoint's weights.

    Raises:
        ConfigError: there is no checkpoint.
    """
    if not checkpoint.exists(path):
        raise ConfigError(f"model.checkpoint={path} holds no checkpoint; name a folder such as model/best")
    return checkpoint.weights_hash(path)


def _parser(settings: GraphSettings) -> str:
    """Return the parser of the graphs: of a given collection the one that made it."""
    given = settings.data.collection
    return parsers.name(settings) if given is None else given_parser(Path(given))


# -- track=text ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TextSettings(SearchSettings):
    """Settings of :class:`mathamr.systems.text.TextSystem`."""

    text: TextConfig
    train: TrainConfig

    free: ClassVar = {"text": ("checkpoint_every",), "index": ("location", "keep")}

    @property
    def is_trained(self) -> bool:
        """True if the encoder is pretrained or fine-tuned, instead of taken as it is."""
        return bool(self.text.epochs or self.text.pretraining_epochs)

    def model_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the encoder; of one that is trained, also the seed and what makes pairs."""
        free = self.free["text"]
        text = {name: value for name, value in self.text.set_away_from_default().items() if name not in free}
        text["encoder"] = identity(text["encoder"])
        del text["late_interaction"]  # the search alone
        if text.get("linearize"):
            text["linearize"] = linearize.VERSION
        if self.is_trained:
            train = {name: getattr(self.train, name) for name in _PAIRS}
            return {"text": text, "train": train, "batches": batches.VERSION}
        kept = {name: text[name] for name in _AS_IT_IS if name in text}
        return {"text": kept if self.text.precision == "fp32" else {**kept, "precision": self.text.precision}}

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the search."""
        search = {group: self.key_settings(group) for group in ("index", "retrieval")}
        return {**search, "late_interaction": self.text.late_interaction, **self.thread.key_parts()}


# Settings that the vectors of an encoder depend on that is not trained, and those that make the pairs of one that is.
_AS_IT_IS = ("encoder", "max_length", "linearize", *(one.name for one in fields(Opening)))
_PAIRS = ("positives", "least_score", "max_pairs", "validation_fraction", "seed")


# -- systems that train nothing --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RankingSettings(JobSettings):
    """Settings of a system that trains nothing: those of a ``group``, and the number of results."""

    group: ClassVar[str]

    retrieval: RetrievalConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the group, and the number of results."""
        return {self.group: self.key_settings(self.group), "k": self.retrieval.k}


# -- track=bm25 ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BM25Config:
    """Settings of BM25: compare ``by`` text, words and LaTeX; or by formulas, pairs of symbols in their trees.

    ``k1`` bounds what repetitions of a word add, ``b`` from 0 to 1 is how much long posts are marked down.
    """

    by: str
    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0 and 0 <= self.b <= 1):
            raise ConfigError(f"bm25.k1={self.k1} must be at least 0, and bm25.b={self.b} from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class BM25Settings(RankingSettings):
    """Settings of :class:`mathamr.systems.bm25.BM25System`."""

    group: ClassVar = "bm25"

    bm25: BM25Config
    thread: ThreadConfig = field(default_factory=ThreadConfig)

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings, the number of results, and how threads are read.

        Keys stay unchanged at the defaults of ``k1`` and ``b``.
        """
        own = {name: value for name, value in self.key_settings("bm25").items() if _BM25_DEFAULTS.get(name) != value}
        return {**super().result_key_parts(), "bm25": own, **self.thread.key_parts()}


_BM25_DEFAULTS = {one.name: one.default for one in fields(BM25Config) if one.name != "by"}


# -- track=structure -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StructureSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.structure.StructureSystem`."""

    group: ClassVar = "structure"

    structure: StructureConfig


# -- track=latent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LatentSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.latent.LatentSystem`."""

    group: ClassVar = "latent"

    latent: LatentConfig


# -- track=fusion ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """Which conditions are fused, and how, as in :mod:`mathamr.retrieval.fusion`.

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

    fusion: FusionConfig

    def needs(self) -> Sequence[str]:
        """Return the conditions that are fused."""
        parts = self.fusion.of
        if len(set(parts)) < max(2, len(parts)):
            raise ConfigError(f"fusion.of={parts}; fusing takes two or more different conditions")
        return parts


# -- track=learned ---------------------------------------------------------------------------------------------------


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

    learned: LearnedConfig

    judged: ClassVar = True

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings, the number of results, and the content hash of given weights.

        Raises:
            ConfigError: the file of weights does not exist.
        """
        path = self.weights_path
        given = {} if path is None else {"weights": hashlib.sha256(path.read_bytes()).hexdigest()}
        return {"learned": self.key_settings("learned") | given, "k": self.retrieval.k}

    @property
    def weights_path(self) -> Path | None:
        """The file of given weights.

        Raises:
            ConfigError: there is no such file.
        """
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


# -- track=run -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GivenRunConfig:
    """Run files of another system: ``path`` of Task 1 or a test, ``task2_path`` of Task 2, ``paths`` of named tests."""

    path: str | None
    task2_path: str | None
    paths: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GivenRunSettings(JobSettings):
    """Settings of :class:`mathamr.systems.given_run.GivenRunSystem`."""

    run: GivenRunConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the content hash of the run file for each task; empty where none is named.

        The collection may have no topics of a task without a file; ``GivenRunSystem.check`` demands the others.

        Raises:
            ConfigError: a file that is named does not exist, or is named for several tests.
        """
        files = [self._named(task) for task in self.tasks]
        return {"run": ["" if file is None else hashlib.sha256(file.read_bytes()).hexdigest() for file in files]}

    def path_of(self, task: TestName) -> Path:
        """Return the run file for a task or a test.

        Raises:
            ConfigError: no file is named for it, or one for several tests, or there is no such file.
        """
        path = self._named(task)
        if path is None:
            key = "task2_path=" if task == 2 else "path=" if task == 1 else f"paths.{task}"
            raise ConfigError(f"track=run needs run.{key}, the run file for {title(task)}")
        return path

    def _named(self, task: TestName) -> Path | None:
        """Return the run file that is named for a task or a test; None if none is."""
        key, value = ("task2_path", self.run.task2_path) if task == 2 else ("path", self.run.path)
        if isinstance(task, str):
            named = {test: file for test, file in self.run.paths.items() if file is not None}
            tests = [test for test in self.tasks if isinstance(test, str)]
            files = {test: named.get(test, value) for test in tests}
            shared = [test for test in tests if test != task and files.get(task) and files[test] == files[task]]
            if shared:
                raise ConfigError(
                    f"{files[task]} is the run file for the tests {task} and {', '.join(shared)}; name one for each: "
                    f"run: {{paths: {{{', '.join(f'{test}: {test}.tsv' for test in tests)}}}}}"
                )
            if task in named:
                key, value = f"paths.{task}", named[task]
        if value is None:
            return None
        path = Path(value)
        if not path.is_file():
            raise ConfigError(f"run.{key}={value} is no file")
        return path


# -- all of them -----------------------------------------------------------------------------------------------------


class BuiltIn(NamedTuple):
    """A system of this package: its settings, and its class as ``MODULE:CLASS``, imported when it is used."""

    settings: type[JobSettings]
    place: str


BUILT_IN: Mapping[str, BuiltIn] = {
    "graph": BuiltIn(GraphSettings, "mathamr.systems.graph:GraphSystem"),
    "text": BuiltIn(TextSettings, "mathamr.systems.text:TextSystem"),
    "bm25": BuiltIn(BM25Settings, "mathamr.systems.bm25:BM25System"),
    "structure": BuiltIn(StructureSettings, "mathamr.systems.structure:StructureSystem"),
    "latent": BuiltIn(LatentSettings, "mathamr.systems.latent:LatentSystem"),
    "fusion": BuiltIn(FusionSettings, "mathamr.systems.fusion:FusionSystem"),
    "learned": BuiltIn(LearnedSettings, "mathamr.systems.learned:LearnedSystem"),
    "rerank": BuiltIn(RerankSettings, "mathamr.systems.rerank:RerankSystem"),
    "run": BuiltIn(GivenRunSettings, "mathamr.systems.given_run:GivenRunSystem"),
}
"""Systems by their value of ``track=``."""
