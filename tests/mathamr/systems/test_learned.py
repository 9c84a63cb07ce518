"""Learned ranking as a system: folds of topics without years, and what posts tell of themselves."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graphs.corpus.arqmath.collection import PostLink
from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Post, Topic
from graphs.errors import ConfigError
from mathamr.stages.console import Console
from mathamr.stages.settings import RetrievalConfig
from mathamr.stages.topic_sets import TopicSet
from mathamr.systems.learned import LearnedSystem, parts_of
from mathamr.systems.settings.combined import LearnedConfig, LearnedSettings
from tests.mathamr.job_settings import DATA, shared_fields

POSTS = [
    {"post_id": "q1", "kind": "question", "title": "Is every finite division ring commutative?"},
    {"post_id": "a1", "kind": "answer", "parent_id": "q1", "body": "Yes."},
    {"post_id": "q2", "kind": "question", "title": "Is every group of prime order cyclic?"},
    {"post_id": "a2", "kind": "answer", "parent_id": "q2", "body": "It is."},
]
LINKS = [PostLink("q1", "q2", 3), PostLink("q2", "elsewhere", 1)]


def settings(**learned: object) -> LearnedSettings:
    own = LearnedConfig(**{"of": ["text"], "learner": "ridge", "features": ["links", "length"], **learned})  # type: ignore[arg-type]
    retrieval = RetrievalConfig(strategy="maxsim", exact=True, pool=10, ef=10, k=10)
    data = replace(DATA, regime="full")
    return LearnedSettings(**shared_fields(track="learned", data=data), learned=own, retrieval=retrieval)


def topic_set(name: str, *topics: Topic) -> TopicSet:
    return TopicSet(1, topics, [Judgment(topic.topic_id, "a1", 1) for topic in topics], "full", name=name)


@pytest.fixture
def learned(tmp_path: Path) -> LearnedSystem:
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in POSTS))
    corpus = open_corpus("jsonl", tmp_path)

    class WithLinks(type(corpus)):  # type: ignore[misc]
        def links(self) -> Iterator[PostLink]:
            return iter(LINKS)

    corpus.__class__ = WithLinks
    return LearnedSystem(corpus, tmp_path / "shared", Console())


def test_a_topic_of_any_test_is_no_feature(learned: LearnedSystem) -> None:
    """The test that is ranked first knows the topics of the second one, too."""
    other = topic_set("first", Topic("t9", Post("query:t9", "topic", title="What is a ring?")))
    asked = topic_set(
        "second", Topic("t1", Post("query:t1", "topic", title="is every finite division ring commutative"))
    )
    learned.prepare(settings(), [other, asked])
    facts = learned._facts(settings(), ["a1", "a2", "gone"])
    assert facts.topics == {"t1": {"q1"}}
    assert facts.links == {"q2": 1, "elsewhere": 1}  # and not the link from the topic
    assert facts.lengths == {"a1": 4, "a2": 6}
    assert facts.posts.keys() == {"a1", "a2", "q1", "q2"}


def test_posts_that_no_system_found_are_not_read(learned: LearnedSystem) -> None:
    learned.prepare(settings(), [])
    assert learned._facts(settings(), ["a2"]).posts.keys() == {"a2", "q2"}
    assert learned._facts(settings(features=["question_length"]), ["a2"]).lengths["q2"] == len(POSTS[2]["title"])
    assert learned._facts(settings(), []).posts == {}
    assert learned._facts(settings(features=["standard", "ranks"]), ["a1"]).posts == {}


def test_facts_are_not_made_before_topics_are_known(learned: LearnedSystem) -> None:
    with pytest.raises(RuntimeError, match=r"before threads\(\)"):
        learned._facts(settings(), ["a1"])


def test_folds_do_not_move_where_topics_are_added() -> None:
    """Else saved weights would rank a topic that trained them."""
    topics = [Topic(f"q{number}", Post(f"query:q{number}", "topic")) for number in range(100)]
    folds = parts_of(topics)
    assert parts_of(topics[40:]) == {name: folds[name] for name in parts_of(topics[40:])}
    assert set(folds.values()) == {f"fold {number}" for number in range(1, 6)}


def test_topics_of_one_year_or_none_are_refused(learned: LearnedSystem) -> None:
    with pytest.raises(ConfigError, match="all topics are of 2020"):
        learned.check(settings(features=["standard"]), [topic_set("", Topic("A.1", Post("query:A.1", "topic")))])
    with pytest.raises(ConfigError, match="all topics are of no year"):
        learned.check(settings(features=["standard"]), [topic_set("")])
