r"""Search engine for typed queries: an index with its model, opened once.

    engine = Engine.open(Path("index"))                                 # takes seconds
    answer = engine.answer(r"Why is $\sqrt 2$ irrational?", k=3)        # takes a tenth of a second
    answer.results[0].post.title, answer.results[0].score
    answer.results[0].explanation.matches          # best part of the post for each part of the query
    engine.answer(r"$\sqrt 2$", task="formulas").results[0].formula     # formulas like the first one of the query
    (result,) = engine.explain(r"Why is $\sqrt 2$ irrational?", "255").results
    result.explanation.similarities                     # the heat map (thesis, Figure 4.1)

``mathamr search`` and the web page of ``mathamr serve`` both use it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from operator import itemgetter
from pathlib import Path
from typing import Any

from graphs.corpus.post import FormulaRef
from graphs.corpus.text.text_formulas import MAX_INLINE
from graphs.errors import ConfigError, MathAMRError, RetrievalError, StoreError, UnknownPostError
from graphs.formulas.layout import BLANK
from graphs.graph.graph_maker import FormulaTrees
from graphs.stores.posts import PostText, PostTexts
from mathamr.evaluation.runs import Hit
from mathamr.retrieval import backends
from mathamr.retrieval.explanation import Explanation
from mathamr.retrieval.folder import opened
from mathamr.retrieval.index import STRATEGIES, Strategy
from mathamr.search.catalog import Catalog
from mathamr.search.overlap import Overlap
from mathamr.search.query import EncodedQuery, QueryEncoder, TypedQuery, is_same_parser
from mathamr.search.selection import CANDIDATES, EVERYTHING, Page, Selection
from mathamr.search.structured import StructuredFormulas
from mathamr.structure.matching import Match
from mathamr.training import checkpoint

TASKS = ("answers", "formulas")
RESULTS, MAX_RESULTS = 5, CANDIDATES  # default and maximum
ENCODED_QUERIES_KEPT = 32  # a heat map is asked for after the search with the same query


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


class Engine:
    """Engine of a graph model's index, made by :meth:`open`. Only one thread at a time may search."""

    def __init__(self, catalog: Catalog, reader: QueryEncoder) -> None:
        self.catalog = catalog
        self._parser = reader.parser
        self._trees = FormulaTrees()
        self._encode = lru_cache(ENCODED_QUERIES_KEPT)(reader.encode)

    @classmethod
    def open(cls, index: Path, *, model: Path | None = None, device: str = "cpu") -> Engine:
        """Open the index in the folder ``index``, and search once, so that the first query is as fast as the others.

        Raises :class:`MathAMRError` for an index that cannot be opened, or was not made by the checkpoint ``model``.
        """
        wanted = None if model is None else checkpoint.weights_hash(model)
        return opened(index, lambda: cls._open(index, wanted, device))

    @classmethod
    def _open(cls, index: Path, model_hash: str | None, device: str) -> Engine:
        catalog = Catalog.open(index, model_hash=model_hash)
        try:
            encoder = checkpoint.load_encoder(catalog.model, config_hash=catalog.config_hash, device=device)
            engine = cls(catalog, QueryEncoder(encoder, catalog.vocabulary, catalog.spec))
            query = engine._encode(r"Let $x \le \frac{1}{2}$ be a number. Is $\int_0^1 f(x)\,dx$ finite?")
            engine._posts(query, catalog.search(query.vectors, k=1)[0], Strategy())
            if catalog.has_formulas and catalog.structured is None:
                _ = catalog.formulas  # opened now: an update of the index removes its files
        except BaseException:
            catalog.close()
            raise
        return engine

    @property
    def note(self) -> str:
        """Warning about the index to show to users, or ""."""
        if is_same_parser(self.catalog.parser, self._parser):
            return ""
        return f"the posts were parsed by {self.catalog.parser}, but the query is parsed by {self._parser}"

    @property
    def strategies(self) -> list[Strategy]:
        """Strategies that this index can be searched with."""
        return [s for exact in (True, False) for name in STRATEGIES if self._can(s := Strategy(name, exact))]

    def __len__(self) -> int:
        return len(self.catalog)

    def about(self) -> dict[str, Any]:
        """Return the searched index and its search options, as JSON."""
        catalog = self.catalog
        formulas = catalog.num_formulas if catalog.structured is None else len(catalog.structured)
        return {
            "system": "graph",
            "posts": len(catalog),
            "formulas": formulas,
            "backend": catalog.backend,
            "note": self.note,
            "tasks": list(TASKS) if formulas else list(TASKS[:1]),
            "formulas_by": "vectors" if catalog.structured is None else "structure",
            "strategies": [{"strategy": s.name, "exact": s.exact} for s in self.strategies],
            "explains": True,
        }

    def close(self) -> None:
        """Close all files."""
        self.catalog.close()

    def answer(
        self,
        text: str,
        *,
        task: str = "answers",
        strategy: Strategy | None = None,
        k: int = RESULTS,
        selection: Selection = EVERYTHING,
        explained: int | None = None,
    ) -> Answer:
        """Return at most ``k`` posts that answer ``text``, or formulas similar to its first one.

        Only the first ``explained`` posts, by default all, have an explanation, which adds up to their score.
        Raises :class:`MathAMRError` for a query that cannot be read or has no part that the model knows, and for a
        search that the index does not support.
        """
        check(task, k)
        strategy = strategy or Strategy()
        start = time.perf_counter()
        query = self._encode(text)
        encoded = time.perf_counter()
        if task == "formulas" and self.catalog.structured is not None:
            return self._by_structure(self.catalog.structured, query, k, selection, encoded - start)
        if query.words.nothing:
            raise RetrievalError(
                f"the model knows nothing in this query ({query.words}), so any result would be by chance; use other "
                "words, or a formula between dollar signs"
            )
        if task == "formulas":
            if not query.formula_ids:
                raise _no_formula(query)
            (vectors,) = query.vectors
            (hits,) = self.catalog.formulas.search(vectors[:1], selection.depth(k))
            chosen = selection.page(hits, k, _post_of_hit, self.catalog.texts)
            searched = time.perf_counter()
            page, best = chosen.with_results(self._formulas(chosen.results)), 1.0
        else:
            (ranking,) = self.catalog.search(query.vectors, strategy, selection.depth(k))
            ranked = selection.page(ranking, k, itemgetter(0), self.catalog.texts)
            searched = time.perf_counter()
            page = ranked.with_results(self._posts(query, ranked.results, strategy, explained))
            best = 1.0 if strategy.name == "single_vector" else float(len(query.nodes))
        end = time.perf_counter()
        seconds = {"query": encoded - start, "search": searched - encoded, "explanation": end - searched}
        return Answer(query, page, best, seconds)

    def explain(self, text: str, post_id: str) -> Answer:
        """Return an answer with this post alone and its explanation; the score is MaxSim.

        Raises :class:`UnknownPostError` for a post that the index does not have.
        """
        post = self.post(post_id)
        start = time.perf_counter()
        query = self._encode(text)
        encoded = time.perf_counter()
        why = self.catalog.explain(query, [post_id])[post_id]
        seconds = {"query": encoded - start, "search": 0.0, "explanation": time.perf_counter() - encoded}
        return Answer(query, Page([Result(post, why.score, why)]), float(len(query.nodes)), seconds)

    def post(self, post_id: str) -> PostText:
        """Return a post by its id; raise :class:`UnknownPostError` if the index has none."""
        return post_of(self.catalog.texts, post_id)

    def _by_structure(
        self, formulas: StructuredFormulas, query: EncodedQuery, k: int, selection: Selection, encoding: float
    ) -> Answer:
        """Return formulas that share a large part with the first formula of the query, each with that part."""
        if not query.text.formulas:
            raise _no_formula(query)
        start = time.perf_counter()
        (formula, *_) = self._trees.of(query.text.formulas)
        if not {label for tree in (formula.slt, formula.opt) if tree for label in tree.labels} - {BLANK}:
            reason = formula.errors[0][1] if formula.errors else "it has no symbol"
            raise RetrievalError(f"the first formula of the query cannot be read: {reason}")
        found = formulas.search(formula, selection.depth(k))
        page = selection.page(found, k, lambda one: _post_of_hit(one[1]), self.catalog.texts)
        searched = time.perf_counter()
        matches = formulas.matches(formula, [number for number, _ in page.results])
        shown = self._formulas([hit for _, hit in page.results])
        results = [replace(result, match=match) for result, match in zip(shown, matches, strict=True)]
        seconds = {"query": encoding, "search": searched - start, "explanation": time.perf_counter() - searched}
        return Answer(query, page.with_results(results), 1.0, seconds)

    def _posts(
        self,
        query: EncodedQuery,
        ranking: Sequence[tuple[str, float]],
        strategy: Strategy,
        explained: int | None = None,
    ) -> list[Result]:
        post_ids = [post_id for post_id, _ in ranking]
        posts, why = self.catalog.texts.get(post_ids), self.catalog.explain(query, post_ids[:explained])
        if strategy.name == "single_vector":
            why = {post_id: own.of_documents() for post_id, own in why.items()}
        return [Result(posts[post_id], score, why.get(post_id)) for post_id, score in ranking]

    def _formulas(self, hits: Sequence[Hit]) -> list[Result]:
        posts = self.catalog.texts.get([hit.post_id or "" for hit in hits])
        results = []
        for hit in hits:
            post = posts.get(hit.post_id or "")
            if post is None:
                raise StoreError(f"the index has formula {hit.doc_id} but not the text of its post {hit.post_id}")
            formula = next((f for f in post.text.formulas if f.formula_id == hit.doc_id), FormulaRef(hit.doc_id, ""))
            results.append(Result(post, hit.score, formula=formula))
        return results

    def _can(self, strategy: Strategy) -> bool:
        try:
            backends.check(self.catalog.backend, strategy)
        except MathAMRError:
            return False
        return True


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


def _post_of_hit(hit: Hit) -> str:
    return hit.post_id or ""


def _no_formula(query: EncodedQuery) -> ConfigError:
    limit = f", of at most {MAX_INLINE:,} characters" if any("$" in one for one in query.text.sentences) else ""
    return ConfigError(f"task=formulas needs a formula in the query, between two dollar signs{limit}")


def check(task: str, k: int) -> None:
    """Refuse an unknown task, or a number of results out of range."""
    if task not in TASKS:
        raise ConfigError(f"unknown task {task!r}; choose from: {', '.join(TASKS)}")
    if not isinstance(k, Integral):
        raise ConfigError(f"k={k!r} is no number of results; give a whole number")
    if not 1 <= k <= MAX_RESULTS:
        raise ConfigError(f"k={k}; from 1 to {MAX_RESULTS:,} results can be shown")
