"""Errors of MathAMR+, and the record of a failure in a long job.

A message names the value, the bound or the place, and the fix:

>>> raise CorpusError("row has 3 columns, 9 are needed; is this a formula TSV?", path="slt/1.tsv", line=7)
Traceback (most recent call last):
    ...
graphs.errors.CorpusError: slt/1.tsv:7: row has 3 columns, 9 are needed; is this a formula TSV?

In a pipeline over many posts an error becomes a :class:`Failure`; it is counted and kept, and the run continues.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath


def encodable(message: str) -> str:
    """Return a message that UTF-8 can hold: it may quote halves of surrogate pairs."""
    return message.encode(errors="backslashreplace").decode()


def printable(line: str) -> str:
    """Return a line with a blank for each control character, since a text from outside may contain any.

    >>> printable("a\\x1b[2Jb")
    'a [2Jb'
    """
    return "".join(character if character.isprintable() else " " for character in line)


class MathAMRError(Exception):
    """Root of every error that this project raises deliberately.

    ``path`` and ``line`` name the place in a file and precede the message. ``exit_code`` is the exit code of a command
    that the error ends.
    """

    exit_code: int = 2

    def __init__(self, message: str, *, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        place = "" if self.path is None else f"{self.path}:" if line is None else f"{self.path}:{line}:"
        super().__init__(f"{place} {message}".strip())


class ConfigError(MathAMRError):
    """Unknown key or value in a configuration, or contradictory values."""


class MissingEncoderError(ConfigError):
    """Text encoder whose weights are neither on this machine nor on the hub."""


class CorpusError(MathAMRError):
    """File of a collection that is missing, damaged, or of another form."""


class FormulaError(MathAMRError):
    """Formula without a tree; ``kind`` groups failures in tables, e.g. ``unknown_tag``."""

    def __init__(self, message: str, *, kind: str = "formula") -> None:
        self.kind = kind
        super().__init__(message)


class AMRError(MathAMRError):
    """Sentence, chunk or document without a usable AMR graph; ``kind`` groups failures in tables."""

    def __init__(self, message: str, *, kind: str = "amr") -> None:
        self.kind = kind
        super().__init__(message)


class GraphError(MathAMRError):
    """MathAMR+ graph, or its tensors, that breaks a contract."""


class OtherVersionError(GraphError):
    """Vocabulary that another version of the code has made."""


class GraphTooLargeError(GraphError):
    """Graph with more nodes or edges than can be encoded at once."""

    kind = "too_large"


class StoreError(MathAMRError):
    """Database or index file that is missing, locked, damaged, or of another purpose."""


class EvaluationError(MathAMRError):
    """Run or qrels file that cannot be read or does not match its partner."""


class TrainingError(MathAMRError):
    """Training run that cannot start or resume."""


class RetrievalError(MathAMRError):
    """Search that a backend or a strategy cannot answer."""


class UnknownPostError(RetrievalError):
    """Id of a post that the index does not have."""


class AnalysisError(MathAMRError):
    """Embeddings or scores that a measure is not defined for: zero vectors, NaN, too few of them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Post (or formula, or chunk) that a stage could not process.

    ``stage`` is the pipeline's step (``read``, ``formula``, ``amr``, ``graph``, ``tensors``), ``kind`` a short word for
    counts in tables, ``message`` the problem and its place.
    """

    post_id: str
    stage: str
    kind: str
    message: str


@contextmanager
def faults_as(kind: type[MathAMRError], message: str, path: str | PathLike[str] | None = None) -> Iterator[None]:
    """Turn every exception but lack of memory into one error, whose message has the reason in place of its last ``{}``.

    For files of arrays: numpy's errors in a damaged file, or one written by hand, are of many types.

    >>> with faults_as(StoreError, "no list of ids ({}); build the index again", "ids.npy"):
    ...     raise EOFError
    Traceback (most recent call last):
        ...
    graphs.errors.StoreError: ids.npy: no list of ids (EOFError()); build the index again
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        before, _, after = message.rpartition("{}")
        raise kind(f"{before}{str(error) or repr(error)}{after}", path=path) from error


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the most similar known word.

    >>> suggestion("graph.conectivity", ["graph.connectivity", "train.beta"]), suggestion("beta", ["train.beta"])
    ('; did you mean graph.connectivity?', '; did you mean train.beta?')
    >>> suggestion("elephant", ["train.beta"])
    ''

    In a group, the keys of this group count first, also by their initials, and then those of other groups:

    >>> words = ["train", "train.seed", "train.learning_rate", "graph.connectivity", "experiment.seeds"]
    >>> suggestion("train.lr", words), suggestion("train.conectivity", words), suggestion("train.height", words)
    ('; did you mean train.learning_rate?', '; did you mean graph.connectivity?', '')
    >>> suggestion("experiment.seed", words), suggestion("graph.seed", words)
    ('; did you mean experiment.seeds?', '; did you mean train.seed?')
    """
    words = list(known)
    group, dot, key = name.rpartition(".")
    own = {word.removeprefix(group + dot): word for word in words if dot and word.startswith(group + dot)}
    others = [word for word in words if not dot or not f"{word}.".startswith(group + dot)]
    initials = [one for one in own if "_" in one and "".join(part[:1] for part in one.split("_")) == key]
    meant = (
        [own[one] for one in difflib.get_close_matches(key, own, n=1, cutoff=0.85)]
        or [word for word in words if word.split(".")[-1] == key]
        or [own[one] for one in initials or difflib.get_close_matches(key, own, n=1)]
        or difflib.get_close_matches(name, others, n=1)
    )
    return f"; did you mean {meant[0]}?" if meant else ""
