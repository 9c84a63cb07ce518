r"""Filters of results by kind, formulas, exact words and excluded words; and pages of results.

>>> text, phrases, without = read_filters('Is "every finite ring" with $a "b"$ a field? -commutative')
>>> text
'Is every finite ring with $a "b"$ a field?'
>>> phrases, without
(('every finite ring',), ('commutative',))
>>> read_filters("Is every group abelian? -$p$-group - $x$")
('Is every group abelian?  - $x$', (), ('$p$-group',))
>>> read_filters('prime -"the book"')
('prime', (), ('the book',))

A filtered search examines the best :data:`CANDIDATES` posts; the answer gives the number that pass.
Words are compared without case and punctuation, formulas by their LaTeX without spaces:

>>> post = Post("8", "answer", body="Yes: every finite  Ring $R$ is.", markup="text")
>>> Selection(phrases=phrases, without=without).admits(post)
True
>>> Selection(phrases=("ring $ R $ is",)).admits(post), Selection(without=("rings",)).admits(post)
(True, True)
>>> Selection(phrases=("is every ring",)).admits(post, Post("7", "question", title="Is every ring a field?"))
True
>>> Selection(kind="question").admits(post), Selection(formulas="without").admits(post)
(False, False)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.latex_text import parts
from graphs.corpus.text.placeholders import extract
from graphs.corpus.text.sentences import UNSPACED
from graphs.corpus.text.text_formulas import find
from graphs.errors import ConfigError, RetrievalError
from graphs.stores.posts import PostTexts
from mathamr.search.typed_query import MAX_CHARACTERS

T = TypeVar("T")
CANDIDATES = 1000  # best results that a search with a filter looks at
MAX_FILTERS = 50  # phrases and exclusions of a query; each is compared with each candidate
KINDS = ("", "answer", "question")
FORMULAS = ("", "with", "without")
_QUOTES = str.maketrans("”„", '"“')  # of phones and word processors; „German“ phrases end with “
_COVER = "\ue000"  # character in place of those of a formula: no space, no letter, no sign
_PRIMED = rf"[^\W{UNSPACED}]|[){_COVER}]"  # after these, " is a double prime or a sign of inches
_OPENING = rf'(?:(?<!{_PRIMED})["“]|(?P<attached>“)(?=[\w{_COVER}]))'
_FILTER = re.compile(
    rf'(?<!\S)-["“](?P<excluded>[^"“]+)["“]|{_OPENING}(?P<phrase>[^"“]+)(?<!\s-)["“]'
    rf"|(?<!\S)-(?P<without>(?:[^\W\d_]|{_COVER})[\w{_COVER}’'-]+)"
)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Page of results, beginning at ``start``.

    Attributes:
        more: True if a next page has results.
        candidates: number of results that the filters were applied to; None without a filter.
        matching: number of candidates that pass; None without a filter.
    """

    results: list[T]
    start: int = 0
    more: bool = False
    candidates: int | None = None
    matching: int | None = None

    def with_results(self, results: list[R]) -> Page[R]:
        """Return a page at the same place with other results."""
        return Page(results, self.start, self.more, self.candidates, self.matching)


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters, and the first result to show.

    Attributes:
        kind: ``answer``, ``question``, or "" for both.
        formulas: ``with``, ``without``, or "" for both.
        phrases: sequences of words that a post must contain.
        without: words, formulas and phrases that no post may contain.
        start: number of results to skip.
    """

    kind: str = ""
    formulas: str = ""
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    start: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (("kind", self.kind, KINDS), ("formulas", self.formulas, FORMULAS)):
            if value not in known:
                raise ConfigError(f"{name}={value}; choose from: {', '.join(known[1:])}")
        if not 0 <= self.start < CANDIDATES:
            raise ConfigError(f"start={self.start}; from 0 to {CANDIDATES - 1:,} results can be skipped")

    @property
    def filters(self) -> bool:
        """Return whether any filter is set."""
        return bool(self.kind or self.formulas or self.phrases or self.without)

    def depth(self, k: int) -> int:
        """Return the number of results to search for in order to show ``k``."""
        return CANDIDATES if self.filters else min(self.start + k + 1, CANDIDATES)

    def page(self, found: Sequence[T], k: int, post_id_of: Callable[[T], str], texts: PostTexts) -> Page[T]:
        """Return ``k`` of the results ``found``, best first, that pass the filters."""
        end = self.start + k
        if not self.filters:
            return Page(list(found[self.start : end]), self.start, len(found) > end)
        found = found[:CANDIDATES]
        posts = texts.posts(list({post_id_of(one) for one in found}))
        questions: dict[str, Post] = {}
        if self.phrases or self.without:
            questions = texts.posts(list({post.parent_id for post in posts.values() if post.parent_id}))
        admitted = {
            post_id for post_id, post in posts.items() if self.admits(post, questions.get(post.parent_id or ""))
        }
        passed = [one for one in found if post_id_of(one) in admitted]
        return Page(passed[self.start : end], self.start, len(passed) > end, len(found), len(passed))

    def admits(self, post: Post, question: Post | None = None) -> bool:
        """Return whether a post passes all filters.

        Args:
            question: question that it answers, whose title is shown if it has none; phrases and exclusions apply to
                the shown title, too.
        """
        if self.kind not in ("", post.kind):
            return False
        if not (self.formulas or self.phrases or self.without):
            return True
        text = extract(post)
        if self.formulas and (self.formulas == "with") != bool(text.formulas):
            return False
        words = _words(text)
        if question is not None and not post.title:
            words += _words(extract(replace(question, body="")))
        return all(_words_of(phrase) in words for phrase in self.phrases) and not any(
            _words_of(word) in words for word in self.without
        )


EVERYTHING = Selection()


def typed(query: str, selection: Selection = EVERYTHING) -> tuple[str, Selection]:
    """Return a query without its filter signs, and ``selection`` with these filters.

    Raises:
        RetrievalError: a query of exclusions alone, or one with more than :data:`MAX_FILTERS` filters.
    """
    text, phrases, without = read_filters(query)
    if (filters := len(phrases) + len(without)) > MAX_FILTERS:
        raise RetrievalError(
            f"the query has {filters:,} phrases and exclusions, but at most {MAX_FILTERS} are read; leave some out, or "
            "write a space after '-' where it is a dash"
        )
    if without and not text:
        raise RetrievalError(
            "the query only excludes results, so nothing is searched for; write words or a formula before the first "
            f"exclusion, as in 'WORDS {query.strip()[:40]}'"
        )
    return text, replace(selection, phrases=phrases, without=without)


def read_filters(query: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return a query without filter signs, its phrases between ``"``, and what it excludes with ``-``.

    Words, formulas and phrases are excluded. A sign within a formula is never a filter. ``-`` before a space or a
    single letter is a dash or minus. ``"`` after a letter, digit, formula or ``)`` is a double prime or a sign of
    inches, unless it ends a phrase or the letter is of a script without spaces, such as Chinese. ``“`` also begins a
    phrase there if a letter, digit or formula follows. A phrase stays in the query; what is excluded is removed. A
    query that is too long is passed on unchanged, and the engine refuses it.
    """
    if len(query) > MAX_CHARACTERS:
        return query, (), ()
    phrases: list[str] = []
    without: list[str] = []

    pieces: list[str] = []
    position = 0
    for match in _FILTER.finditer(_covered(query)):
        pieces.append(query[position : match.start()])
        position = match.end()
        if match["without"] is not None:
            without.append(query[slice(*match.span("without"))])
            continue
        kind = "excluded" if match["phrase"] is None else "phrase"
        phrase = query[slice(*match.span(kind))]
        if kind == "phrase":
            pieces.append(f" {phrase}" if match["attached"] else phrase)
        if _words_of(phrase).strip():
            (phrases if kind == "phrase" else without).append(phrase)
    text = "".join([*pieces, query[position:]])
    return (text.strip() if without else text), tuple(phrases), tuple(without)


def _covered(query: str) -> str:
    """Cover the formulas of a query, and write its quotation marks as ``"`` or ``“``; its length stays the same."""
    pieces: list[str] = []
    position = 0
    for start, end, _ in find(query):
        pieces += [query[position:start], _COVER * (end - start)]
        position = end
    return "".join([*pieces, query[position:]]).translate(_QUOTES)


@lru_cache(maxsize=2 * MAX_FILTERS)
def _words_of(query: str) -> str:
    return _words(extract(Post("query", "topic", body=query, markup="text")))


def _words(text: PlaceholderText) -> str:
    """Return words and formulas, each between spaces, so that substrings can be compared as whole words."""
    words: list[str] = []
    for sentence in text.sentences:
        for part in parts(sentence, text):
            if isinstance(part, str):
                words += _WORD.findall(part.casefold())
            else:
                words.append(f"${''.join(part.latex.split())}$")
    return f" {' '.join(words)} "
