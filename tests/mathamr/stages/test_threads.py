"""Answers scored by their questions: what is searched, what is found, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import pytest
import torch

from graphs.corpus.post import Judgment, Post, Topic
from graphs.errors import ConfigError
from mathamr.maxsim import VectorSets, scores
from mathamr.stages.retrieval.searching import check_search, with_question_vectors
from mathamr.stages.retrieval.threads import Threads, check_thread
from mathamr.stages.settings import IndexConfig, RetrievalConfig, SearchSettings, ThreadConfig
from mathamr.stages.topic_sets import Retrieved, TopicSet
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.settings.ranking import BM25Config, BM25Settings
from mathamr.systems.thread_search import searches_of
from tests.mathamr.job_settings import shared_fields

TOPICS = [Topic(name, Post(name, "topic", title="What is $x$?", markup="text")) for name in ("A.1", "A.2")]
JUDGED = [Judgment("A.1", "a2", 3), Judgment("A.1", "a1", 1), Judgment("A.1", "lost", 2), Judgment("A.2", "a3", 0)]
RETRIEVAL = RetrievalConfig(strategy="maxsim", exact=True, pool=10, ef=10, k=10)
PARENTS = {"a1": "q1", "a2": "q1", "a3": "q2", "a4": "q2"}


def topic_set(**more: Any) -> TopicSet:
    return TopicSet(**{"task": 1, "topics": TOPICS, "judgments": JUDGED, "regime": "full", **more})


def settings(track: str = "bm25", **thread: Any) -> BM25Settings:
    own = ThreadConfig(**thread)
    return BM25Settings(**shared_fields(track=track), bm25=BM25Config(by="text"), retrieval=RETRIEVAL, thread=own)


def test_questions_are_judged_as_the_best_of_their_answers() -> None:
    asked = Threads(PARENTS).questions(topic_set())
    assert asked.kind == "question"
    assert asked.judgments == [Judgment("A.1", "q1", 3), Judgment("A.2", "q2", 0)]
    assert asked.indexed is None
    some = Threads(PARENTS).questions(topic_set(searched=frozenset({"a4"})))
    assert some.indexed == {"q2"}
    judged = Threads(PARENTS).questions(topic_set(regime="judged"))
    assert judged.indexed == {"q1", "q2"}


def test_answers_have_the_score_of_their_question() -> None:
    found = Retrieved({"A.1": [("q2", 0.9), ("q1", 0.5), ("q9", 0.1)], "A.2": []}, {"queries_per_second": 3.0})
    answers = Threads(PARENTS).answers(found, topic_set(), 10)
    assert answers.results == {"A.1": [("a4", 0.9), ("a3", 0.9), ("a2", 0.5), ("a1", 0.5)], "A.2": []}
    assert answers.costs == found.costs
    assert Threads(PARENTS).answers(found, topic_set(), 3).results["A.1"][-1] == ("a2", 0.5)
    some = Threads(PARENTS).answers(found, topic_set(searched=frozenset({"a4"})), 10)
    assert some.results["A.1"] == [("a4", 0.9)]


def test_a_question_that_is_the_topic_tells_nothing_of_its_answers() -> None:
    found = Retrieved({topic: [("q1", 1.0), ("q2", 0.2)] for topic in ("A.1", "A.2")})
    answers = Threads(PARENTS, {"A.1": frozenset({"q1"})}).answers(found, topic_set(), 10)
    assert answers.results["A.1"] == [("a4", 0.2), ("a3", 0.2)]
    assert len(answers.results["A.2"]) == 4  # of another topic it is a question like others


class OfThreads:
    """A system that knows threads alone."""

    def threads(self, topic_sets: Sequence[TopicSet]) -> Threads:
        return Threads(PARENTS)


@pytest.mark.parametrize(("depth", "answers"), [(None, 2), (1, 2), (3, 3)])
def test_a_topic_has_as_many_answers_as_were_asked_for(depth: int | None, answers: int) -> None:
    own = replace(settings(read="question", depth=depth), retrieval=replace(RETRIEVAL, k=2))
    (search,) = searches_of(cast(Any, OfThreads()), own, [topic_set()])
    assert len(search.answers(Retrieved({"A.1": [("q1", 0.9), ("q2", 0.5)]})).results["A.1"]) == answers


def test_a_depth_beyond_the_pool_is_refused() -> None:
    thread, chosen = ThreadConfig(depth=11), replace(RETRIEVAL, strategy="doc_vn_maxsim")
    index = IndexConfig(backend="exact", location=None, keep=False, m_all=0)
    searched = SearchSettings(**shared_fields(), index=index, retrieval=chosen, thread=thread)
    with pytest.raises(ConfigError, match=r"thread.depth=11 is above retrieval.pool=10"):
        check_search(searched)
    assert check_search(replace(searched, thread=ThreadConfig(depth=10))).pool == 10


@pytest.mark.parametrize(
    ("thread", "reads", "topics", "message"),
    [
        ({"read": "all"}, "answer question", topic_set(), "thread.read=all is not one of answer, question, both"),
        ({"read": "both"}, "answer", topic_set(), "track=bm25 cannot do thread.read=both; use answer"),
        ({"depth": 0}, "answer", topic_set(), "thread.depth=0 must be at least 1"),
        ({"read": "question"}, "answer question", topic_set(task=2), "Task 2 finds formulas"),
    ],
)
def test_threads_that_cannot_be_read_are_refused(
    thread: dict[str, Any], reads: str, topics: TopicSet, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_thread(settings(**thread), frozenset(reads.split()), [topics])


def test_keys_are_unchanged_without_threads() -> None:
    assert "thread" not in settings().result_key_parts()
    keys = [settings(**thread).result_key_parts() for thread in ({"read": "question"}, {"depth": 9})]
    assert keys[0] != keys[1]
    assert all("thread" in key for key in keys)


class Vectors:
    """Unit vectors of two answers and a question."""

    kept: ClassVar = {"a1": torch.tensor([[1.0, 0.0]]), "a3": torch.tensor([[0.6, 0.8]]), "q1": torch.eye(2)}

    def sets(self, post_ids: Sequence[str]) -> VectorSets:
        return VectorSets.of([self.kept[post_id] for post_id in post_ids])

    def encoded(self, post_ids: Sequence[str]) -> list[str]:
        return [post_id for post_id in post_ids if post_id in self.kept]


def test_answer_and_question_are_one_set_of_vectors() -> None:
    vectors = cast(EncodedPosts, Vectors())
    together = with_question_vectors(vectors, ["a1", "a3"], PARENTS)  # q2 has no vectors
    assert together.sizes.tolist() == [3, 1]
    assert together.document_vectors().tolist() == vectors.sets(["a1", "a3"]).vectors.tolist()
    topic = VectorSets.of([torch.tensor([[0.0, 1.0], [1.0, 0.0]])])
    best = [max(float(row @ other) for row in Vectors.kept["q1"]) for other in topic.vectors]
    assert scores(topic, together)[0].tolist() == pytest.approx([sum(best), 1.4])
    assert with_question_vectors(vectors, ["a1"], {}).sizes.tolist() == [1]
