"""Expected results of each table row (``experiments/report/reproduction.yaml``), and the verdict on measured ones.

>>> none, *_ = rows("4.10")
>>> none.table, none.name, none.expected["nDCG'"].mean, none.tolerance
('4.10', 'none', 0.431, 0.03)
>>> none.arguments()[:3], none.arguments()[-1]
(['+exp=vn_connectivity', 'data=arqmath', 'data.regime=judged'], 'experiment.only=[none]')
>>> [row.name for row in rows("mini")][:4]  # every table whose name begins with it
['both', 'opt', 'slt', 'none']

A score is *ok* within the row's tolerance, *drift* within three times that, else *fail*. Costs that depend on the
machine (times, memory, sizes) are compared as ratios to the baseline.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from omegaconf import OmegaConf

from experiments.report import thesis
from experiments.report.results import Experiment, Row
from experiments.report.thesis import COLUMNS, ThesisTable, Value, read
from experiments.report.topic_scores import best_row
from graphs.errors import ConfigError
from mathamr.default_settings import CONF

FILE = Path(__file__).with_suffix(".yaml")
SCORES = ("nDCG'", "MAP'", "P'@10", "Bpref")
DRIFT = 3.0  # multiple of the tolerance

Status = Literal["ok", "drift", "fail", "measured"]
_WORSE: tuple[Status, ...] = ("measured", "ok", "drift", "fail")


@dataclass(frozen=True, slots=True)
class Data:
    """Collection that rows need.

    Attributes:
        variable: environment variable with its folder; None if it comes with the installation.
        files: patterns of required files in the folder, or in a folder directly below.
        get: instructions for getting the data.
        graphs: instructions for getting its graphs without parsing.
    """

    name: str
    about: str
    variable: str | None = None
    files: list[str] = field(default_factory=list)
    get: str = ""
    graphs: str = ""

    def missing(self, root: Path | None) -> list[str]:
        """Return the patterns without a match below ``root``; all of them if the folder is missing."""
        if root is None or not root.is_dir():
            return list(self.files)
        return [pattern for pattern in self.files if not any(root.rglob(pattern))]


@dataclass(frozen=True, slots=True)
class Expectation:
    """A row of a table: a condition of an experiment, and its expected results.

    Attributes:
        expected: column, as in the thesis -> value; empty before a first measurement.
        baseline: expected values of the baseline, for ratios.
        seen: place of the measurement of the expected values.
        thesis: table of the thesis that ``expected`` comes from, if any.
    """

    table: str
    name: str
    experiment: str
    settings: list[str]
    data: Data
    statistic: str
    task: int
    expected: Mapping[str, Value]
    baseline: Mapping[str, Value]
    tolerance: float
    relative: float
    seen: str = ""
    thesis: ThesisTable | None = None

    def arguments(self) -> list[str]:
        """Return the arguments of ``python -m experiments.run``, without the folder of the data."""
        return [f"+exp={self.experiment}", *self.settings, f"experiment.only=[{self.name}]"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of a row: measured value, expected value (None: unknown), and their difference."""

    column: str
    measured: float
    expected: Value | None
    status: Status

    def __str__(self) -> str:
        number = f"{self.measured:.3f}" if self.measured < 1000 else f"{self.measured:,.0f}"
        return f"{self.column} {number}" + (f" ({self.expected.printed})" if self.expected else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a row; ``reason`` if it has no cells."""

    status: Status
    cells: list[Cell] = field(default_factory=list)
    reason: str = ""


def judge(row: Expectation, experiment: Experiment) -> Verdict:
    """Compare the finished seeds of a row with its expected values."""
    done = experiment.done()
    statuses = dict.fromkeys(str(found["status"]) for found in experiment.rows if found["condition"] == row.name)
    if not statuses:
        return Verdict("fail", reason=f"{experiment.name} has no condition {row.name}")
    if trouble := [status for status in statuses if status != "done"]:
        return Verdict("fail", reason="; ".join(trouble))
    if other := _other_setting(row, done[row.name]):
        return Verdict("fail", reason=other)
    cells = []
    for column in row.expected or SCORES:
        key, unit = COLUMNS[column]
        key = f"task2_{key}" if row.task == 2 else key
        measured = _statistic(row, done[row.name], key)
        if measured is None:
            return Verdict("fail", reason=f"no result has the column {key}")
        of_baseline = done.get(experiment.baselines[row.name])
        base = None if of_baseline is None else _statistic(row, of_baseline, key)
        expected = row.expected.get(column)
        cells.append(
            Cell(column, measured / unit, expected, _status(row, column, measured / unit, expected, base, unit))
        )
    return Verdict(max((cell.status for cell in cells), key=_WORSE.index), cells)


def _status(
    row: Expectation, column: str, measured: float, expected: Value | None, base: float | None, unit: float
) -> Status:
    if expected is None:
        return "measured"
    if column in SCORES:
        distance, tolerance = abs(measured - expected.mean) - expected.half_digit, row.tolerance
    else:
        if column not in row.baseline or base is None or row.baseline[column] is expected:
            return "measured"  # a cost of the machine, without a baseline to compare with
        ratio = expected.mean / row.baseline[column].mean
        distance, tolerance = abs(measured / (base / unit) / ratio - 1), row.relative
    return "ok" if distance <= tolerance else "drift" if distance <= DRIFT * tolerance else "fail"


def _statistic(row: Expectation, done: Sequence[Row], key: str) -> float | None:
    """Return the best seed's value, or the mean over finished seeds."""
    if row.statistic == "best_seed":
        done = [best_row(list(done), row.task)]
    values = [float(found[key]) for found in done if found.get(key) is not None]
    return statistics.fmean(values) if values else None


def _other_setting(row: Expectation, done: Sequence[Row]) -> str:
    """Return the reason that these results cannot be compared with the thesis's, or ""."""
    if row.thesis is None:
        return ""
    different = [
        f"{key} is {found.get(key)}, in the thesis {value}"
        for found in done
        for key, value in row.thesis.wanted.items()
        if str(found.get(key)) != str(value)
    ]
    return "; ".join(dict.fromkeys(different))


def table_names() -> list[str]:
    """Return the names of all tables, in the order of the file."""
    return list(_content()["tables"])


def rows(table: str) -> list[Expectation]:
    """Return the rows of a table, of all tables with a name ``TABLE-...``, or of ``all``.

    Raises:
        ConfigError: an unknown table, or an incomplete entry.
    """
    names = table_names()
    matching = [name for name in names if table in ("all", name) or name.startswith(f"{table}-")]
    if not matching:
        groups = dict.fromkeys(name.split("-")[0] for name in names if "-" in name)
        raise ConfigError(f"Unknown table {table}. Choose from: {', '.join([*names, *groups])}, all")
    return [row for name in matching for row in _rows(name, _content()["tables"][name])]


def _rows(name: str, entry: dict[str, Any]) -> list[Expectation]:
    known = {"experiment", "arguments", "data", "expected", "tolerance", "relative", "task", "seen"}
    needed = {"experiment", "arguments", "data", "expected"}
    if wrong := sorted((set(entry) - known) | (needed - set(entry))):
        raise ConfigError(f"table {name}: {wrong[0]} is missing, or no key of a table", path=FILE)
    table = None
    if entry["expected"] == "thesis":
        table = next((one for one in thesis.tables(entry["experiment"]) if one.number == name), None)
        if table is None:
            raise ConfigError(f"table {name}: the thesis has no such table of {entry['experiment']}", path=FILE)
        expected: dict[str, dict[str, Value]] = table.rows
    elif entry["expected"] == "unknown":
        content = OmegaConf.load(CONF / "exp" / f"{entry['experiment']}.yaml")
        expected = {str(condition): {} for condition in content.experiment.conditions}
    else:
        expected = {row: {c: read(v) for c, v in values.items()} for row, values in entry["expected"].items()}
    baseline = table.baseline if table else ""
    return [
        Expectation(
            table=name,
            name=row,
            experiment=entry["experiment"],
            settings=list(entry["arguments"]),
            data=_data(entry["data"]),
            statistic=table.statistic if table else "mean",
            task=table.setting["task"] if table else int(entry.get("task", 1)),
            expected=values,
            baseline=expected.get(baseline, {}),
            tolerance=float(entry.get("tolerance", 0.0)),
            relative=float(entry.get("relative", 0.0)),
            seen="the thesis" if table else str(entry.get("seen", "")),
            thesis=table,
        )
        for row, values in expected.items()
    ]


def _data(name: str) -> Data:
    entries = _content()["data"]
    if name not in entries:
        raise ConfigError(f"data {name} is not among {', '.join(entries)}", path=FILE)
    return Data(name=name, **entries[name])


@cache
def _content() -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.load(FILE)))
