"""Files of a report: ``results.csv``, ``report.md`` and ``report.html`` of experiments from any machine.

    write([results.read(Path("outputs/vn_connectivity"))], Path("outputs/report"))

Experiments of the same name are merged: the report has the jobs of all of them. Others follow each other on one page.
Only ``experiment.json`` and ``jobs/*`` of the folders are read, so they can be copied to the machine that makes the
report.

``report.html`` is self-contained and needs no network. ``report.md`` has the same tables.
Means and standard deviations (n - 1) are over seeds; ``experiments/report/topic_scores.py`` has the tests.
"""

from __future__ import annotations

import csv
import io
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.report import breakdowns, examples, learning_curves, page, results, taking_part, weight_tables, years
from experiments.report.blocks import Block, Code, Folded, Heading, Text, markdown
from experiments.report.figures import charts, heat_map
from experiments.report.geometry import embedding_space
from experiments.report.results import Experiment, Row
from experiments.report.tables import (
    DEVELOPMENT,
    costs,
    measure_columns,
    parameter_groups,
    plain_table,
    results_table,
    significance_table,
    thesis_columns,
    troubles_table,
    without_copies,
)
from experiments.report.thesis import ThesisTable
from experiments.report.thesis import tables as thesis_tables
from experiments.report.topic_scores import comparisons, measured, not_compared, of_conditions, shared_measures, stars
from graphs.errors import MathAMRError
from graphs.whole_file import write_whole
from mathamr.evaluation import result_names as columns
from mathamr.evaluation.result_names import ARQMATH, TestName, column
from mathamr.evaluation.significance import Comparison

_FIRST = ("condition", "seed", "status")
_SHOWN_TESTS = 16
"""Largest number of rows of tests that a page shows unfolded."""
_PANELS = 4
"""Number of measures that fit beside each other in a plot."""


def write(experiments: Sequence[Experiment], out: Path) -> None:
    """Write ``results.csv``, ``report.md`` and ``report.html`` to ``out``.

    Raises:
        ConfigError: jobs of one experiment that cannot be in one table.
    """
    experiments = results.join(experiments)
    out.mkdir(parents=True, exist_ok=True)
    several = len(experiments) > 1
    titles = Counter(one.title for one in experiments)  # all runs of +exp=trial have one title
    experiments = [
        replace(one, title=f"{one.title} ({one.name})") if titles[one.title] > 1 else one for one in experiments
    ]
    rows = [({"experiment": one.name} if several else {}) | row for one in experiments for row in one.rows]
    write_csv(rows, out / "results.csv", [name for one in experiments for name in _scores_of(one)])
    blocks = [block for one in experiments for block in report_of(one)]
    title = f"{len(experiments)} experiments" if several else experiments[0].title
    write_whole(out / "report.md", markdown(blocks))
    write_whole(out / "report.html", page.page(title, blocks))


def _scores_of(experiment: Experiment) -> list[str]:
    """Return the columns with the scores of an experiment, also before a job has finished."""
    if experiment.measures == ARQMATH:
        return [*ARQMATH, "recall_1000", "topics"]
    return [column(task, name) for task in experiment.tasks for name in (*experiment.measures, "topics")]


def write_csv(rows: Sequence[Row], path: Path, scores: Sequence[str]) -> None:
    """Write ``results.csv``: a row for each condition x seed with every metric and cost, ``scores`` first."""
    names = ["experiment"] if any("experiment" in row for row in rows) else []
    names += dict.fromkeys([*_FIRST, *scores, "regime"])
    for row in rows:
        names += [key for key in row if key not in names]
    text = io.StringIO()
    table = csv.DictWriter(text, names, restval="")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue())


def report_of(experiment: Experiment) -> list[Block]:
    """Return all blocks about one experiment, in order; a part with broken files shows the error in its place."""
    blocks: list[Block] = [Heading(experiment.title), *taking_part.warnings(experiment)]
    blocks += [
        *(Code(command) for command in experiment.commands),
        Text(_facts(experiment)),
        *taking_part.leaks(experiment),
    ]
    done = experiment.done()
    troubles = troubles_table(experiment)
    if troubles is not None:
        left = sum(row["status"] != "done" for row in experiment.rows)
        blocks.append(Text(f"Without a result: {left} of {len(experiment.rows)} jobs; the last table has the reasons."))
    if done:
        for task in experiment.tasks:
            if measured(experiment, task):
                blocks += _task(experiment, task)
        parts: list[tuple[str, Callable[[], list[Block]]]] = [
            ("Learning curves", lambda: learning_curves.blocks(experiment)),
            ("MaxSim between virtual nodes", lambda: heat_map.blocks(experiment)),
            ("The embedding space", lambda: embedding_space.blocks(experiment)),
            ("Other weights of virtual nodes", lambda: weight_tables.virtual_node_weights(experiment)),
            ("Learned weights", lambda: weight_tables.learned_weights(experiment)),
            ("First results", lambda: examples.blocks(experiment, "examples.json")),
            ("First formulas", lambda: examples.blocks(experiment, "examples-task2.json")),
            ("Efficiency", lambda: _efficiency(experiment)),
            ("Development measures", lambda: _development(experiment)),
        ]
        for title, build in parts:
            blocks += _part(title, build)
    if troubles is not None:
        blocks += [Heading("Jobs without a result", 2), troubles]
    return blocks


def _facts(experiment: Experiment) -> str:
    rows = experiment.finished()
    if not rows:
        return "No job has finished."

    def all_of(key: str) -> str:
        return ", ".join(sorted({str(row.get(key, "not recorded")) for row in rows}))

    tasks = experiment.tasks if isinstance(experiment.tasks[0], str) else (1, *experiment.tasks)
    measured = [task for task in dict.fromkeys(tasks) if any(column(task, "topics") in row for row in rows)]
    first = measured[0] if measured else tasks[0]
    of = "" if first == tasks[0] else f" of {columns.title(first)}"
    number = {task: all_of(column(task, "topics")) for task in (first, *measured)}
    topics = {task: f"{one} topic{'s' * (one != '1')}" for task, one in number.items()}
    facts = [f"{topics[first]}{of}, regime {all_of('regime')}"]
    if more := [f"{columns.title(task)}: {topics[task]}" for task in measured if task != first]:
        facts[0] += f" ({', '.join(more)})"
    for task in dict.fromkeys([first, *measured]):
        if any((files := column(task, "judgments")) in row for row in rows):
            facts.append(f"judgments of {columns.title(task)}: {all_of(files)}")
    if any((grade := column(first, "relevant_grade")) in row for row in rows):
        own = "" if experiment.measures == ARQMATH else " (own measures: from 1, unless they name another)"
        facts.append(f"relevant from grade {all_of(grade)}{own}")
    facts += [f"code {all_of('code')}", all_of("machine")]
    facts.append(f"last job finished {max(str(row.get('finished', 'not recorded')) for row in rows)}")
    seeds = ", ".join(str(seed) for seed in experiment.seeds)
    baselines = sorted({f'"{experiment.label(name)}"' for name in experiment.baselines.values()})  # one may be "None"
    compared = (
        f" Baseline{'s' * (len(baselines) > 1)}: {'; '.join(baselines)}." if len(experiment.conditions) > 1 else ""
    )
    return f"{'; '.join(facts)}. Seeds: {seeds}.{compared}"


def _part(title: str, build: Callable[[], list[Block]]) -> list[Block]:
    """Return a part with its heading; empty without data, and the error if it cannot be made."""
    try:
        blocks = build()
    except MathAMRError as error:
        blocks = [Text(f"Left out: {error}")]
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        traceback.print_exc()
        why = f"a fault of the program, or jobs of different versions ({error!r})"
        blocks = [Text(f"Left out: {why}; standard error has the traceback")]
    return [Heading(title, 2), *blocks] if blocks else []


def _task(experiment: Experiment, task: TestName) -> list[Block]:
    """Return means and best seeds with their tests, bars, and differences by topic."""
    before = f"{columns.title(task)}: " if len(experiment.tasks) > 1 else ""
    several = _has_seeds(experiment, task)
    tables = [table for table in thesis_tables(experiment.name) if table.setting["task"] == task]
    effective = [table for table in tables if ARQMATH.keys() & {one.measure for one in thesis_columns(table)}]

    def of_thesis(*statistics: str) -> ThesisTable | None:
        return next((table for name in statistics for table in effective if table.statistic == name), None)

    blocks: list[Block] = []
    thesis = of_thesis("mean", "single") if several else of_thesis("mean", "single", "best_seed")
    title = "mean over seeds" if several else "results of one seed"
    blocks += _part(_title(before, title), lambda: _scores(experiment, task, best_seed=False, thesis=thesis))
    if several:
        best = of_thesis("best_seed")
        blocks += _part(_title(before, "best seed"), lambda: _scores(experiment, task, best_seed=True, thesis=best))
    blocks += _part(_title(before, "differences by topic"), lambda: _differences(experiment, task))
    blocks += _part(_title(before, "year by year"), lambda: years.blocks(experiment, task))
    blocks += _part(_title(before, "by groups of topics"), lambda: breakdowns.blocks(experiment, task))
    return blocks


def _has_seeds(experiment: Experiment, task: TestName) -> bool:
    """Return whether a condition has different results for several seeds."""
    return max(len(without_copies(rows)) for rows in measured(experiment, task).values()) > 1


def _title(before: str, title: str) -> str:
    """Return a heading, after the task if there are several.

    >>> _title("", "best seed"), _title("Task 2: ", "best seed")
    ('Best seed', 'Task 2: best seed')
    """
    return before + title if before else title.capitalize()


def _scores(experiment: Experiment, task: TestName, *, best_seed: bool, thesis: ThesisTable | None) -> list[Block]:
    """Return the table in the thesis's form, bars, and the tests of its stars."""
    trouble, tests = "", list[Comparison]()
    try:
        tests = comparisons(experiment, task, best_seed=best_seed)
    except MathAMRError as error:
        trouble = f"No tests: {error}"
    marks = stars(tests)
    without_baseline = not_compared(experiment, task)
    shown = measure_columns(experiment, task)
    if thesis is not None:
        shown += [one for one in thesis_columns(thesis) if one.title not in ARQMATH.values()]
    blocks: list[Block] = []
    if best_seed:
        blocks.append(
            Text(
                f"For each condition the seed of highest {experiment.measures[experiment.first_measure]}, chosen on "
                "the reported topics: an optimistic figure, shown because the thesis reports it."
            )
        )
    blocks.append(results_table(experiment, task, shown, marks, best_seed=best_seed, thesis=thesis))
    if not best_seed and not trouble and len(experiment.conditions) > 1:
        blocks.append(_bars(experiment, task, marks))
    if trouble:
        blocks.append(Text(trouble))
    elif tests:
        table = significance_table(experiment, tests)
        averaged = "of the mean over seeds of each topic's score" if _has_seeds(experiment, task) else "of one seed"
        what = "of the best seeds" if best_seed else averaged
        found = sum(bool(one.stars()) for one in tests)
        blocks.append(
            Text(
                f"{found or 'None'} of {len(tests)} differences {'are' if found > 1 else 'is'} significant (*). "
                f"Two-sided paired t-tests over topics against the baseline, {what}; Bonferroni's and Holm's "
                "correction over all tests of this table. Intervals: 95 % bootstrap intervals of the mean difference, "
                "not corrected."
            )
        )
        blocks.append(table if len(tests) <= _SHOWN_TESTS else Folded(f"All {len(tests)} tests", [table]))
    elif len(experiment.conditions) > 1:
        why = "the baseline has no result" if without_baseline else "only the baseline has a result"
        blocks.append(Text(f"No tests: {why}."))
    if without_baseline and experiment.several_baselines and not trouble:
        blocks.append(Text(_not_compared(experiment, without_baseline)))
    if lacking := _lacking(experiment, task):
        blocks.append(Text(lacking))
    return blocks


def _lacking(experiment: Experiment, task: TestName) -> str:
    """Return a sentence on measures that some jobs lack, which are left out of plots and tests; "" without any."""
    shared = shared_measures(experiment, task)
    missing = [column(task, measure) for measure in experiment.measures if measure not in shared]
    if not missing:
        return ""
    titles = [title for measure, title in experiment.measures.items() if measure not in shared]
    names = [
        experiment.label(name)
        for name, rows in measured(experiment, task).items()
        if any(key not in row for key in missing for row in rows)
    ]
    return (
        f"Not tested: {', '.join(titles)}, which {' and '.join(names)} lack{'s' * (len(names) == 1)}: another version "
        "of the code has measured them. To have all measures, remove the result.json of their jobs, and run again."
    )


def _not_compared(experiment: Experiment, without_baseline: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence with the conditions whose baseline has no result."""
    named = [
        f"{' and '.join(map(experiment.label, names))} (baseline {experiment.label(baseline)})"
        for baseline, names in without_baseline.items()
    ]
    return f"Not compared, because the baseline has no result: {'; '.join(named)}."


def _bars(experiment: Experiment, task: TestName, marks: Any) -> Block:
    scores = of_conditions(experiment, task)
    rows = measured(experiment, task)
    drawn = dict(list(shared_measures(experiment, task).items())[:_PANELS])
    seeds = {
        experiment.label(name): {
            measure: [float(row[column(task, measure)]) for row in rows[name]] for measure in drawn
        }
        for name in scores
    }
    labelled = {experiment.label(name): values for name, values in scores.items()}
    named = {(experiment.label(name), measure): star for (name, measure), star in marks.items()}
    return charts.bars(labelled, seeds, drawn, named)


def _differences(experiment: Experiment, task: TestName) -> list[Block]:
    """Return sorted bars of the first measure for each condition whose baseline has a result."""
    first = experiment.first_measure
    tests = [test for test in comparisons(experiment, task, best_seed=False) if test.metric == first]
    if not tests:
        return []
    scores = {name: of[first] for name, of in of_conditions(experiment, task).items()}
    found = []
    for test in tests:
        baseline = experiment.baselines[test.condition]
        by_topic = {topic: score - scores[baseline][topic] for topic, score in scores[test.condition].items()}
        labels = experiment.label(test.condition), experiment.label(baseline)
        found.append(charts.Difference(*labels, test, by_topic))
    return [charts.differences(found, experiment.measures[first])]


def _efficiency(experiment: Experiment) -> list[Block]:
    """Return our costs, parameters by group, and the thesis's tables of costs with ours beside."""
    tables = [
        plain_table(experiment, costs(experiment)),
        plain_table(experiment, parameter_groups(experiment), "Parameters by group"),
    ]
    blocks: list[Block] = [table for table in tables if table is not None]
    for thesis in thesis_tables(experiment.name):
        shown = thesis_columns(thesis)
        task = int(thesis.setting["task"])
        if not any(one.measure for one in shown) and measured(experiment, task):
            blocks.append(results_table(experiment, task, shown, {}, thesis=thesis))
    return blocks


def _development(experiment: Experiment) -> list[Block]:
    table = plain_table(experiment, DEVELOPMENT)
    if table is None:
        return []
    recall = " Recall@1000: judged relevant posts among the first 1,000 results."
    note = (
        f"For choices while developing, not for comparison: no test is made on them."
        f"{recall if experiment.measures == ARQMATH else ''} Validation: held-out training pairs."
    )
    return [table, Text(note)]
