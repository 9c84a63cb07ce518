"""Part of a report about single topics: can the scores of a ranking say that it has a right answer?

Input: condition -> ``confidence`` of ``geometry.json``, of its first seed (:mod:`experiments.analyses.confidence`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.report.blocks import Block, Table, Text
from experiments.report.figures import geometry as geometry_figures
from experiments.report.results import Experiment

Content = Mapping[str, Any]

BOUND = 0.1
"""Largest calibration error of a confidence that is worth showing to a reader."""


def blocks(experiment: Experiment, found: Mapping[str, Content]) -> list[Block]:
    """Return tables and the reliability plot; the reason for each condition without a confidence."""
    tested = {name: one for name, one in found.items() if "tested" in one}
    left_out = [
        Text(f"{experiment.label(name)}: no confidence: {one['left_out']}")
        for name, one in found.items()
        if "left_out" in one
    ]
    if not tested:
        return [*left_out]
    panels = {experiment.label(name): one["tested"] for name, one in tested.items()}
    return [_tests(experiment, tested), _evidence(experiment, tested), geometry_figures.reliability(panels), *left_out]


def _tests(experiment: Experiment, tested: Mapping[str, Content]) -> Table:
    rows = [
        ["Condition", "Fitted to", "Tested on", "Topics", "Succeed", "AUC", "ECE", "constant", "by chance", "Shown"]
    ]
    for name, content in tested.items():
        shown = "yes" if all(one["error"] < BOUND for one in content["tested"]) else "no"
        for one in content["tested"]:
            area, low, high = one["auc"]
            rows.append(
                [
                    experiment.label(name),
                    one["by"],
                    one["on"],
                    str(one["topics"]),
                    f"{one['succeeded']:.3f}",
                    f"{area:.2f} ({low:.2f} to {high:.2f})",
                    f"{one['error']:.3f}",
                    f"{one['constant']:.3f}",
                    f"{one['chance'][0]:.3f}, to {one['chance'][1]:.3f}",
                    shown,
                ]
            )
    note = (
        "First seeds. A topic succeeds if a relevant answer is among its first results; an unjudged answer is not. "
        "AUC: 0.5 is chance; the 95 % interval is of a bootstrap over topics. ECE: expected calibration "
        "error over ten bins of equal width. Constant: the error if the share of successes of the other topics is the "
        "confidence of every topic. By chance: the mean and the 95th percentile of the error of perfect confidences on "
        f"as many topics. Shown: yes if every error is below {BOUND:g}, so that a reader can rely on the confidence."
    )
    return Table(rows, "Confidence of single topics, tested on topics outside the fit", note)


def _evidence(experiment: Experiment, tested: Mapping[str, Content]) -> Table:
    names = list(next(iter(tested.values()))["evidence"])
    rows = [["Condition", "Tested on", *names]]
    for name, content in tested.items():
        for one in content["tested"]:
            line = [f"{content['evidence'][evidence][one['on']]:.2f}" for evidence in names]
            rows.append([experiment.label(name), one["on"], *line])
    note = (
        "AUC of each evidence alone. Top: first score. Margin: less the second. Gap: less the last of the first k. "
        "Lead: mean of the first k above all further results, in standard deviations. Above: share of the first k "
        "above the percentile of COE."
    )
    return Table(rows, "What the scores say of a topic's success", note)
