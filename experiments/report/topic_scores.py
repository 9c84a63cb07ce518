"""Scores by topic, over seeds or of the best seed, and their tests against the baseline.

    of_conditions(experiment, task=1)["ring"]["ndcg_prime"]["A.301"]      # 0.52, the mean over the finished seeds
    comparisons(experiment, task=1, best_seed=True)[0].p_bonferroni        # 0.0312

The tests follow the thesis (section 4.2): two-sided paired t-tests over topics, of every condition against its baseline
on each measure of the experiment, Bonferroni-corrected over all of these, the family. The thesis tests the best seed of
each condition. The mean over seeds of each topic's score is tested too, as a separate family; so is each task.
"""

from __future__ import annotations

import statistics
from collections.abc import Container, Mapping

from experiments.report.results import Experiment, Row, per_topic
from mathamr.evaluation.result_names import TestName, column
from mathamr.evaluation.significance import Comparison, compare

Scores = dict[str, dict[str, dict[str, float]]]  # condition -> measure -> topic -> score


def measured(experiment: Experiment, task: TestName) -> dict[str, list[Row]]:
    """Return condition -> its finished rows with a score in the task."""
    key = column(task, experiment.first_measure)
    found = {name: [row for row in rows if key in row] for name, rows in experiment.done().items()}
    return {name: rows for name, rows in found.items() if rows}


def best_row(rows: list[Row], task: TestName, measure: str = "ndcg_prime") -> Row:
    """Return the seed with the highest ``measure`` on the reported topics, as in the thesis."""
    return max(rows, key=lambda row: float(row[column(task, measure)]))


def shared_measures(experiment: Experiment, task: TestName) -> dict[str, str]:
    """Return the measures (column -> title) that all finished rows with a score have.

    Jobs of another version of the code may lack a measure that has been added to those of ARQMath.
    """
    rows = [row for rows in measured(experiment, task).values() for row in rows]
    return {
        name: title for name, title in experiment.measures.items() if all(column(task, name) in row for row in rows)
    }


def of_conditions(experiment: Experiment, task: TestName, *, best_seed: bool = False) -> Scores:
    """Return each topic's scores by shared measures: the mean over finished seeds, or those of the best seed.

    Raises:
        StoreError: a job without scores by topic.
    """
    scores: Scores = {}
    measures = list(shared_measures(experiment, task))
    for condition, rows in measured(experiment, task).items():
        counted_rows = [best_row(rows, task, experiment.first_measure)] if best_seed else rows
        tables = [per_topic(experiment.place(row), task, measures) for row in counted_rows]
        topics = sorted(set.intersection(*(set(table) for table in tables)))
        scores[condition] = {
            measure: {topic: statistics.fmean(table[topic][measure] for table in tables) for topic in topics}
            for measure in measures
        }
    return scores


def comparisons(experiment: Experiment, task: TestName, *, best_seed: bool) -> list[Comparison]:
    """Test every condition against its baseline, corrected over all of them.

    Conditions whose baseline has no result are not tested (:func:`not_compared`), but others are tested against them.

    Raises:
        EvaluationError: the conditions were measured on different topics.
    """
    scores = of_conditions(experiment, task, best_seed=best_seed)
    return compare(scores, measured_baselines(experiment.baselines, scores))


def measured_baselines(baselines: Mapping[str, str], conditions: Container[str]) -> dict[str, str]:
    """Return condition -> its baseline, or the condition itself if the baseline is not among ``conditions``.

    >>> measured_baselines({"none": "none", "ring": "none", "full": "ring"}, ["ring", "full"])
    {'none': 'none', 'ring': 'ring', 'full': 'ring'}
    """
    return {name: own if own in conditions else name for name, own in baselines.items()}


def not_compared(experiment: Experiment, task: TestName) -> dict[str, list[str]]:
    """Return baseline without a result -> the conditions with a result that could not be compared with it."""
    found: dict[str, list[str]] = {}
    known = measured(experiment, task)
    for name in known:
        if (own := experiment.baselines[name]) not in known:
            found.setdefault(own, []).append(name)
    return found


def stars(tests: list[Comparison]) -> Mapping[tuple[str, str], str]:
    """Return (condition, measure) -> ``*`` for a significant difference to the baseline."""
    return {(test.condition, test.metric): test.stars() for test in tests}
