"""Types of the configuration; the values are in ``conf/``, each once, with its source.

>>> from experiments.configuration.schema import schema_of
>>> config = OmegaConf.structured(schema_of(WandbConfig))
>>> config.mdoe = "offline"
Traceback (most recent call last):
    ...
omegaconf.errors.ConfigAttributeError: Key 'mdoe' not in 'WandbConfig'
    full_key: mdoe
    object_type=WandbConfig

A composed configuration goes no further than :mod:`experiments.plan`: :func:`read` makes a :class:`Config` of what all
jobs share, and :func:`experiments.configuration.registration.job_settings` the settings of a system.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from experiments.configuration.schema import filled
from mathamr.stages.settings import DataSettings, ExampleSettings


@dataclass(frozen=True, kw_only=True)
class GeometryConfig:
    """Settings for analysing a model's vectors, as in :mod:`experiments.analyses.geometry`."""

    k: int
    samples: int
    size: int | None
    psi: float
    posts: int
    topics: int
    statements: int
    projections: list[str]
    general: str | None = None


@dataclass(frozen=True, kw_only=True)
class WandbConfig:
    """Settings of Weights & Biases, as in :mod:`experiments.tracking.logbook`; no result depends on them."""

    mode: str
    project: str
    entity: str | None
    artifacts: bool


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """Experiment: conditions with the settings that they change, the baseline of comparisons, and the seeds.

    Attributes:
        tasks: 1 (answers), and 2 (formulas) if the collection has such topics; or names of its tests.
        measures: titles of measures, with their names in ir_measures; empty: those of ARQMath.
        labels: names of conditions in reports.
        example: the topic and the post that every job shows.
        baselines: conditions that are compared with another one than ``baseline``.
        only: conditions to run; None: all.
        analyses: analyses of the vectors: ``collapse``, ``geometry``, ``weighting`` or ``failures``.
        topic_labels: file with groups of topics, by which the report breaks scores down
            (:mod:`experiments.report.breakdowns`).
    """

    name: str
    title: str
    conditions: dict[str, Any] = field(default_factory=dict)
    baseline: str
    seeds: list[int] = field(default_factory=list)
    tasks: list[Any] = field(default_factory=lambda: [1])
    measures: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    example: ExampleSettings = field(default_factory=ExampleSettings)
    baselines: dict[str, str] = field(default_factory=dict)
    only: list[str] | None = None
    analyses: list[str] = field(default_factory=list)
    topic_labels: str | None = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration shared by all jobs, without the groups of systems: one group of ``conf/`` a field."""

    data: DataSettings
    parsers: dict[str, Any] = field(default_factory=dict)
    geometry: GeometryConfig
    wandb: WandbConfig
    experiment: ExperimentConfig | None = None
    track: str
    outputs: str
    workers: int
    job: str | None


def plain(config: Any) -> Any:
    """Return a part of a composed configuration as dicts, lists and values; interpolations are resolved."""
    return OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config


def read(config: DictConfig) -> Config:
    """Return what all jobs of a composed configuration share.

    Raises:
        ConfigError: a key without a setting, or a missing value.
    """
    values = cast(dict[str, Any], plain(config))
    return filled(Config, {one.name: values[one.name] for one in fields(Config)}, "")
