"""Notes on settings and jobs that ``mathamr run`` prints before jobs run: nothing is refused, and nothing is silent.

>>> print(*beaten(["train.epochs=1"], {"base": {}, "longer": {"train": {"epochs": 7}}}))
  train.epochs=1 has no effect on conditions that set it: longer; use experiment.conditions.NAME.train.epochs=1
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from experiments.configuration.conditions import leaves, refers
from experiments.models import Models
from experiments.plan import Job, finished
from graphs.errors import suggestion
from graphs.shared_files import read_json
from mathamr.stages.data.versions import mathamr_version
from mathamr.systems import registry
from mathamr.systems.parts import RANKINGS


def _split(word: str) -> tuple[str, str]:
    """Return the key and the value of ``+KEY=VALUE``."""
    key, _, value = word.lstrip("+").partition("=")
    return key, value


def without_effect(words: Sequence[str], jobs: Sequence[Job]) -> list[str]:
    """Return a note on each setting of the command line that no job reads, with the setting to use instead."""
    notes = []
    for word in words:
        group, _, name = _split(word)[0].partition(".")
        readers = [job.settings for job in jobs if group in job.settings.groups()]
        others = {own.replacement(group, name) for own in readers}
        if others and None not in others:
            tracks = ", ".join(sorted({own.track for own in readers}))
            notes.append(f"  {word} has no effect with track={tracks}; use {', '.join(map(str, others))}")
    return notes


def unread(words: Sequence[str], jobs: Sequence[Job], config: DictConfig) -> list[str]:
    """Return a note on each setting of the command line that no job reads; none where a value refers to another.

    Args:
        jobs: all jobs of the experiment.
        config: composed configuration.
    """
    kinds, read = registry.loadable(), {group for job in jobs for group in job.settings.groups()}
    notes = []
    for word in words if not refers(config) else ():
        group = _split(word)[0].partition(".")[0]
        tracks = ", ".join(name for name, kind in kinds.items() if group in kind.groups())
        if tracks and group not in read:
            notes.append(f"  {word} is read by no condition of this experiment, only by track={tracks}; leave it out")
    return notes


def beaten(words: Sequence[str], conditions: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return a note on each setting of the command line that conditions set to another value."""
    changes = {name: OmegaConf.create(dict(one or {})) for name, one in conditions.items()}
    own = {name: {key: str(OmegaConf.select(one, key)).lower() for key in leaves(one)} for name, one in changes.items()}
    notes = []
    for word in words:
        key, value = _split(word)
        if names := [name for name, settings in own.items() if settings.get(key, value.lower()) != value.lower()]:
            instead = f"experiment.conditions.NAME.{key}={value}"
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            notes.append(f"  {word} has no effect on conditions that set it: {some}; use {instead}")
    return notes


def misnamed(labels: Collection[str], conditions: Collection[str]) -> list[str]:
    """Return a note on each label that is likely meant for another condition.

    >>> misnamed({"sequental": "In a row", "old": "Removed"}, ["none", "sequential"])
    ['  experiment.labels.sequental is the label of no condition; did you mean sequential?']
    """
    hints = {name: suggestion(name, conditions) for name in labels if name not in conditions}
    return [f"  experiment.labels.{name} is the label of no condition{hint}" for name, hint in hints.items() if hint]


def unmet(selected: Sequence[Job], folder: Path) -> list[str]:
    """Return a note on the conditions that the selected jobs need, but that neither have a result nor run."""
    running = {job.name for job in selected}
    conditions = {
        need.condition: None
        for job in selected
        for need in job.needs
        if need.name not in running and finished(need, folder) is None
    }
    if not conditions:
        return []
    return [
        f"  conditions without a result that others need: {', '.join(conditions)}; the others will fail unless "
        "experiment.only names these too"
    ]


def displaced(missing: Sequence[Job], folder: Path, command: str) -> list[str]:
    """Return a note on the finished jobs of another configuration or collection that move to ``earlier``.

    Args:
        command: command line, as ``experiment.json`` names it.
    """
    records = [(job, read_json(folder / "jobs" / job.name / "result.json")) for job in missing]
    moved = [job for job, record in records if record is not None and record.get("key") != job.key]
    if not moved:
        return []
    plan_before = read_json(folder / "experiment.json") or {}
    before = plan_before.get("command", "another command")
    if all(plan_before.get("keys", {}).get(job.name) == job.key for job in moved):
        origin, way_back = "of an earlier configuration", ""  # this one was interrupted
    elif before == command:
        origin, way_back = "of this command with other data, files of settings or code", ""
    else:
        named = before.replace("python -m experiments.run", "mathamr run")
        origin, way_back = f"of another configuration ({named})", "that command brings them back; "
    return [
        f"  results {origin} move to {folder / 'earlier'}: {len(moved)}; {way_back}experiment.name=NAME writes "
        "to another folder"
    ]


def of_other_code(jobs: Sequence[Job], done: Sequence[Job], folder: Path, models: Models) -> str:
    """Return a note on finished jobs and models that another version of ``mathamr/`` made; "" without any."""
    records = [read_json(folder / "jobs" / job.name / RANKINGS) or {} for job in done]
    results = sum(record.get("mathamr") != mathamr_version() for record in records)
    trained = {models.folder(job) for job in jobs if models.is_of_other_code(job)}
    counts = [f"results {results} ({folder}/jobs/JOB/result.json)"] if results else []
    counts += [f"models {len(trained)} ({next(iter(trained)).with_name('KEY')})"] if trained else []
    if not counts:
        return ""
    return (
        f"made by another version of mathamr/ and used as found: {', '.join(counts)}; to train again, remove a model "
        f"and the results of its jobs; to rank again, remove a result and {folder}/earlier"
    )
