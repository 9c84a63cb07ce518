"""Conditions x seeds -> jobs, and the state of each.

Conditions list the settings that they change (``conf/exp/vn_connectivity.yaml``):

    conditions:
      none: {graph: {connectivity: none}}
      sequential: {graph: {connectivity: sequential}}
    baseline: none
    seeds: [42, 43, 44]

This makes six jobs, ``none-seed42`` to ``sequential-seed44``. Each stage of a job has a key, a hash of its
dependencies (:mod:`experiments.keys`). Conditions and experiments that differ only in retrieval share a model. If no
part of a key depends on the seed, the jobs of all seeds have the same key: one of them runs, the others copy its
result. A job is done if its ``result.json`` has its key, so only a changed configuration runs again.

``job=K/N`` selects every N-th job, from the K-th, for an array of a batch system, with the jobs that these need.
``experiment.only=[...]`` selects conditions. A job that needs others, such as a fusion, comes after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

from omegaconf import DictConfig

from experiments.configuration.conditions import composed
from experiments.configuration.config import Config, ExperimentConfig, read
from experiments.configuration.registration import job_settings
from experiments.keys import condition_key, job_key, model_key, run_key
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError, suggestion
from graphs.shared_files import is_locked, read_json
from mathamr.evaluation.result_file import read_result
from mathamr.evaluation.result_names import check_titles
from mathamr.stages.settings import JobSettings

_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
LOCK = ".lock"
"""Lock file in a job's folder, held by the process that runs the job."""

State = Literal["done", "running elsewhere", "failed", "missing"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A condition with a seed.

    Attributes:
        config: configuration that all jobs share.
        key: hash of everything that its result depends on.
        model_key: of everything that its model depends on; empty where nothing is trained.
        run_key: of everything that its rankings depend on.
        condition_key: hash of everything but the seed, equal for all seeds of a condition.
        needs: jobs whose rankings it reads.
        record: its configuration as plain values, for the logbook, without what no result depends on.
    """

    condition: str
    seed: int
    config: Config
    settings: JobSettings
    key: str
    model_key: str = ""
    run_key: str = ""
    condition_key: str = ""
    collection_hash: str = ""
    needs: tuple[Job, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def experiment(self) -> ExperimentConfig:
        """Experiment of the job."""
        assert self.config.experiment is not None  # else nothing was planned
        return self.config.experiment

    @property
    def name(self) -> str:
        """Its folder below ``jobs/``."""
        return f"{self.condition}-seed{self.seed}"

    @property
    def depth(self) -> int:
        """Number of jobs one after the other that come first: 0 without needs."""
        return 1 + max((job.depth for job in self.needs), default=-1)


def plan(config: DictConfig, data: Fingerprints) -> list[Job]:
    """Return all jobs of ``config.experiment``, seed by seed within a condition; jobs follow the jobs that they need.

    Raises:
        ConfigError: no conditions or seeds, a repeated seed or label, an invalid name, an unknown baseline, a
            condition with a setting that conditions cannot change, two jobs with the same output, an unknown track,
            conditions that need an unknown condition or each other, or titles of measures that share a column.
    """
    shared = read(config)
    experiment = shared.experiment
    conditions = [] if experiment is None else list(experiment.conditions)
    if experiment is None or not conditions or not experiment.seeds:
        raise ConfigError("experiment.conditions and experiment.seeds name no job; add +exp=NAME, see conf/exp/")
    seeds = experiment.seeds
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"experiment.seeds repeats a seed: {seeds}; two jobs would have one output")
    _check_name(experiment.name)
    _check_names(conditions, experiment.labels)
    check_titles(experiment.measures)
    named = {
        "baseline": [experiment.baseline],
        "only": experiment.only or [],
        "baselines": [*experiment.baselines, *experiment.baselines.values()],
    }
    for key, names in named.items():
        for name in names:
            if name not in conditions:
                among = f"is not among the conditions: {', '.join(conditions)}{suggestion(name, conditions)}"
                raise ConfigError(f"experiment.{key}={name} {among}")
    configurations = composed(config, conditions, seeds)
    settings = _settings(config, configurations)
    jobs: list[Job] = []
    seedless: dict[str, str] = {}
    for condition, needs in _needs(settings).items():
        one = settings[condition, seeds[0]]
        seedless[condition] = condition_key(one, shared, data, [seedless[name] for name in needs])
        for seed in seeds:
            parts = tuple(job for name in needs for job in jobs if (job.condition, job.seed) == (name, seed))
            own, of_job = settings[condition, seed], configurations[condition, seed]
            made_of = [part.run_key for part in parts]
            rankings = run_key(own, data, made_of)
            jobs.append(
                Job(
                    condition=condition,
                    seed=seed,
                    config=shared,
                    settings=own,
                    key=job_key(rankings, shared, data),
                    model_key=model_key(own, data, made_of),
                    run_key=rankings,
                    condition_key=seedless[condition],
                    collection_hash=data.graphs[:16],
                    needs=parts,
                    record={name: value for name, value in of_job.items() if name not in ("wandb", "experiment")},
                )
            )
    by_key: dict[str, Job] = {}
    for job in jobs:
        twin = by_key.setdefault(job.key, job)
        if twin.condition != job.condition:
            raise ConfigError(f"conditions {twin.condition} and {job.condition} are the same experiment; remove one")
    return jobs


def settings_of(config: DictConfig, condition: str, seed: int) -> JobSettings:
    """Return the settings of one job of an experiment.

    Raises:
        ConfigError: the condition changes an unknown setting, or its system refuses the settings.
    """
    return job_settings(composed(config, [condition], [seed])[condition, seed])


def _settings(
    config: DictConfig, configurations: Mapping[tuple[str, int], dict[str, Any]]
) -> dict[tuple[str, int], JobSettings]:
    """Return the settings of all jobs; errors of the command line are raised first, without naming a condition."""
    if any(one["track"] == config.track for one in configurations.values()):
        job_settings(config)
    settings = {}
    for (condition, seed), one in configurations.items():
        try:
            settings[condition, seed] = job_settings(one)
        except ConfigError as error:
            raise ConfigError(f"experiment.conditions.{condition}: {error}") from error
    return settings


def _check_name(name: object) -> None:
    """Check the experiment's name: it becomes a folder below ``outputs``, beside ``outputs/shared``."""
    if not _FOLDER.fullmatch(str(name)) or str(name).lower() == "shared":
        raise ConfigError(
            f"experiment.name={str(name)!r} becomes a folder of outputs; use letters, digits and . _ + - only, and "
            "another name than shared"
        )


def _check_names(conditions: Sequence[str], labels: Mapping[str, str]) -> None:
    """Check that conditions have different folders, also on file systems that ignore case, and labels."""
    folders: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in conditions:
        if not _FOLDER.fullmatch(condition):
            raise ConfigError(f"condition {condition!r} becomes a folder; use letters, digits and . _ + - only")
        if (twin := folders.setdefault(condition.lower(), condition)) != condition:
            raise ConfigError(f"conditions {twin} and {condition} would have one output; rename one")
        label = labels.get(condition, condition)
        if (twin := names.setdefault(label, condition)) != condition:
            raise ConfigError(f"conditions {twin} and {condition} would both be called {label!r}; change a label")


def _needs(settings: Mapping[tuple[str, int], JobSettings]) -> dict[str, Sequence[str]]:
    """Return the conditions, each after those that it needs, with these."""
    needs: dict[str, Sequence[str]] = {}
    known = list(dict.fromkeys(condition for condition, _ in settings))
    for (condition, _), own in settings.items():
        place = f"experiment.conditions.{condition}"
        try:
            needs[condition] = own.needs()
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        if not isinstance(needs[condition], list | tuple):
            raise ConfigError(f"{place}: needs() of its settings returned {needs[condition]!r}; return a list of names")
        for name in needs[condition]:
            if name not in known:
                among = f"is not among the conditions: {', '.join(known)}{suggestion(name, known)}"
                raise ConfigError(f"{place} needs {name}, which {among}")
    reached: dict[str, set[str]] = {}  # what a condition needs, directly or not
    depths: dict[str, int] = {}
    try:
        for name in TopologicalSorter(needs).static_order():
            reached[name] = set(needs[name]).union(*(reached[part] for part in needs[name]))
            depths[name] = 1 + max((depths[part] for part in needs[name]), default=-1)
    except CycleError as error:
        circle = error.args[1][1:]
        if len(circle) == 1:
            raise ConfigError(f"condition {circle[0]} needs itself") from error
        raise ConfigError(f"conditions need each other: {', '.join(circle)}") from error
    for (condition, seed), own in settings.items():
        try:
            own.check_needs({name: settings[name, seed] for name in known if name in reached[condition]})
        except ConfigError as error:
            raise ConfigError(f"experiment.conditions.{condition}: {error}") from error
    return {name: needs[name] for name in sorted(known, key=depths.__getitem__)}


def select(jobs: Sequence[Job], part: str | None, only: Sequence[str] | None = None) -> list[Job]:
    """Return the jobs of ``part`` ``K/N``: every N-th, beginning with the K-th; all if ``part`` is ``None``.

    With ``only``, of these conditions alone.

    >>> [job for job in select(["a", "b", "c", "d", "e"], "2/2")]
    ['b', 'd']
    """
    if only:
        jobs = [job for job in jobs if job.condition in only]
    if part is None:
        return list(jobs)
    match = re.fullmatch(r"(\d+)/(\d+)", part)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"job={part} is not of the form K/N with 1 <= K <= N, e.g. job=3/12; or list; or prepare")
    return list(jobs[int(match[1]) - 1 :: int(match[2])])


def with_needs(selected: Sequence[Job], jobs: Sequence[Job]) -> list[Job]:
    """Return the selected jobs and those of ``jobs`` that they need, directly or not, which come first."""
    selected_names = {job.name for job in selected}
    wanted = set(selected_names)
    for job in reversed(jobs):  # jobs follow those that they need
        if job.name in wanted:
            wanted |= {need.name for need in job.needs}
    needed = [job for job in jobs if job.name in wanted - selected_names]
    return sorted([*selected, *needed], key=lambda job: job.depth)


def finished(job: Job, folder: Path) -> dict[str, Any] | None:
    """Return the result of ``job`` in ``folder`` (``outputs/EXP``) if it was made with this configuration."""
    record = read_result(folder / "jobs" / job.name)
    return record if record is not None and record.get("key") == job.key else None


def failure(job: Job, folder: Path) -> str | None:
    """Return why ``job`` failed, if its last run with this configuration did."""
    record = read_json(folder / "jobs" / job.name / "failed.json") or {}
    return str(record["reason"]) if record.get("key") == job.key else None


def state(job: Job, folder: Path) -> State:
    """Return the state of a job; one that another process runs is ``running elsewhere``, even if it failed before."""
    if finished(job, folder) is not None:
        return "done"
    if is_locked(folder / "jobs" / job.name / LOCK):
        return "running elsewhere"
    return "missing" if failure(job, folder) is None else "failed"


def status(job: Job, folder: Path) -> str:
    """Return :func:`state` in words, with the reason for a failed job."""
    now = state(job, folder)
    return f"failed: {failure(job, folder)}" if now == "failed" else now
