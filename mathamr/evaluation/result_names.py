"""Names of measurements: columns of results.csv and files of a job, by task or test.

The name of a test is a task of ARQMath, 1 or 2, or a test that the collection has a name for (``experiment.tasks``):

>>> column(1, "bpref"), column(2, "bpref"), column("unseen", "mrr_10")
('bpref', 'task2_bpref', 'unseen_mrr_10')
>>> file_name(1, "run.tsv"), file_name(2, "run.tsv"), file_name("unseen", "run.tsv")
('run.tsv', 'run-task2.tsv', 'run-unseen.tsv')
>>> title(2), title("text_to_formula")
('Task 2', 'Text to formula')

Measures are those of ARQMath, or those of ``experiment.measures``:

>>> titles({"Accuracy@1": "Success@1", "MRR": "RR"})
{'accuracy_1': 'Accuracy@1', 'mrr': 'MRR'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath

from graphs.errors import ConfigError
from mathamr.evaluation.completeness import COLUMNS as COMPLETENESS

TestName = int | str

RESERVED = frozenset(
    [
        *("experiment", "condition", "seed", "status", "key", "condition_key", "model_key", "collection_hash", "files"),
        *("code", "machine", "finished", "model_code", "model_machine", "source", "regime", "years"),
        *("digest", "topic", "topics", "relevant_grade", *COMPLETENESS),
        *("judgments", "judgments_hash", "topic_texts_hash"),
        *("train_pairs", "pairs_left_out", "questions_left_out", "epochs", "best_val_loss", "best_val_mrr"),
        *("time_per_epoch_s", "pairs_per_second", "parameters", "peak_memory_bytes", "peak_gpu_memory_bytes"),
        *("encode_docs_per_second", "encode_queries_per_second", "encode_seconds", "texts_cut"),
        *("index_bytes", "index_seconds", "vectors", "formulas", "queries_per_second"),
        *("pretraining_seconds", "pretraining_windows_per_second"),
        *("accuracy_at_k", "mrr_at_k", "ndcg_at_k", "accuracy_interval", "mrr_interval", "ndcg_interval"),
        *("coe", "roe", "i_a", "i_b", "threshold", "threshold_psi", "threshold_removed", "threshold_accuracy"),
    ]
)
"""Columns of results that no measure may have."""

RESERVED_BEGINNINGS = ("task2_", "parameters_", "collapse_")
"""Beginnings of columns of results that no measure may have."""

ARQMATH = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}
"""ARQMath measures reported in results, the main one first, and their titles in tables."""


def column(test_name: TestName, name: str) -> str:
    """Return the column of ``results.csv`` with a measure or a cost of a test."""
    return name if test_name == 1 else f"task2_{name}" if test_name == 2 else f"{test_name}_{name}"


def file_name(test_name: TestName, name: str) -> str:
    """Return the name of a file or a folder of a job for a test."""
    path = PurePath(name)
    return name if test_name == 1 else f"{path.stem}-{'task2' if test_name == 2 else test_name}{path.suffix}"


def title(test_name: TestName) -> str:
    """Return the name of a test in a report."""
    return f"Task {test_name}" if isinstance(test_name, int) else test_name.replace("_", " ").capitalize()


def key(measure: str) -> str:
    """Return the column of a measure with the title ``measure``.

    >>> key("nDCG@10"), key("MRR@10 (statement)")
    ('ndcg_10', 'mrr_10_statement')
    """
    return re.sub("[^a-z0-9]+", "_", measure.lower()).strip("_")


def is_reserved(name: str) -> bool:
    """Return whether results use a column for something else than a measure.

    >>> is_reserved("topics"), is_reserved("parameters_encoder"), is_reserved("mrr")
    (True, True, False)
    """
    return name in RESERVED or name.startswith(RESERVED_BEGINNINGS)


def titles(measures: Mapping[str, str]) -> dict[str, str]:
    """Return the measures of an experiment (``experiment.measures``): column -> title, the first one first."""
    return {key(name): name for name in measures} or dict(ARQMATH)


def check_titles(measures: Mapping[str, str]) -> None:
    """Check that the titles of measures give different columns of results, which the results do not use otherwise.

    Raises:
        ConfigError: a title whose column is empty, that of another title, or one that :func:`is_reserved`.
    """
    columns: dict[str, str] = {}
    for name in measures:
        place = f"experiment.measures: the title {name!r}"
        if not (own := key(name)):
            raise ConfigError(f"{place} has no letter from a to z and no digit to name its column; change it")
        if is_reserved(own):
            raise ConfigError(f"{place} gives the column {own}, which the results use for something else; change it")
        if (twin := columns.setdefault(own, name)) != name:
            raise ConfigError(f"{place} and the title {twin!r} give one column, {own}; change one of them")
