"""BM25: no model, no vectors; words and LaTeX, or pairs of symbols in formulas' trees, are compared.

In Task 1 answers are found, in Task 2 formulas, one of each visual id. The same in every process and for every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from graphs.corpus.post import Post
from graphs.errors import ConfigError
from graphs.formulas.store import FormulaStore
from graphs.stores.posts import PostTexts
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import check_k
from mathamr.retrieval.bm25 import BM25Index, Weighting
from mathamr.retrieval.lexical import FormulaDocuments, Tokens, index_answers, index_formulas
from mathamr.search.searchable import Searchable
from mathamr.stages.retrieval.searching import say_lost, speed
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.registry import system
from mathamr.systems.searchable.bm25 import keep_bm25, open_bm25
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch
from mathamr.systems.settings.ranking import BM25Settings
from mathamr.systems.system import System


@system("bm25")
class BM25System(System[BM25Settings]):
    """Search by words or by formulas, without a model."""

    reads = frozenset({"answer", "question", "both"})

    def check(self, settings: BM25Settings, topic_sets: Sequence[TopicSet]) -> None:
        """Check ``bm25.by``, ``bm25.stem``, ``bm25.method`` and ``retrieval.k``."""
        try:
            Tokens(settings.bm25.by, stem=settings.bm25.stem)
            _weighting(settings)
        except ConfigError as error:
            raise ConfigError(f"bm25.{error.message}") from error
        check_k(settings.retrieval.k, "retrieval.k")

    def prepare(self, settings: BM25Settings, topic_sets: Sequence[TopicSet]) -> None:
        """Make posts.db, and formulas.db where trees or visual ids are needed; no graphs."""
        if settings.thread.read == "both":
            self.threads(topic_sets)
        needs_formulas = settings.bm25.by == "formulas" or any(topic_set.task == 2 for topic_set in topic_sets)
        self.prepare_texts(settings, topic_sets, formulas=needs_formulas)

    def index(self, settings: BM25Settings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Read the posts of the collection; ``index_seconds`` is of that as well."""
        tokens = Tokens(settings.bm25.by, self._formulas_db, stem=settings.bm25.stem)
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("reading", unit="posts") as advance:
            posts = self.posts_for(topic_set)
            if topic_set.task == 1:
                with self._questions(settings) as question_of:
                    answers = index_answers(
                        posts,
                        tokens,
                        wanted=topic_set.indexed,
                        kind=topic_set.kind,
                        question_of=question_of,
                        progress=advance,
                        weighting=_weighting(settings),
                    )
                searchable, size = _Searchable(tokens, answers), answers.nbytes
            else:
                store = None if self._formulas_db is None else FormulaStore.open(self._formulas_db)
                formulas = index_formulas(
                    posts,
                    tokens,
                    store=store,
                    wanted=topic_set.indexed,
                    progress=advance,
                    weighting=_weighting(settings),
                )
                searchable, size = _Searchable(tokens, formulas), formulas.index.nbytes
        costs = {"index_seconds": watch.seconds, "index_bytes": size, "peak_memory_bytes": peak_memory()}
        if topic_set.task == 2:
            costs["formulas"] = len(formulas.index)
        return Indexed(searchable, costs)

    @contextmanager
    def _questions(self, settings: BM25Settings) -> Iterator[Callable[[Post], Post | None] | None]:
        """Return a function from an answer to its question, if both are read as one text."""
        if settings.thread.read != "both" or self._texts is None:
            yield None
            return
        with PostTexts(self._texts) as texts:

            def question_of(answer: Post) -> Post | None:
                question = self.joined_questions(settings, [answer.post_id]).get(answer.post_id)
                return None if question is None else texts.posts([question]).get(question)

            yield question_of

    def retrieve(self, settings: BM25Settings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the topics; ``queries_per_second`` is of the search alone."""
        tokens, made, k = indexed.index.tokens, indexed.index.made, settings.retrieval.k
        if isinstance(made, BM25Index):
            token_queries = [tokens.of_post(topic.post) for topic in topic_set.topics]
            with Stopwatch() as watch:
                rankings = made.search(token_queries, settings.thread.results(k))
            results = {topic.topic_id: ranking for topic, ranking in zip(topic_set.topics, rankings, strict=True)}
            return Retrieved(results, speed(len(token_queries), watch))
        queries = {topic.topic_id: tokens.of_query_formula(topic) for topic in topic_set.topics}
        found = {topic_id: query for topic_id, query in queries.items() if query is not None}
        say_lost(
            self.console, topic_set, [t for t in topic_set.topics if t.topic_id in found], "lack the query formula"
        )
        with Stopwatch() as watch:
            hits = made.search(found.values(), k)
        return Retrieved(dict(zip(found, hits, strict=True)), speed(len(found), watch), made.visual_ids)

    def keep(self, job: FinishedSearch, folder: Path) -> Mapping[str, Any]:
        """Keep the scores of the posts."""
        settings = cast(BM25Settings, job.settings)
        results = settings.thread.results(settings.retrieval.k)
        own, made = settings.bm25, job.indexed.index.made
        return keep_bm25(own.by, self._formulas_db, made, results, folder, stem=own.stem, topics=job.queries.topics)

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the scores of the posts."""
        return open_bm25(kept.record, kept.folder)


def _weighting(settings: BM25Settings) -> Weighting:
    return Weighting(settings.bm25.k1, settings.bm25.b, settings.bm25.method)


@dataclass(frozen=True)
class _Searchable:
    """Index with its tokens."""

    tokens: Tokens
    made: BM25Index | FormulaDocuments

    def close(self) -> None:
        """Do nothing: no file is open."""
