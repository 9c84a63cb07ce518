"""The types of the configuration; the values stand in ``conf/``, each once, with its source.

>>> config = OmegaConf.structured(DataConfig)
>>> config.nmae = "arqmath"
Traceback (most recent call last):
    ...
omegaconf.errors.ConfigAttributeError: Key 'nmae' not in 'DataConfig'
    full_key: nmae
    object_type=DataConfig

Dataclasses of the library are used as they are (``EncoderConfig``, ``TrainConfig``), so a setting is described where it
acts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, get_type_hints

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from graphs.errors import ConfigError
from mathamr.model.encoder import EncoderConfig
from mathamr.text.config import TextConfig
from mathamr.training.config import TrainConfig


@dataclass
class SourceConfig:
    """A further collection to learn from: ``name`` and ``root`` likewise, and of its pairs the first ``most_pairs``."""

    name: str = MISSING
    root: str | None = None
    most_pairs: int | None = None


@dataclass
class DataConfig:
    """The collection, as :func:`graphs.corpus.corpus.open_corpus` opens it, and what is used of it.

    Attributes:
        years: years of the topics.
        regime: what is indexed (:data:`mathamr.evaluation.metrics.Regime`).
        posts: posts to parse, needed or all (:mod:`mathamr.stages.needed`).
        collection: collection.db that was made elsewhere.
        formulas: formulas.db that was made elsewhere.
        graphs: preprocessed.db that was made elsewhere.
        judgments: edition of the judgments, official or all.
        split: split of the judgments, of collections that have several.
        id: name of a data set of ir_datasets.
        relevant_grade: lowest grade that counts as relevant; null: 2, or 1 where no grade is above 1.
        sources: further collections by names of your own, to learn from where ``train.pairs`` has their names.
    """

    name: str = MISSING
    root: str | None = MISSING
    years: list[int] = MISSING
    regime: str = MISSING
    posts: str | None = None
    collection: str | None = None
    formulas: str | None = None
    graphs: str | None = None
    judgments: str = MISSING
    split: str | None = MISSING
    id: str | None = MISSING
    relevant_grade: int | None = MISSING
    sources: dict[str, SourceConfig] = field(default_factory=dict)


@dataclass
class GraphConfig:
    """How posts become graphs; ``parser`` as in :mod:`mathamr.stages.parsers`; ``structure``, ``connectivity`` and
    ``formulas`` as in ``VirtualNodeSpec``."""

    parser: str = MISSING
    structure: str = MISSING
    connectivity: str = MISSING
    formulas: str = MISSING
    vocabulary_size: int = MISSING
    number_threshold: int = MISSING


@dataclass
class BM25Config:
    """What BM25 compares: ``by`` text, words and LaTeX; or formulas, pairs of symbols in their trees."""

    by: str = MISSING


@dataclass
class FusionConfig:
    """Which conditions are fused, and how, as in :mod:`mathamr.retrieval.fusion`.

    ``of``: two or more conditions of the experiment that are no fusions. ``how``: rrf, by ranks with the constant
    ``k``; or weighted, by scores with one of ``weights`` each. Weights are named here, before anything is measured.
    """

    of: list[str] = MISSING
    how: str = MISSING
    k: int = MISSING
    weights: list[float] | None = None


@dataclass
class GivenRunConfig:
    """Run files of another system: ``path`` of Task 1 or a test, ``task2_path`` of Task 2, ``paths`` of named tests."""

    path: str | None = MISSING
    task2_path: str | None = MISSING
    paths: dict[str, str | None] = field(default_factory=dict)


@dataclass
class IndexConfig:
    """Where vectors are kept: ``backend`` exact or qdrant; ``location`` of qdrant: embedded, or a server's URL.

    Of qdrant's HNSW graphs, ``m``: edges a node of the one of document vectors; ``m_all``: of the one of all vectors,
    without which approximate maxsim is refused; ``ef_construct``: breadth of building. A server keeps the index of each
    job under a name of its own.
    ``keep``: leave the index in the job's folder, instead of removing it once it was searched.
    """

    backend: str = MISSING
    location: str | None = MISSING
    m: int | None = None
    m_all: int = MISSING
    ef_construct: int | None = None
    keep: bool = MISSING


@dataclass
class RetrievalConfig:
    """How the index is searched, as in :class:`mathamr.retrieval.Strategy`, and how many results a topic gets."""

    strategy: str = MISSING
    exact: bool = MISSING
    pool: int = MISSING
    ef: int = MISSING
    k: int = MISSING


@dataclass
class GeometryConfig:
    """How the space of a model's vectors is looked into, as in :mod:`experiments.analyses.geometry`."""

    k: int = MISSING
    samples: int = MISSING
    size: int | None = MISSING
    psi: float = MISSING
    posts: int = MISSING
    topics: int = MISSING
    statements: int = MISSING


@dataclass
class WandbConfig:
    """Where Weights & Biases keeps a run, as in :mod:`experiments.logbook`; no result depends on it."""

    mode: str = MISSING
    project: str = MISSING
    entity: str | None = MISSING
    artifacts: bool = MISSING


@dataclass
class ExampleConfig:
    """The topic and the post whose similarities every job shows; null: the first judged topic, and its best post."""

    topic: str | None = None
    post: str | None = None


@dataclass
class ExperimentConfig:
    """A question: each condition by what it changes, the one that others are compared with, and the seeds.

    ``tasks``: 1 finds answers, 2 formulas, where the collection has such topics; or the names of its tests.
    ``measures``: titles of measures, and what ir_measures calls them; none: those of ARQMath. ``labels``: what reports
    call a condition. ``baselines``: conditions that are compared with another one than ``baseline``. ``only``: run
    these conditions and leave the others as they are. ``analyses``: of the vectors, ``collapse``, ``geometry`` or
    ``weighting``.
    """

    name: str = MISSING
    title: str = MISSING
    conditions: dict[str, Any] = field(default_factory=dict)
    baseline: str = MISSING
    seeds: list[int] = field(default_factory=list)
    tasks: list[Any] = field(default_factory=lambda: [1])
    measures: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    example: ExampleConfig = field(default_factory=ExampleConfig)
    baselines: dict[str, str] = field(default_factory=dict)
    only: list[str] | None = None
    analyses: list[str] = field(default_factory=list)


@dataclass
class Config:
    """Everything: one group of ``conf/`` a field."""

    data: DataConfig = field(default_factory=DataConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    parsers: dict[str, Any] = field(default_factory=dict)
    model: Any = field(default_factory=lambda: schema_of(EncoderConfig, checkpoint=str))
    train: Any = field(default_factory=lambda: schema_of(TrainConfig))
    text: Any = field(default_factory=lambda: schema_of(TextConfig))
    bm25: BM25Config = field(default_factory=BM25Config)
    fusion: FusionConfig = field(default_factory=FusionConfig)
    run: GivenRunConfig = field(default_factory=GivenRunConfig)
    index: IndexConfig = field(default_factory=IndexConfig)
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)
    geometry: GeometryConfig = field(default_factory=GeometryConfig)
    wandb: WandbConfig = field(default_factory=WandbConfig)
    experiment: ExperimentConfig | None = None
    track: str = MISSING
    outputs: str = MISSING
    workers: int = MISSING
    job: str | None = MISSING


def schema_of(settings: type, **further: type) -> DictConfig:
    """Return the keys and types of a frozen dataclass, to be filled: OmegaConf holds a frozen one to be read-only.

    Args:
        settings: the dataclass.
        further: keys that the dataclass does not have and that may be absent, with their types.
    """
    types = get_type_hints(settings)
    keys: list[Any] = [(key.name, types[key.name], field(default=MISSING)) for key in fields(settings)]
    keys += [(name, kind | None, field(default=None)) for name, kind in further.items()]
    schema: DictConfig = OmegaConf.structured(make_dataclass(settings.__name__, keys))
    return schema


def register() -> None:
    """Make the types known to Hydra as the config ``schema``, which ``conf/config.yaml`` begins with."""
    ConfigStore.instance().store(name="schema", node=OmegaConf.structured(Config))


def validated(config: DictConfig) -> DictConfig:
    """The configuration with nothing missing.

    Raises:
        ConfigError: names the first key that has no value.
    """
    try:
        missing = sorted(OmegaConf.missing_keys(config))
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from error
    if missing:
        raise ConfigError(f"{missing[0]} has no value; give {missing[0]}=... on the command line")
    if config.workers < 1:
        raise ConfigError(f"workers={config.workers} must be at least 1")
    return config
