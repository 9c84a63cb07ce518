"""Search by BM25: posts -> words, LaTeX or pairs of symbols -> rankings, without a model.

index = LexicalIndex.build(corpus.posts(), Tokens("text"), 1, Console())
index.search(topics, 1000).results      # {'A.1': [('540', 12.3), ...]}
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.corpus.post import Post, PostKind, Topic
from graphs.errors import Failure
from graphs.formulas.store import FormulaStore
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import Hit, Task
from mathamr.retrieval.bm25 import AS_LUCENE, BM25Index, Weighting
from mathamr.retrieval.lexical import FormulaDocuments, Tokens, index_answers, index_formulas
from mathamr.stages.console import Console


@dataclass(frozen=True, slots=True)
class LexicalResults:
    """Rankings by topic, seconds of the search, and topics that lack the query formula."""

    results: Mapping[str, Sequence[tuple[str, float]]] | Mapping[str, Sequence[Hit]]
    seconds: float
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LexicalIndex:
    """An index of answers (Task 1), or of formulas that differ in their visual ids (Task 2)."""

    tokens: Tokens
    documents: BM25Index | FormulaDocuments

    @classmethod
    def build(
        cls,
        posts: Iterable[Post | Failure],
        tokens: Tokens,
        task: Task,
        console: Console,
        *,
        formulas_db: Path | None = None,
        wanted: Container[str] | None = None,
        kind: PostKind = "answer",
        question_of: Callable[[Post], Post | None] | None = None,
        weighting: Weighting = AS_LUCENE,
    ) -> LexicalIndex:
        """Index the answers among ``posts``, or the formulas of all of them.

        Args:
            formulas_db: visual ids of the formulas; None: each formula has its own.
            wanted: ids of answers, or visual ids; None: all.
            kind: kind of the posts that are indexed in the place of answers.
            question_of: returns the question whose tokens are added to those of an answer; None: no tokens are added.
            weighting: weight of a token in an answer or a formula.

        Raises:
            RetrievalError: nothing to index.
        """
        with console.stage("reading", unit="posts") as advance:
            if task == 1:
                answers = index_answers(
                    posts,
                    tokens,
                    wanted=wanted,
                    kind=kind,
                    question_of=question_of,
                    progress=advance,
                    weighting=weighting,
                )
                return cls(tokens, answers)
            store = None if formulas_db is None else FormulaStore.open(formulas_db)
            formulas = index_formulas(posts, tokens, store=store, wanted=wanted, progress=advance, weighting=weighting)
            return cls(tokens, formulas)

    def search(self, topics: Sequence[Topic], k: int) -> LexicalResults:
        """Return at most ``k`` results for each topic; ``seconds`` are of the search alone."""
        if isinstance(self.documents, BM25Index):
            queries = [self.tokens.of_post(topic.post) for topic in topics]
            with Stopwatch() as watch:
                rankings = self.documents.search(queries, k)
            rankings_of_topics = {topic.topic_id: ranking for topic, ranking in zip(topics, rankings, strict=True)}
            return LexicalResults(rankings_of_topics, watch.seconds)
        asked = {topic.topic_id: self.tokens.of_query_formula(topic) for topic in topics}
        known = {topic_id: query for topic_id, query in asked.items() if query is not None}
        with Stopwatch() as watch:
            hits = self.documents.search(known.values(), k)
        lost = tuple(topic_id for topic_id in asked if topic_id not in known)
        return LexicalResults(dict(zip(known, hits, strict=True)), watch.seconds, lost)
