"""Check of ARQMath submission files: every problem, by line.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "demo.tsv"
>>> _ = path.write_text("A.1\\t255\\t1\\t2.5\\tdemo\\nA.1\\t154\\t3\\t2.5\\tdemo\\n")
>>> for problem in read_submission(path, task=1).problems(topics={"A.1", "A.2"}, posts={"255": Known("question")}):
...     print(problem.line, problem.kind, problem.message)
1 post post 255 is a question; Task 1 finds answers
2 rank rank 3 of topic A.1 should be 2: ranks count 1, 2, 3 ... from line to line
2 score score 2.5 of topic A.1 is not below the one before it, 2.5; make scores decrease
2 post post 154 is not in the collection

Requirements (the labs' guidelines and their evaluation, see :mod:`mathamr.evaluation.metrics`): UTF-8, tabs,
no header; columns ``topic post rank score run`` in Task 1 and ``topic formula post rank score run`` in Task 2; at most
1,000 results for each topic, in consecutive lines, without repetition; ranks 1, 2, 3 ...; scores that decrease
strictly as float32; ids of the collection: answers in Task 1, formulas of the given post in Task 2; one run name.

A topic without results is no error (it scores 0): :attr:`Submission.topic_ids` lists topics with results. *Scoring* a
run needs less: :func:`mathamr.evaluation.runs.read_run` is the lenient reader.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from graphs.corpus.packed import COMPRESSED, GZIP
from graphs.corpus.post import PostKind
from graphs.errors import EvaluationError
from mathamr.evaluation.runs import MAX_PER_TOPIC, Task

RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
FILE_NAME = re.compile(r"[A-Za-z0-9_]+-task([12])-[A-Za-z0-9_.+]+-(auto|manual)-(both|math|text)-[PA]\.tsv")
"""``TEAM-task1-RUN-auto-both-P.tsv``: automatic or manual, from formulas, text or both, primary or alternate run."""

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # as C reads it, and with it trec_eval
MAX_LINES = 1_000_000  # ten times the lines of a hundred topics
MAX_LINE = 10_000
COLUMNS = {1: "topic post rank score run", 2: "topic formula post rank score run"}


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem of a line; ``kind`` groups problems: form, topic, rank, score, count, repeated, post, formula, name."""

    line: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Known:
    """Post of the collection, and the ids of its formulas."""

    kind: PostKind
    formula_ids: Container[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Row:
    """Line with the right columns; in Task 1 without a ``formula_id``."""

    line: int
    topic_id: str
    post_id: str
    formula_id: str | None
    rank: int
    score: float
    name: str


@dataclass(frozen=True, slots=True)
class Submission:
    """Rows of a file, and problems of its form (``malformed``: lines without a row)."""

    task: Task
    rows: list[Row] = field(default_factory=list)
    malformed: list[Problem] = field(default_factory=list)

    @property
    def post_ids(self) -> set[str]:
        """Posts that :meth:`problems` looks up."""
        return {row.post_id for row in self.rows}

    @property
    def topic_ids(self) -> list[str]:
        """Topics with results, in the order of the file."""
        return list(dict.fromkeys(row.topic_id for row in self.rows))

    def problems(
        self, *, topics: Container[str] | None = None, posts: Mapping[str, Known] | None = None
    ) -> list[Problem]:
        """Return all problems in the order of lines.

        Args:
            topics: topics of the task; None leaves topic ids unchecked.
            posts: posts of the file that the collection has; None leaves ids unchecked.
        """
        all_problems = [*self.malformed, *self._order(topics)]
        if posts is not None:
            all_problems += self._existence(posts)
        return sorted(all_problems, key=lambda problem: problem.line)

    def _order(self, topics: Container[str] | None) -> Iterator[Problem]:
        before: Row | None = None
        seen: dict[str, set[str]] = {}  # documents by topic
        name = self.rows[0].name if self.rows else ""
        count = rank = 0
        lines = [0, *(row.line for row in self.rows)]
        for row, line in zip(self.rows, lines, strict=False):
            topic, document = row.topic_id, row.formula_id or row.post_id
            if document in seen.get(topic, ()):
                yield Problem(row.line, "repeated", f"{document} is in topic {topic} twice; keep one")
                if before is not None and before.topic_id != topic:
                    continue  # the topic does not continue
            if before is None or topic != before.topic_id:
                if topics is not None and topic not in topics and topic not in seen:
                    yield Problem(row.line, "topic", f"topic {topic} is not one of the task's topics")
                if topic in seen:
                    yield Problem(
                        row.line, "topic", f"topic {topic} continues after other topics; keep its lines together"
                    )
                before, count, rank = None, 0, 0
            count += 1
            rank += 1
            unread = row.line - line - 1  # malformed lines in between, which may have ranks
            if rank < row.rank <= rank + unread:
                rank = row.rank
            # After a wrong rank, the next line may count from it or from the right one: one gap is one problem.
            if row.rank != rank and not (before and 0 < row.rank - before.rank <= 1 + unread):
                message = (
                    f"rank {row.rank} of topic {topic} should be {rank}: ranks count 1, 2, 3 ... from line to line"
                )
                yield Problem(row.line, "rank", message)
            if before is not None and not np.float32(row.score) < np.float32(before.score):
                yield Problem(
                    row.line,
                    "score",
                    f"score {row.score} of topic {topic} is not below the one before it, {before.score}; make "
                    "scores decrease",
                )
            if count == MAX_PER_TOPIC + 1:
                yield Problem(row.line, "count", f"topic {topic} has more than {MAX_PER_TOPIC:,} results")
            seen.setdefault(topic, set()).add(document)
            if row.name != name:
                yield Problem(row.line, "name", f"run {row.name!r} in the file of run {name!r}; a file holds one run")
            before = row

    def _existence(self, posts: Mapping[str, Known]) -> Iterator[Problem]:
        for row in self.rows:
            known = posts.get(row.post_id)
            if known is None:
                yield Problem(row.line, "post", f"post {row.post_id} is not in the collection")
            elif row.formula_id is None:
                if known.kind != "answer":
                    yield Problem(row.line, "post", f"post {row.post_id} is a {known.kind}; Task 1 finds answers")
            elif row.formula_id not in known.formula_ids:
                yield Problem(row.line, "formula", f"post {row.post_id} has no formula {row.formula_id}")


def task_of(path: Path) -> Task:
    """Return the task of a file from the columns of its first line: 5 in Task 1, 6 in Task 2.

    Raises:
        EvaluationError: a file that cannot be read, is empty, or has other columns.
    """
    for _, raw in _lines(path):
        columns = raw.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")
        if len(columns) == 6 and columns[1] == "Q0":
            message = (
                f"this is TREC's form; ARQMath takes tabs between '{COLUMNS[1]}' (Task 1) or '{COLUMNS[2]}' (Task 2)"
            )
            raise EvaluationError(message, path=path, line=1)
        if len(columns) not in (5, 6):
            message = f"{len(columns)} columns between tabs; Task 1 has '{COLUMNS[1]}', Task 2 '{COLUMNS[2]}'"
            raise EvaluationError(message, path=path, line=1)
        return 1 if len(columns) == 5 else 2
    raise EvaluationError("is empty; wait until the run is written", path=path)


def read_submission(path: Path, *, task: Task) -> Submission:
    """Read a file of ``task``, broken lines included.

    Raises:
        EvaluationError: a file that cannot be read, is empty, or is too long for a submission.
    """
    submission = Submission(task)
    line = 0
    for line, raw in _lines(path):
        row = _row(line, raw, task)
        if isinstance(row, Problem):
            submission.malformed.append(row)
        else:
            submission.rows.append(row)
    if not line:
        raise EvaluationError("is empty; wait until the run is written", path=path)
    return submission


def _row(line: int, raw: bytes, task: Task) -> Row | Problem:
    if len(raw) > MAX_LINE:
        return Problem(line, "form", f"a line of more than {MAX_LINE:,} bytes; is this a run file?")
    try:
        text = raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        return Problem(line, "form", f"is not UTF-8: {error.reason} at byte {error.start}")
    if text.startswith("\ufeff"):
        return Problem(line, "form", "begins with a byte order mark; save it as UTF-8 without one")
    columns = text.split("\t")
    wanted = COLUMNS[task].split()
    if len(columns) != len(wanted):
        return Problem(line, "form", f"{len(columns)} columns between tabs; Task {task} has '{COLUMNS[task]}'")
    for name, column in zip(wanted, columns, strict=True):
        if not column or column.split() != [column] or not column.isprintable():
            return Problem(line, "form", f"the {name} {column!r} is empty, or has white space or control characters")
    topic_id, *documents, rank, score, name = columns
    if not re.fullmatch(r"[0-9]{1,9}", rank):
        header = " (a header? a run file has none)" if line == 1 else ""
        return Problem(line, "form", f"the rank {rank[:40]!r} is not a whole number{header}")
    if not _NUMBER.fullmatch(score):
        return Problem(line, "form", f"the score {score[:40]!r} is not a finite number")
    value = float(score)
    if abs(value) > float(np.finfo(np.float32).max):
        return Problem(line, "form", f"the score {score[:40]!r} does not fit a float32")
    if not RUN_NAME.fullmatch(name):
        return Problem(line, "name", f"the run name {name[:40]!r} may only have letters, digits and _ . + -")
    formula_id, post_id = (documents[0], documents[1]) if task == 2 else (None, documents[0])
    return Row(line, topic_id, post_id, formula_id, int(rank), value, name)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield ``(number, line)``, from 1; of a line that is too long only the beginning."""
    try:
        with path.open("rb") as file:
            line = 0
            while raw := file.readline(MAX_LINE + 1):
                line += 1
                if line == 1 and raw.startswith(GZIP):
                    raise EvaluationError(COMPRESSED, path=path)
                if line > MAX_LINES:
                    raise EvaluationError(
                        f"more than {MAX_LINES:,} lines, too many for a submission; check the file", path=path
                    )
                rest = raw
                while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
                    rest = file.readline(MAX_LINE + 1)
                yield line, raw
    except OSError as error:
        raise EvaluationError(f"cannot be read: {error.strerror or error}", path=path) from error
