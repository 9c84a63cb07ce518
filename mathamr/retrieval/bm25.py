r"""BM25 over the words of posts and the LaTeX of their formulas, or over pairs of symbols in their trees: the
baselines.

>>> post = Post("255", "answer", body="<p>The <b>harmonic</b> series $\\sum_{n=1}^\\infty \\frac1n$ diverges.</p>")
>>> tokens_of_post(post)
['the', 'harmonic', 'series', '\\sum', 'n', '1', '\\infty', '\\frac', '1', 'n', 'diverges']
>>> other = Post("154", "answer", body="<p>The integers are a ring.</p>")
>>> index = BM25Index.build(["255", "154"], [tokens_of_post(post), tokens_of_post(other)])
>>> [post_id for post_id, score in index.search([["\\frac", "series", "unheard-of"]], k=10)[0]]
['255']

By default the variant of Lucene, with k1 = 1.5 and b = 0.75 (:class:`Weighting` has others). ``bm25s`` computes all
scores of the collection when it is built.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text import placeholders
from graphs.errors import ConfigError, RetrievalError, StoreError, faults_as
from graphs.formulas.tree import ParsedFormula
from mathamr.evaluation.order import best_first
from mathamr.retrieval.index import Ranking


def _bm25s() -> ModuleType:
    """Import bm25s, which takes a second, and hide JAX from it: JAX would take three quarters of a GPU's memory."""
    hidden = "jax" not in sys.modules
    if hidden:
        sys.modules["jax"] = None  # type: ignore[assignment]
    try:
        import bm25s
    finally:
        if hidden:
            del sys.modules["jax"]
    return bm25s


_TOKEN = re.compile(r"\\[a-z]+|[^\W\d_]+|\d+")  # a LaTeX command, a word, a number
_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")
_IDS, _SCORES = "post_ids.npy", "scores"  # files of an index that is kept
TANGENT_WINDOW = 2
"""Edges between the two symbols of a pair, at most (Tangent-S looks further; 2 keeps what formulas share)."""


def tokens_of_post(post: Post) -> list[str]:
    """Return words, LaTeX commands, letters and numbers of a post, in lower case, in the order of the text."""
    return tokens_of_text(placeholders.extract(post))


def tokens_of_text(text: PlaceholderText) -> list[str]:
    """Return the tokens of a post's text, as :func:`tokens_of_post`."""

    def latex(match: re.Match[str]) -> str:
        return f" {text.formulas[int(match[1])].latex} "

    return _TOKEN.findall(_PLACEHOLDER.sub(latex, "\n".join(text.sentences)).lower())


def tokens_of_latex(latex: str) -> list[str]:
    r"""Return LaTeX commands, letters and numbers of a formula, in lower case.

    >>> tokens_of_latex(r"\frac{x_1}{2}")
    ['\\frac', 'x', '1', '2']
    """
    return _TOKEN.findall(latex.lower())


def tokens_of_formula(formula: ParsedFormula) -> Iterator[str]:
    """Pairs of symbols in both trees of a formula, with the edges that lead from the upper to the lower one.

    As in Tangent (Davila and Zanibbi, SIGIR 2017). A tree with a single symbol gives that symbol.

    >>> from graphs.formulas.tree import FormulaTree
    >>> x2 = FormulaTree("slt", ("V!x", "N!2"), (-1, 0), ("", "a"))
    >>> list(tokens_of_formula(ParsedFormula(slt=x2, opt=None)))
    ['slt V!x a N!2']
    """
    for tree in (formula.slt, formula.opt):
        if tree is None:
            continue
        if len(tree) == 1:
            yield f"{tree.kind} {tree.labels[0]}"
        for node in range(1, len(tree)):
            path = ""
            ancestor = node
            for _ in range(TANGENT_WINDOW):
                path = tree.edge_labels[ancestor] + path
                ancestor = tree.parents[ancestor]
                if ancestor < 0:
                    break
                yield f"{tree.kind} {tree.labels[ancestor]} {path} {tree.labels[node]}"


METHODS = ("lucene", "robertson", "atire", "bm25+", "bm25l")
"""Variants of BM25, as ``bm25s`` and Kamphuis et al. (ECIR 2020) name them."""


@dataclass(frozen=True, slots=True)
class Weighting:
    """Weight of a token in a document.

    Attributes:
        k1: saturation of the term frequency; higher values give repetitions of a token more weight.
        b: strength of the length normalisation, from 0 (none) to 1.
        method: one of :data:`METHODS`.

    Raises:
        ConfigError: unknown method.
    """

    k1: float = 1.5
    b: float = 0.75
    method: str = "lucene"

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"method={self.method} is not one of {', '.join(METHODS)}")


AS_LUCENE = Weighting()
"""The default weighting, as in conf/bm25."""


class BM25Index:
    """BM25 over documents given as tokens."""

    def __init__(self, post_ids: np.ndarray, scorer: Any | None) -> None:
        self._post_ids = post_ids
        self._scorer = scorer

    @classmethod
    def build(
        cls, post_ids: Sequence[str], documents: Iterable[Sequence[str]], weighting: Weighting = AS_LUCENE
    ) -> BM25Index:
        """Index documents, with a list of tokens for each post id. A document without tokens is never found.

        ``documents`` can be a generator, which can fill ``post_ids`` while it is read. Each token takes four bytes of
        memory.

        Raises :class:`RetrievalError` if there are not as many documents as ids, or no documents.
        """
        vocabulary: dict[str, int] = {}
        tokens = [array("i", (vocabulary.setdefault(token, len(vocabulary)) for token in own)) for own in documents]
        if len(tokens) != len(post_ids) or not tokens:
            raise RetrievalError(f"{len(post_ids)} post ids for {len(tokens)} documents; one of each is needed")
        if not vocabulary:
            return cls(np.array(post_ids), None)
        scorer = _bm25s().BM25(k1=weighting.k1, b=weighting.b, method=weighting.method)
        scorer.index((tokens, vocabulary), show_progress=False)
        return cls(np.array(post_ids), scorer)

    def write(self, folder: Path) -> None:
        """Write the scores and the ids to ``folder``, without pickle."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / _IDS, self._post_ids, allow_pickle=False)
        if self._scorer is not None:
            self._scorer.save(folder / _SCORES, show_progress=False)

    @classmethod
    def open(cls, folder: Path) -> BM25Index:
        """Map what :meth:`write` has written into memory; raise StoreError for a file that is missing or damaged."""
        bm25s = _bm25s()
        with faults_as(StoreError, "cannot be read as an index of BM25: {}; build it again", folder):
            post_ids = np.load(folder / _IDS, allow_pickle=False)
            if not (folder / _SCORES).is_dir():
                return cls(post_ids, None)
            scorer = bm25s.BM25.load(folder / _SCORES, mmap=True, show_progress=False)
        if scorer.scores["num_docs"] != len(post_ids):
            raise StoreError("damaged: not as many ids as documents; build it again", path=folder)
        return cls(post_ids, scorer)

    def __len__(self) -> int:
        return len(self._post_ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the scores and the ids in memory, without the dictionary of tokens."""
        scores = {} if self._scorer is None else self._scorer.scores
        return sum(part.nbytes for part in scores.values() if isinstance(part, np.ndarray)) + int(self._post_ids.nbytes)

    def search(
        self,
        queries: Iterable[Sequence[str]],
        k: int = 1000,
        *,
        allowed: Iterable[npt.NDArray[np.bool_] | None] = repeat(None),
    ) -> list[Ranking]:
        """Return at most ``k`` posts that share a token with each query; equal scores by id, descending.

        A query without a known token finds nothing. Tokens without weight do not count: ``atire`` gives none to a token
        of all posts, ``robertson`` none to a token of more than half. ``allowed`` has for each query the posts that may
        be found, bool (posts,), in the order they were indexed in, or None for all.
        """
        if k < 1:
            raise RetrievalError(f"k={k}; at least 1 result must be asked for")
        rankings: list[Ranking] = []
        for query, mask in zip(queries, allowed, strict=False):
            known = [] if self._scorer is None else self._scorer.get_tokens_ids(list(query))
            if self._scorer is None or not known:
                rankings.append([])
                continue
            scores = self._scorer.get_scores_from_ids(known)
            absent = self._scorer.nonoccurrence_array  # BM25L and BM25+ also score posts that lack a token
            shared = scores > (0 if absent is None else absent[known].sum())
            places = np.flatnonzero(shared if mask is None else shared & mask)
            if len(places) > k:
                bound = np.partition(scores[places], -k)[-k]
                places = places[scores[places] >= bound]
            order = places[best_first(self._post_ids[places], scores[places])[:k]]
            rankings.append(list(zip(self._post_ids[order].tolist(), scores[order].tolist(), strict=True)))
        return rankings
