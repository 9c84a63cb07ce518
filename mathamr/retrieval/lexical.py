r"""BM25 over a collection of posts: answers in Task 1, formulas in Task 2, one for each visual id.

>>> posts = [
...     Post("7", "question", body="Is $x^2=2$ solvable?", markup="text"),
...     Post("8", "answer", body="Yes, as $x^2=2$ has the root $\\sqrt2$.", markup="text"),
... ]
>>> words = Tokens("text")
>>> topic = Topic("B.1", posts[0], "7:0")
>>> [found for found, score in LexicalIndex.build(posts, words, 1).search([topic])[0]["B.1"]]
['8']
>>> [(hit.doc_id, hit.post_id) for hit in LexicalIndex.build(posts, words, 2).search([topic])[0]["B.1"]]
[('8:0', '8'), ('7:0', '7'), ('8:1', '8')]

Tokens are words and LaTeX, or pairs of symbols in the trees of formulas (:mod:`mathamr.retrieval.bm25`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, get_args

from graphs.corpus.post import FormulaRef, PlaceholderText, Post, PostKind, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, Failure, RetrievalError
from graphs.formulas.store import FormulaStore
from graphs.graph.graph_maker import FormulaTrees
from graphs.graph.labels import porter_stemmer
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Task
from mathamr.retrieval.bm25 import AS_LUCENE, BM25Index, Weighting, tokens_of_formula, tokens_of_latex, tokens_of_post
from mathamr.retrieval.index import Ranking

By = Literal["text", "formulas"]
Stem = Literal["none", "accents", "porter", "snowball"]
Progress = Callable[[int], None]
Read = TypeVar("Read")


class Tokens:
    r"""Features ``by`` which posts and formulas are compared; trees come from ``formulas_db``, else from LaTeX.

    With ``stem``, words are compared without accents, or by their stems (English, of nltk). LaTeX commands stay as they
    are:

    >>> Tokens("text", stem="porter").of_post(Post("1", "answer", body="Rings $\\alpha_s$", markup="text"))
    ['ring', '\\alpha', 's']

    Raises:
        ConfigError: ``by`` is neither text nor formulas, or ``stem`` is unknown or not of text.
    """

    def __init__(self, by: str, formulas_db: Path | None = None, *, stem: str = "none") -> None:
        if by not in get_args(By):
            raise ConfigError(f"by={by} is not one of {', '.join(get_args(By))}")
        if stem not in get_args(Stem):
            raise ConfigError(f"stem={stem} is not one of {', '.join(get_args(Stem))}")
        if stem not in ("none", "accents") and by != "text":
            raise ConfigError(f"stem={stem} needs by=text; pairs of symbols have no words")
        self._trees = FormulaTrees(formulas_db) if by == "formulas" else None
        self._stemmed = _stemmer(stem)

    def of_post(self, post: Post) -> list[str]:
        """Return the tokens of a post, or of all its formulas."""
        if self._trees is None:
            return self._stemmed(tokens_of_post(post))
        return [token for own in self.of_formulas(extract(post).formulas) for token in own]

    def of_formulas(self, formulas: Sequence[FormulaRef]) -> Iterator[list[str]]:
        """Return the tokens of each formula of one post."""
        if self._trees is None:
            return (self._stemmed(tokens_of_latex(formula.latex)) for formula in formulas)
        return (list(tokens_of_formula(parsed)) for parsed in self._trees.of(formulas))


def _stemmer(name: str) -> Callable[[list[str]], list[str]]:
    """Return a function that replaces words by their stems; each word is stemmed once."""
    if name == "none":
        return lambda tokens: tokens
    if name == "accents":
        return lambda tokens: list(map(without_accents, tokens))
    if name == "porter":
        stemmer = porter_stemmer()
    else:
        from nltk.stem import SnowballStemmer  # slow to import

        stemmer = SnowballStemmer("english")
    stem = lru_cache(maxsize=1_000_000)(stemmer.stem)
    return lambda tokens: [token if token.startswith("\\") else stem(token) for token in tokens]


_LETTERS = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss", "æ": "ae", "œ": "oe"})


def without_accents(word: str) -> str:
    """Return a word, in lower case, without its accents.

    >>> [without_accents(word) for word in ("möbius", "łukasiewicz", "weiß", "ring")]
    ['mobius', 'lukasiewicz', 'weiss', 'ring']
    """
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFKD", word).translate(_LETTERS)
    return "".join(sign for sign in parts if not unicodedata.combining(sign))


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """An index of answers (Task 1), or of formulas that differ in their visual ids (Task 2).

    Attributes:
        post_of: post of each formula; None: answers are indexed.
        visual_ids: visual ids of all formulas that were seen; None: answers are indexed.
    """

    tokens: Tokens
    documents: BM25Index
    post_of: Mapping[str, str] | None = None
    visual_ids: Mapping[str, str] | None = None

    @classmethod
    def build(
        cls,
        posts: Iterable[Post | Failure],
        tokens: Tokens,
        task: Task,
        *,
        formulas_db: Path | None = None,
        wanted: Container[str] | None = None,
        kind: PostKind = "answer",
        question_of: Callable[[Post], Post | None] | None = None,
        progress: Progress | None = None,
        weighting: Weighting = AS_LUCENE,
    ) -> LexicalIndex:
        """Index the answers among ``posts``, or the formulas of all of them, the first of each visual id.

        If several answers have the same id, the first counts.

        Args:
            formulas_db: visual ids of the formulas; None: each formula has its own.
            wanted: ids of answers, or visual ids, of which a post must have one; None: all.
            kind: kind of the posts that are indexed in the place of answers.
            question_of: returns the question whose tokens are added to those of an answer; None: no tokens are added.
            progress: called with 1 for each answer that is indexed, or each post whose formulas are read.

        Raises:
            RetrievalError: nothing to index.
        """
        post_of: dict[str, str] = {}  # by the id of each document that is indexed
        ids: list[str] = []

        def answers() -> Iterator[list[str]]:
            for post in posts:
                if not isinstance(post, Post) or post.kind != kind or post.post_id in post_of:
                    continue
                if wanted is None or post.post_id in wanted:
                    post_of[post.post_id] = post.post_id
                    ids.append(post.post_id)
                    question = None if question_of is None else question_of(post)
                    yield [*([] if question is None else tokens.of_post(question)), *tokens.of_post(post)]
                    if progress is not None:
                        progress(1)

        if task == 1:
            return cls(tokens, BM25Index.build(ids, answers(), weighting))
        visual_ids: dict[str, str] = {}

        def formulas() -> Iterator[list[str]]:
            read = tokens.of_formulas
            found = distinct_formulas(posts, read, visual_ids, formulas_db, wanted=wanted, progress=progress)
            for formula_id, post_id, document in found:
                post_of[formula_id] = post_id
                ids.append(formula_id)
                yield document

        return cls(tokens, BM25Index.build(ids, formulas(), weighting), post_of, visual_ids)

    def search(
        self, topics: Sequence[Topic], k: int = MAX_PER_TOPIC
    ) -> tuple[dict[str, Ranking] | dict[str, list[Hit]], float]:
        """Return at most ``k`` results for each topic but those that lack the query formula, and seconds of search."""
        tokens, posts = self.tokens, self.post_of is None
        parts = {
            topic.topic_id: tokens.of_post(topic.post) if posts else query_formula(topic, tokens.of_formulas)
            for topic in topics
        }
        queries = {topic_id: query for topic_id, query in parts.items() if query is not None}
        with Stopwatch() as watch:
            rankings = dict(zip(queries, self.documents.search(queries.values(), k), strict=True))
        if self.post_of is None:
            return rankings, watch.seconds
        post_of = self.post_of
        hits = {topic: [Hit(name, score, post_of[name]) for name, score in own] for topic, own in rankings.items()}
        return hits, watch.seconds


def distinct_formulas(
    posts: Iterable[Post | Failure],
    read: Callable[[Sequence[FormulaRef]], Iterable[Read]],
    visual_ids: dict[str, str],
    formulas_db: Path | None = None,
    *,
    wanted: Container[str] | None = None,
    note: Callable[[str, PlaceholderText], None] | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[str, str, Read]]:
    """Yield the first formula of each visual id: its id, that of its post, and the result of ``read``.

    Args:
        read: makes a document of each formula of a post.
        visual_ids: filled with the visual ids of all formulas that are seen.
        formulas_db: source of visual ids; None: each formula has its own.
        wanted: visual ids; only posts that have one of these are read. None: all.
        note: called with the id and the text of each post, whether it is wanted or not.
        progress: called with 1 after each post.

    Raises:
        RetrievalError: no post has a wanted formula; after the last post.
    """
    store = None if formulas_db is None else FormulaStore.open(formulas_db)
    kept_visual_ids: set[str] = set()
    seen: set[str] = set()
    for post in posts:
        if not isinstance(post, Post):
            continue
        text = extract(post)
        if note is not None:
            note(post.post_id, text)
        formulas = text.formulas
        visual_id_of = visual_ids_of(formulas, store)
        visual_ids.update(visual_id_of)
        if wanted is None or any(visual_id in wanted for visual_id in visual_id_of.values()):
            for formula, document in zip(formulas, read(formulas), strict=True):
                visual_id = visual_id_of.get(formula.formula_id, f"formula {formula.formula_id}")
                if visual_id not in kept_visual_ids and formula.formula_id not in seen:
                    kept_visual_ids.add(visual_id)
                    seen.add(formula.formula_id)
                    yield formula.formula_id, post.post_id, document
        if progress is not None:
            progress(1)
    if wanted is not None and not seen:
        raise RetrievalError("no judged formula is in the collection; are the judgments of this collection?")


def query_formula(topic: Topic, read: Callable[[Sequence[FormulaRef]], Iterable[Read]]) -> Read | None:
    """Return the result of ``read`` for the formula that a topic asks for; None where its post lacks it."""
    formulas = extract(topic.post).formulas
    for formula, document in zip(formulas, read(formulas), strict=True):
        if formula.formula_id == topic.formula_id:
            return document
    return None


def visual_ids_of(formulas: Sequence[FormulaRef], store: FormulaStore | None) -> dict[str, str]:
    """Return the visual ids in ``store``; a formula without one counts as different from all others."""
    names = [formula.formula_id for formula in formulas]
    return {name: name for name in names} if store is None else store.visual_ids(names)
