"""Run files and qrels as typed records: results of a system, and judgments of the assessors.

A run file has one line for each result. Task 1 has ``topic post rank score run``, Task 2
``query formula post rank score run``, and TREC's form is ``topic Q0 document rank score run``:

>>> run = Run.from_results("demo", {"A.1": [("255", 2.5), ("154", 2.5), ("255", 1.0)]})
>>> run.rankings["A.1"]  # a repeated post is dropped, a tie is split by the smallest step that a float32 can take
[Hit(doc_id='255', score=2.5, post_id=None), Hit(doc_id='154', score=2.4999998, post_id=None)]
>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "demo.tsv"
>>> write_run(run, path)
>>> [line.split("\\t") for line in path.read_text().splitlines()]
[['A.1', '255', '1', '2.5', 'demo'], ['A.1', '154', '2', '2.4999998', 'demo']]
>>> read_run(path, task=1) == run
True

Scores are compared in float32, as trec_eval does: scores that differ only beyond it are ties.
"""

from __future__ import annotations

import csv
import io
import math
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from graphs.corpus.packed import PackedFile, members, reason_unreadable
from graphs.corpus.post import Judgment
from graphs.corpus.qrels import read_qrels as judgments_in
from graphs.errors import ConfigError, CorpusError, EvaluationError
from graphs.whole_file import whole_file
from mathamr.evaluation.order import best_first

Task = Literal[1, 2]
Qrels = dict[str, dict[str, int]]
"""``qrels[topic_id][doc_id]`` is a grade, a whole number from 0; in Task 2 the document is a visual id."""

MAX_PER_TOPIC = 1000
"""Largest number of results for a topic in ARQMath (evaluation protocol of all three labs)."""


def check_k(k: int, name: str = "k") -> None:
    """Raise ConfigError for a number of results that no topic of a run can have; ``name`` is the setting."""
    if not 1 <= k <= MAX_PER_TOPIC:
        raise ConfigError(f"{name}={k} must be from 1 to {MAX_PER_TOPIC:,}, the most results of a topic")


@dataclass(frozen=True, slots=True)
class Hit:
    """Result: a post (Task 1), or a formula with its post (Task 2)."""

    doc_id: str
    score: float
    post_id: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Results of one system; ``rankings[topic_id]`` is in the order of the file.

    A run from :meth:`from_results` is a valid submission; one from :func:`read_run` is as in the file.
    """

    name: str
    rankings: dict[str, list[Hit]] = field(default_factory=dict)
    task: Task = 1

    @classmethod
    def from_results(
        cls,
        name: str,
        results: Mapping[str, Sequence[tuple[str, float]]] | Mapping[str, Sequence[Hit]],
        *,
        task: Task = 1,
    ) -> Run:
        """Make a valid submission from search results.

        Each topic is sorted by score, equal scores by id, descending (:mod:`mathamr.evaluation.order`). Repeated
        documents keep their best rank, results beyond 1,000 are dropped, and scores are made strictly decreasing in
        float32 (:func:`strictly_decreasing`). Raises :class:`EvaluationError` for a score that is not finite, or a name
        or id with white space.
        """
        if not name or name.split() != [name]:
            raise EvaluationError(f"run name {name!r} is empty or has white space; use one word")
        rankings: dict[str, list[Hit]] = {}
        for topic_id, given in results.items():
            hits = [hit if isinstance(hit, Hit) else Hit(*hit) for hit in given]
            for hit in hits:
                if not math.isfinite(hit.score):
                    raise EvaluationError(
                        f"topic {topic_id}: document {hit.doc_id} has the score {hit.score}; scores must be finite"
                    )
                if hit.doc_id.split() != [hit.doc_id]:
                    raise EvaluationError(
                        f"topic {topic_id}: document id {hit.doc_id!r} is empty or has white space; use one word"
                    )
                if task == 2 and not hit.post_id:
                    raise EvaluationError(f"topic {topic_id}: formula {hit.doc_id} has no post id; Task 2 needs one")
            first: dict[str, Hit] = {}
            for place in best_first([hit.doc_id for hit in hits], [hit.score for hit in hits]):
                first.setdefault(hits[place].doc_id, hits[place])
            rankings[topic_id] = decreasing(list(first.values())[:MAX_PER_TOPIC])
        return cls(name, rankings, task)


def official_order(hits: Sequence[Hit], task: Task) -> list[Hit]:
    """Return the first 1,000 results of a topic, from its lines, in the order of the official evaluation.

    Of a repeated post the first line counts (Task 1), of a repeated formula the last one (Task 2). Equal scores go by
    post id, descending (Task 1), or keep the order of the file (Task 2).

    >>> [hit.doc_id for hit in official_order([Hit("f1", 1.0), Hit("f2", 5.0), Hit("f1", 5.0)], 2)]
    ['f1', 'f2']
    """
    kept: dict[str, Hit] = {}
    for hit in hits:
        if task == 2:
            kept[hit.doc_id] = hit  # in the place of the first line
        else:
            kept.setdefault(hit.doc_id, hit)
    ordered = list(kept.values())
    if task == 2:
        ordered.sort(key=lambda hit: -hit.score)
    else:
        ordered = [ordered[place] for place in best_first(list(kept), [hit.score for hit in ordered])]
    return ordered[:MAX_PER_TOPIC]


def repeats(rankings: Mapping[str, Sequence[tuple[str, float] | Hit]]) -> str:
    """Return the number of results whose document is in their topic before, with an example; "" for zero.

    >>> repeats({"A.1": [("255", 2.0), ("154", 1.5), ("255", 1.0)], "A.2": [("255", 1.0)]})
    '1 of 4 results repeat a document of their topic, e.g. 255 in topic A.1'
    """
    count, example = 0, ""
    for topic_id, results in rankings.items():
        seen: set[str] = set()
        for result in results:
            doc_id = result.doc_id if isinstance(result, Hit) else result[0]
            if doc_id in seen:
                count, example = count + 1, example or f"{doc_id} in topic {topic_id}"
            seen.add(doc_id)
    total = sum(map(len, rankings.values()))
    return f"{count:,} of {total:,} results repeat a document of their topic, e.g. {example}" if count else ""


def repeated_lines(run: Run) -> str:
    """Return a note on repeated documents, of which :func:`official_order` keeps one line; "" without any."""
    counts = "first" if run.task == 1 else "last"
    return f"{found}; the {counts} line of each counts, as in ARQMath" if (found := repeats(run.rankings)) else ""


def decreasing(hits: Sequence[Hit]) -> list[Hit]:
    """Return the results, best first, with scores that strictly decrease."""
    scores = strictly_decreasing([hit.score for hit in hits])
    return [Hit(hit.doc_id, score, hit.post_id) for hit, score in zip(hits, scores, strict=True)]


def strictly_decreasing(scores: Sequence[float]) -> list[float]:
    """Round non-increasing ``scores`` to float32; a score not below the one before moves to the next lower float.

    >>> strictly_decreasing([1.0, 1.0, 0.5, 0.5 - 1e-12])
    [1.0, 0.99999994, 0.5, 0.49999997]
    """
    values = np.asarray(scores, dtype=np.float32)
    if not np.isfinite(values).all():
        raise EvaluationError(f"score {scores[int(np.argmin(np.isfinite(values)))]} does not fit a float32")
    equal = np.flatnonzero(values[1:] >= values[:-1])
    for place in range(equal[0] + 1, len(values)) if len(equal) else ():
        if values[place] >= values[place - 1]:
            values[place] = np.nextafter(values[place - 1], np.float32(-np.inf))
    return [float(str(value)) for value in values]  # the shortest decimal of the float32, as the file has it


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write ``run`` as a submission in the official form of its task, replacing ``path`` atomically.

    The run first passes through :meth:`Run.from_results`, so the file is valid for any run.
    """
    path = Path(path)
    valid = Run.from_results(run.name, run.rankings, task=run.task)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as out:
        for topic_id, hits in valid.rankings.items():
            for rank, hit in enumerate(hits, start=1):
                document = f"{hit.doc_id}\t{hit.post_id}" if run.task == 2 else hit.doc_id
                out.write(f"{topic_id}\t{document}\t{rank}\t{np.float32(hit.score)!s}\t{run.name}\n")


def read_run(path: str | os.PathLike[str], *, task: Task) -> Run:
    """Read a run file of ``task`` in the official form or TREC's, recognised by the number of columns and ``Q0``.

    Columns are separated by tabs, or by white space in lines without a tab. CRLF line ends, a missing last newline and
    blank lines are accepted. Repeated documents and the order of lines are kept. Raises
    :class:`EvaluationError` with file and line.
    """
    name = ""
    rankings: dict[str, list[Hit]] = {}
    for line, columns in _rows(path):
        post_id = None
        if len(columns) == 6 and (columns[1].upper() == "Q0" or (task == 1 and columns[1] == "0")):  # TREC's
            topic_id, _, doc_id, _, score, name = columns
        elif task == 1 and len(columns) == 5:
            topic_id, doc_id, _, score, name = columns
        elif task == 2 and len(columns) == 6:
            topic_id, doc_id, post_id, _, score, name = columns
        else:
            expected = "topic post rank score run" if task == 1 else "query formula post rank score run"
            raise EvaluationError(
                f"{len(columns)} columns; a Task {task} run has '{expected}' or 'topic Q0 document rank score run'",
                path=path,
                line=line,
            )
        rankings.setdefault(topic_id, []).append(Hit(doc_id, _finite(score, path, line), post_id))
    if not rankings:
        raise EvaluationError("the file is empty; wait until the run is written", path=path)
    return Run(name, rankings, task)


def read_qrels(*paths: str | os.PathLike[str]) -> Qrels:
    """Read one or more qrels files, ``topic 0 document grade``, into one table.

    The files are read as :func:`graphs.corpus.qrels.read_qrels` does, which raises :class:`CorpusError`. Raises
    :class:`EvaluationError` for a file without judgments, and a document that two files judge differently.
    """
    qrels: Qrels = {}
    for path in map(Path, paths):
        judgments = judgments_in(path)
        if not judgments:
            raise EvaluationError("holds no judgment", path=path)
        for one in judgments:
            before = qrels.setdefault(one.topic_id, {}).setdefault(one.doc_id, one.grade)
            if before != one.grade:
                grades = f"grade {one.grade} here and {before} in another file; keep one of them"
                raise EvaluationError(f"document {one.doc_id} of topic {one.topic_id} has {grades}", path=path)
    return qrels


def qrels_of(judgments: Iterable[Judgment]) -> Qrels:
    """Return the table of a collection's judgments.

    >>> qrels_of([Judgment("A.1", "255", 3), Judgment("A.1", "154", 0)])
    {'A.1': {'255': 3, '154': 0}}
    """
    qrels: Qrels = {}
    for judgment in judgments:
        qrels.setdefault(judgment.topic_id, {})[judgment.doc_id] = judgment.grade
    return qrels


def read_visual_ids(path: str | os.PathLike[str], wanted: Container[str] | None = None) -> dict[str, str]:
    """Read formula id -> visual id from a formula TSV with a header line, or from all ``*.tsv`` of a folder or a zip.

    A TSV may be gzipped (``*.tsv.gz``).

    The column is ``visual_id``; ``old_visual_id`` belongs to an earlier release and is never read. ``wanted`` selects
    formulas: all of ARQMath has 28 million. Raises :class:`EvaluationError` for a file without the columns ``id`` and
    ``visual_id``, and with the line for a row that is too short.
    """
    path = Path(path)
    try:
        files = _tables(path)
    except CorpusError as error:
        raise EvaluationError(error.message, path=path) from error
    if not files:
        raise EvaluationError("the folder has no *.tsv file; name the folder or the zip of the formula TSVs", path=path)
    # A formula in MathML can be longer than the csv module's default of 131,072 characters a field.
    csv.field_size_limit(max(csv.field_size_limit(), min(sys.maxsize, 2**31 - 1)))
    visual_ids: dict[str, str] = {}
    for file in files:
        try:
            with io.TextIOWrapper(file.open(), encoding="utf-8-sig", newline="") as lines:
                reader = csv.reader(lines, delimiter="\t")
                header = next(reader, [])
                for column in ("id", "visual_id"):
                    if column not in header:
                        raise EvaluationError(
                            f"has no column {column!r}, only {', '.join(header)}; use a formula TSV of the v3 release",
                            path=str(file),
                            line=1,
                        )
                formula, visual = header.index("id"), header.index("visual_id")
                for row in reader:
                    if not row:
                        continue
                    if len(row) <= max(formula, visual):
                        raise EvaluationError(
                            f"{len(row)} columns, {max(formula, visual) + 1} are needed",
                            path=str(file),
                            line=reader.line_num,
                        )
                    if row[visual] and (wanted is None or row[formula] in wanted):
                        visual_ids[row[formula]] = row[visual]
        except (OSError, UnicodeDecodeError, csv.Error, CorpusError) as error:
            reason = error.message if isinstance(error, CorpusError) else error
            raise EvaluationError(f"cannot be read as a TSV: {reason}", path=str(file)) from error
    return visual_ids


def _tables(path: Path) -> list[PackedFile]:
    if path.is_dir():
        return [PackedFile(file) for file in sorted([*path.glob("*.tsv"), *path.glob("*.tsv.gz")])]
    if path.suffix.lower() == ".zip":
        return [file for file in members(path) if file.name.endswith(".tsv")]
    return [PackedFile(path)]


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-blank lines of a file as ``(line number, columns)``."""
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                stripped = line.rstrip("\r\n")
                columns = [c.strip() for c in stripped.split("\t")] if "\t" in stripped else stripped.split()
                if not all(columns):
                    raise EvaluationError(f"column {columns.index('') + 1} is empty", path=path, line=number)
                yield number, columns
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(reason_unreadable(error), path=path) from error


def _finite(text: str, path: str | os.PathLike[str], line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        raise EvaluationError(f"{text!r} is not a number", path=path, line=line) from None
    if not math.isfinite(value):
        raise EvaluationError(f"{text!r} is not a finite number", path=path, line=line)
    return value
