"""BM25: no model, no vectors; words and LaTeX, or pairs of symbols in formulas' trees, are compared.

In Task 1 answers are found, in Task 2 formulas, one of each visual id. The same in every process and for every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError
from graphs.stores.posts import PostTexts
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import check_k
from mathamr.retrieval.bm25 import BM25Index, Weighting
from mathamr.retrieval.index import Ranking
from mathamr.retrieval.lexical import LexicalIndex, Tokens
from mathamr.search.searchable import Searchable
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, speed
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, entry, keep_formulas
from mathamr.systems.settings.ranking import BM25Settings
from mathamr.systems.system import System

_FORMULAS = "formulas.db"  # of a kept search: published trees of the formulas of topics


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
        reading = self.console.stage(f"reading {settings.bm25.by}", unit="posts")
        with Stopwatch() as watch, reading as advance, self._questions(settings) as question_of:
            index = LexicalIndex.build(
                self.posts_for(topic_set),
                tokens,
                topic_set.task,
                formulas_db=self._formulas_db,
                wanted=topic_set.indexed,
                kind=topic_set.kind,
                question_of=question_of,
                progress=advance,
                weighting=_weighting(settings),
            )
        size = index.documents.nbytes
        costs = {"index_seconds": watch.seconds, "index_bytes": size, "peak_memory_bytes": peak_memory()}
        if topic_set.task == 2:
            costs["formulas"] = len(index.documents)
        return Indexed(index, costs)

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
        index, k = indexed.index, settings.retrieval.k
        results, seconds = index.search(topic_set.topics, settings.thread.results(k) if topic_set.task == 1 else k)
        searched = [topic for topic in topic_set.topics if topic.topic_id in results]
        topic_set.say_lost(self.console, searched, "lack the query formula")
        return Retrieved(results, speed(len(searched), seconds), index.visual_ids)

    def keep(self, job: FinishedSearch[BM25Settings], folder: Path) -> Mapping[str, Any]:
        """Keep the scores of the posts, and the published trees of topics where formulas are compared."""
        settings, own = job.settings, job.settings.bm25
        results = settings.thread.results(settings.retrieval.k)
        job.indexed.index.documents.write(folder)
        trees = self._formulas_db if own.by == "formulas" else None
        if trees is not None:
            keep_formulas(trees, job.queries.topics, folder / _FORMULAS)
        return {"by": own.by, "published": trees is not None, "results": results, "stem": own.stem}

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the scores of the posts."""
        record = kept.record
        formulas_db = kept.folder / _FORMULAS if entry(record, "published") else None
        tokens = Tokens(entry(record, "by"), formulas_db, stem=record.get("stem", "none"))
        return BM25Search(tokens, BM25Index.open(kept.folder), entry(record, "results"))


def _weighting(settings: BM25Settings) -> Weighting:
    return Weighting(settings.bm25.k1, settings.bm25.b, settings.bm25.method)


@dataclass(frozen=True)
class BM25Search(Searchable):
    """BM25 over posts, kept for search."""

    tokens: Tokens
    index: BM25Index
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a token with the query."""
        (ranking,) = self.index.search([self.tokens.of_post(topic.post)], self.results)
        return ranking
