"""Results of experiments, read from their folders: only ``experiment.json`` and ``jobs/*``.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "experiment.json").write_text(
...     '{"name": "rings", "baseline": "none", "conditions": ["none", "ring"], "seeds": [1]}'
... )
>>> (folder / "jobs" / "none-seed1").mkdir(parents=True)
>>> _ = (folder / "jobs" / "none-seed1" / "result.json").write_text('{"key": "ab12", "ndcg_prime": 0.5}')
>>> experiment = read(folder)
>>> experiment.rows
[{'condition': 'none', 'seed': 1, 'status': 'done', 'key': 'ab12', 'ndcg_prime': 0.5}, \
{'condition': 'ring', 'seed': 1, 'status': 'missing'}]

Machines without a common folder that shared the work by hand have the same experiment twice; :func:`join` merges them.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from graphs.errors import ConfigError, StoreError
from mathamr.evaluation.result_file import RESULT, checked
from mathamr.evaluation.result_names import ARQMATH, TestName, column, file_name

Row = dict[str, Any]
_Content = TypeVar("_Content")
_BETTER = ("done", "running elsewhere", "failed", "unfinished", "missing")  # of two folders with one job


@dataclass(frozen=True)
class Experiment:
    """An experiment: its plan, and a row for each condition and seed.

    Attributes:
        commands: how it was run; one for each folder that it was joined from.
        baselines: each condition -> the one that it is compared with; that one itself -> itself.
        tasks: ``1`` answers, ``2`` formulas, or tests by name (:mod:`mathamr.evaluation.result_names`).
        rows: ``condition``, ``seed``, ``status`` (``done``, ``failed: REASON``, ``unfinished``: started and without a
            result, or ``missing``; a run also says ``running elsewhere``) and all of ``result.json``.
        places: (condition, seed) -> the job's folder, where there is one.
        measures: column -> title of what is reported; :attr:`first_measure` chooses best seeds.
        topic_labels: label -> topic -> its value, e.g. difficulty -> A.301 -> hard.
    """

    name: str
    title: str
    commands: tuple[str, ...]
    baseline: str
    baselines: dict[str, str]
    conditions: tuple[str, ...]
    seeds: tuple[int, ...]
    tasks: tuple[TestName, ...]
    labels: dict[str, str]
    rows: list[Row]
    places: dict[tuple[str, int], Path] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=lambda: dict(ARQMATH))
    topic_labels: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def first_measure(self) -> str:
        """Column of the first measure that all finished jobs have, in one of the tasks; else of the first one."""
        done = self.finished()
        shared = (m for m in self.measures if all(any(column(task, m) in row for task in self.tasks) for row in done))
        return next(shared, next(iter(self.measures)))

    @property
    def several_baselines(self) -> bool:
        """Return whether the conditions have different baselines."""
        return len(set(self.baselines.values())) > 1

    def is_baseline(self, condition: str) -> bool:
        """Return whether any condition is compared with this one."""
        return condition in self.baselines.values()

    def label(self, condition: str) -> str:
        """Return the label of a condition in tables and plots."""
        return self.labels.get(condition, condition)

    def finished(self) -> list[Row]:
        """Return the finished rows."""
        return [row for row in self.rows if row["status"] == "done"]

    def done(self) -> dict[str, list[Row]]:
        """Return condition -> its finished rows, by seed; conditions without any are left out."""
        found: dict[str, list[Row]] = {}
        for row in self.finished():
            found.setdefault(row["condition"], []).append(row)
        return found

    def read_jobs(self, read: Callable[[Path], _Content | None]) -> dict[str, list[_Content]]:
        """Return condition -> contents of its finished jobs, as ``read`` finds them in their folders, None left out."""
        found = {
            condition: [content for row in rows if (content := read(self.place(row))) is not None]
            for condition, rows in self.done().items()
        }
        return {condition: contents for condition, contents in found.items() if contents}

    def place(self, row: Row) -> Path:
        """Return the folder of a row's job."""
        return self.places[row["condition"], row["seed"]]


def read(folder: Path) -> Experiment:
    """Read the experiment in the folder ``outputs/EXP``.

    Raises:
        ConfigError: ``experiment.json`` is missing or incomplete.
    """
    path = folder / "experiment.json"
    plan = content_of(path)
    if plan is None:
        raise ConfigError(
            "no experiment.json here; name a folder outputs/EXP that experiments.run has made", path=folder
        )
    try:
        conditions = tuple(str(name) for name in plan["conditions"])
        seeds = tuple(int(seed) for seed in plan["seeds"])
        name, baseline = str(plan["name"]), str(plan["baseline"])
        baselines = {condition: str(plan.get("baselines", {}).get(condition, baseline)) for condition in conditions}
        keys = dict(plan.get("keys", {}))
        tasks = tuple(task if isinstance(task, str) else int(task) for task in plan.get("tasks", [1]))
        measures = {str(name): str(title) for name, title in (plan.get("measures") or ARQMATH).items()}
        labels = {str(key): str(value) for key, value in plan.get("labels", {}).items()}
        topic_labels = {str(label): dict(values.items()) for label, values in plan.get("topic_labels", {}).items()}
        if not tasks:
            raise ValueError("no tasks")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"incomplete: {error!r}; run the experiment again to write it", path=path) from error
    scores = {column(task, name) for task in tasks for name in [*measures, "recall_1000"]}
    rows, places = [], {}
    for condition in conditions:
        if Path(condition).name != condition:
            raise ConfigError(f"condition {condition!r} cannot be the name of a folder; rename it", path=path)
        for seed in seeds:
            place = folder / "jobs" / f"{condition}-seed{seed}"
            places[condition, seed] = place
            rows.append({"condition": condition, "seed": seed, **_outcome(place, keys.get(place.name), scores)})
    return Experiment(
        name=name,
        title=str(plan.get("title", name)),
        commands=tuple(filter(None, [str(plan.get("command", ""))])),
        baseline=baseline,
        baselines=baselines,
        conditions=conditions,
        seeds=seeds,
        tasks=tasks,
        labels=labels,
        rows=rows,
        places=places,
        measures=measures,
        topic_labels=topic_labels,
    )


def _outcome(place: Path, key: str | None, scores: Container[str]) -> Row:
    """Return status and result of a job; results of another configuration (``key`` differs) do not count.

    Columns in ``scores`` must be numbers.
    """
    try:
        content = content_of(place / RESULT)
        result = _of_key(checked(place, content) if isinstance(content, dict) else None, key)
        failed = _of_key(content_of(place / "failed.json"), key)
    except StoreError as error:  # an incomplete copy
        return {"status": f"failed: {error}"}
    for name, value in (result or {}).items():
        if name in scores and not is_number(value):
            wrong = f"{place / RESULT}: {name} is {value!r}"
            return {"status": f"failed: {wrong}; remove it and run its job again"}
    if result is not None:
        return {"status": "done"} | {name: value for name, value in result.items() if name not in ("condition", "seed")}
    if failed is not None:
        return {"status": f"failed: {failed.get('reason', 'no reason is given')}"}
    stamp = place / "key"
    if stamp.exists() and key in (None, stamp.read_text(encoding="utf-8").strip()):
        return {"status": "unfinished"}
    return {"status": "missing"}


def is_number(value: object) -> bool:
    """Return whether a value of a result is a finite number.

    >>> is_number(7), is_number(float("nan")), is_number("7"), is_number(True), is_number(10**400)
    (True, False, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _of_key(record: Any, key: str | None) -> Row | None:
    return record if isinstance(record, dict) and key in (None, record.get("key")) else None


def content_of(path: Path) -> Any:
    """Return the content of a JSON file; None if the file is missing.

    Raises:
        StoreError: a file that cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot be read ({error.strerror}); remove it and run its job again", path=path) from error
    except (ValueError, RecursionError) as error:  # RecursionError: nested a thousand deep
        raise StoreError(f"not JSON ({error}); remove it and run its job again", path=path) from error


def find(folders: Sequence[Path]) -> list[Path]:
    """Return the folders ``outputs/EXP`` among ``folders`` and directly below them, in the order given, then by name.

    Raises:
        ConfigError: a folder without an experiment.
    """
    found: list[Path] = []
    for folder in folders:
        below = sorted(path.parent for path in folder.glob("*/experiment.json"))
        inside = [folder] if (folder / "experiment.json").exists() else below
        if not inside:
            raise ConfigError(
                "no experiment.json here, nor in a folder right below; name outputs or outputs/EXP", path=folder
            )
        found += [path for path in inside if path.resolve() not in {other.resolve() for other in found}]
    return found


def join(parts: Sequence[Experiment]) -> list[Experiment]:
    """Merge experiments of the same name: all their conditions and seeds, each job in its most advanced state.

    Raises:
        ConfigError: different baselines, one job or condition run with two configurations, or jobs of two regimes or
            sets of topics or judgments, whose scores must not be in one table.
    """
    groups: dict[str, list[Experiment]] = {}
    for part in parts:
        groups.setdefault(part.name, []).append(part)
    return [_joined(group) for group in groups.values()]


def _joined(parts: Sequence[Experiment]) -> Experiment:
    first = parts[0]
    for part in parts[1:]:
        differing = [c for c in part.conditions if first.baselines.get(c, part.baselines[c]) != part.baselines[c]]
        if part.baseline != first.baseline or differing:
            raise ConfigError(
                f"{first.name}: one folder compares with {first.baseline}, another with {part.baseline}"
                + (f" (or other baselines for {', '.join(differing)})" if differing else "")
                + "; run both with one baseline, or report them separately"
            )
    conditions = tuple(dict.fromkeys(condition for part in parts for condition in part.conditions))
    seeds = tuple(sorted({seed for part in parts for seed in part.seeds}))
    tasks = dict.fromkeys(task for part in parts for task in part.tasks)
    rows, places = [], {}
    for condition in conditions:
        for seed in seeds:
            row, place = _furthest(parts, condition, seed)
            rows.append(row)
            if place is not None:
                places[condition, seed] = place
    joined = replace(
        first,
        commands=tuple(dict.fromkeys(command for part in parts for command in part.commands)),
        baselines={name: baseline for part in reversed(parts) for name, baseline in part.baselines.items()},
        conditions=conditions,
        seeds=seeds,
        tasks=(*sorted(one for one in tasks if isinstance(one, int)), *(one for one in tasks if isinstance(one, str))),
        labels={name: label for part in reversed(parts) for name, label in part.labels.items()},
        rows=rows,
        places=places,
        topic_labels=_joined_labels(parts),
    )
    if any(part.measures != first.measures for part in parts):
        raise ConfigError(f"{first.name}: folders have different measures; report them separately")
    _check_one_table(joined)
    _check_one_configuration(joined)
    return joined


def _joined_labels(parts: Sequence[Experiment]) -> dict[str, dict[str, str]]:
    """Return label -> topic -> value of all parts; of two values of a topic the first part's."""
    joined: dict[str, dict[str, str]] = {}
    for part in parts:
        for name, values in part.topic_labels.items():
            joined[name] = values | joined.get(name, {})
    return joined


def _furthest(parts: Sequence[Experiment], condition: str, seed: int) -> tuple[Row, Path | None]:
    """Return the most advanced row of one job; of equal ones the first."""
    found = [
        (row, part.places.get((condition, seed)))
        for part in parts
        for row in part.rows
        if (row["condition"], row["seed"]) == (condition, seed)
    ]
    finished = [(row, place) for row, place in found if row["status"] == "done"]
    for row, place in finished[1:]:
        if row.get("key") != finished[0][0].get("key"):
            raise ConfigError(
                f"{condition}-seed{seed} was run with two configurations: its key is {finished[0][0].get('key')} in "
                f"{finished[0][1]} and {row.get('key')} in {place}; remove one of them, or report them separately"
            )
    if not found:
        return {"condition": condition, "seed": seed, "status": "missing"}, None
    return min(found, key=lambda pair: _BETTER.index(pair[0]["status"].partition(":")[0]))


def _check_one_table(experiment: Experiment) -> None:
    """Raise for scores of different regimes, topics or judgments in one table."""
    grades = [column(task, "relevant_grade") for task in experiment.tasks]
    names = ("judgments", "judgments_hash", "topic_texts_hash")
    judged = [column(task, name) for task in experiment.tasks for name in names]
    topics = dict.fromkeys(column(task, "topics") for task in (1, 2, *experiment.tasks))
    for what in ("regime", "years", *grades, *judged, *topics):
        values: dict[str, Row] = {}
        for row in experiment.finished():
            if what in row or what not in judged:  # earlier versions did not record these
                values.setdefault(str(row.get(what)), row)
        if len(values) > 1:
            one, other = list(values.items())[:2]
            raise ConfigError(
                f"{experiment.name}: {what} is {one[0]} in {experiment.place(one[1])} and {other[0]} in "
                f"{experiment.place(other[1])}; such scores cannot be compared: run the jobs of one of them again"
            )


def _check_one_configuration(experiment: Experiment) -> None:
    """Raise for seeds of a condition that differ in more than the seed: their mean is of no configuration."""
    for condition, rows in experiment.done().items():
        known = {row["condition_key"]: row for row in rows if row.get("condition_key")}  # earlier versions have none
        if len(known) > 1:
            one, other = (experiment.place(row) for row in list(known.values())[:2])
            raise ConfigError(
                f"{experiment.name}: the seeds of {condition} have different settings or data in {one} and {other}; "
                "run one of them again with the command of the other, or report them separately"
            )


def per_topic(place: Path, task: TestName, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return topic -> measure -> score of one job, from ``per_topic.csv`` or, e.g. in Task 2, ``per_topic-task2.csv``.

    Raises:
        StoreError: a missing file, or one without these columns.
    """
    path = place / file_name(task, "per_topic.csv")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {row["topic"]: {name: float(row[name]) for name in measures} for row in csv.DictReader(file)}
    except (OSError, KeyError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else repr(error)
        raise StoreError(f"no scores by topic ({why}); remove result.json and run again", path=path) from error
