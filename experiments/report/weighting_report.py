"""Table of scores with other weights of virtual nodes: a row for each way, a column for each condition.

| Way | base | attention |
|---|---|---|
| as it is | .709 ± .004 | .715 ± .003 |
| idf, 0.7 | .704 ± .005 (-0.005) | .716 ± .002 (+0.001) |
"""

from __future__ import annotations

import statistics

from experiments.analyses.weighting import FILE
from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment, content_of
from experiments.report.tables import spread
from mathamr.analysis.weighting import AS_IT_IS


def blocks(experiment: Experiment) -> list[Block]:
    """Return the table of all ways; empty if no job has the analysis."""
    contents: dict[str, list[dict[str, float]]] = {}
    for condition, rows in experiment.done().items():
        found = [one for row in rows if (one := content_of(experiment.place(row) / FILE))]
        if found:
            contents[condition] = found
    if not contents:
        return []
    ways = list(next(iter(contents.values()))[0])
    table = [["Way", *(experiment.label(name) for name in contents)]]
    for way in ways:
        cells = []
        for of_seeds in contents.values():
            values = [one[way] for one in of_seeds]
            gain = statistics.fmean(values) - statistics.fmean([one[AS_IT_IS] for one in of_seeds])
            cells.append(spread(values) + ("" if way == AS_IT_IS else f" ({gain:+.3f})"))
        table.append([way, *cells])
    note = (
        "The ways are described in mathamr/analysis/weighting.py. In parentheses: the difference to the score as it is."
    )
    return [Table(table, "nDCG' with other weights"), Text(note)]
