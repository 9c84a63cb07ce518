"""Answers scored by the questions that they answer (``thread.read=question``), for every system that ranks posts.

>>> from graphs.corpus.post import Judgment, Post, Topic
>>> threads = Threads({"a1": "q1", "a2": "q1", "a3": "q2"})
>>> topic_set = TopicSet(1, [Topic("A.1", Post("A.1", "topic"))], [Judgment("A.1", "a2", 3)], "judged")
>>> asked = threads.questions(topic_set)
>>> asked.kind, sorted(asked.indexed)                  # the system searches questions
('question', ['q1'])
>>> found = Retrieved({"A.1": [("q2", 0.9), ("q1", 0.4)]})
>>> threads.answers(found, topic_set, 10).results      # each answer has the score of its question
{'A.1': [('a2', 0.4)]}

A question that is the topic itself would tell its answers. Its answers are not found by it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from graphs.corpus.post import Judgment
from graphs.errors import ConfigError
from mathamr.evaluation.result_names import title
from mathamr.retrieval.index import Ranking, ranked
from mathamr.stages.settings import JobSettings, thread_of
from mathamr.stages.topic_sets import Retrieved, TopicSet

READS = ("answer", "question", "both")


def check_thread(settings: JobSettings, reads: frozenset[str], topic_sets: Sequence[TopicSet]) -> None:
    """Raise for a thread that a system cannot read.

    Args:
        reads: values of ``thread.read`` that its system can do.
        topic_sets: what the job is measured on.

    Raises:
        ConfigError: an unknown value, one that the system cannot do, or threads in Task 2.
    """
    thread = thread_of(settings)
    if thread.read not in READS:
        raise ConfigError(f"thread.read={thread.read} is not one of {', '.join(READS)}")
    if thread.read not in reads:
        raise ConfigError(
            f"track={settings.track} cannot do thread.read={thread.read}; use {' or '.join(sorted(reads))}"
        )
    if thread.depth is not None and thread.depth < 1:
        raise ConfigError(f"thread.depth={thread.depth} must be at least 1")
    if thread.read != "answer" and (second := [one for one in topic_sets if one.task == 2]):
        raise ConfigError(
            f"thread.read={thread.read} scores answers, and {title(second[0].test_name)} finds formulas; use "
            "experiment.tasks=[1]"
        )


class Threads:
    """Answers and the questions that they answer.

    Args:
        parents: question of each answer.
        topics: ids of the questions that are the topic itself, by the topic's id.
    """

    def __init__(self, parents: Mapping[str, str], topics: Mapping[str, frozenset[str]] | None = None) -> None:
        self.parents = parents
        self._topics = topics or {}

    @cached_property
    def _answers(self) -> Mapping[str, list[str]]:
        answers: dict[str, list[str]] = {}
        for answer, question in self.parents.items():
            answers.setdefault(question, []).append(answer)
        return answers

    def question_of(self, answers: Iterable[str]) -> dict[str, str]:
        """Return the question of each of the answers that has one."""
        return {answer: self.parents[answer] for answer in answers if answer in self.parents}

    def questions(self, topic_set: TopicSet) -> TopicSet:
        """Return the topics as a search for questions, which are judged as the best of their answers."""
        best: dict[tuple[str, str], int] = {}
        for one in topic_set.judgments:
            if one.doc_id in self.parents:
                place = one.topic_id, self.parents[one.doc_id]
                best[place] = max(one.grade, best.get(place, 0))
        judgments = [Judgment(topic, question, grade) for (topic, question), grade in best.items()]
        searched = topic_set.searched
        if searched is not None:
            searched = frozenset(self.question_of(searched).values())
        return replace(topic_set, judgments=judgments, searched=searched, kind="question")

    def answers(self, found: Retrieved, topic_set: TopicSet, limit: int) -> Retrieved:
        """Return the answers to the questions that were found, best question first.

        Answers of one question are equal, and so are answers of equal questions
        (:mod:`mathamr.evaluation.order`).

        Args:
            found: rankings of questions.
            topic_set: the topics as a search for answers.
            limit: most results of a topic.
        """
        wanted, rankings = topic_set.indexed, cast(Mapping[str, Ranking], found.results)
        results = {topic: self.answers_of(topic, ranking, limit, wanted) for topic, ranking in rankings.items()}
        return replace(found, results=results)

    def answers_of(self, topic_id: str, ranking: Ranking, limit: int, wanted: Container[str] | None = None) -> Ranking:
        """Return the ``wanted`` answers, or all, to the questions that one topic found."""
        own_questions = self._topics.get(topic_id, frozenset())
        found = [
            (answer, float(score))
            for question, score in ranking
            if question not in own_questions
            for answer in self._answers.get(question, ())
            if wanted is None or answer in wanted
        ]
        return ranked([name for name, _ in found], [score for _, score in found], limit)
