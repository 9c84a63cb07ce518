"""Names of results: columns of results.csv and files of a job, by task or test.

A task of ARQMath is 1 or 2; other collections name their tests (``experiment.tasks``):

>>> column(1, "bpref"), column(2, "bpref"), column("unseen", "mrr_10")
('bpref', 'task2_bpref', 'unseen_mrr_10')
>>> file_name(1, "run.tsv"), file_name(2, "run.tsv"), file_name("unseen", "run.tsv")
('run.tsv', 'run-task2.tsv', 'run-unseen.tsv')
>>> title(2), title("text_to_formula")
('Task 2', 'Text to formula')

Measures are those of ARQMath, or those of ``experiment.measures``:

>>> titles({"measures": {"Accuracy@1": "Success@1", "MRR": "RR"}})
{'accuracy_1': 'Accuracy@1', 'mrr': 'MRR'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

Asked = int | str

ARQMATH = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}
"""ARQMath measures reported in results, the main one first, and their titles in tables."""


def column(asked: Asked, name: str) -> str:
    """Return the column of ``results.csv`` for a measure or a cost of a task or test."""
    return name if asked == 1 else f"task2_{name}" if asked == 2 else f"{asked}_{name}"


def file_name(asked: Asked, name: str) -> str:
    """Return the name of a job's file or folder for a task or test."""
    path = PurePath(name)
    return name if asked == 1 else f"{path.stem}-{'task2' if asked == 2 else asked}{path.suffix}"


def title(asked: Asked) -> str:
    """Return the title of a task or test in a report."""
    return f"Task {asked}" if isinstance(asked, int) else asked.replace("_", " ").capitalize()


def key(measure: str) -> str:
    """Return the column of a measure with the title ``measure``.

    >>> key("nDCG@10"), key("MRR@10 (statement)")
    ('ndcg_10', 'mrr_10_statement')
    """
    return re.sub("[^a-z0-9]+", "_", measure.lower()).strip("_")


def titles(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Return the measures of an experiment from its configuration: column -> title, the main one first."""
    named = experiment.get("measures") or {}
    return {key(str(name)): str(name) for name in named} or dict(ARQMATH)
