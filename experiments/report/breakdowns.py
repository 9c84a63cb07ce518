"""Scores by groups of topics: their category, difficulty, dependency, or any other label.

Labels are a table with tabs, ``experiment.topic_labels=FILE``; the first column has the topic's id:

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "labels.tsv"
>>> _ = path.write_text("topic\\tcategory\\tdifficulty\\nA.301\\tproof\\thard\\nA.302\\tproof\\teasy\\n")
>>> read_labels(path)["difficulty"]
{'A.301': 'hard', 'A.302': 'easy'}
>>> groups({"A.301": "hard", "A.302": "easy", "A.303": "hard"}, ["A.301", "A.302", "A.304"])
{'easy': ['A.302'], 'hard': ['A.301']}

The organisers of ARQMath label topics by category (computation, concept, proof), difficulty (easy, medium, hard) and
dependency (text, formula, both).
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.report.blocks import Block, Table, Text
from experiments.report.results import Experiment
from experiments.report.topic_scores import of_conditions
from graphs.counts import counted
from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName

Labels = dict[str, dict[str, str]]  # label -> topic -> value


def read_labels(path: Path) -> Labels:
    """Read the labels of topics; an empty cell is no label, and quotes are part of a label.

    Raises:
        ConfigError: the file cannot be read, has no table of labels, or gives a topic two labels of one kind.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = list(csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"labels of topics cannot be read: {error}", path=path) from error
    head, *rows = lines or [[]]
    if head[:1] != ["topic"] or len(head) < 2 or len(set(head)) != len(head) or not rows:
        raise ConfigError("no labels of topics: the first line must be topic, a tab, and names of labels", path=path)
    labels: Labels = {name: {} for name in head[1:]}
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise ConfigError(f"has {len(row)} columns, not {len(head)}", path=path, line=number)
        topic, *values = row
        for name, value in zip(labels, values, strict=True):
            if value and (earlier := labels[name].setdefault(topic, value)) != value:
                raise ConfigError(
                    f"topic {topic} has the label {value!r} in the column {name} here, and {earlier!r} in an earlier "
                    "line; keep one of them",
                    path=path,
                    line=number,
                )
    return labels


def groups(values: Mapping[str, str], topics: Iterable[str]) -> dict[str, list[str]]:
    """Return value -> its topics; topics without a label are left out."""
    found: dict[str, list[str]] = {}
    for topic in topics:
        if topic in values:
            found.setdefault(values[topic], []).append(topic)
    return dict(sorted(found.items()))


def blocks(experiment: Experiment, task: TestName) -> list[Block]:
    """Return a table of the first measure for each label; empty if no topic has one."""
    measure = experiment.first_measure
    scores = {name: of[measure] for name, of in of_conditions(experiment, task).items()}
    topics = dict.fromkeys(topic for of_topic in scores.values() for topic in of_topic)
    tables = [
        _table(experiment, scores, name, found)
        for name, values in experiment.topic_labels.items()
        if (found := groups(values, topics))
    ]
    return [*tables, Text(_note(experiment))] if tables else []


def _note(experiment: Experiment) -> str:
    baseline = "its own baseline (†; table of tests)" if experiment.several_baselines else "the baseline (†)"
    return (
        "Means over the topics of a group, of the mean over seeds of each topic's score, and the "
        f"difference to {baseline}. No test is made: groups are small, and many."
    )


def _table(
    experiment: Experiment, scores: Mapping[str, Mapping[str, float]], name: str, found: Mapping[str, list[str]]
) -> Table:
    title = experiment.measures[experiment.first_measure]
    head = ["Condition"]
    for value, topics in found.items():
        head += [f"{value} ({counted(len(topics), 'topic')})", "difference"]
    rows = [head]
    for condition, of_topic in scores.items():
        baseline = experiment.baselines[condition]
        row = [experiment.label(condition) + (" †" if experiment.is_baseline(condition) else "")]
        for topics in found.values():
            own = [topic for topic in topics if topic in of_topic]
            mean = statistics.fmean(of_topic[topic] for topic in own) if own else None
            row.append("–" if mean is None else f"{mean:.3f}")
            with_baseline = baseline != condition and set(own) <= scores.get(baseline, {}).keys()
            if mean is None or not with_baseline:
                row.append("")
            else:
                row.append(f"{mean - statistics.fmean(scores[baseline][topic] for topic in own):+.3f}")
        rows.append(row)
    return Table(rows, f"{title} by {name}")
