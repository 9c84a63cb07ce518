"""Selection of a condition on one year's topics, and its score on the held-out years.

The best of many conditions looks better on its selection topics than it is. So results are read year by year: each year
selects a condition, and the other years show what the selection is worth.

Conditions with one baseline are rivals; the baseline can be selected too, and then confirms itself.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment
from experiments.report.tables import AGAINST_OWN, p_value
from experiments.report.topic_scores import measured_baselines, of_conditions
from graphs.counts import counted
from mathamr.evaluation.result_names import ARQMATH, TestName
from mathamr.evaluation.significance import Comparison, compare, paired_t_test
from mathamr.ranking.judged import year_of

_MEASURE = "ndcg_prime"
_REPORTED = 2022  # ARQMath-3 is for the final report: nothing is selected on its topics

_Years = dict[int, dict[str, dict[str, float]]]  # year -> condition -> topic -> score


def blocks(experiment: Experiment, task: TestName) -> list[Block]:
    """Return nDCG' in each year, and the selection of each; empty if all topics are of one year."""
    scores = {name: of[_MEASURE] for name, of in of_conditions(experiment, task).items() if _MEASURE in of}
    years = by_year(scores)
    if len(years) < 2 or len(scores) < 2:
        return []
    return [_scores(experiment, years), _choices(experiment, years), Text(_note(experiment))]


def by_year(scores: Mapping[str, Mapping[str, float]]) -> _Years:
    """Return condition -> topic -> score, split by the topics' years; topics without a year are left out.

    >>> by_year({"ring": {"A.1": 0.2, "A.201": 0.5, "q": 1.0}})
    {2020: {'ring': {'A.1': 0.2}}, 2021: {'ring': {'A.201': 0.5}}}
    """
    years: _Years = {}
    for condition, of_topic in scores.items():
        for topic, score in of_topic.items():
            if (year := year_of(topic)) is not None:
                years.setdefault(year, {}).setdefault(condition, {})[topic] = score
    return dict(sorted(years.items()))


def rivals(baselines: Mapping[str, str], conditions: Sequence[str]) -> dict[str, list[str]]:
    """Return baseline -> the rival conditions with a result, itself first; a baseline without rivals is left out.

    >>> rivals({"base": "base", "wide": "base", "text": "text"}, ["base", "text", "wide"])
    {'base': ['base', 'wide']}
    """
    groups = {own: [own, *(c for c in conditions if c != own and baselines[c] == own)] for own in conditions}
    return {own: group for own, group in groups.items() if len(group) > 1}


def best(of_year: Mapping[str, Mapping[str, float]], among: Sequence[str]) -> str:
    """Return the condition with the highest mean over the topics of a year; of equals the first."""
    return max(among, key=lambda name: statistics.fmean(of_year[name].values()))


def _scores(experiment: Experiment, years: _Years) -> Table:
    head = ["Condition"]
    for year, of_year in years.items():
        head += [f"nDCG' {year} ({counted(len(next(iter(of_year.values()))), 'topic')})", "difference"]
    rows = [head]
    tests = {year: _tests(experiment, of_year) for year, of_year in years.items()}
    for name in next(iter(years.values())):
        row = [experiment.label(name) + (" †" if experiment.is_baseline(name) else "")]
        for year, of_year in years.items():
            test = tests[year].get(name)
            row.append(f"{statistics.fmean(of_year[name].values()):.3f}")
            row.append("" if test is None else f"{test.test.difference:+.3f}{test.stars()}")
        rows.append(row)
    return Table(rows, "By the topics' year")


def _tests(experiment: Experiment, of_year: Mapping[str, Mapping[str, float]]) -> dict[str, Comparison]:
    scores = {name: {_MEASURE: of_topic} for name, of_topic in of_year.items()}
    return {test.condition: test for test in compare(scores, measured_baselines(experiment.baselines, scores))}


def _choices(experiment: Experiment, years: _Years) -> Table:
    rows = [["Chosen on", "condition", "there", "confirmed on", "nDCG'", "baseline", "difference", "p"]]
    for own, group in rivals(experiment.baselines, list(next(iter(years.values())))).items():
        for year, of_year in years.items():
            if year == _REPORTED:
                continue
            winner = best(of_year, group)
            for other, elsewhere in years.items():
                if other == year:
                    continue
                test = paired_t_test(elsewhere[own], elsewhere[winner])
                rows.append(
                    [
                        str(year),
                        experiment.label(winner),
                        f"{statistics.fmean(of_year[winner].values()):.3f}",
                        str(other),
                        f"{statistics.fmean(elsewhere[winner].values()):.3f}",
                        f"{statistics.fmean(elsewhere[own].values()):.3f} ({experiment.label(own)})",
                        f"{test.difference:+.3f}",
                        p_value(test.p),
                    ]
                )
    return Table(rows, "Chosen on one year, confirmed on another")


def _note(experiment: Experiment) -> str:
    several = experiment.several_baselines
    against, own = (" (†: a baseline)", f"; {AGAINST_OWN}") if several else (" against the baseline (†)", "")
    return (
        f"{ARQMATH[_MEASURE]} of the mean over seeds of each topic's score. * p < 0.05{against}, two-sided "
        "paired t-test over the topics of that year, Bonferroni's correction over the conditions, each year a separate "
        f"family{own}. A confirmation is one test for each line, not corrected: nothing is selected on those topics."
    )
