r"""Overlap of a query and a found post: words of both, and for each formula of the query the most similar one.

>>> from graphs.corpus.post import Post
>>> from graphs.corpus.text.placeholders import extract
>>> query, post = (
...     extract(Post(name, "answer", body=text, markup="text"))
...     for name, text in (("q", "Is $x^2+1$ a prime polynomial?"), ("7", "The polynomial $y^2+1$ is irreducible."))
... )
>>> [overlap] = overlaps(query, [post])
>>> overlap.words
('polynomial',)
>>> [(one.query, one.document, one.match) for one in overlap.formulas]
[('x^2+1', 'y^2+1', '4 of 4 symbols, x is y')]

It shows why a system without virtual nodes may have found the post, whatever its scores are made of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from graphs.corpus.post import PlaceholderText
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.retrieval.lexical import without_accents
from mathamr.structure.index import StructureIndex
from mathamr.structure.matching import match_of
from mathamr.structure.scoring import Scoring

MAX_ASKED, MAX_FORMULAS = 10, 30  # formulas of a query, and of each post, that are compared
MAX_LATEX = 2000  # characters of these formulas together
_NUMBER = re.compile(r"\b\d{2,}\b")
_WORD = re.compile(rf"[^\W\d_]{{2,}}|{_NUMBER.pattern}")
_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_FUNCTION_WORDS = re.compile(
    "an|and|are|as|at|be|but|by|can|do|does|for|from|has|have|how|if|in|into|is|it|its|let|no|not|of|on|or|so|such|"
    "that|the|their|then|there|these|they|this|to|was|we|what|when|where|which|why|will|with"
)


@dataclass(frozen=True, slots=True)
class SimilarFormula:
    """LaTeX of a formula of the query and of the most similar one of the post, and their match in words."""

    query: str
    document: str
    match: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """Words and numbers in common, in the order of the query, and similar formulas."""

    words: tuple[str, ...]
    formulas: tuple[SimilarFormula, ...]


def overlaps(query: PlaceholderText, posts: Sequence[PlaceholderText]) -> list[Overlap]:
    """Return the overlap of a query with each post.

    Formulas count as similar if at least half of the query's symbols match, up to renaming of variables.
    """
    trees, words = FormulaTrees(), _words(query)
    of_query, scoring = _read(trees, query, MAX_ASKED), Scoring.by_default()
    found: list[Overlap] = []
    for post in posts:
        numbers = (number for formula in post.formulas for number in _NUMBER.findall(formula.latex))
        own = {*map(without_accents, _words(post)), *numbers}
        formulas = _similar(of_query, _read(trees, post, MAX_FORMULAS), scoring) if of_query else ()
        found.append(Overlap(tuple(word for word in words if without_accents(word) in own), formulas))
    return found


def _words(text: PlaceholderText) -> list[str]:
    words = _WORD.findall(_PLACEHOLDER.sub(" ", "\n".join(text.sentences)).lower())
    return [word for word in dict.fromkeys(words) if not _FUNCTION_WORDS.fullmatch(word)]


def _read(trees: FormulaTrees, text: PlaceholderText, most: int) -> list[tuple[str, ParsedFormula]]:
    """Return LaTeX and trees of the first formulas, each once, that have a layout tree."""
    different = list({formula.latex: formula for formula in text.formulas}.values())[:most]
    ends = accumulate(len(formula.latex) for formula in different)
    formulas = [formula for formula, end in zip(different, ends, strict=True) if end <= MAX_LATEX]
    parsed = zip(formulas, trees.of(formulas), strict=True)
    return [(formula.latex, tree) for formula, tree in parsed if tree.slt is not None]


def _similar(
    of_query: Sequence[tuple[str, ParsedFormula]], own: Sequence[tuple[str, ParsedFormula]], scoring: Scoring
) -> tuple[SimilarFormula, ...]:
    if not own:
        return ()
    index = StructureIndex.build((tree for _, tree in own), scoring)
    similar: list[SimilarFormula] = []
    for latex, tree in of_query:
        for number, _ in index.search(tree, 1):
            match = match_of(index, tree, number)
            if match is not None and 2 * match.matched >= match.symbols:
                similar.append(SimilarFormula(latex, own[number][0], str(match)))
    return tuple(similar)
