"""How results name what was measured: columns of results.csv and files of a job, by the question that was asked.

A question is a task of ARQMath, 1 or 2, or a test that the collection has a name for (``experiment.tasks``):

>>> column(1, "bpref"), column(2, "bpref"), column("unseen", "mrr_10")
('bpref', 'task2_bpref', 'unseen_mrr_10')
>>> file_name(1, "run.tsv"), file_name(2, "run.tsv"), file_name("unseen", "run.tsv")
('run.tsv', 'run-task2.tsv', 'run-unseen.tsv')
>>> title(2), title("text_to_formula")
('Task 2', 'Text to formula')

Measures are those of ARQMath, or what ``experiment.measures`` says:

>>> titles({"Accuracy@1": "Success@1", "MRR": "RR"})
{'accuracy_1': 'Accuracy@1', 'mrr': 'MRR'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

Asked = int | str

ARQMATH = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}
"""The measures of ARQMath that results are reported in, the first of them first, and how tables call them."""


def column(asked: Asked, name: str) -> str:
    """The column of ``results.csv`` with a measure or a cost of a question."""
    return name if asked == 1 else f"task2_{name}" if asked == 2 else f"{asked}_{name}"


def file_name(asked: Asked, name: str) -> str:
    """A file or a folder of a job, as it is called for a question."""
    path = PurePath(name)
    return name if asked == 1 else f"{path.stem}-{'task2' if asked == 2 else asked}{path.suffix}"


def title(asked: Asked) -> str:
    """A question in a report."""
    return f"Task {asked}" if isinstance(asked, int) else asked.replace("_", " ").capitalize()


def key(measure: str) -> str:
    """The column of a measure that a table calls ``measure``.

    >>> key("nDCG@10"), key("MRR@10 (statement)")
    ('ndcg_10', 'mrr_10_statement')
    """
    return re.sub("[^a-z0-9]+", "_", measure.lower()).strip("_")


def titles(measures: Mapping[str, str]) -> dict[str, str]:
    """Return the measures of an experiment: column -> title, the first one first.

    Args:
        measures: ``experiment.measures``.
    """
    return {key(name): name for name in measures} or dict(ARQMATH)
