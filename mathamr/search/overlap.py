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
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from graphs.corpus.post import PlaceholderText
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.retrieval.lexical import without_accents
from mathamr.structure.drawing import Drawn
from mathamr.structure.index import StructureIndex
from mathamr.structure.matching import Match, match_of
from mathamr.structure.scoring import Scoring

MAX_ASKED, MAX_FORMULAS = 10, 30  # formulas of a query, and of each post, that are compared
MAX_TRIED = 3  # of these, the most similar ones
MAX_LATEX = 2000  # characters of these formulas together
_SIGN = re.compile(r"\\[a-zA-Z]+|[^\s{}]")
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

    Formulas count as similar if at least half of the query's symbols match, up to renaming of variables, and more than
    a single variable or number.
    """
    trees, words = FormulaTrees(), _words(query)
    of_query, scoring = _read(trees, query, MAX_ASKED), Scoring.by_default()
    signs = {sign for latex, _ in of_query for sign in _SIGN.findall(latex)}
    found: list[Overlap] = []
    for post in posts:
        numbers = (number for formula in post.formulas for number in _NUMBER.findall(formula.latex))
        own = {*map(without_accents, _words(post)), *numbers}
        formulas = _similar(of_query, _read(trees, post, MAX_FORMULAS, signs), scoring) if of_query else ()
        found.append(Overlap(tuple(word for word in words if without_accents(word) in own), formulas))
    return found


def _words(text: PlaceholderText) -> list[str]:
    words = _WORD.findall(_PLACEHOLDER.sub(" ", "\n".join(text.sentences)).lower())
    return [word for word in dict.fromkeys(words) if not _FUNCTION_WORDS.fullmatch(word)]


def _read(
    trees: FormulaTrees, text: PlaceholderText, most: int, signs: Collection[str] = ()
) -> list[tuple[str, ParsedFormula]]:
    """Return LaTeX and trees of formulas, each once, that have a layout tree; of many, those with most of the signs."""
    different = list({formula.latex: formula for formula in text.formulas}.values())
    nearest = sorted(different, key=lambda one: -len({*_SIGN.findall(one.latex)}.intersection(signs)))[:most]
    ends = accumulate(len(formula.latex) for formula in nearest)
    compared = {formula.latex for formula, end in zip(nearest, ends, strict=True) if end <= MAX_LATEX}
    formulas = [formula for formula in different if formula.latex in compared]
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
        for number, _ in index.search(tree, MAX_TRIED):
            match = match_of(index, tree, number)
            if match is not None and _is_similar(match):
                similar.append(SimilarFormula(latex, own[number][0], str(match)))
                break
    return tuple(similar)


def _is_similar(match: Match) -> bool:
    """Return whether half of the query's symbols match, and more than a variable or a number unless it is all."""
    kept = match.matched - len(match.changed)
    is_alone = match.symbols == 1 and not match.renaming
    return 2 * kept >= match.symbols and (kept > 1 or is_alone or any(len(name) > 1 for name in _names(match.query)))


def _names(drawn: Drawn) -> Iterator[str]:
    """Yield the names of variables and functions of a query that the formula has, too."""
    if drawn.tag == "mi" and drawn.role == "equal":
        yield drawn.text
    for child in drawn.children:
        yield from _names(child)
