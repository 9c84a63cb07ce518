"""Pairs with a topic, or with an answer to one, are left out of training."""

import json
from pathlib import Path

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.leaks import marks, pairs_without_topics, questions_of_topics
from graphs.corpus.pairs import select_pairs
from graphs.corpus.post import Pair, Post, Topic

QUESTION = {"post_id": "1", "kind": "question", "title": "Is <b>$x$</b> odd?", "body": "<p>I ask &amp; wonder.</p>"}


@pytest.mark.parametrize(
    ("topic", "left_out"),
    [
        ({"post_id": "1", "body": "edited"}, False),  # ids of topics and of posts are two name spaces
        ({"post_id": "t", "topic_of": "1", "body": "edited"}, True),
        ({"post_id": "t", "title": "is $x$ odd"}, True),
        ({"post_id": "t", "body": "I ask & wonder"}, True),
        ({"post_id": "t", "body": "Is $x$ odd? I ask & wonder."}, True),
        ({"post_id": "t", "title": "Is $y$ odd?", "body": "I wonder."}, False),
        ({"post_id": "t", "body": "It is an answer."}, False),
    ],
)
def test_the_same_question(tmp_path: Path, topic: dict[str, str], left_out: bool) -> None:
    posts = [QUESTION, {"post_id": "2", "kind": "question", "body": "Other."}]
    posts += [{"post_id": f"a{n}", "kind": "answer", "parent_id": n, "body": "It is an answer."} for n in ("1", "2")]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts) + "broken\n")
    (tmp_path / "topics.jsonl").write_text(json.dumps(topic))
    corpus = open_corpus("jsonl", tmp_path)
    kept, out, _ = pairs_without_topics(corpus.pairs(), corpus.posts(), corpus.topics(1, []))
    own, other = Pair("1", "a1"), Pair("2", "a2")
    assert (kept, out) == (([other], [own]) if left_out else ([own, other], []))


def test_a_duplicate_does_not_bring_the_answer_of_a_topic() -> None:
    """q1 is a topic and q2 its duplicate: what answers q1 is in no pair, whichever question it is paired with."""
    posts = [
        Post("a1", "answer", parent_id="q1"),  # before its question
        Post("q1", "question", title="Is $x$ odd?", accepted_answer_id="a3"),
        Post("q2", "question", title="Is $x$ no double?"),
        Post("a2", "answer", parent_id="q2"),
        Post("a3", "answer"),
    ]
    links = [("q2", "q1")]
    accepted = [Pair("q1", "a1"), Pair("q1", "a3"), Pair("q2", "a2")]
    pairs = select_pairs(posts, accepted, links, "duplicates", least_score=1)
    assert Pair("q2", "a1") in pairs
    kept, left_out, _ = pairs_without_topics(pairs, posts, [Topic("t", Post("t", "topic", title="is $x$ odd"))])
    assert kept == [Pair("q2", "a2")]
    assert len(left_out) == len(pairs) - 1


def test_a_question_belongs_to_every_topic_that_it_nearly_is() -> None:
    """Two topics ask the same, of two years: neither may be answered by the question."""
    text = "Let $f$ be continuous on $[0,1]$ with $f(0)=f(1)$. Show that there is a point $c$ with $f(c)=f(c+1/2)$."
    question = Post("7", "question", body=f"{text} Thanks!")
    bodies = {"A.1": text, "A.201": f"{text} Please help!", "A.301": "How many groups of order eight are abelian?"}
    topics = [Topic(name, Post(name, "topic", body=body)) for name, body in bodies.items()]
    found = questions_of_topics([(question, marks(question))], topics)
    assert found == {"A.1": frozenset({"7"}), "A.201": frozenset({"7"})}


LONG = "Let $f$ be continuous on $[0,1]$ with $f(0)=f(1)$. Show that there is a point $c$ with $f(c)=f(c+1/2)$."


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (LONG, {"t1": {"q"}, "t2": {"q"}}),  # equal to one topic, and near-identical to the other
        (f"<p>{LONG}</p> Thanks!", {"t1": {"q"}, "t2": {"q"}}),  # near-identical to both
        (LONG.replace("f", "h").replace("continuous", "bounded"), {}),
        ("", {}),
    ],
)
def test_a_question_is_every_topic_that_it_is_near_to(body: str, found: dict[str, set[str]]) -> None:
    topics = [
        Topic("t1", Post("query:t1", "topic", body=LONG)),
        Topic("t2", Post("query:t2", "topic", body=f"{LONG} Please help.")),
        Topic("t3", Post("query:t3", "topic")),
    ]
    posts = [Post("q", "question", body=body), Post("a", "answer", parent_id="q", body=LONG)]
    assert questions_of_topics([(post, marks(post)) for post in posts], topics) == found


def test_a_topic_names_its_question_whatever_the_texts() -> None:
    topics = [Topic(name, Post(f"query:{name}", "topic", body=name, parent_id="q")) for name in ("t1", "t2")]
    posts = [Post("q", "question", body="Edited."), Post("t1", "question", body="Other.")]
    named = questions_of_topics([(post, marks(post)) for post in posts], topics)
    assert named == {"t1": {"q"}, "t2": {"q"}}  # and the post t1 is not the topic t1
