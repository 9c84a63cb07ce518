"""The errors of MathAMR+, and the record that a failure leaves in a long job.

A message names the value, the bound or the place, and the way out:

>>> raise CorpusError("row has 3 columns, 9 are needed; is this a formula TSV?", path="slt/1.tsv", line=7)
Traceback (most recent call last):
    ...
graphs.errors.CorpusError: slt/1.tsv:7: row has 3 columns, 9 are needed; is this a formula TSV?

In a pipeline over many posts an error becomes a :class:`Failure`, is counted and kept, and the run goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from typing import ClassVar


class MathAMRError(Exception):
    """Root of every error that this project raises on purpose.

    ``path`` and ``line`` name the place in a file; they stand before the message. ``exit_code`` is the exit code of a
    command that the error ends.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        place = "" if self.path is None else f"{self.path}:" if line is None else f"{self.path}:{line}:"
        super().__init__(f"{place} {message}".strip())


class ConfigError(MathAMRError):
    """An unknown key or value in a configuration, or values that contradict each other."""


class CorpusError(MathAMRError):
    """A file of a collection that is missing, broken, or not of the form it should have."""


class FormulaError(MathAMRError):
    """A formula that has no tree; ``kind`` groups failures in tables, e.g. ``unknown_tag``."""

    def __init__(self, message: str, *, kind: str = "formula") -> None:
        self.kind = kind
        super().__init__(message)


class AMRError(MathAMRError):
    """A sentence, chunk or document without a usable AMR graph; ``kind`` groups failures in tables."""

    def __init__(self, message: str, *, kind: str = "amr") -> None:
        self.kind = kind
        super().__init__(message)


class GraphError(MathAMRError):
    """A MathAMR+ graph, or its tensors, that breaks a contract."""


class GraphTooLargeError(GraphError):
    """A graph with more nodes or edges than are encoded at once."""

    kind = "too_large"


class StoreError(MathAMRError):
    """A database or index file that is missing, locked, damaged, or made for something else."""


class EvaluationError(MathAMRError):
    """A run or qrels file that cannot be read or does not fit its partner."""


class TrainingError(MathAMRError):
    """A training run that cannot start or go on."""


class RetrievalError(MathAMRError):
    """A search that a backend or a strategy cannot answer."""


class AnalysisError(MathAMRError):
    """Embeddings or scores that a measure is not defined for: zero vectors, NaN, too few of them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One post (or formula, or chunk) that a stage could not process.

    ``stage`` is the pipeline's step (``read``, ``formula``, ``amr``, ``graph``, ``tensors``), ``kind`` a short word
    that tables count by, ``message`` what happened and where.
    """

    post_id: str
    stage: str
    kind: str
    message: str
