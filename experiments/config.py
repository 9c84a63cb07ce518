"""Types of the configuration; the values are in ``conf/``, each once, with its source.

>>> config = OmegaConf.structured(DataConfig)
>>> config.nmae = "arqmath"
Traceback (most recent call last):
    ...
omegaconf.errors.ConfigAttributeError: Key 'nmae' not in 'DataConfig'
    full_key: nmae
    object_type=DataConfig

Groups of settings that systems have (``graph``, ``bm25``, ...) are typed by the systems themselves
(:attr:`mathamr.systems.system.System.groups`), so a setting is described where it acts. A group with a file
``default.yaml`` needs no line in ``conf/config.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from graphs.errors import ConfigError, suggestion
from mathamr.stages.settings import schema_of
from mathamr.systems import registry

if TYPE_CHECKING:
    from mathamr.systems.system import System

CONF = Path(__file__).resolve().parents[1] / "conf"


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
    """Everything but the groups of systems: one group of ``conf/`` a field."""

    data: DataConfig = field(default_factory=DataConfig)
    parsers: dict[str, Any] = field(default_factory=dict)
    geometry: GeometryConfig = field(default_factory=GeometryConfig)
    wandb: WandbConfig = field(default_factory=WandbConfig)
    experiment: ExperimentConfig | None = None
    track: str = MISSING
    outputs: str = MISSING
    workers: int = MISSING
    job: str | None = MISSING


def register() -> None:
    """Make the types known to Hydra as the config ``schema``, which ``conf/config.yaml`` begins with.

    Raises:
        ConfigError: two systems have one name or type a group differently, or a file of a system is not YAML.
    """
    systems = registry.loadable()
    groups = _groups(systems)
    with_default = {path.parent.name for path in CONF.glob("*/default.yaml")}
    with_default |= {group for kind in systems.values() for group, name in _store_files(kind) if name == "default"}
    lines = OmegaConf.load(CONF / "config.yaml").defaults
    listed = {name for line in lines if not isinstance(line, str) for name in line}
    defaults = ["_self_", *({name: "default"} for name in groups if name in with_default - listed)]
    further: list[Any] = [("defaults", list[Any], field(default_factory=lambda: defaults))]
    further += [(name, Any, field(default_factory=partial(deepcopy, group))) for name, group in groups.items()]
    ConfigStore.instance().store(name="schema", node=make_dataclass("Config", further, bases=(Config,)))


def _store_files(kind: type[System]) -> list[tuple[str, str]]:
    """Make the files of a system's groups known to Hydra; return their groups and names.

    Raises:
        ConfigError: a file is not YAML.
    """
    found = []
    for path in [] if kind.conf is None else sorted(kind.conf.glob("*/*.yaml")):
        if path.parent.name in kind.groups:
            try:
                ConfigStore.instance().store(group=path.parent.name, name=path.stem, node=OmegaConf.load(path))
            except Exception as error:
                raise ConfigError(f"settings of track={kind.name} are not YAML: {error}", path=path) from error
            found.append((path.parent.name, path.stem))
    return found


def _groups(systems: Mapping[str, type[System]]) -> dict[str, DictConfig]:
    """Return the groups of all systems by name, with the keys and types of their settings."""
    types: dict[str, Any] = {}
    owners: dict[str, str] = {}
    for kind in systems.values():
        for name, settings in kind.groups.items():
            if name in {base.name for base in fields(Config)}:
                raise ConfigError(f"track={kind.name} has a group {name}, which is not a group of a system; rename it")
            if types.setdefault(name, settings) is not settings:
                raise ConfigError(
                    f"tracks {owners[name]} and {kind.name} type the group {name} differently; rename one"
                )
            owners.setdefault(name, kind.name)
    return {name: schema_of(settings) if isinstance(settings, type) else settings for name, settings in types.items()}


def validated(config: DictConfig) -> DictConfig:
    """The configuration with nothing missing.

    Raises:
        ConfigError: names the first key that has no value, or that ``++KEY=VALUE`` has made up.
    """
    try:
        missing = sorted(OmegaConf.missing_keys(config))
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from error
    if missing:
        raise ConfigError(f"{missing[0]} has no value; give {missing[0]}=... on the command line")
    known = set(ConfigStore.instance().load("schema.yaml").node) - {"defaults"}
    if unknown := sorted(str(name) for name in set(config) - known):
        raise ConfigError(f"unknown key {unknown[0]}{suggestion(unknown[0], [str(name) for name in known])}")
    if config.workers < 1:
        raise ConfigError(f"workers={config.workers} must be at least 1")
    return config
