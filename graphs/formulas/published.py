r"""Formulas with everything that a collection publishes of each: LaTeX, Presentation MathML and Content MathML.

    for formula in published(open_corpus("arqmath", "arqmath").formulas()):
        formula.latex                # '2+3i'
        formula.presentation         # '<math ...><mn>2</mn><mo>+</mo>...', '' without one
        formula.content              # '<math ...><apply><plus/>...', '' without one

Measurements use it to compare the ways to a tree. :mod:`graphs.formulas.store` builds databases. Formulas with the same
appearance share a visual id, which Task 2 judges: :func:`posts_with_visual_ids`.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from graphs.corpus.files import FormulaFiles
from graphs.corpus.packed import PackedFile
from graphs.formulas.tsv import Place, Row, open_source, pieces, rows


@dataclass(frozen=True, slots=True)
class PublishedFormula:
    """An occurrence of a formula in a post."""

    formula_id: str
    latex: str
    presentation: str
    content: str


def published(files: FormulaFiles) -> Iterator[PublishedFormula]:
    """Yield the formulas of posts with LaTeX, in the order of the LaTeX files; files of one position go together.

    The MathML of one position is in memory at a time: some 3 GB of the official release, which has 101 positions.
    Raises CorpusError for a missing file, or one that is not a formula file.
    """
    for position, file in enumerate(files.latex):
        presentation, content = (
            {row.formula_id: row.mathml for row in rows_of(given[position])} if position < len(given) else {}
            for given in (files.slt, files.opt)
        )
        for row in rows_of(file):
            key = row.formula_id
            yield PublishedFormula(key, html.unescape(row.mathml), presentation.get(key, ""), content.get(key, ""))


def rows_of(file: PackedFile) -> Iterator[Row]:
    """Yield every intact row of a formula file; LaTeX is escaped for HTML, as in the file."""
    for piece in pieces(open_source(file, "slt"), Place(0, 0)):
        for _, row in rows(piece):
            if not isinstance(row, str):
                yield row


def posts_with_visual_ids(
    files: FormulaFiles, visual_ids: Container[str], progress: Callable[[int], None] | None = None
) -> frozenset[str]:
    """Return the posts that have a formula with one of ``visual_ids``, by one pass over one representation.

    Formulas of comments, and those that are listed as missing in their post, do not count. The representation with the
    most tables is read: if tables are missing, their posts are in no other table of that kind.

    Args:
        progress: function called with the number of formulas read since its last call.
    """
    posts: set[str] = set()
    for path in max(files.latex, files.opt, files.slt, key=len):  # ties: the smallest files
        count = 0
        for row in rows_of(path):
            count += 1
            if not row.missing and row.visual_id is not None and row.visual_id in visual_ids:
                posts.add(row.post_id)
        if progress is not None:
            progress(count)
    return frozenset(posts)
