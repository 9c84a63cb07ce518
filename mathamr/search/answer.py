"""Answer to a query: results with their posts, and what explains them.

>>> check("answers", 5)
>>> check("answer", 5)
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: unknown task 'answer'; choose from: answers, formulas

Every engine (:class:`mathamr.search.searchable.SearchEngine`) returns one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from graphs.corpus.post import FormulaRef
from graphs.corpus.text.text_formulas import MAX_INLINE
from graphs.errors import ConfigError, StoreError, UnknownPostError
from graphs.stores.posts import PostText, PostTexts
from mathamr.evaluation.runs import Hit
from mathamr.retrieval.explanation import Explanation
from mathamr.search.overlap import Overlap
from mathamr.search.selection import CANDIDATES, Page
from mathamr.structure.matching import Match

if TYPE_CHECKING:
    from mathamr.search.query import EncodedQuery
    from mathamr.search.typed_query import TypedQuery

TASKS = ("answers", "formulas")
RESULTS, MAX_RESULTS = 5, CANDIDATES  # default and maximum


@dataclass(frozen=True, slots=True)
class Result:
    """Found post with its explanation or, for the task ``formulas``, found formula with its post.

    A formula found by its structure has a ``match``, unless it is too large to draw. A post found by a system without
    virtual nodes has an ``overlap`` with the query.
    """

    post: PostText
    score: float
    explanation: Explanation | None = None
    formula: FormulaRef | None = None
    match: Match | None = None
    overlap: Overlap | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Results, best first, and the seconds spent on ``query`` (encoding), ``search`` and ``explanation``.

    ``best`` is the score of a perfect match: the number of query vectors for MaxSim, otherwise 1; None for systems
    whose scores have no upper bound.
    """

    query: EncodedQuery | TypedQuery
    page: Page[Result]
    best: float | None
    seconds: dict[str, float]

    @property
    def results(self) -> list[Result]:
        """Return the results that are shown, best first."""
        return self.page.results


def check(task: str, k: int) -> None:
    """Refuse an unknown task, or a number of results out of range."""
    if task not in TASKS:
        raise ConfigError(f"unknown task {task!r}; choose from: {', '.join(TASKS)}")
    if not isinstance(k, Integral):
        raise ConfigError(f"k={k!r} is no number of results; give a whole number")
    if not 1 <= k <= MAX_RESULTS:
        raise ConfigError(f"k={k}; from 1 to {MAX_RESULTS:,} results can be shown")


def post_of(texts: PostTexts, post_id: str) -> PostText:
    """Return a post by its id; raise :class:`UnknownPostError` for an unknown or an invalid one.

    JSON and URLs can contain half of a surrogate pair, but files cannot.
    """
    try:
        posts = texts.get([post_id])
    except UnicodeEncodeError:
        posts = {}
    if post_id not in posts:
        raise UnknownPostError(f"the index has no post {post_id!r}; give the id of a search result")
    return posts[post_id]


def post_of_hit(hit: Hit) -> str:
    """Return the id of the post of a found formula; "" without one."""
    return hit.post_id or ""


def formula_results(hits: Sequence[Hit], texts: PostTexts) -> list[Result]:
    """Return found formulas with their posts; raise StoreError for a formula without the text of its post."""
    posts = texts.get(list(map(post_of_hit, hits)))
    results = []
    for hit in hits:
        post = posts.get(post_of_hit(hit))
        if post is None:
            raise StoreError(f"the index has formula {hit.doc_id} but not the text of its post {hit.post_id}")
        formula = next((f for f in post.text.formulas if f.formula_id == hit.doc_id), FormulaRef(hit.doc_id, ""))
        results.append(Result(post, hit.score, formula=formula))
    return results


def no_formula(query: EncodedQuery | TypedQuery) -> ConfigError:
    """Return the error for a query without a formula."""
    limit = f", of at most {MAX_INLINE:,} characters" if any("$" in one for one in query.text.sentences) else ""
    return ConfigError(f"a search for formulas needs a formula in the query, between two dollar signs{limit}")
