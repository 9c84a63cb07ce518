"""Tables of a report, in the form of the thesis, with the thesis's numbers beside ours.

    Condition    nDCG'            thesis, other setting   MAP'             thesis, other setting   ...  Seeds
    none †       0.709 ± 0.016    0.421 ± 0.008           0.527 ± 0.020    0.125 ± 0.004                3
    sequential   0.699 ± 0.010    0.409 ± 0.011           0.519 ± 0.013    0.118 ± 0.004                3

A baseline has a †, a significant difference to it a star. If there are several baselines, the table of tests names that
of each condition. The thesis's columns have the title ``thesis`` if it was measured in the same setting: the same
topics, indexed documents and training pairs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.report.blocks import Table
from experiments.report.results import Experiment, Row, is_number
from experiments.report.thesis import ThesisTable
from experiments.report.topic_scores import best_row, measured
from graphs.errors import StoreError
from mathamr.evaluation import result_names as columns
from mathamr.evaluation.result_names import ARQMATH, TestName, column
from mathamr.evaluation.significance import Comparison

COSTS = {
    "time_per_epoch_s": ("Time/epoch (s)", 1.0),
    "pairs_per_second": ("Pairs/s", 1.0),
    "peak_memory_bytes": ("Peak memory (GB)", 1e9),
    "peak_gpu_memory_bytes": ("Peak GPU memory (GB)", 1e9),
    "parameters": ("Parameters (M)", 1e6),
    "encode_docs_per_second": ("Posts encoded/s", 1.0),
    "texts_cut": ("Texts cut (%)", 0.01),
    "index_bytes": ("Index (MB)", 1e6),
    "vectors": ("Vectors", 1.0),
    "queries_per_second": ("Queries/s", 1.0),
    "task2_index_bytes": ("Index of formulas (MB)", 1e6),
    "task2_formulas": ("Indexed formulas", 1.0),
    "task2_queries_per_second": ("Queries/s, Task 2", 1.0),
}
"""Costs in ``results.csv``: title in tables, and divisor for its unit; see :func:`costs`."""
_OF_A_SEARCH = ("index_bytes", "vectors", "queries_per_second")

DEVELOPMENT = {
    "recall_1000": ("Recall@1000", 1.0),
    "task2_recall_1000": ("Recall@1000, Task 2", 1.0),
    "best_val_mrr": ("Validation MRR", 1.0),
    "best_val_loss": ("Validation loss", 1.0),
    "epochs": ("Epochs", 1.0),
    "train_pairs": ("Training pairs", 1.0),
}
"""Columns for development; they are not tested for significance."""

AGAINST_OWN = "each against its own baseline (table of tests)"
"""Meaning of stars in an experiment with several baselines."""

_SETTINGS = {"train_pairs": "training pairs"}


@dataclass(frozen=True)
class Column:
    """Column of results: the key in ``results.csv``, its unit, and the measure whose stars it carries, if any."""

    title: str
    key: str
    unit: float = 1.0
    measure: str = ""


def measure_columns(experiment: Experiment, task: TestName) -> list[Column]:
    """Return the columns of a task's measures."""
    return [Column(title, column(task, measure), measure=measure) for measure, title in experiment.measures.items()]


def costs(experiment: Experiment) -> dict[str, tuple[str, float]]:
    """Return :data:`COSTS`, and the costs of each search in named tests."""
    named = [task for task in experiment.tasks if isinstance(task, str)]
    return COSTS | {
        column(task, name): (f"{COSTS[name][0]}, {columns.title(task)}", COSTS[name][1])
        for task in named
        for name in _OF_A_SEARCH
    }


def thesis_columns(table: ThesisTable) -> list[Column]:
    """Return our columns in the form of a table of the thesis."""
    measures = {title: measure for measure, title in ARQMATH.items()}
    return [Column(title, *table.column_of_results(title), measures.get(title, "")) for title in table.columns]


def spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation, with the digits of the thesis.

    >>> spread([0.5, 0.52]), spread([11.26]), spread([60325, 60325]), spread([])
    ('0.510 ± 0.014', '11.3', '60,325 ± 0', '–')
    """
    if not values:
        return "–"
    mean = statistics.mean(values)
    digits = 3 if abs(mean) < 10 else 1 if abs(mean) < 1000 else 0
    if len(values) == 1:
        return f"{mean:,.{digits}f}"
    return f"{mean:,.{digits}f} ± {statistics.stdev(values):,.{digits}f}"


def amount(values: Sequence[float]) -> str:
    """Return :func:`spread`, or one number if all are equal; counts have no decimals.

    >>> amount([7.8, 7.8]), amount([60325, 60325]), amount([5, 6]), amount([11.2, 11.4]), amount([])
    ('7.800', '60,325', '5.500 ± 0.707', '11.3 ± 0.1', '–')
    """
    if values and min(values) == max(values):
        return f"{values[0]:,.0f}" if float(values[0]).is_integer() else spread(values[:1])
    return spread(values)


def not_run(rows: Sequence[Row]) -> list[str]:
    """Return the conditions without a started job, if other conditions have one: ``experiment.only`` leaves them out.

    >>> rows = [{"condition": "none", "status": "done"}, {"condition": "ring", "status": "missing"}]
    >>> not_run(rows), not_run(rows[1:])
    (['ring'], [])
    """
    started = {row["condition"] for row in rows if row["status"] != "missing"}
    return [name for name in dict.fromkeys(row["condition"] for row in rows) if started and name not in started]


def without_copies(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each key: if nothing depends on the seed, the seeds of a condition share one result.

    >>> without_copies([{"seed": 1, "key": "a"}, {"seed": 2, "key": "a"}, {"seed": 3, "key": "b"}, {"seed": 4}])
    [{'seed': 1, 'key': 'a'}, {'seed': 3, 'key': 'b'}, {'seed': 4}]
    """
    first: dict[Any, Row] = {}
    for number, row in enumerate(rows):
        first.setdefault(row.get("key", number), row)
    return list(first.values())


def mean_table(
    rows: Sequence[Row], columns: Mapping[str, tuple[str, float]], show: Callable[[Sequence[float]], str] = spread
) -> list[list[str]]:
    """Return a header and one line for each condition: mean ± standard deviation (n - 1) over its finished seeds.

    ``columns`` maps a key of the rows to its title and the divisor for its unit. A cell with a value that is no number
    is "–". Conditions of :func:`not_run` have no line. Copies of one result (:func:`without_copies`) count as one seed.
    """
    table = [["Condition", *(title for title, _ in columns.values()), "Seeds"]]
    left_out = not_run(rows)
    for condition in dict.fromkeys(row["condition"] for row in rows):
        if condition in left_out:
            continue
        done = without_copies([row for row in rows if row["condition"] == condition and row["status"] == "done"])
        cells = [show(_values(done, key, unit)) for key, (_, unit) in columns.items()]
        table.append([condition, *cells, str(len(done))])
    return table


def _values(rows: Sequence[Row], key: str, unit: float) -> list[float]:
    """Return the values of a column, or no value if one is no number: the mean of the others would lack a seed."""
    values = [value for row in rows if (value := row.get(key)) is not None]
    return [value / unit for value in values] if all(map(is_number, values)) else []


def results_table(
    experiment: Experiment,
    task: TestName,
    shown: Sequence[Column],
    stars: Mapping[tuple[str, str], str],
    *,
    best_seed: bool = False,
    thesis: ThesisTable | None = None,
) -> Table:
    """Return means over seeds, or the best seed of each condition, with the thesis's numbers beside them.

    A condition without a result shows its status in place of its numbers; the note names conditions of :func:`not_run`.
    """
    beside = set(thesis.columns) if thesis else set()
    same = thesis is not None and same_setting(experiment, thesis)
    head = ["Condition", *(["Seed"] if best_seed else [])]
    quiet: set[int] = set()
    for one in shown:
        head.append(one.title)
        if one.title in beside:
            quiet.add(len(head))
            head.append("thesis" if same else "thesis, other setting")
    scored = {condition: without_copies(rows) for condition, rows in measured(experiment, task).items()}
    left_out = not_run(experiment.rows)
    conditions = [condition for condition in experiment.conditions if condition not in left_out]
    counts = {len(scored.get(condition, [])) for condition in conditions}
    with_seeds = not best_seed and len(counts) > 1  # otherwise the caption says it
    table = [[*head, "Seeds"] if with_seeds else head]
    for condition in conditions:
        rows = scored.get(condition, [])
        counted_rows = [best_row(rows, task, experiment.first_measure)] if best_seed and rows else rows
        line = [
            _named(experiment, condition),
            *([str(counted_rows[0]["seed"]) if counted_rows else "–"] if best_seed else []),
        ]
        for one in shown:
            values = _values(counted_rows, one.key, one.unit)
            cell = spread(values) if one.measure else amount(values)
            cell += stars.get((condition, one.measure), "") if values else ""
            line.append(cell if rows or one is not shown[0] else _without_result(experiment, condition))
            if one.title in beside:
                line.append(_printed(thesis, condition, one.title))
        table.append([*line, str(len(rows))] if with_seeds else line)
    table += _others(thesis, len(table[0]), head, shown)
    number = f"{max(counts)} seeds" if len(counts) == 1 else "seeds"
    over = "One seed" if max(counts) == 1 else f"Mean ± standard deviation over {number}"
    caption = "Best seed, chosen on the same topics" if best_seed else over
    if thesis is not None:
        caption = f"{caption}, in the form of Table {thesis.number} of the thesis"
    return Table(table, caption, _note(experiment, stars, thesis, same=same), frozenset(quiet))


def _named(experiment: Experiment, condition: str) -> str:
    marked = experiment.is_baseline(condition) and len(experiment.conditions) > 1
    return f"{experiment.label(condition)} †" if marked else experiment.label(condition)


def _without_result(experiment: Experiment, condition: str) -> str:
    """Return ``failed``, ``unfinished`` or ``missing``, or several of these; a separate table has the reasons."""
    statuses = [row["status"].partition(":")[0] for row in experiment.rows if row["condition"] == condition]
    return ", ".join(dict.fromkeys("not measured" if status == "done" else status for status in statuses))


def _printed(thesis: ThesisTable | None, condition: str, title: str) -> str:
    value = None if thesis is None else thesis.rows.get(condition, {}).get(title)
    return "–" if value is None else value.printed


def _others(thesis: ThesisTable | None, width: int, head: list[str], shown: Sequence[Column]) -> list[list[str]]:
    """Return systems of other groups, as reported in the thesis."""
    lines = []
    for system, values in (thesis.others if thesis else {}).items():
        line = [system] + ["–"] * (width - 1)
        for one in shown:
            if one.title in values:
                line[head.index(one.title) + 1] = values[one.title].printed
        lines.append(line)
    return lines


def same_setting(experiment: Experiment, thesis: ThesisTable) -> bool:
    """Return whether every finished job was run in the setting of a table of the thesis."""
    rows = experiment.finished()
    return bool(rows) and all(thesis.is_setting_of(row, years=row.get("years") or ()) for row in rows)


def _note(
    experiment: Experiment, stars: Mapping[tuple[str, str], str], thesis: ThesisTable | None, *, same: bool
) -> str:
    parts = []
    if len(experiment.conditions) > 1:
        meaning = (
            f"* p < 0.05 after Bonferroni's correction, {AGAINST_OWN}"
            if experiment.several_baselines
            else "* p < 0.05 against it after Bonferroni's correction"
        )
        parts += ["† baseline", *([meaning] if stars else [])]
    if thesis is not None:
        printed = {"best_seed": "the best of five seeds", "mean": "mean over five seeds", "single": "one run"}
        setting = "in the same setting" if same else f"in another setting ({_setting(experiment, thesis)})"
        parts.append(f"thesis: Table {thesis.number}, {printed[thesis.statistic]}, {setting}")
    if left_out := not_run(experiment.rows):
        parts.append(f"not run: {'; '.join(map(experiment.label, left_out))}")
    return "; ".join(parts) + "." if parts else ""


def _setting(experiment: Experiment, thesis: ThesisTable) -> str:
    """Return the differences between our setting and the thesis's.

    The thesis's table and our jobs differ in a key, e.g. ``regime judged, here mini; topics 78, here 104``.
    """
    rows, differing = experiment.finished(), []
    for key, value in thesis.setting.items():
        if key == "task":
            continue
        name = column(thesis.setting["task"], key) if key == "topics" else key
        here = {str(row.get(name, "not recorded")) for row in rows}
        if here != {str(value)}:
            ours = " and ".join(sorted(here)) or "none"
            differing.append(f"{_SETTINGS.get(key, key)} {value}, here {ours}")
    return "; ".join(differing).replace("[]", "none").replace("[", "").replace("]", "")


def significance_table(experiment: Experiment, tests: Sequence[Comparison]) -> Table:
    """Return the tests: difference, interval, p, corrected p; a star if Bonferroni's is below 0.05.

    If the experiment has several baselines, a column names the one of each test.
    """
    several = experiment.several_baselines
    against = ["Against"] if several else []
    table = [["Condition", *against, "Measure", "Difference", "95 % interval", "p", "p (Bonferroni)", "p (Holm)"]]
    for one in tests:
        table.append(
            [
                experiment.label(one.condition),
                *([experiment.label(experiment.baselines[one.condition])] if several else []),
                experiment.measures[one.metric],
                f"{one.test.difference:+.3f}{one.stars()}",
                f"[{one.low:+.3f}, {one.high:+.3f}]",
                p_value(one.test.p),
                p_value(one.p_bonferroni),
                p_value(one.p_holm),
            ]
        )
    return Table(table)


def p_value(value: float) -> str:
    """Return a p-value as tables show it.

    >>> p_value(0.0432), p_value(0.004), p_value(0.00004)
    ('0.043', '0.004', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def plain_table(experiment: Experiment, columns: Mapping[str, tuple[str, float]], caption: str = "") -> Table | None:
    """Return means of the columns that any job has, for the conditions that have one; None without such a column.

    Raises:
        StoreError: a value that is no number.
    """
    done = experiment.finished()
    known = {key: column for key, column in columns.items() if any(row.get(key) is not None for row in done)}
    if not known:
        return None
    for row in done:
        for key in known:
            if (value := row.get(key)) is not None and not is_number(value):
                job = f"{row['condition']}-seed{row['seed']}"
                raise StoreError(f"{key} of {job} is {value!r}, no number; remove its result.json and run it again")
    table = mean_table(experiment.rows, known, amount)
    lines = [[experiment.label(line[0]), *line[1:]] for line in table[1:] if {*line[1:-1]} != {"–"}]
    return Table([table[0], *lines], caption)


def parameter_groups(experiment: Experiment) -> dict[str, tuple[str, float]]:
    """Return the columns that count the parameters of one part of the model."""
    keys = sorted({key for row in experiment.finished() for key in row})
    prefix = "parameters_"
    return {key: (key.removeprefix(prefix), 1.0) for key in keys if key.startswith(prefix)}


def troubles_table(experiment: Experiment) -> Table | None:
    """Return jobs without a result, with reasons; a condition of :func:`not_run` is one line."""
    left_out = not_run(experiment.rows)
    lines = [
        [experiment.label(row["condition"]), str(row["seed"]), row["status"]]
        for row in experiment.rows
        if row["status"] != "done" and row["condition"] not in left_out
    ]
    lines += [[experiment.label(condition), "all", "not run"] for condition in left_out]
    if not lines:
        return None
    return Table([["Condition", "Seed", "Status"], *lines])
