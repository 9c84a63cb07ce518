"""Conditions x seeds -> jobs, and which of them are done already.

An experiment names its conditions by what they change (``conf/exp/vn_connectivity.yaml``):

    conditions:
      none: {graph: {connectivity: none}}
      sequential: {graph: {connectivity: sequential}}
    baseline: none
    seeds: [42, 43, 44]

makes six jobs, ``none-seed42`` to ``sequential-seed44``. A job's ``key`` is a hash of everything that its result
depends on (configuration of every stage, seed, data); its folder is ``outputs/EXP/jobs/NAME``. A job is done when its
``result.json`` carries its key, so a changed configuration runs again and a finished job does not. ``job=K/N`` selects
every N-th job, the K-th first, for an array of a batch system.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from graphs.errors import ConfigError

# What a result depends on. Not: where files lie, how many processes work, which job of the plan this is.
_GROUPS = ("track", "data", "graph", "model", "train", "index", "retrieval")
_NOT_RESULTS = {"data": ("root",), "train": ("device", "workers"), "index": ("location",)}


@dataclass(frozen=True)
class Job:
    """One condition with one seed: its whole configuration and its key."""

    condition: str
    seed: int
    config: DictConfig
    key: str

    @property
    def name(self) -> str:
        """Its folder below ``jobs/``."""
        return f"{self.condition}-seed{self.seed}"


def plan(config: DictConfig, fingerprint: str) -> list[Job]:
    """All jobs of ``config.experiment``, seed by seed within a condition.

    Args:
        config: the composed configuration.
        fingerprint: identifies the data.

    Raises:
        ConfigError: no conditions or seeds, a repeated seed, a name that is no file name, a baseline that is no
            condition, a condition that changes nothing there is, or two conditions that are the same.
    """
    experiment = config.experiment
    conditions = list(experiment.conditions or {})
    seeds = list(experiment.seeds or [])
    if not conditions or not seeds:
        raise ConfigError("experiment.conditions and experiment.seeds name no job; add +exp=NAME, see conf/exp/")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"experiment.seeds repeats a seed: {seeds}")
    if experiment.baseline not in conditions:
        known = ", ".join(conditions)
        raise ConfigError(f"experiment.baseline={experiment.baseline} is not among the conditions: {known}")
    jobs: list[Job] = []
    for condition in conditions:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", condition):
            raise ConfigError(f"condition {condition!r} becomes a folder; use letters, digits and . _ + - only")
        for seed in seeds:
            jobs.append(_job(config, condition, int(seed), fingerprint))
    by_key: dict[str, Job] = {}
    for job in jobs:
        twin = by_key.setdefault(job.key, job)
        if twin is not job:
            raise ConfigError(f"conditions {twin.condition} and {job.condition} are the same experiment; remove one")
    return jobs


def _job(config: DictConfig, condition: str, seed: int, fingerprint: str) -> Job:
    merged = OmegaConf.create(config)
    OmegaConf.set_struct(merged, True)
    changes = config.experiment.conditions[condition]
    try:
        merged = cast(DictConfig, OmegaConf.merge(merged, changes or {}, {"train": {"seed": seed}}))
    except OmegaConfBaseException as error:
        raise ConfigError(f"condition {condition}: {str(error).splitlines()[0]}") from error
    return Job(condition, seed, merged, job_key(merged, fingerprint))


def job_key(config: DictConfig, fingerprint: str) -> str:
    """Hash of everything that a job's result depends on."""
    matters: dict[str, Any] = {"fingerprint": fingerprint}
    for group in _GROUPS:
        value = config[group]
        plain = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        if isinstance(plain, dict):
            plain = {str(k): v for k, v in plain.items() if k not in _NOT_RESULTS.get(group, ())}
        matters[group] = plain
    return hashlib.sha256(json.dumps(matters, sort_keys=True).encode()).hexdigest()[:16]


def select(jobs: Sequence[Job], part: str | None) -> list[Job]:
    """The jobs of ``part`` ``K/N``: every N-th, beginning with the K-th; all where ``part`` is ``None``.

    >>> [job for job in select(["a", "b", "c", "d", "e"], "2/2")]
    ['b', 'd']
    """
    if part is None:
        return list(jobs)
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"job={part} is not of the form K/N with 1 <= K <= N, e.g. job=3/12")
    return list(jobs[int(match[1]) - 1 :: int(match[2])])


def finished(job: Job, folder: Path) -> dict[str, Any] | None:
    """The result of ``job`` if ``folder`` (``outputs/EXP``) holds it, made with this very configuration."""
    return _record(job, folder, "result.json")


def failure(job: Job, folder: Path) -> str | None:
    """Why ``job`` failed, where it did when it was last run with this very configuration."""
    record = _record(job, folder, "failed.json")
    return None if record is None else str(record["reason"])


def _record(job: Job, folder: Path, name: str) -> dict[str, Any] | None:
    path = folder / "jobs" / job.name / name
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("key") == job.key else None
