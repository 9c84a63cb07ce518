"""Conditions x seeds -> jobs, and how each of them stands.

An experiment names its conditions by what they change (``conf/exp/vn_connectivity.yaml``):

    conditions:
      none: {graph: {connectivity: none}}
      sequential: {graph: {connectivity: sequential}}
    baseline: none
    seeds: [42, 43, 44]

makes six jobs, ``none-seed42`` to ``sequential-seed44``. What a job makes has a key a stage, a hash of everything that
the stage depends on:

=============  ==============================================================  ========================================
``model_key``  posts and formulas, track, and by track the groups below        ``outputs/shared/.../models/MODELKEY``
``run_key``    these, topics, regime, tasks, and what searches                 run files in ``outputs/EXP/jobs/NAME``
``key``        these, judgments, measures, examples and analyses               ``outputs/EXP/jobs/NAME``
=============  ==============================================================  ========================================

==========  =======================================================================  ==================================
track       its model depends on                                                     its result also on
==========  =======================================================================  ==================================
``graph``   ``graph``, ``model``, ``train`` with seed                                ``index``, ``retrieval``
``text``    ``text``; if it is trained, of ``train`` the seed and what makes pairs   ``index``, ``retrieval``
``bm25``    nothing is trained                                                       ``bm25``, ``retrieval.k``
``fusion``  nothing is trained                                                       ``fusion``, the keys of its parts
``run``     nothing is trained                                                       content of the run files
==========  =======================================================================  ==================================

New judgments change ``key`` alone, so rankings are judged again and nothing else is done; in the regime ``judged`` they
also change what is searched.

So conditions that differ in retrieval alone share a model, and so do experiments. Where no part of a key depends on
the seed, jobs of all seeds have the same key: one of them runs, the others copy. A job is done when its ``result.json``
carries its key: a changed configuration runs again, a finished job does not. ``job=K/N`` selects every N-th job, the
K-th first, for an array of a batch system; ``experiment.only=[...]`` some conditions. Fusions come last, after the jobs
that they fuse.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from graphs import shared_files
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from graphs.shared_files import is_locked, read_json
from mathamr.stages import parsers, sources
from mathamr.stages.collection import given_parser
from mathamr.stages.needed import extent_of
from mathamr.text import encoder
from mathamr.training import checkpoint

# What a condition may change.
_CHANGEABLE = ("track", "graph", "model", "train", "text", "bm25", "fusion", "run", "index", "retrieval")
# What no result depends on: where files lie, how many processes work, how often they save.
_FREE = {
    "data": ("root", "sources", "posts", "collection", "formulas", "graphs", "judgments", "relevant_grade"),
    "train": ("device", "workers", "checkpoint_every"),
    "text": ("checkpoint_every",),
    "index": ("location", "keep"),
}
# What the vectors of a text encoder depend on that is taken as it is, and what the pairs are that one is trained on.
_TEXT_UNTRAINED = ("encoder", "max_length", "linearize")
_PAIRS = ("positives", "least_score", "max_pairs", "validation_fraction", "seed")

UNTRAINED = ("bm25", "fusion", "run")
"""Tracks that train nothing."""

# Settings that may name a text encoder: what a model depends on is its weights.
_TEXT_ENCODERS = {"model": ("label_vectors", "sentence_vectors"), "train": ("teacher",), "text": ("encoder",)}
LOCK = ".lock"
"""The file in a job's folder that the process which runs it holds."""

State = Literal["done", "running elsewhere", "failed", "missing"]


@dataclass(frozen=True)
class Job:
    """One condition with one seed: its whole configuration, and the keys of its result, its rankings and its model.

    ``model_key`` is empty where nothing is trained. ``needs`` are the jobs that a fusion takes the rankings of.
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


def plan(config: DictConfig, data: Fingerprints) -> list[Job]:
    """All jobs of ``config.experiment``, seed by seed within a condition; fusions behind all others.

    Args:
        config: the composed configuration.
        data: hashes of the collection, part by part.

    Raises:
        ConfigError: no conditions or seeds, a repeated seed or label, a name that is no file name, a baseline that is
            no condition, a condition that changes what is no setting of a condition, two jobs with one output, or a
            fusion of what cannot be fused.
    """
    experiment = config.experiment
    conditions = [str(name) for name in experiment.conditions or {}]
    seeds = list(experiment.seeds or [])
    if not conditions or not seeds:
        raise ConfigError("experiment.conditions and experiment.seeds name no job; add +exp=NAME, see conf/exp/")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"experiment.seeds repeats a seed: {seeds}; two jobs would have one output")
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
                    f"experiment.{key}={name} is not among the conditions: {known}{near(str(name), conditions)}"
                )
    configs = {(name, int(seed)): _config(config, name, int(seed)) for name in conditions for seed in seeds}
    alone = {place: _job(*place, merged, data) for place, merged in configs.items() if merged.track != "fusion"}
    fusions = [_fusion(*place, merged, alone, data) for place, merged in configs.items() if place not in alone]
    jobs = [*alone.values(), *fusions]
    by_key: dict[str, Job] = {}
    for job in jobs:
        twin = by_key.setdefault(job.key, job)
        if twin.condition != job.condition:
            raise ConfigError(f"conditions {twin.condition} and {job.condition} are the same experiment; remove one")
    return jobs


def _check_names(conditions: Sequence[str]) -> None:
    """Each condition becomes a folder, also where file names do not tell upper from lower case."""
    folders: dict[str, str] = {}
    for condition in conditions:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", condition):
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


def _config(config: DictConfig, condition: str, seed: int) -> DictConfig:
    """The configuration of a job."""
    changes = config.experiment.conditions[condition]
    changes = OmegaConf.create({}) if changes is None else changes
    place = f"experiment.conditions.{condition}"
    _check_changes(config, changes, place)
    merged = OmegaConf.create(config)
    OmegaConf.set_struct(merged, True)
    try:
        return cast(DictConfig, OmegaConf.merge(merged, changes, {"train": {"seed": seed}}))
    except OmegaConfBaseException as error:
        raise ConfigError(f"{place}: {str(error).splitlines()[0]}") from error


def _job(condition: str, seed: int, config: DictConfig, data: Fingerprints) -> Job:
    found = run_key(config, data)
    return Job(condition, seed, config, job_key(found, config, data), model_key(config, data), found)


def _fusion(
    condition: str, seed: int, config: DictConfig, others: Mapping[tuple[str, int], Job], data: Fingerprints
) -> Job:
    """The job of a fusion: its key depends on those of its parts."""
    place, parts = f"experiment.conditions.{condition}.fusion.of", [str(name) for name in config.fusion.of]
    known = list(dict.fromkeys(name for name, _ in others))
    for name in parts:
        if name not in known:
            among = f"it is not among the conditions that can be fused: {', '.join(known)}{near(name, known)}"
            raise ConfigError(f"{place} names {name}; {among}")
    if len(set(parts)) < max(2, len(parts)):
        raise ConfigError(f"{place}={parts}; fusing takes two or more different conditions")
    needs = tuple(others[name, seed] for name in parts)
    content = {
        **_settings(config, ("track", "fusion")),
        "k": config.retrieval.k,
        "parts": [job.run_key for job in needs],
    }
    found = shared_files.key(content)
    return Job(condition, seed, config, job_key(found, config, data), run_key=found, needs=needs)


def _check_changes(config: DictConfig, changes: Any, place: str) -> None:
    """Every key of a condition is one that a condition can change."""
    if not isinstance(changes, DictConfig):
        raise ConfigError(f"{place}={changes} changes no setting; write e.g. {{graph: {{structure: full}}}}")
    known = [key for group in _CHANGEABLE if group in config for key in _leaves(config.get(group), group)]
    for key in _leaves(changes, ""):
        group = key.split(".")[0]
        if key == "train.seed":
            raise ConfigError(f"{place}.{key}: seeds are those of experiment.seeds, for every condition")
        if key in known:
            continue
        if key in _CHANGEABLE:
            raise ConfigError(f"{place}.{key} is a group of settings; write e.g. {key}: {{...}}")
        if group in config and group not in _CHANGEABLE:
            raise ConfigError(
                f"{place}.{key}: all conditions share {group}; a condition can change {', '.join(_CHANGEABLE)}"
            )
        raise ConfigError(f"{place}.{key} is no setting{near(key, known) or f'; see conf/{group}'}")


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


def near(name: str, known: Sequence[str]) -> str:
    """Which of the known names was probably meant, as the end of a message.

    >>> near("graph.conectivity", ["graph.connectivity", "train.beta"]), near("beta", ["train.beta"])
    ('; did you mean graph.connectivity?', '; did you mean train.beta?')
    >>> near("elephant", ["train.beta"])
    ''
    """
    meant = difflib.get_close_matches(name, known, n=1)
    meant = [one for one in known if one.split(".")[-1] == name.split(".")[-1]] or meant
    return f"; did you mean {meant[0]}?" if meant else ""


def model_key(config: DictConfig, data: Fingerprints) -> str:
    """Hash of everything that a trained model depends on; empty where nothing is trained."""
    if config.track in UNTRAINED:
        return ""
    return shared_files.key({"collection": data.graphs, **_of_model(config)})


def run_key(config: DictConfig, data: Fingerprints) -> str:
    """Return the hash of everything that the rankings of a job depend on, which is no fusion."""
    content: dict[str, Any] = {"collection": data.searches, **_settings(config, ("track", "data"))}
    content["tasks"] = list(config.experiment.get("tasks") or [1])
    if config.data.get("regime") == "judged":  # what is judged is what is searched
        content |= {"judgments": data.judgments, "example": _plain(config.experiment.get("example"))}
    if config.track == "run":
        from mathamr.systems import given_run  # slow to import

        return shared_files.key({**content, "run": given_run.identity(config)})
    if config.track == "bm25":
        return shared_files.key({**content, **_settings(config, ("bm25",)), "k": config.retrieval.k})
    if config.track == "text":
        content["late_interaction"] = config.text.late_interaction
    return shared_files.key({**content, **_of_model(config), **_settings(config, ("index", "retrieval"))})


def job_key(rankings: str, config: DictConfig, data: Fingerprints) -> str:
    """Return the hash of everything that the result of a job depends on.

    Args:
        rankings: ``run_key`` of the job.
    """
    grade = config.data.get("relevant_grade")
    return shared_files.key({"rankings": rankings, "judgments": data.judgments, "grade": grade, **_asked(config)})


def _of_model(config: DictConfig) -> dict[str, Any]:
    if config.track != "text":
        learned_from = sources.fingerprints(config)
        return {
            "posts": extent_of(config.data),
            **_settings(config, ("track", "graph", "model", "train")),
            **({"sources": learned_from} if learned_from else {}),
        }
    settings = _settings(config, ("track", "text", "train"))
    text, train = settings["text"], settings.pop("train")
    del text["late_interaction"]  # the search alone
    if text["epochs"] or text["pretraining_epochs"]:
        return {**settings, "train": {name: train[name] for name in _PAIRS}}
    return {**settings, "text": {name: text[name] for name in _TEXT_UNTRAINED if name in text}}


def _asked(config: DictConfig) -> dict[str, Any]:
    """What an experiment asks of every condition."""
    experiment = config.experiment
    asked = {"tasks": list(experiment.get("tasks") or [1]), "example": _plain(experiment.get("example"))}
    if measures := _plain(experiment.get("measures")):
        asked["measures"] = measures
    if analyses := sorted(experiment.get("analyses") or []):  # without any, keys are what they were before there were
        asked["analyses"] = [*analyses, *([_plain(config.geometry)] if "geometry" in analyses else [])]
    return {"experiment": asked}


def _settings(config: DictConfig, groups: Iterable[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for group in groups:
        plain = _plain(config[group])
        if isinstance(plain, dict):
            plain = {str(k): v for k, v in plain.items() if k not in _FREE.get(group, ())}
        if group == "model" and plain.get("checkpoint"):
            plain = {"checkpoint": _weights(plain["checkpoint"])}
        if group == "graph" and "parsers" in config:
            plain["parser"] = _parser(config)
        for key in _TEXT_ENCODERS.get(group, ()):
            if plain.get(key):
                plain[key] = encoder.identity(plain[key])
        settings[group] = plain
    return settings


def _weights(path: str) -> str:
    """Return the hash of a checkpoint's weights.

    Raises:
        ConfigError: there is no checkpoint.
    """
    if not checkpoint.exists(path):
        raise ConfigError(f"model.checkpoint={path} holds no checkpoint; name a folder such as model/best")
    return checkpoint.weights_hash(path)


def _parser(config: DictConfig) -> str:
    """Return the parser of the graphs: of a given collection the one that made it."""
    given = config.data.get("collection")
    return parsers.name(config) if given is None else given_parser(Path(given))


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
