"""Tables of weights: weights of learned ranking, and scores with other weights of virtual nodes.

| Feature | 2020 left out | 2021 left out | all years |
|---|---|---|---|
| text | +0.120 | +0.098 | +0.110 |

| Way | base | attention |
|---|---|---|
| as it is | .709 ± .004 | .715 ± .003 |
| idf, 0.7 | .704 ± .005 (-0.005) | .716 ± .002 (+0.001) |
"""

from __future__ import annotations

import statistics
from pathlib import Path

from experiments.analyses import weighting
from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment, content_of
from experiments.report.tables import spread
from graphs.errors import StoreError
from mathamr.analysis.weighting import AS_IT_IS
from mathamr.evaluation.result_names import file_name, title

_RANKERS = "weights.json"
_Learned = tuple[str, dict[str, dict[str, float]]]


def virtual_node_weights(experiment: Experiment) -> list[Block]:
    """Return the table of all ways; empty if no job has the analysis."""
    contents = experiment.read_jobs(lambda place: _scores(place / weighting.FILE))
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


def _scores(path: Path) -> dict[str, float] | None:
    """Return way -> score of one job; None if it has no such file."""
    content = content_of(path)
    if not content:
        return None
    try:
        scores = {str(way): float(score) for way, score in content.items()}
        if AS_IT_IS not in scores:
            raise KeyError(AS_IT_IS)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StoreError(f"no scores of ways ({error!r}); remove result.json and run again", path=path) from error
    return scores


def learned_weights(experiment: Experiment) -> list[Block]:
    """Return a table of mean learned weights over seeds for each condition and task; empty without any."""
    tables: list[Block] = []
    for condition, rows in experiment.done().items():
        for task in experiment.tasks:
            name = file_name(task, _RANKERS)
            found = [one for row in rows if (one := _learned(experiment.place(row) / name))]
            if found:
                of_task = f", {title(task)}" if len(experiment.tasks) > 1 else ""
                tables.append(_table(experiment, f"{experiment.label(condition)}{of_task}", found))
    return [*tables, Text(_LEARNED)] if tables else []


def _learned(path: Path) -> _Learned | None:
    """Read the learner of one job, and title of a ranker -> feature -> weight; None if it has no such file."""
    content = content_of(path)
    if not content:
        return None
    try:
        features = [str(feature) for feature in content["features"]]
        rankers = {
            "all topics" if own["left_out"] is None else f"{own['left_out']} left out": {
                feature: float(own["weights"][feature]) for feature in features
            }
            for own in content["rankers"]
        }
        return str(content["learner"]), rankers
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"no learned weights ({error!r}); remove result.json and run again", path=path) from error


def _table(experiment: Experiment, name: str, of_seeds: list[_Learned]) -> Table:
    learner, first = of_seeds[0]
    rows = [["Feature", *first]]
    for feature in next(iter(first.values()), {}):
        means = [statistics.fmean(rankers[ranker][feature] for _, rankers in of_seeds) for ranker in first]
        label = experiment.label(feature) if feature in experiment.conditions else feature
        rows.append([label, *(f"{mean:+.3f}" for mean in means)])
    return Table(rows, f"{name}: {learner}")


_LEARNED = (
    "Weights of features in their standard deviations; of lambdamart the shares in the gain of all splits. A topic is "
    "ranked with the weights that leave its year or fold out. Those of all topics are for further topics."
)
