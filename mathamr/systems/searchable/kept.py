"""Records between a system and its index folder: a finished search to keep, and a kept one to open.

>>> from graphs.corpus.post import Post
>>> class Newest:
...     def rank(self, topic): return [("7", 2.0), ("8", 2.0), ("9", 1.0)]
...     def close(self): ...
>>> topic = Topic("A.1", Post("A.1", "topic"))
>>> Part(Newest(), depth=None).run(topic)[:2]                   # as the run file has it
[Hit(doc_id='8', score=2.0, post_id=None), Hit(doc_id='7', score=1.9999999, post_id=None)]
>>> Part(Newest(), depth=2).scores(topic).scores                # what conditions that learn from scores read
{'8': 2.0, '7': 2.0}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from graphs import database
from graphs.corpus.post import Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import RetrievalError, StoreError
from graphs.formulas.store import PURPOSE, SCHEMA
from graphs.formulas.tsv import key
from graphs.processes import batched
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run
from mathamr.retrieval.index import Ranking, ranked
from mathamr.retrieval.scores import TopicScores, with_floor
from mathamr.search.searchable import Searchable
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.settings import JobSettings
from mathamr.stages.topic_sets import Encoded, Indexed, TopicSet, Trained

Settings = TypeVar("Settings", bound=JobSettings)


@dataclass(frozen=True)
class FinishedSearch(Generic[Settings]):
    """A finished job: what its search was made with, the topics as they were searched for, and its folder."""

    settings: Settings
    trained: Trained
    encoded: Encoded
    indexed: Indexed
    queries: TopicSet
    place: Path


@dataclass(frozen=True)
class KeptSearch:
    """Files that a system kept of a finished job, the ``record`` that ``keep`` returned, and its opened parts."""

    folder: Path
    record: Mapping[str, Any]
    parts: Mapping[str, Part]
    device: str = "cpu"

    def parts_named(self, names: Sequence[str]) -> dict[str, Part]:
        """Return parts by name, in order; raise StoreError if one of them is missing."""
        if missing := [name for name in names if name not in self.parts]:
            raise StoreError(f"the index lacks its part {missing[0]}; build it again with mathamr index")
        return {name: self.parts[name] for name in names}


@dataclass(frozen=True)
class Part:
    """An opened condition: its rankings of answers, as it left them in its experiment.

    Attributes:
        depth: number of results that it leaves for conditions that read scores; None: those of its run file.
        limit: most answers that are made from questions.
        threads: questions of the answers, where the system ranks questions; None: it ranks answers.
        cut_at: length from which the system's list may lack further results.
    """

    searchable: Searchable
    depth: int | None
    limit: int = MAX_PER_TOPIC
    threads: Threads | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    cut_at: int = MAX_PER_TOPIC

    def rank(self, topic: Topic) -> Ranking:
        """Return ids and scores of answers, best first, each answer once."""
        return list(_best(self._answers(topic, self._found(topic))).items())

    def _found(self, topic: Topic) -> Ranking:
        """Return what the system finds, sorted and checked as its job does."""
        found = list(self.searchable.rank(topic))
        if wrong := [hit for hit in found if not math.isfinite(hit[1])]:
            raise RetrievalError(f"the system gives post {wrong[0][0]} the score {wrong[0][1]}; scores must be finite")
        return ranked([post_id for post_id, _ in found], [score for _, score in found])

    def _answers(self, topic: Topic, ranking: Ranking) -> Ranking:
        return ranking if self.threads is None else self.threads.answers_of(topic.topic_id, ranking, self.limit)

    def run(self, topic: Topic) -> list[Hit]:
        """Return the results as the run file of the condition has them."""
        return self._run(topic, self.rank(topic))

    def _run(self, topic: Topic, ranking: Ranking) -> list[Hit]:
        return Run.from_results("part", {topic.topic_id: ranking}).rankings[topic.topic_id]

    def scores(self, topic: Topic) -> TopicScores:
        """Return the scores that the condition leaves for others."""
        found = self._found(topic)
        ranking = self._answers(topic, found)
        cut = len(found) >= self.cut_at or len(ranking) >= most_left(self.depth, self.limit)
        if self.depth is None:
            return with_floor({hit.doc_id: hit.score for hit in self._run(topic, ranking)}, cut=cut)
        return with_floor(_best(ranking[: self.depth]), cut=cut)

    def close(self) -> None:
        """Close all files."""
        self.searchable.close()
        for part in self.parts.values():
            part.close()


def _best(ranking: Ranking) -> dict[str, float]:
    """Return the score of each document at its best place."""
    best: dict[str, float] = {}
    for name, score in ranking:
        best.setdefault(name, score)
    return best


def most_left(depth: int | None, limit: int) -> int:
    """Return the most results of a topic that a search leaves for other conditions.

    Args:
        depth: ``thread.depth``; None: results of the run file.
        limit: most answers that are made from questions.
    """
    return min(limit, MAX_PER_TOPIC) if depth is None else depth


def entry(record: Mapping[str, Any], name: str) -> Any:
    """Return an entry of a record; raise StoreError if the record lacks it, or is not a record."""
    try:
        return record[name]
    except (KeyError, TypeError):
        raise StoreError(f"the index lacks {name!r}; build it again with mathamr index") from None


def keep_formulas(formulas_db: Path, topics: Iterable[Topic], target: Path) -> None:
    """Write the rows of the topics' formulas to a new file ``target``, with their trees and failures.

    A typed query has no published trees, so only those of the topics are needed: some thousands of rows of millions.

    Raises:
        StoreError: files that cannot be read or written.
    """
    ids = [key(formula.formula_id) for topic in topics for formula in extract(topic.post).formulas]
    source = database.connect_read_only(formulas_db, purpose=PURPOSE)
    try:
        with database.writer(target, SCHEMA, purpose=PURPOSE) as connection:
            database.write_meta(connection, letters=database.read_meta(source).get("letters", "plain"))
            for some in batched(ids, database.IDS_PER_QUERY):
                of_formulas = f"IN ({', '.join('?' * len(some))})"
                formulas = f"FROM formula WHERE formula_id {of_formulas}"
                for table, query, times in (
                    ("tree", f"SELECT * FROM tree WHERE id IN (SELECT slt {formulas} UNION SELECT opt {formulas})", 2),
                    ("formula", f"SELECT * {formulas}", 1),
                    ("failure", f"SELECT * FROM failure WHERE formula_id {of_formulas}", 1),
                ):
                    rows = source.execute(query, some * times).fetchall()
                    if rows:
                        marks = ", ".join("?" * len(rows[0]))
                        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
            connection.commit()
    finally:
        source.close()
