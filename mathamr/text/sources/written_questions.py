r"""Questions written one by one for statements of published sources: a test that is not made from the papers' words.

A file has one JSON object a line. The first has no question; it names the licence and the author of the file::

    {"license": "MIT", "about": "..."}
    {"id": "books/1", "question": "Is there a largest prime?", "statements": {"numbers/0": "d5b3c8f1a0e2"}}

A statement is named by its paper and its number there (``mathamr text statements``), and by :func:`text_hash` of its
text. The text itself is not in the file. Where the number of a statement has changed, its hash finds it:

>>> from mathamr.text.statements import Statement
>>> euclid = Statement("theorem", "thm", "", "There are infinitely many primes.", "", "")
>>> paper = Paper("numbers", "", (), (Statement("lemma", "lem", "", "New.", "", ""), euclid), {})
>>> question = WrittenQuestion("books/1", "Is there a largest prime?", {"numbers/0": text_hash(euclid.text)})
>>> found_in([question], [paper])
[('books/1', 'Is there a largest prime?', ['numbers/1'])]

``latex-books`` names the file of this package: one hundred questions for the HoTT book, Lebl's Basic Analysis, the Open
Logic Text, PlanetMath and the Stacks Project, twenty for each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from graphs.errors import CorpusError
from mathamr.text.sources.papers import Paper

LATEX_BOOKS = "latex-books"
"""Name of the questions of this package."""


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """Question, and all statements that answer it: id of a statement -> hash of its text."""

    question_id: str
    text: str
    statements: Mapping[str, str]


def text_hash(text: str) -> str:
    """Return a hash of the letters and digits of a statement, which ignores spaces and signs."""
    return hashlib.sha256(re.sub(r"[\W_]+", "", text).casefold().encode()).hexdigest()[:12]


def read_questions(name: str) -> list[WrittenQuestion]:
    """Read questions from a file, or this package's ``latex-books``; raise CorpusError for a line of another form."""
    path = Path(str(files(__package__).joinpath("latex_books.jsonl"))) if name == LATEX_BOOKS else Path(name)
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # a text may have other line ends
    except (OSError, UnicodeError) as error:
        raise CorpusError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from error
    if '"question"' in lines[0]:
        raise CorpusError("is a question; the first line names the licence and the author", path=path, line=1)
    questions = []
    for number, line in enumerate(lines[1:], 2):
        try:
            one = json.loads(line)
            statements = {str(statement): str(digest) for statement, digest in one["statements"].items()}
            questions.append(WrittenQuestion(str(one["id"]), str(one["question"]), statements))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"is not a question ({error}); see mathamr/text/sources/written_questions.py for the form"
            raise CorpusError(message, path=path, line=number) from error
    return questions


def found_in(questions: Sequence[WrittenQuestion], papers: Iterable[Paper]) -> list[tuple[str, str, list[str]]]:
    """Return id, text and statements of each question with a statement in ``papers``; other questions are left out."""
    wanted = {statement.rpartition("/")[0] for question in questions for statement in question.statements}
    hashes: dict[str, str] = {}
    places: dict[tuple[str, str], str] = {}  # paper and hash -> statement
    for paper in papers:
        if paper.paper_id in wanted:
            for number, statement in enumerate(paper.statements):
                name, digest = f"{paper.paper_id}/{number}", text_hash(statement.text)
                hashes[name] = digest
                places.setdefault((paper.paper_id, digest), name)
    found = []
    for question in questions:
        own = [
            name if hashes.get(name) == digest else places.get((name.rpartition("/")[0], digest))
            for name, digest in question.statements.items()
        ]
        if kept := [name for name in own if name is not None]:
            found.append((question.question_id, question.text, kept))
    return found
