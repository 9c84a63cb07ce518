r"""Formulas with all that a collection publishes of each: its LaTeX, its Presentation and its Content MathML.

    for formula in published(open_corpus("arqmath", "arqmath").formulas()):
        formula.latex                # '2+3i'
        formula.presentation         # '<math ...><mn>2</mn><mo>+</mo>...', '' where there is none
        formula.content              # '<math ...><apply><plus/>...', '' where there is none

It serves measurements that set the ways to a tree side by side. :mod:`graphs.formulas.store` is what builds databases.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from graphs.corpus.files import FormulaFiles
from graphs.formulas.tsv import Place, open_source, pieces, rows


@dataclass(frozen=True, slots=True)
class PublishedFormula:
    """One occurrence of a formula in a post."""

    formula_id: str
    latex: str
    presentation: str
    content: str


def published(files: FormulaFiles) -> Iterator[PublishedFormula]:
    """The formulas of the posts that have LaTeX, files of the same position together, in the order of the LaTeX files.

    The MathML of one position is held at a time: of the official release some 3 GB, of which there are 101. Raises
    CorpusError where a file is missing or no formula file.
    """
    for position, path in enumerate(files.latex):
        presentation = dict(formulas_of(files.slt[position])) if position < len(files.slt) else {}
        content = dict(formulas_of(files.opt[position])) if position < len(files.opt) else {}
        for formula_id, latex in formulas_of(path):
            yield PublishedFormula(
                formula_id, html.unescape(latex), presentation.get(formula_id, ""), content.get(formula_id, "")
            )


def formulas_of(path: Path) -> Iterator[tuple[str, str]]:
    """Id and formula as written (LaTeX is escaped for HTML) of every intact row of a formula file."""
    for piece in pieces(open_source(path, "slt"), Place(0, 0)):
        for _, row in rows(piece):
            if not isinstance(row, str):
                yield row.formula_id, row.mathml
