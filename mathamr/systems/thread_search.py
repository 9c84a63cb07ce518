"""Topics as a job's system searches for them: for answers, or for the questions of answers (``thread.read``).

for search in searches_of(system, settings, topic_sets):
    retrieved, costs = search.run(system, settings, encoded, folder)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mathamr.evaluation.order import best_first
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, repeats
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.settings import JobSettings, RetrievalConfig, thread_of
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, check_step
from mathamr.systems import registry
from mathamr.systems.judging import check_found, check_results, check_searched
from mathamr.systems.searchable.kept import most_left
from mathamr.systems.system import System


@dataclass(frozen=True)
class ThreadSearch:
    """Topic set with the requests to its system.

    Attributes:
        topic_set: topics as they are judged.
        queries: topics as the system searches for them.
        depth: results of a topic that the search leaves for other conditions; None: those of the run file.
        limit: most answers of a topic that are made from questions.
        threads: questions of the answers, where questions are searched.
        cut_at: length from which the system's list of a topic may lack further results.
    """

    topic_set: TopicSet
    queries: TopicSet
    depth: int | None = None
    limit: int = MAX_PER_TOPIC
    threads: Threads | None = None
    cut_at: int = MAX_PER_TOPIC

    def run(
        self, system: System[Any], settings: JobSettings, encoded: Encoded, folder: Path
    ) -> tuple[Retrieved, dict[str, float]]:
        """Index the searched posts in ``folder`` and search them; return rankings of answers, and costs.

        Raises:
            ConfigError: no searched post is in the collection, or a step of the system returns a wrong type.
            RetrievalError: an installed system finds posts that are not in the collection.
        """
        check_searched(system, encoded, self.queries)
        index = check_step(settings.track, "index", system.index(settings, encoded, self.queries, folder), Indexed)
        with closing(index) as indexed:
            own = system.retrieve(settings, encoded, indexed, self.queries)
        found = check_step(settings.track, "retrieve", own, Retrieved)
        check_results(settings.track, found, self.queries.task)
        if registry.is_installed(settings.track):
            if self.queries.task == 2 and found.visual_ids is None:
                found = replace(found, visual_ids=system.visual_ids(settings))
            check_found(system, found, self.queries)
            if repeated := repeats(found.results):
                system.console.say(f"track={settings.track}: retrieve(): {repeated}; the best score of each counts")
            in_order: Any = {topic: _in_order(own) for topic, own in found.results.items()}
            found = replace(found, results=in_order)
        retrieved = self.answers(found)
        return retrieved, {**indexed.costs, **retrieved.costs}

    def answers(self, rankings: Retrieved) -> Retrieved:
        """Return the rankings of answers, made from those of questions where these were searched, and which are cut."""
        answers = rankings if self.threads is None else self.threads.answers(rankings, self.topic_set, self.limit)
        most = most_left(self.depth if self.topic_set.task == 1 else None, self.limit)
        found = rankings.results
        cut = {topic for topic, own in answers.results.items() if len(found[topic]) >= self.cut_at or len(own) >= most}
        return replace(answers, cut=frozenset(cut))

    def searchable(self, system: System[Any], encoded: Encoded, answers: Sequence[str]) -> Sequence[str]:
        """Return those of the answers that can be found."""
        if self.threads is None:
            return system.searchable(encoded, answers)
        question_of = self.threads.question_of(answers)
        found = set(system.searchable(encoded, sorted(set(question_of.values()))))
        return [answer for answer in answers if question_of.get(answer) in found]


def _in_order(results: Sequence[Hit | tuple[str, float]]) -> list[Hit | tuple[str, float]]:
    pairs = [(hit.doc_id, hit.score) if isinstance(hit, Hit) else hit for hit in results]
    return [results[place] for place in best_first([name for name, _ in pairs], [score for _, score in pairs])]


def searches_of(system: System[Any], settings: JobSettings, topic_sets: Sequence[TopicSet]) -> list[ThreadSearch]:
    """Return a search for each topic set."""
    thread = thread_of(settings)
    retrieval = getattr(settings, "retrieval", None)
    k = retrieval.k if isinstance(retrieval, RetrievalConfig) else MAX_PER_TOPIC
    limit = thread.results(k)
    cuts = [settings.cut_at(limit if one.task == 1 else k, one.task) for one in topic_sets]
    with_cuts = zip(topic_sets, cuts, strict=True)
    if thread.read != "question":
        return [ThreadSearch(one, one, thread.depth, cut_at=cut) for one, cut in with_cuts]
    threads = system.threads(topic_sets)
    return [ThreadSearch(one, threads.questions(one), thread.depth, limit, threads, cut) for one, cut in with_cuts]
