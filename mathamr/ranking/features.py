"""Features of answers for a topic: scores of systems, and properties of the answers and their questions.

>>> from mathamr.retrieval.scores import topic_scores
>>> text = {"A.1": topic_scores([("a", 2.0), ("b", 1.0)], 9)}
>>> features_of(["standard", "ranks"], {"text": text}, Facts(), Topic("A.1", Post("A.1", "topic")), ["a", "b"])
array([[ 1.        ,  0.01639344],
       [-1.        ,  0.01612903]])
>>> names_of(["standard", "ranks", "votes"], ["text"])
['text', 'text, rank', 'votes of the answer', 'votes of the question']

Families: ``standard``, the standard score among all candidates; ``ranks``, 1 / (60 + rank); ``votes``; ``accepted``;
``tags``, shared by topic and question; ``length``, of the answer; ``question_length``; ``links`` of the question to
others. MaxSim grows with the vectors of a document, so lengths correct scores of graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from graphs.corpus.post import Post, Topic
from mathamr.ranking.judged import Floats
from mathamr.retrieval.scores import TopicScores, scores_in, standard_scores

_RANK = 60  # of reciprocal rank fusion


@dataclass(frozen=True)
class Facts:
    """Posts without texts, and counts of them.

    Attributes:
        posts: answers and their questions by id.
        lengths: characters of each answer; of each question, with its title, where ``question_length`` is read.
        links: number of links of each question.
        topics: questions that are the topic, by its id: nothing of them is a feature.
    """

    posts: Mapping[str, Post] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    links: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def question_of(self, answer: str, topic: Topic) -> Post | None:
        """Return the question of an answer; None where it is unknown or is the topic itself."""
        parent = self.posts[answer].parent_id if answer in self.posts else None
        if parent is None or parent in self.topics.get(topic.topic_id, frozenset()):
            return None
        return self.posts.get(parent)


def names_of(families: Sequence[str], systems: Sequence[str]) -> list[str]:
    """Return the names of the features of some families, in order."""
    names: list[str] = []
    for family in families:
        if family == "standard":
            names += systems
        elif family == "ranks":
            names += [f"{system}, rank" for system in systems]
        else:
            names += [name for name, _ in OF_ANSWERS[family]]
    return names


def features_of(
    families: Sequence[str],
    systems: Mapping[str, Mapping[str, TopicScores]],
    facts: Facts,
    topic: Topic,
    documents: Sequence[str],
) -> Floats:
    """Return the features (documents, features) of all candidates for a topic; ``systems`` has the scores by topic."""
    columns: list[Floats] = []
    for family in families:
        if family in ("standard", "ranks"):
            scores = [scores_in(own, topic.topic_id, documents) for own in systems.values()]
            columns += [standard_scores(own) if family == "standard" else _ranks(own) for own in scores]
        else:
            columns += [
                np.array([measure(facts, topic, name) for name in documents], dtype=np.float64)
                for _, measure in OF_ANSWERS[family]
            ]
    return np.column_stack(columns) if columns else np.zeros((len(documents), 0))


def _ranks(scores: Floats) -> Floats:
    """Return 1 / (60 + rank); equal scores share the best of their ranks, so that no id is a feature."""
    better = len(scores) - np.searchsorted(np.sort(scores), scores, side="right")
    return 1 / (_RANK + 1 + better)


def _votes(post: Post | None) -> float:
    """Return the votes of a post, the large ones drawn together; 0 where they are unknown."""
    if post is None or post.score is None:
        return 0.0
    return math.copysign(math.log1p(abs(post.score)), post.score)


def _accepted(facts: Facts, topic: Topic, answer: str) -> float:
    question = facts.question_of(answer, topic)
    return float(question is not None and question.accepted_answer_id == answer)


def _tags(facts: Facts, topic: Topic, answer: str) -> float:
    """Return the share of tags that topic and question have in common (Jaccard)."""
    question = facts.question_of(answer, topic)
    own, other = set(topic.post.tags), set() if question is None else set(question.tags)
    return len(own & other) / max(1, len(own | other))


def _log_count(counts: Mapping[str, int], post: Post | None) -> float:
    """Return log(1 + count) of a post, 0 without one."""
    return 0.0 if post is None else math.log1p(counts.get(post.post_id, 0))


OF_ANSWERS: Mapping[str, Sequence[tuple[str, Callable[[Facts, Topic, str], float]]]] = {
    "votes": (
        ("votes of the answer", lambda facts, topic, answer: _votes(facts.posts.get(answer))),
        ("votes of the question", lambda facts, topic, answer: _votes(facts.question_of(answer, topic))),
    ),
    "accepted": (("accepted answer", _accepted),),
    "tags": (("tags shared", _tags),),
    "length": (("length of the answer", lambda facts, topic, answer: math.log1p(facts.lengths.get(answer, 0))),),
    "question_length": (
        (
            "length of the question",
            lambda facts, topic, answer: _log_count(facts.lengths, facts.question_of(answer, topic)),
        ),
    ),
    "links": (
        (
            "links of the question",
            lambda facts, topic, answer: _log_count(facts.links, facts.question_of(answer, topic)),
        ),
    ),
}
"""Families of features that are known of posts: names, and functions of facts, topic and answer."""
FAMILIES = ("standard", "ranks", *OF_ANSWERS)
