"""Posts, topics, formulas and pairs: the typed records that every collection is read into.

>>> post = Post("255", "question", title="Why does $\\\\sum 1/n$ diverge?", body="<p>I tried ...</p>", markup="html")
>>> post.kind
'question'
>>> Pair(question_id="255", answer_id="1940278")
Pair(question_id='255', answer_id='1940278')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Literal, NamedTuple

from graphs.ids import Compact, Ids

PostKind = Literal["question", "answer", "topic"]
Markup = Literal["html", "text"]

QUERY = "query:"
"""Prefix of the post ids of queries, where people choose ids: a query and a document may have the same id."""


def query_post_id(topic_id: str, test: str = "") -> str:
    """Return the post id of a query; ``test`` names the test if several tests have different queries.

    >>> query_post_id("7"), query_post_id("7", "easy")
    ('query:7', 'query:easy/7')
    """
    return f"{QUERY}{test}/{topic_id}" if test else f"{QUERY}{topic_id}"


def is_id(text: str) -> bool:
    """Return whether ``text`` can be an id in tables and run files: printable, without blanks, not empty.

    >>> is_id("255/body"), is_id("a b"), is_id("a\\0"), is_id("")
    (True, False, False, False)
    """
    return text != "" and text.isprintable() and " " not in text


@dataclass(frozen=True, slots=True)
class Post:
    """A post of a collection, or a topic in the form of a post (``kind='topic'``).

    ``title`` and ``body`` hold markup: ``html`` (formulas in ``<span class="math-container" id="...">$...$</span>``,
    or between dollar signs) or plain ``text`` (formulas between dollar signs, ``\\(..\\)`` or ``\\[..\\]``).
    ``formula_prefix`` is put before every formula id in the markup: topic files of each year count formulas from
    the start, so the topics of 2020 have the prefix ``2020:``.
    """

    post_id: str
    kind: PostKind
    title: str = ""
    body: str = ""
    markup: Markup = "html"
    tags: tuple[str, ...] = ()
    parent_id: str | None = None
    accepted_answer_id: str | None = None
    score: int | None = None
    formula_prefix: str = ""


@dataclass(frozen=True, slots=True)
class FormulaRef:
    """An occurrence of a formula in a post: its collection-wide id and its LaTeX."""

    formula_id: str
    latex: str


@dataclass(frozen=True, slots=True)
class PlaceholderText:
    """Sentences of a post, with formula ``formulas[i]`` written as ``FORMULA_i``.

    ``cut`` is empty, or the reason why the end of the post is missing (:mod:`graphs.corpus.post_limits`).
    """

    sentences: tuple[str, ...]
    formulas: tuple[FormulaRef, ...]
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Topic:
    """Query: ``post`` is its text, and ``formula_id`` the id of its formula in Task 2, with the prefix.

    ``topic_id`` is the id in run files, judgments and reports. ``post.post_id`` is the id in graphs, vectors and
    indexes; in collections with ids chosen by users, it is made by :func:`query_post_id`.
    """

    topic_id: str
    post: Post
    formula_id: str | None = None


class Pair(NamedTuple):
    """A training pair: a question and one of its answers."""

    question_id: str
    answer_id: str


class IdPairs(Compact[Pair]):
    """Immutable sequence of pairs in little memory: their ids are one string. It equals a list of the same pairs.

    >>> pairs = IdPairs([Pair("7", "8"), Pair("9", "8")])
    >>> pairs[1], len(pairs), pairs == [Pair("7", "8"), Pair("9", "8")]
    (Pair(question_id='9', answer_id='8'), 2, True)
    """

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._ids = Ids(post_id for pair in pairs for post_id in (pair.question_id, pair.answer_id))

    def __len__(self) -> int:
        return len(self._ids) // 2

    def item(self, place: int) -> Pair:
        return Pair(self._ids[2 * place], self._ids[2 * place + 1])

    def __iter__(self) -> Iterator[Pair]:
        ids = iter(self._ids)
        return map(Pair, ids, ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Judgment:
    """Line of a qrels file: how well ``doc_id`` answers ``topic_id``, from 0 (not relevant) to 3 in ARQMath."""

    topic_id: str
    doc_id: str
    grade: int
