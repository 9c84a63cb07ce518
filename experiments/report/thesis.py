"""Results of the thesis (``experiments/report/thesis.yaml``), to be shown beside ours.

>>> best, means, costs = tables("vn_connectivity")
>>> best.number, best.statistic, best.baseline
('4.10', 'best_seed', 'none')
>>> means.rows["circular"]["nDCG'"]
Value(printed='0.409 ± 0.008', mean=0.409, sd=0.008, significant=False)
>>> COLUMNS["Time/Epoch (min)"]  # the column of results.csv that it is compared with, and the unit in that column's
('time_per_epoch_s', 60.0)

A table is shown beside a result only if the setting is the same:

>>> row = {"regime": "judged", "topics": 78, "train_pairs": 45_000, "ndcg_prime": 0.41}
>>> means.is_setting_of(row, years=[2022]), means.is_setting_of(row, years=[2020, 2021])
(True, False)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from graphs.errors import ConfigError

FILE = Path(__file__).with_suffix(".yaml")

COLUMNS: Mapping[str, tuple[str, float]] = {
    "nDCG'": ("ndcg_prime", 1.0),
    "MAP'": ("map_prime", 1.0),
    "P'@10": ("p_prime_10", 1.0),
    "Bpref": ("bpref", 1.0),
    "QPS": ("queries_per_second", 1.0),
    "Time/Epoch (s)": ("time_per_epoch_s", 1.0),
    "Time/Epoch (min)": ("time_per_epoch_s", 60.0),
    "GPU Mem (GB)": ("peak_gpu_memory_bytes", 1e9),
    "Index Size (MB)": ("index_bytes", 1e6),
    "Index Size (GB)": ("index_bytes", 1e9),
    "Params": ("parameters", 1.0),
    "Params (M)": ("parameters", 1e6),
    "Vectors": ("vectors", 1.0),
    "Indexed formulas": ("formulas", 1.0),
}
"""Columns of the thesis -> column of ``results.csv`` (in Task 2 with the prefix ``task2_``) and its unit."""

_PRINTED = re.compile(r"([\d,]+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?(\*?)")


@dataclass(frozen=True, slots=True)
class Value:
    """Cell as printed, and its value; ``sd`` is over seeds, None for a single run."""

    printed: str
    mean: float
    sd: float | None
    significant: bool

    @property
    def half_digit(self) -> float:
        """Return the largest change of the mean by rounding to the printed digits.

        >>> read("0.494 ± 0.002").half_digit, read("90.1*").half_digit
        (0.0005, 0.05)
        """
        mean = self.printed.partition(" ")[0].rstrip("*")
        return float(f"5e-{len(mean.partition('.')[2]) + 1}")


@dataclass(frozen=True, slots=True)
class ThesisTable:
    """A table of the thesis.

    Attributes:
        number: number in the thesis, e.g. ``4.10``.
        statistic: ``best_seed`` of five, by nDCG' on the same topics; ``mean`` over five seeds; ``single`` run.
        baseline: condition that stars refer to.
        setting: columns of ``results.csv`` that must agree for a comparison, and ``task`` and ``years``.
        columns: columns as printed, in order.
        rows: condition -> column -> value.
        others: rows of systems of other groups.
    """

    number: str
    caption: str
    statistic: str
    baseline: str
    setting: dict[str, Any]
    columns: list[str]
    rows: dict[str, dict[str, Value]]
    others: dict[str, dict[str, Value]]

    @property
    def wanted(self) -> dict[str, Any]:
        """Return the columns of ``results.csv`` that must agree; the number of topics is that of the table's task."""
        topics = "task2_topics" if self.setting["task"] == 2 else "topics"
        others = {key: value for key, value in self.setting.items() if key not in ("task", "years", "topics")}
        return {topics: self.setting["topics"]} | others

    def is_setting_of(self, row: Mapping[str, Any], *, years: Sequence[int]) -> bool:
        """Return whether a row of ``results.csv``, measured on the topics of ``years``, has the table's setting."""
        same = all(str(row.get(key)) == str(value) for key, value in self.wanted.items())
        return same and sorted(years) == sorted(self.setting["years"])

    def column_of_results(self, column: str) -> tuple[str, float]:
        """Return the column of ``results.csv`` that ``column`` is compared with, and its unit there."""
        key, unit = COLUMNS[column]
        return (f"task2_{key}" if self.setting["task"] == 2 else key), unit


def read(printed: str) -> Value:
    """Parse a printed cell: ``0.497*``, ``0.494 ± 0.002`` or ``21,947,328``."""
    match = _PRINTED.fullmatch(printed)
    if match is None:
        raise ConfigError(f"{printed!r} is not a value of a table; write 0.497, 0.497*, 0.494 ± 0.002", path=FILE)
    mean, sd, star = match.groups()
    return Value(printed, float(mean.replace(",", "")), None if sd is None else float(sd), star == "*")


def tables(experiment: str) -> list[ThesisTable]:
    """Return the tables of an experiment in the order of the thesis; empty if it has none."""
    return all_tables().get(experiment, [])


@cache
def all_tables() -> dict[str, list[ThesisTable]]:
    """Return the tables of each experiment."""
    content = cast(dict[str, list[dict[str, Any]]], OmegaConf.to_container(OmegaConf.load(FILE)))
    return {experiment: [_table(**entry) for entry in entries] for experiment, entries in content.items()}


def _table(
    *, table: str, rows: dict[str, dict[str, str]], others: dict[str, dict[str, str]] | None = None, **rest: Any
) -> ThesisTable:
    values = [
        {name: {column: read(cell) for column, cell in row.items()} for name, row in group.items()}
        for group in (rows, others or {})
    ]
    return ThesisTable(number=table, rows=values[0], others=values[1], **rest)
