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
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from graphs.errors import MathAMRError, RetrievalError
from graphs.stores.posts import PostText
from mathamr.retrieval import backends
from mathamr.retrieval.folder import open_current
from mathamr.retrieval.index import STRATEGIES, Strategy
from mathamr.search.answer import (
    RESULTS,
    TASKS,
    Answer,
    Result,
    check,
    formula_results,
    no_formula,
    post_of,
    post_of_hit,
)
from mathamr.search.catalog import Catalog
from mathamr.search.query import EncodedQuery, QueryEncoder, is_same_parser
from mathamr.search.selection import EVERYTHING, Page, Selection
from mathamr.training import checkpoint

ENCODED_QUERIES_KEPT = 32  # a heat map is asked for after the search with the same query


class Engine:
    """Engine of a graph model's index, made by :meth:`open`. Only one thread at a time may search."""

    def __init__(self, catalog: Catalog, reader: QueryEncoder) -> None:
        self.catalog = catalog
        self._parser = reader.parser
        self._encode = lru_cache(ENCODED_QUERIES_KEPT)(reader.encode)

    @classmethod
    def open(cls, index: Path, *, model: Path | None = None, device: str = "cpu") -> Engine:
        """Open the index in the folder ``index``, and search once, so that the first query is as fast as the others.

        Raises :class:`MathAMRError` for an index that cannot be opened, or was not made by the checkpoint ``model``.
        """
        wanted = None if model is None else checkpoint.weights_hash(model)
        return open_current(index, lambda: cls._open(index, wanted, device))

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
            return self.catalog.structured.answer(query, self.catalog.texts, k, selection, encoded - start)
        if query.words.nothing:
            raise RetrievalError(
                f"the model knows nothing in this query ({query.words}), so any result would be by chance; use other "
                "words, or a formula between dollar signs"
            )
        if task == "formulas":
            if not query.formula_ids:
                raise no_formula(query)
            (vectors,) = query.vectors
            (hits,) = self.catalog.formulas.search(vectors[:1], selection.depth(k))
            selected = selection.page(hits, k, post_of_hit, self.catalog.texts)
            searched = time.perf_counter()
            page, best = selected.with_results(formula_results(selected.results, self.catalog.texts)), 1.0
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
        """Return an answer with this post alone and its explanation; the score is MaxSim. Errors as :meth:`post`."""
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

    def _can(self, strategy: Strategy) -> bool:
        try:
            backends.check(self.catalog.backend, strategy)
        except MathAMRError:
            return False
        return True
