"""Blocks of a report about what took part: topics and documents that are missing, other graphs, and left-out pairs."""

from __future__ import annotations

from experiments.report.blocks import Block, Text
from experiments.report.results import Experiment, Row
from graphs.counts import counted
from mathamr.evaluation import result_names as columns
from mathamr.evaluation.completeness import COLUMNS, short
from mathamr.evaluation.result_names import column


def warnings(experiment: Experiment) -> list[Block]:
    """Topics and judged documents that did not take part, with the conditions; jobs of other posts, graphs or seeds."""
    rows = experiment.finished()
    found: dict[str, list[Row]] = {}
    for row in rows:
        for task in experiment.tasks:
            counts = {name: row.get(column(task, name)) for name in COLUMNS}
            for line in short(counts):
                found.setdefault(f"{columns.title(task)}: {line}", []).append(row)
    blocks: list[Block] = []
    for line, some in found.items():
        names = dict.fromkeys(experiment.label(str(row["condition"])) for row in some)
        where = "" if len(some) == len(rows) else f" ({'; '.join(names)})"
        blocks.append(Text(f"Warning: {line}{where}."))
    lines = [*_of_other_posts(experiment), *of_other_graphs(experiment), *_of_other_seeds(experiment)]
    return [*blocks, *(Text(f"Warning: {line}.") for line in lines)]


def _of_other_posts(experiment: Experiment) -> list[str]:
    """Return a line if finished jobs, e.g. of two machines, searched different collections."""
    found = sorted({str(row["collection_hash"]) for row in experiment.finished() if row.get("collection_hash")})
    if len(found) < 2:
        return []
    return [
        f"the jobs searched different posts (results.csv, column collection_hash: {', '.join(found)}), so their scores "
        "cannot be compared; copy the collection of one machine to the other, and run its jobs again"
    ]


def of_other_graphs(experiment: Experiment) -> list[str]:
    """Return a line if finished jobs were made from different graphs."""
    sources = [str(row.get("source", "")) for row in experiment.finished()]
    graphs = {source.split("-")[1] for source in sources if "-" in source}  # other systems have no graphs
    if len(graphs) < 2:
        return []
    return [
        f"the jobs have different graphs (results.csv, column source: {', '.join(sorted(graphs))}); unless this is "
        "meant, remove the result.json of those of earlier graphs, and run again"
    ]


def _of_other_seeds(experiment: Experiment) -> list[str]:
    """Return a line for each condition that has no seed in common with its baseline."""
    seeds = {condition: {int(row["seed"]) for row in rows} for condition, rows in experiment.done().items()}
    return [
        f"{experiment.label(condition)} has seed {min(seeds[condition])} and its baseline {experiment.label(baseline)} "
        f"seed {min(seeds[baseline])}, so the difference between them may be one of seeds; run the missing jobs"
        for condition, baseline in experiment.baselines.items()
        if {condition, baseline} <= seeds.keys() and not seeds[condition] & seeds[baseline]
    ]


def leaks(experiment: Experiment) -> list[Block]:
    """Return a line of what leak control has left out; none where no model learned from pairs."""
    rows = [row for row in experiment.finished() if "pairs_left_out" in row]
    if not rows:
        return []
    found = sorted({(int(row["pairs_left_out"]), int(row["questions_left_out"])) for row in rows})
    if found == [(0, 0)]:
        return [Text("Leak control: no question of a training pair is a topic.")]
    said = "; ".join(
        f"{counted(pairs, 'training pair')} ({counted(questions, 'question')})" for pairs, questions in found
    )
    return [Text(f"Leak control: left out, because their questions are topics: {said}; leaks.tsv of a job lists them.")]
