"""Table of learned weights: a row for each feature, a column for each year that was left out.

| Feature | 2020 left out | 2021 left out | all years |
|---|---|---|---|
| text | +0.120 | +0.098 | +0.110 |
| text_question | +0.310 | +0.295 | +0.301 |
"""

from __future__ import annotations

import statistics
from typing import Any

from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment, content_of

_FILE = "weights.json"


def blocks(experiment: Experiment) -> list[Block]:
    """Return a table for each condition with learned weights, which are means over seeds; empty without any."""
    tables: list[Block] = []
    for condition, rows in experiment.done().items():
        found = [one for row in rows if (one := content_of(experiment.place(row) / _FILE))]
        if found:
            tables.append(_table(experiment, condition, found))
    return [*tables, Text(_NOTE)] if tables else []


def _table(experiment: Experiment, condition: str, contents: list[dict[str, Any]]) -> Table:
    head = ["Feature"]
    columns = []
    for place, own in enumerate(contents[0]["rankers"]):
        head.append("all years" if own["left_out"] is None else f"{own['left_out']} left out")
        columns.append([content["rankers"][place]["weights"] for content in contents])
    rows = [head]
    for feature in contents[0]["features"]:
        cells = [f"{statistics.fmean(one[feature] for one in of_seeds):+.3f}" for of_seeds in columns]
        rows.append([experiment.label(feature) if feature in experiment.conditions else feature, *cells])
    return Table(rows, f"{experiment.label(condition)}: {contents[0]['learner']}")


_NOTE = (
    "Weights of features in their standard deviations; of lambdamart the shares in the gain of all splits. A topic is "
    "ranked with the weights that leave its year out. Those of all years are for further years."
)
