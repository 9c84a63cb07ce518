"""Scores topic by topic, over seeds or of the best seed, and their tests against the baseline.

    of_conditions(experiment, task=1)["ring"]["ndcg_prime"]["A.301"]      # 0.52, the mean over the finished seeds
    comparisons(experiment, task=1, best_seed=True)[0].p_bonferroni        # 0.0312

The tests follow the thesis (section 4.2): two-sided paired t-tests over topics, of every condition against its baseline
on each measure of the experiment, Bonferroni-corrected over all of these, the family. The thesis tests the best seed of
each condition; the mean over seeds of each topic's score is tested beside it, as a family of its own. So is each task.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from experiments.report.results import Experiment, Row, per_topic
from mathamr.evaluation.result_names import TestName, column
from mathamr.evaluation.significance import Comparison, compare

Scores = dict[str, dict[str, dict[str, float]]]  # condition -> measure -> topic -> score


def measured(experiment: Experiment, task: TestName) -> dict[str, list[Row]]:
    """Condition -> its finished rows that have a score in the task."""
    key = column(task, experiment.first_measure)
    found = {name: [row for row in rows if key in row] for name, rows in experiment.done().items()}
    return {name: rows for name, rows in found.items() if rows}


def best_row(rows: list[Row], task: TestName, measure: str = "ndcg_prime") -> Row:
    """The seed of highest ``measure``, as the thesis chooses it: on the topics that it is reported on."""
    return max(rows, key=lambda row: float(row[column(task, measure)]))


def of_conditions(experiment: Experiment, task: TestName, *, best_seed: bool = False) -> Scores:
    """Each topic's scores: the mean over finished seeds, or those of the best seed.

    Raises:
        StoreError: a job left no scores by topic.
    """
    scores: Scores = {}
    for condition, rows in measured(experiment, task).items():
        chosen = [best_row(rows, task, experiment.first_measure)] if best_seed else rows
        tables = [per_topic(experiment.place(row), task, list(experiment.measures)) for row in chosen]
        topics = sorted(set.intersection(*(set(table) for table in tables)))
        scores[condition] = {
            measure: {topic: statistics.fmean(table[topic][measure] for table in tables) for topic in topics}
            for measure in experiment.measures
        }
    return scores


def comparisons(experiment: Experiment, task: TestName, *, best_seed: bool) -> list[Comparison]:
    """Tests of every condition against its baseline, corrected over all of them.

    Conditions whose baseline has no result are left out; empty where nothing is left to compare.

    Raises:
        EvaluationError: the conditions were measured on different topics.
    """
    scores = of_conditions(experiment, task, best_seed=best_seed)
    comparable = {name: values for name, values in scores.items() if experiment.baselines[name] in scores}
    return compare(comparable, experiment.baselines) if comparable else []


def stars(tests: list[Comparison]) -> Mapping[tuple[str, str], str]:
    """(condition, measure) -> ``*`` where the difference to the baseline is significant."""
    return {(test.condition, test.metric): test.stars() for test in tests}
