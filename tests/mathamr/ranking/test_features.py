"""Features of answers: what is known of posts, and nothing of a question that is the topic."""

import numpy as np
import pytest

from graphs.corpus.post import Post, Topic
from mathamr.ranking.features import FAMILIES, Facts, features_of, names_of
from mathamr.retrieval.scores import topic_scores

TOPIC = Topic("A.1", Post("A.1", "topic", tags=("sums", "limits")))
POSTS = {
    "q1": Post("q1", "question", tags=("sums",), score=7, accepted_answer_id="a1"),
    "a1": Post("a1", "answer", parent_id="q1", score=3),
    "a2": Post("a2", "answer", parent_id="q1", score=-3),
    "a3": Post("a3", "answer", parent_id="gone"),
}
ANSWERS = ["a1", "a2", "a3", "unknown"]
FACTS = Facts(POSTS, {"a1": 99, "q1": 19}, {"q1": 3})


def column(family: str, facts: Facts = FACTS, topic: Topic = TOPIC) -> list[list[float]]:
    return features_of([family], {}, facts, topic, ANSWERS).T.tolist()


def test_features_of_posts() -> None:
    votes, of_questions = column("votes")
    assert votes == pytest.approx([np.log(4), -np.log(4), 0, 0])
    assert of_questions == pytest.approx([np.log(8), np.log(8), 0, 0])
    assert column("accepted") == [[1, 0, 0, 0]]
    assert column("tags") == [[0.5, 0.5, 0, 0]]
    assert column("length")[0] == pytest.approx([np.log(100), 0, 0, 0])
    assert column("question_length")[0] == pytest.approx([np.log(20), np.log(20), 0, 0])
    assert column("links")[0] == pytest.approx([np.log(4), np.log(4), 0, 0])


def test_a_question_that_is_the_topic_is_no_feature() -> None:
    own = Facts(POSTS, {"q1": 19}, {"q1": 3}, {"A.1": frozenset({"q1"})})
    for family in ("accepted", "tags", "question_length", "links"):
        assert column(family, own) == [[0, 0, 0, 0]]
    assert column("votes", own)[1] == [0, 0, 0, 0]
    other = Topic("A.2", Post("A.2", "topic", tags=("sums",)))
    assert column("tags", own, other)[0][0] == 1  # of another topic it is a question like others


def test_ids_of_topics_and_posts_never_meet() -> None:
    same = Topic("q1", Post("a1", "topic", tags=("sums", "limits")))  # ids of a question and of an answer
    facts = Facts(POSTS, {"a1": 99}, {"q1": 3}, {"A.9": frozenset({"q1"})})
    scores = {name: topic_scores([("a1", 2.0), ("a2", 1.0)], 9) for name in ("A.1", "q1")}
    rows = [features_of(FAMILIES, {"text": scores}, facts, topic, ANSWERS) for topic in (TOPIC, same)]
    np.testing.assert_array_equal(rows[0], rows[1])


def test_equal_scores_share_a_rank() -> None:
    scores = {"A.1": topic_scores([("a2", 2.0), ("unknown", 2.0), ("a1", 3.0)], 9)}
    ranks = 1 / features_of(["ranks"], {"text": scores}, FACTS, TOPIC, ANSWERS)[:, 0] - 60
    assert ranks.tolist() == pytest.approx([1, 2, 4, 2])  # a3 was not found


def test_every_family_has_as_many_names_as_columns() -> None:
    scores = {"A.1": topic_scores([("a1", 2.0)], 9)}
    systems = {"text": scores, "bm25": {}}
    for family in FAMILIES:
        assert features_of([family], systems, FACTS, TOPIC, ANSWERS).shape == (
            len(ANSWERS),
            len(names_of([family], list(systems))),
        )
    assert features_of(["standard"], systems, FACTS, TOPIC, ANSWERS)[:, 1].tolist() == [0, 0, 0, 0]  # found nothing
