"""What other weights of virtual nodes would have scored (``experiment.analyses=[weighting]``): nDCG' of each way.

    outputs/weighting/jobs/base-seed42/weighting.json      {"as it is": 0.709, "idf, 0.7": 0.704, ...}

The ways are those of :mod:`mathamr.analysis.weighting`. Of a large collection the judged posts are scored, and others
drawn at random that say how common a vector is; nDCG' passes over what is not judged. "As it is" is normalised MaxSim,
whatever strategy the job itself searches with.
"""

from __future__ import annotations

import statistics

import numpy as np

from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment, content_of
from experiments.report.tables import spread
from mathamr.analysis.weighting import AS_IT_IS, weighted
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import MAX_PER_TOPIC, Qrels, Run
from mathamr.stages.topic_sets import Space

FILE = "weighting.json"


def look(space: Space, qrels: Qrels) -> dict[str, float]:
    """nDCG' of each way, as ``weighting.json`` has them, by :func:`experiments.analyses.geometry.judged_space`."""
    found = {}
    for name, scores in weighted(space.queries, space.query_kinds, space.documents).items():
        rankings = {}
        for topic, row in zip(space.topics, scores, strict=True):
            order = np.argsort(-row, kind="stable")[:MAX_PER_TOPIC]
            rankings[topic] = [(space.posts[place], float(row[place])) for place in order]
        found[name] = evaluate(Run.from_results("weighting", rankings), qrels).aggregate["ndcg_prime"]
    return found


def blocks(experiment: Experiment) -> list[Block]:
    """The table of all ways; nothing where no job was asked for it."""
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
