"""Conditions x seeds -> jobs, and how each of them stands.

An experiment names its conditions by what they change (``conf/exp/vn_connectivity.yaml``):

    conditions:
      none: {graph: {connectivity: none}}
      sequential: {graph: {connectivity: sequential}}
    baseline: none
    seeds: [42, 43, 44]

makes six jobs, ``none-seed42`` to ``sequential-seed44``. What a job makes has a key a stage, a hash of everything that
the stage depends on:

===A system says itself what its model and its rankings depend on (:class:`mathamr.systems.system.System`): the one of
``track=graph`` on ``graph``, ``model`` and ``train`` with the seed, its rankings also on ``index`` and ``retrieval``;
``track=bm25`` has no model, and its rankings depend on ``bm25`` and ``retrieval.k``.

New judgments change ``key`` alone, so rankings are judged again and nothing else is done; in the regime ``judged`` they
also change what is searched.

So conditions that differ in retrieval alone share a model, and so do experiments. Where no part of a key depends on
the seed, jobs of all seeds have the same key: one of them runs, the others copy. A job is done when its ``result.json``
carries its key: a changed configuration runs again, a finished job does not. ``job=K/N`` selects every N-th job, the
K-th first, for an array of a batch system; ``experiment.only=[...]`` some conditions. A job that needs others, such as
a fusion, comes after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from graphs import shared_files
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError, suggestion
from graphs.shared_files import is_locked, read_json
from mathamr.stages.collection import file_identity
from mathamr.systems import registry

# Settings of the collection that no result depends on: where files are.
_PLACES = ("root", "sources", "posts", "collection", "formulas", "graphs", "judgments", "relevant_grade")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
LOCK = ".lock"
"""The file in a job's folder that the process which runs it holds."""

State = Literal["done", "running elsewhere", "failed", "missing"]


@dataclass(frozen=True)
class Job:
    """One condition with one seed: its whole configuration, and the keys of its result, its rankings and its model.

    ``model_key`` is empty where nothing is trained. ``needs`` are the jobs whose rankings it reads.
    """

    condition: str
    seed: int
    config: DictConfig
    key: str
    model_key: str = ""
    run_key: str = ""
    needs: tuple[Job, ...] = ()

    @property
    def name(self) -> str:
        """Its folder below ``jobs/``."""
        return f"{self.condition}-seed{self.seed}"

    @property
    def depth(self) -> int:
        """Number of jobs one after the other that come first: 0 without needs."""
        return 1 + max((job.depth for job in self.needs), default=-1)


def plan(config: DictConfig, data: Fingerprints) -> list[Job]:
    """Return all jobs of ``config.experiment``, seed by seed within a condition; those that need others after these.

    Args:
        config: the composed configuration.
        data: hashes of the collection, part by part.

    Raises:
        ConfigError: no conditions or seeds, a repeated seed or label, a name that is no file name, a baseline that is
            no condition, a condition that changes what is no setting of a condition, two jobs with one output, an
            unknown track, or conditions that need what is not there or each other.
    """
    experiment = config.experiment
    conditions = [str(name) for name in experiment.conditions or {}]
    seeds = list(experiment.seeds or [])
    if not conditions or not seeds:
        raise ConfigError("experiment.conditions and experiment.seeds name no job; add +exp=NAME, see conf/exp/")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"experiment.seeds repeats a seed: {seeds}; two jobs would have one output")
    _check_name(experiment.name)
    _check_names(conditions)
    _check_labels(conditions, experiment.get("labels") or {})
    named = {"baseline": [experiment.baseline], "only": list(experiment.get("only") or [])}
    others = experiment.get("baselines") or {}
    named["baselines"] = [*others, *others.values()]
    for key, names in named.items():
        for name in names:
            if name not in conditions:
                known = ", ".join(conditions)
                raise ConfigError(
                    f"experiment.{key}={name} is not among the conditions: {known}{suggestion(str(name), conditions)}"
                )
    groups = (name for kind in registry.loadable().values() for name in kind.groups)
    changeable = [name for name in dict.fromkeys(["track", *groups]) if name in config]
    configs = {(name, int(seed)): _config(config, name, int(seed), changeable) for name in conditions for seed in seeds}
    jobs: list[Job] = []
    for condition, needs in _needs(configs).items():
        for seed in seeds:
            parts = tuple(job for name in needs for job in jobs if (job.condition, job.seed) == (name, seed))
            jobs.append(_job(condition, int(seed), configs[condition, int(seed)], parts, data))
    by_key: dict[str, Job] = {}
    for job in jobs:
        twin = by_key.setdefault(job.key, job)
        if twin.condition != job.condition:
            raise ConfigError(f"conditions {twin.condition} and {job.condition} are the same experiment; remove one")
    return jobs


def _check_name(name: object) -> None:
    """The experiment becomes a folder below ``outputs``, beside ``outputs/shared``."""
    if not _FOLDER.fullmatch(str(name)) or str(name).lower() == "shared":
        raise ConfigError(
            f"experiment.name={str(name)!r} becomes a folder of outputs; use letters, digits and . _ + - only, and "
            "another name than shared"
        )


def _check_names(conditions: Sequence[str]) -> None:
    """Each condition becomes a folder, also where file names do not tell upper from lower case."""
    folders: dict[str, str] = {}
    for condition in conditions:
        if not _FOLDER.fullmatch(condition):
            raise ConfigError(f"condition {condition!r} becomes a folder; use letters, digits and . _ + - only")
        twin = folders.setdefault(condition.lower(), condition)
        if twin != condition:
            raise ConfigError(f"conditions {twin} and {condition} would have one output; rename one")


def _check_labels(conditions: Sequence[str], labels: Mapping[str, str]) -> None:
    """Reports tell conditions apart by their labels."""
    names: dict[str, str] = {}
    for condition in conditions:
        label = labels.get(condition, condition)
        twin = names.setdefault(label, condition)
        if twin != condition:
            raise ConfigError(f"conditions {twin} and {condition} would both be called {label!r}; change a label")


def _config(config: DictConfig, condition: str, seed: int, changeable: Sequence[str]) -> DictConfig:
    """The configuration of a job."""
    changes = config.experiment.conditions[condition]
    changes = OmegaConf.create({}) if changes is None else changes
    place = f"experiment.conditions.{condition}"
    _check_changes(config, changes, place, changeable)
    merged = OmegaConf.create(config)
    OmegaConf.set_struct(merged, True)
    try:
        return cast(DictConfig, OmegaConf.merge(merged, changes, {"train": {"seed": seed}}))
    except OmegaConfBaseException as error:
        raise ConfigError(f"{place}: {str(error).splitlines()[0]}") from error


def _needs(configs: Mapping[tuple[str, int], DictConfig]) -> dict[str, Sequence[str]]:
    """Return the conditions, each after those that it needs, with these.

    Raises:
        ConfigError: a condition needs what is no condition, or conditions need each other.
    """
    needs: dict[str, Sequence[str]] = {}
    known = list(dict.fromkeys(condition for condition, _ in configs))
    for (condition, _), config in configs.items():
        place = f"experiment.conditions.{condition}"
        try:
            needs[condition] = registry.find(config.track).needs(config)
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        for name in needs[condition]:
            if name not in known:
                among = f"is not among the conditions: {', '.join(known)}{suggestion(name, known)}"
                raise ConfigError(f"{place} needs {name}, which {among}")
    try:
        depths: dict[str, int] = {}
        for name in TopologicalSorter(needs).static_order():
            depths[name] = 1 + max((depths[part] for part in needs[name]), default=-1)
    except CycleError as error:
        circle = error.args[1][1:]
        if len(circle) == 1:
            raise ConfigError(f"condition {circle[0]} needs itself") from error
        raise ConfigError(f"conditions need each other: {', '.join(circle)}") from error
    return {name: needs[name] for name in sorted(known, key=depths.__getitem__)}


def _job(condition: str, seed: int, config: DictConfig, needs: tuple[Job, ...], data: Fingerprints) -> Job:
    found = run_key(config, data, needs)
    return Job(condition, seed, config, job_key(found, config, data), model_key(config, data), found, needs)


def _check_changes(config: DictConfig, changes: Any, place: str, changeable: Sequence[str]) -> None:
    """Check that a condition changes settings of ``changeable`` groups alone."""
    if not isinstance(changes, DictConfig):
        raise ConfigError(f"{place}={changes} changes no setting; write e.g. {{graph: {{structure: full}}}}")
    known = [key for group in changeable for key in _leaves(config.get(group), group)]
    for key in _leaves(changes, ""):
        group = key.split(".")[0]
        if key == "train.seed":
            raise ConfigError(f"{place}.{key}: seeds are those of experiment.seeds, for every condition")
        if key in known:
            continue
        if key in changeable:
            raise ConfigError(f"{place}.{key} is a group of settings; write e.g. {key}: {{...}}")
        if group in config and group not in changeable:
            raise ConfigError(
                f"{place}.{key}: all conditions share {group}; a condition can change {', '.join(changeable)}"
            )
        raise ConfigError(f"{place}.{key} is no setting{suggestion(key, known) or f'; see conf/{group}'}")


def _leaves(value: Any, key: str) -> Iterator[str]:
    """Dotted names of the settings in a configuration.

    >>> list(_leaves(OmegaConf.create({"graph": {"structure": "full"}, "track": "graph"}), ""))
    ['graph.structure', 'track']
    """
    if not isinstance(value, DictConfig) or value._is_none():
        yield key
        return
    for name in value:
        inner = value._get_node(name)  # not value[name]: a setting without a value is one as well
        yield from _leaves(inner, f"{key}.{name!s}" if key else str(name))


def model_key(config: DictConfig, data: Fingerprints) -> str:
    """Return the hash of everything that a trained model depends on; empty where nothing is trained."""
    parts = registry.find(config.track).model_key_parts(config)
    if parts is None:
        return ""
    return shared_files.key({"collection": data.graphs, "track": config.track, **_made_elsewhere(config), **parts})


def _made_elsewhere(config: DictConfig) -> dict[str, str]:
    """Return the identity of each file that ``data.collection``, ``data.formulas`` and ``data.graphs`` name.

    Raises:
        ConfigError: one of them is no file.
    """
    named = {name: config.data.get(name) for name in ("collection", "formulas", "graphs")}
    return {f"given_{name}": file_identity(Path(value)) for name, value in named.items() if value is not None}


def run_key(config: DictConfig, data: Fingerprints, needs: Sequence[Job] = ()) -> str:
    """Return the hash of everything that the rankings of a job depend on.

    Rankings that are made of others depend on collection and topics through these.
    """
    kind = registry.find(config.track)
    own = {"track": config.track, **(kind.model_key_parts(config) or {}), **kind.result_key_parts(config)}
    if needs:
        return shared_files.key({**own, "parts": [job.run_key for job in needs]})
    places = {str(name): value for name, value in _plain(config.data).items() if name not in _PLACES}
    content = {"collection": data.searches, "data": places, "tasks": list(config.experiment.get("tasks") or [1])}
    content |= _made_elsewhere(config)
    if config.data.get("regime") == "judged":  # what is judged is what is searched
        content |= {"judgments": data.judgments, "example": _plain(config.experiment.get("example"))}
    return shared_files.key({**content, **own})


def job_key(rankings: str, config: DictConfig, data: Fingerprints) -> str:
    """Return the hash of everything that the result of a job depends on.

    Args:
        rankings: ``run_key`` of the job.
    """
    grade = config.data.get("relevant_grade")
    return shared_files.key({"rankings": rankings, "judgments": data.judgments, "grade": grade, **_asked(config)})


def _asked(config: DictConfig) -> dict[str, Any]:
    """What an experiment asks of every condition."""
    experiment = config.experiment
    asked = {"tasks": list(experiment.get("tasks") or [1]), "example": _plain(experiment.get("example"))}
    if measures := _plain(experiment.get("measures")):
        asked["measures"] = measures
    if analyses := sorted(experiment.get("analyses") or []):  # without any, keys are what they were before there were
        asked["analyses"] = [*analyses, *([_plain(config.geometry)] if "geometry" in analyses else [])]
    return {"experiment": asked}


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def select(jobs: Sequence[Job], part: str | None, only: Sequence[str] | None = None) -> list[Job]:
    """The jobs of ``part`` ``K/N``: every N-th, beginning with the K-th; all where ``part`` is ``None``.

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
        raise ConfigError(f"job={part} is not of the form K/N with 1 <= K <= N, e.g. job=3/12; or list")
    return list(jobs[int(match[1]) - 1 :: int(match[2])])


def finished(job: Job, folder: Path) -> dict[str, Any] | None:
    """The result of ``job`` if ``folder`` (``outputs/EXP``) holds it, made with this very configuration."""
    return _record(job, folder, "result.json")


def failure(job: Job, folder: Path) -> str | None:
    """Why ``job`` failed, where it did when it was last run with this very configuration."""
    record = _record(job, folder, "failed.json")
    return None if record is None else str(record["reason"])


def state(job: Job, folder: Path) -> State:
    """How a job stands; one that another process works at is ``running elsewhere``, whether or not it failed before."""
    if finished(job, folder) is not None:
        return "done"
    if is_locked(folder / "jobs" / job.name / LOCK):
        return "running elsewhere"
    return "missing" if failure(job, folder) is None else "failed"


def status(job: Job, folder: Path) -> str:
    """:func:`state` in a table's words: of a failed job also why."""
    now = state(job, folder)
    return f"failed: {failure(job, folder)}" if now == "failed" else now


def _record(job: Job, folder: Path, name: str) -> dict[str, Any] | None:
    record = read_json(folder / "jobs" / job.name / name)
    return record if record is not None and record.get("key") == job.key else None
