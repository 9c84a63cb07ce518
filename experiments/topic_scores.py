"""Scores topic by topic, over seeds or of the best seed, and their tests against the baseline.

    of_conditions(experiment, task=1)["ring"]["ndcg_prime"]["A.301"]      # 0.52, the mean over the finished seeds
    comparisons(experiment, task=1, best_seed=True)[0].p_bonferroni        # 0.0312

The tests follow the thesis (section 4.2): two-sided paired t-tests over topics, of every condition against its baseline
on each of the four measures, Bonferroni-corrected over all of these, the family. The thesis tests the best seed of each
condition; the mean over seeds of each topic's score is tested beside it, as a family of its own. So are the two tasks.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from experiments.results import Experiment, Row, per_topic
from mathamr.evaluation.significance import Comparison, compare

MEASURES = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}
"""The measures of ARQMath that results are reported in, and how tables call them."""

Scores = dict[str, dict[str, dict[str, float]]]  # condition -> measure -> topic -> score


def column(task: int, measure: str) -> str:
    """The column of ``results.csv`` with a measure of a task.

    >>> column(1, "bpref"), column(2, "bpref")
    ('bpref', 'task2_bpref')
    """
    return measure if task == 1 else f"task{task}_{measure}"


def measured(experiment: Experiment, task: int) -> dict[str, list[Row]]:
    """Condition -> its finished rows that have a score in the task."""
    key = column(task, "ndcg_prime")
    found = {name: [row for row in rows if key in row] for name, rows in experiment.done().items()}
    return {name: rows for name, rows in found.items() if rows}


def best_row(rows: list[Row], task: int) -> Row:
    """The seed of highest nDCG', as the thesis chooses it: on the topics that it is reported on."""
    return max(rows, key=lambda row: float(row[column(task, "ndcg_prime")]))


def of_conditions(experiment: Experiment, task: int, *, best_seed: bool = False) -> Scores:
    """Each topic's scores: the mean over finished seeds, or those of the best seed.

    Raises:
        StoreError: a job left no scores by topic.
    """
    scores: Scores = {}
    for condition, rows in measured(experiment, task).items():
        chosen = [best_row(rows, task)] if best_seed else rows
        tables = [per_topic(experiment.place(row), task, list(MEASURES)) for row in chosen]
        topics = sorted(set.intersection(*(set(table) for table in tables)))
        scores[condition] = {
            measure: {topic: statistics.fmean(table[topic][measure] for table in tables) for topic in topics}
            for measure in MEASURES
        }
    return scores


def comparisons(experiment: Experiment, task: int, *, best_seed: bool) -> list[Comparison]:
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
