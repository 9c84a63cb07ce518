"""Collections of documents, queries and judgments: the form of BEIR and of ir_datasets.

>>> class Two(QueryCollection):
...     name = "two"
...     def documents(self) -> Iterator[Post | Failure]:
...         yield Post("1", "answer", body="It is odd.", markup="text")
...     def queries(self) -> Iterator[Post | Failure]:
...         yield Post("1", "topic", body="Is $3$ odd?", markup="text")
...         yield Post("2", "topic", body="Is $5$ odd?", markup="text")
...     def read_judgments(self, *, training: bool) -> list[Judgment]:
...         return [Judgment("2" if training else "1", "1", 1)]
...     def fingerprints(self) -> Fingerprints:
...         return Fingerprints(posts="2d")
>>> two = Two()
>>> [(topic.topic_id, topic.post.post_id) for topic in two.topics(1)], two.judgments(1)
([('1', 'query:1')], [Judgment(topic_id='1', doc_id='1', grade=1)])
>>> [post.post_id for post in two.posts()], list(two.pairs())  # the training query is a post
(['1', 'query:2'], [Pair(question_id='query:2', answer_id='1')])

Documents are answers. Queries with training judgments are questions, except those that are queries of the test. Query
ids and document ids are two name spaces (:func:`graphs.corpus.post.query_post_id`).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from graphs.corpus.accepted import Posts
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Judgment, Pair, Post, Topic, query_post_id
from graphs.corpus.qrels import relevant_grade
from graphs.errors import ConfigError, CorpusError, Failure


@dataclass(frozen=True)
class HeldOut:
    """Queries of a test, their judgments, and the ids of the searched documents; None: all answers.

    ``swapped``: queries and documents trade roles, compared with the training pairs. ``learned``: the queries are
    learned from on purpose.
    """

    topics: list[Topic]
    judgments: list[Judgment]
    searched: frozenset[str] | None = None
    swapped: bool = False
    learned: bool = False


@runtime_checkable
class NamedTests(Protocol):
    """A collection whose tests have names; ``experiment.tasks`` chooses among them."""

    def tests(self) -> tuple[str, ...]:
        """Return the names of the tests."""

    def test(self, name: str) -> HeldOut:
        """Return the test ``name``; raises ConfigError for an unknown one."""


class QueryCollection(ABC):
    """A collection of documents and queries.

    Args:
        relevant: lowest grade of a training pair; ``None``: by the training judgments, see
            :func:`graphs.corpus.qrels.relevant_grade`.
        test: name of the test that the queries belong to, where a collection has several.
    """

    name: str

    def __init__(self, *, relevant: int | None = None, test: str = "") -> None:
        self._relevant, self._test = relevant, test

    @cached_property
    def _test_judgments(self) -> list[Judgment]:
        return self.read_judgments(training=False)

    @abstractmethod
    def documents(self) -> Iterator[Post | Failure]:
        """Iterate over what is searched, as posts of kind answer."""

    @abstractmethod
    def queries(self) -> Iterator[Post | Failure]:
        """Iterate over all queries as posts of kind topic, with their public ids."""

    @abstractmethod
    def read_judgments(self, *, training: bool) -> list[Judgment]:
        """Return the judgments of the test, or those to learn from; both may be empty."""

    @abstractmethod
    def fingerprints(self) -> Fingerprints:
        """Return one hash for each part; a further judgment changes no graph and no search."""

    def posts(self) -> Iterator[Post | Failure]:
        """Iterate over documents, then training queries as questions; a broken record is a Failure in its place."""
        yield from self.documents()
        yield from self.training_queries()

    def training_queries(self) -> Iterator[Post | Failure]:
        """Iterate over the queries of the training pairs as questions; broken queries are Failures."""
        wanted = {judgment.topic_id for judgment in self._positives}
        for query in self.queries():
            if isinstance(query, Failure):
                yield query
            elif query.post_id in wanted:
                wanted.remove(query.post_id)
                yield replace(query, post_id=query_post_id(query.post_id, self._test), kind="question")

    def pairs(self) -> Iterator[Pair]:
        """Iterate over (training query, relevant document), in the order of the judgments."""
        return self.pairs_of(self.posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        found = [Pair(query_post_id(one.topic_id, self._test), one.doc_id) for one in self._positives]
        if not found:
            return
        wanted = {post_id for pair in found for post_id in (pair.question_id, pair.answer_id)}
        known = {post.post_id for post in posts() if isinstance(post, Post) and post.post_id in wanted}
        yield from (pair for pair in found if pair.question_id in known and pair.answer_id in known)

    def tasks(self) -> list[int]:
        """Return the tasks that there are topics of."""
        return [1]

    def topics(self, task: int, years: Sequence[int] = ()) -> list[Topic]:
        """Return the queries that are judged in the test, in the order of the collection.

        Raises:
            CorpusError: a judged query is missing or broken, or two queries have one id.
        """
        self._check(task, years)
        judged = dict.fromkeys(judgment.topic_id for judgment in self._test_judgments)
        queries: dict[str, Post] = {}
        broken: list[Failure] = []
        for query in self.queries():
            if isinstance(query, Failure):
                broken.append(query)
            elif query.post_id in judged:
                before = queries.setdefault(query.post_id, query)
                if (before.title, before.body) != (query.title, query.body):
                    raise CorpusError(f"query {query.post_id!r} of collection {self.name} is there twice, as two texts")
        if missing := [topic_id for topic_id in judged if topic_id not in queries]:
            why = f"; {len(broken)} queries cannot be read, the first: {broken[0].message}" if broken else ""
            raise CorpusError(
                f"collection {self.name}: {len(missing)} judged queries are missing, {missing[0]!r} among them{why}"
            )
        return [
            Topic(topic_id, replace(query, post_id=query_post_id(topic_id, self._test)))
            for topic_id, query in queries.items()
        ]

    def judgments(self, task: int, years: Sequence[int] = ()) -> list[Judgment]:
        """Return the judgments of the test."""
        self._check(task, years)
        return list(self._test_judgments)

    def formulas(self) -> None:
        return

    def learned_hash(self) -> str:
        """Return a hash of the training pairs and their queries; empty without pairs.

        Judgments of the test count only as far as they change the pairs.
        """
        pairs = [(one.topic_id, one.doc_id) for one in self._positives]
        return hash_of([*pairs, *map(_text, self.training_queries())]) if pairs else ""

    def topics_hash(self) -> str:
        """Return a hash of the ids and texts of the test's queries: those that are judged, whatever the judgments."""
        judged = {judgment.topic_id for judgment in self._test_judgments}
        texts = {_text(one) for one in self.queries() if isinstance(one, Post) and one.post_id in judged}
        return hash_of(sorted(texts))

    @cached_property
    def _positives(self) -> list[Judgment]:
        """Return the training judgments of relevant documents, without those of the test's queries."""
        judgments = self.read_judgments(training=True)
        if not judgments:
            return []
        relevant, _ = relevant_grade(judgments, self._relevant)
        tested = {judgment.topic_id for judgment in self._test_judgments}
        return [one for one in judgments if one.grade >= relevant and one.topic_id not in tested]

    def _check(self, task: int, years: Sequence[int]) -> None:
        if task != 1:
            raise CorpusError(f"collection {self.name} has no topics of Task {task!r}: its queries are of Task 1")
        if years:
            raise ConfigError(f"data.years={list(years)}: collection {self.name} knows no years; use data.years=[]")


def _text(query: Post | Failure) -> tuple[str, ...]:
    return (query.message,) if isinstance(query, Failure) else (query.post_id, query.title, query.body, query.markup)


def hash_of(records: Iterable[object]) -> str:
    """Return a hash of records, in their order."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(f"{record!r}\0".encode())
    return digest.hexdigest()
