"""Judgments in TREC's form: one line for each topic and document.

>>> import tempfile; path = Path(tempfile.mkdtemp()) / "qrels.tsv"
>>> _ = path.write_text("A.1\\t0\\t255\\t3\\nA.1\\t0\\t154\\t0\\n")
>>> judgments = read_qrels(path)
>>> judgments
[Judgment(topic_id='A.1', doc_id='255', grade=3), Judgment(topic_id='A.1', doc_id='154', grade=0)]
>>> relevant_grade(judgments)
(2, '')
>>> relevant_grade([Judgment("q1", "d1", 1)])
(1, 'no grade is above 1, so documents of grade 1 count as relevant; data.relevant_grade=N sets another grade')
>>> relevant_grade(judgments, 5)
(5, 'no document is relevant: the highest grade is 3; data.relevant_grade=N sets another grade')

Grades are whole numbers. TREC's negative grades (spam, other errors) count as 0.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from graphs.corpus.packed import PackedFile, reason_unreadable
from graphs.corpus.post import Judgment
from graphs.errors import ConfigError, CorpusError

RELEVANT = 2
"""The lowest grade that counts as relevant in binary measures, unless a collection says otherwise (ARQMath)."""

Row = tuple[int, str, str, str]
"""Line number, topic, document and grade as written."""


def read_qrels(file: Path | PackedFile) -> list[Judgment]:
    """Read ``topic 0 doc grade`` lines (tabs or spaces, LF or CRLF, grades like ``2`` or ``2.0``).

    Raises:
        CorpusError: a line in another form, or a document judged twice with two grades; the message names the line.
    """
    return judgments_of(_rows(file), Path(str(file)))


def judgments_of(rows: Iterable[Row], path: Path) -> list[Judgment]:
    """Return the judgments in ``rows``, each once.

    Raises:
        CorpusError: a grade that is not a whole number, or a document judged twice with two grades.
    """
    judgments: dict[tuple[str, str], Judgment] = {}
    for line, topic, doc, written in rows:
        grade = grade_of(written)
        if grade is None:
            raise CorpusError(f"grade {written!r} is not a whole number", path=path, line=line)
        before = judgments.setdefault((topic, doc), Judgment(topic, doc, grade))
        if before.grade != grade:
            message = f"{doc} has grade {grade} here and {before.grade} before, for topic {topic}"
            raise CorpusError(message, path=path, line=line)
    return list(judgments.values())


@lru_cache(maxsize=256)  # a collection has a handful of grades on a million lines
def grade_of(written: str) -> int | None:
    """Return a grade as a number from 0; ``None`` if ``written`` is not a whole number.

    >>> [grade_of(written) for written in ("4", "2.0", "-2", "0.5", "high")]
    [4, 2, 0, None, None]
    """
    match = re.fullmatch(r"([+-]?)([0-9]{1,9})(?:\.0*)?", written)
    if match is None:
        return None
    return 0 if match[1] == "-" else int(match[2])


def relevant_grade(judgments: Iterable[Judgment], given: int | None = None) -> tuple[int, str]:
    """Return the lowest grade that counts as relevant, and a note if it is derived, or above all judgments.

    Args:
        judgments: all judgments of a question.
        given: grade chosen by the user (``data.relevant_grade``); it has precedence.

    Raises:
        ConfigError: ``given`` is below 1.
    """
    if given is not None and given < 1:
        raise ConfigError(f"data.relevant_grade={given} must be at least 1; grade 0 means not relevant")
    highest = max((judgment.grade for judgment in judgments), default=0)
    if given is not None:
        return given, "" if highest >= given else (
            f"no document is relevant: the highest grade is {highest}; data.relevant_grade=N sets another grade"
        )
    if highest >= RELEVANT:
        return RELEVANT, ""
    return 1, (
        "no grade is above 1, so documents of grade 1 count as relevant; data.relevant_grade=N sets another grade"
    )


def discriminates(judgments: Iterable[Judgment]) -> bool:
    """Return whether a topic has judged documents of different grades, so that their order changes nDCG'.

    >>> discriminates([Judgment("q1", "d1", 1), Judgment("q2", "d2", 0)])
    False
    >>> discriminates([Judgment("q1", "d1", 1), Judgment("q1", "d2", 0)])
    True
    """
    grades: dict[str, int] = {}
    return any(grades.setdefault(judgment.topic_id, judgment.grade) != judgment.grade for judgment in judgments)


def _rows(file: Path | PackedFile) -> Iterator[Row]:
    """Yield the lines of a file in TREC's form, without blank ones."""
    try:
        with io.TextIOWrapper(file.open("rb") if isinstance(file, Path) else file.open(), "utf-8-sig") as lines:
            for line, text in enumerate(lines, 1):
                columns = text.split()
                if not columns:
                    continue
                if len(columns) != 4:
                    message = f"{len(columns)} columns, a qrels line has 4: topic, 0, document, grade"
                    raise CorpusError(message, path=str(file), line=line)
                topic, _, doc, written = columns
                yield line, topic, doc, written
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(reason_unreadable(error), path=str(file)) from error
