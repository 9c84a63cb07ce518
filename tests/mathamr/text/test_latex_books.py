"""Theorem-like environments that were found by reading spans of seven LaTeX sources, and what the extractor finds.

    python -m pytest tests/mathamr/text/test_latex_books.py -m shared -s

``latex_books_check.tsv`` names them by their place. Spans were drawn by a fixed seed, stratified over the sources, and
what a statement is was decided by reading; rare spellings of PlanetMath (``unt``, ``COR``, ``defnn``) were added all.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from graphs.formulas.latex.tokens import DEFINING
from graphs.papers.archives import read_files
from graphs.papers.latex_source import LatexSource, assemble, strip_comments
from graphs.papers.macros import Expander
from graphs.papers.plain import plain
from mathamr.text.sources.papers import read_paper

BOOKS = Path(__file__).resolve().parents[4] / "shared" / "data" / "latex-books"
DEFINITION = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(DEFINING)))})(?![a-zA-Z])")
CHECK = Path(__file__).with_name("latex_books_check.tsv")


def paper_of(row: dict[str, str]) -> Path:
    """The paper that a file belongs to: a book's folder, or the file itself where each file is a document."""
    one_book = row["book"] in ("hott_book", "openlogic", "lebl_real_analysis")
    alone = not one_book or row["file"].startswith(("slides/", "wip/"))
    return BOOKS / row["book"] / (row["file"] if alone else "")


def words(text: str) -> str:
    """Letters and digits alone, of the text and of its formulas."""
    return re.sub(r"[\W_]+", "", text)


@cache
def assembled(files: tuple[tuple[str, str], ...]) -> LatexSource:
    """The files of a paper as one text, which takes long."""
    return assemble(dict(files))


@cache
def definitions(paper: Path) -> str:
    """The commands that a paper defines, wherever they are."""
    files = read_files(paper)
    source = assembled(tuple(files.items()))
    texts = [source.declarations, *(strip_comments(files[name]) for name in source.files)]
    places = [(text, found.start()) for text in texts for found in DEFINITION.finditer(text)]
    return "\n".join(text[start : start + 500] for text, start in places)


@cache
def expander_of(paper: Path) -> Expander:
    """What knows the definitions of a paper, which are long."""
    return Expander(definitions(paper))


def whole_text(row: dict[str, str]) -> str:
    """The words of an environment, title first, from its first to its last line."""
    lines = (BOOKS / row["book"] / row["file"]).read_text(encoding="utf-8").splitlines()
    source = "\n".join(lines[int(row["line"]) - 1 : int(row["last_line"])])
    name = re.escape(row["environment"])
    body = re.search(rf"\\begin\s*\{{{name}\}}(.*?)\\end\{{{name}\}}", source, re.DOTALL)
    assert body is not None, row
    expander = expander_of(paper_of(row)).copy()  # what the environment defines is its own
    return words(plain(expander(strip_comments(body[1]))))


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not BOOKS.exists(), reason=f"the LaTeX books are not at {BOOKS}")
def test_statements_that_a_reader_found_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mathamr.text.sources.papers.assemble", lambda files: assembled(tuple(files.items())))
    rows = list(csv.DictReader(CHECK.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    assert len(rows) >= 200
    found: dict[Path, set[tuple[str, str]]] = {}
    for paper in {paper_of(row) for row in rows}:
        found[paper] = {(one.kind, words(one.title + one.text)) for one in read_paper(paper).statements}
    missed = [row for row in rows if (row["kind"], whole_text(row)) not in found[paper_of(row)]]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} found; by source: {dict(Counter(row['book'] for row in rows))}")
    for row in missed:
        print("missed:", *row.values())
    assert len(missed) <= 0.02 * len(rows)
