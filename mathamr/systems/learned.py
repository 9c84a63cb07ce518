"""Learned ranking: the scores of other conditions, of the same seed, with weights that judgments of other years teach.

    conditions:
      answer: {track: text}
      question: {track: text, thread: {read: question}}
      thread: {track: learned, learned: {of: [answer, question]}}

Each topic is ranked by weights that topics of other years taught (:mod:`mathamr.ranking.left_out`): no judgment of a
topic's year reaches its ranking. Topics without years are parted into five folds by their ids. The job leaves
``weights.json``. Weights that were saved are applied with ``learned.weights``, and refused for a year that trained
them. In Task 2 formulas of one visual id are one document, and features are of scores alone.

In a search of an index, a topic of the experiment is ranked by weights that its year did not teach, as in the run file;
a typed query by weights that all years taught.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from graphs.corpus.pairs import Linked
from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, RetrievalError, StoreError, faults_as
from graphs.processes import batched
from graphs.stores.posts import PostTexts
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.result_names import file_name
from mathamr.evaluation.runs import Qrels, Run
from mathamr.ranking.features import FAMILIES, OF_ANSWERS, Facts, features_of, names_of
from mathamr.ranking.judged import Floats, JudgedTopic, year_of
from mathamr.ranking.left_out import LEARNERS, LeftOut, fit_left_out, read_left_out
from mathamr.retrieval.fusion import with_posts
from mathamr.retrieval.index import Ranking, ranked
from mathamr.retrieval.scores import documents_of
from mathamr.search.searchable import Searchable
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.judging import judged
from mathamr.systems.parts import cut_topics, formula_scores, joint_size, joint_speed, places_of, run_left, scores_left
from mathamr.systems.registry import system
from mathamr.systems.searchable.facts import KeptFacts, keep_facts
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, Part, entry
from mathamr.systems.settings.combined import LearnedSettings
from mathamr.systems.system import System

WEIGHTS = "weights.json"
FACTS = "facts.db"
_FOLDS = 5
_READ_TOGETHER = 10_000  # texts


@system("learned")
class LearnedSystem(System[LearnedSettings]):
    """Rank by learned weights of other conditions' scores."""

    def check(self, settings: LearnedSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check the learner, the features and the years; the plan has checked the conditions."""
        own = settings.learned
        if own.learner not in LEARNERS:
            raise ConfigError(f"learned.learner={own.learner} is not one of {', '.join(LEARNERS)}")
        if unknown := [family for family in own.features if family not in FAMILIES]:
            raise ConfigError(f"learned.features has {unknown[0]}, which is not one of {', '.join(FAMILIES)}")
        if len(set(own.features)) < len(own.features):
            raise ConfigError(f"learned.features={own.features}; name each family once")
        if set(own.features) <= OF_ANSWERS.keys():
            raise ConfigError(f"learned.features={own.features} ignores the rankings of learned.of; add standard")
        of_posts = sorted(_of_posts(settings))
        if of_posts and any(topic_set.task == 2 for topic_set in topic_sets):
            raise ConfigError(
                f"learned.features has {of_posts[0]}, which is of answers; Task 2 takes standard and ranks"
            )
        for topic_set in topic_sets:
            parts = parts_of(topic_set.topics)
            if own.weights is not None:
                weights = self._saved(settings, names_of(own.features, own.of))
                for part in sorted(set(parts.values())):
                    try:
                        weights.of(part)
                    except RetrievalError as error:
                        raise ConfigError(f"learned.weights: {error}") from error
            elif len(set(parts.values())) < 2:
                only = next(iter(parts.values()), "no year")
                raise ConfigError(
                    f"track=learned learns on other years than it reports, and all topics are of {only}; add a year to "
                    "data.years, or apply saved weights with learned.weights"
                )

    def prepare(self, settings: LearnedSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Find the questions that are topics of any test, where posts have features; and make what examples need."""
        if _of_posts(settings):
            self.threads(topic_sets)
        super().prepare(settings, topic_sets)

    def index(self, settings: LearnedSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Return the sums of the parts' costs; nothing is indexed again."""
        return Indexed(None, joint_size(settings, settings.learned.of, topic_set))

    def retrieve(self, settings: LearnedSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Learn the weights, and rank each topic with weights of other years."""
        own, k = settings.learned, settings.retrieval.k
        places = places_of(settings, own.of)
        visual_ids = self.visual_ids(settings) if topic_set.task == 2 else None
        runs: list[Run] = []
        if visual_ids is None:
            scores = [scores_left(place, topic_set.test_name, k) for place in places]
        else:
            runs = [run_left(place, topic_set.test_name, 2) for place in places]
            scores = formula_scores(runs, k, visual_ids, [cut_topics(place, topic_set.test_name) for place in places])
        systems = dict(zip(own.of, scores, strict=True))
        parts = parts_of(topic_set.topics)
        names = names_of(own.features, own.of)
        candidates = {topic.topic_id: documents_of(scores, topic.topic_id) for topic in topic_set.topics}
        facts = self._facts(settings, chain.from_iterable(candidates.values()))
        with Stopwatch() as watch:
            found = {
                topic.topic_id: (
                    candidates[topic.topic_id],
                    features_of(own.features, systems, facts, topic, candidates[topic.topic_id]),
                )
                for topic in topic_set.topics
            }
        given = own.weights is not None
        weights = self._saved(settings, names) if given else _learned(settings, found, parts, topic_set, visual_ids)
        results: dict[str, Ranking] = {}
        with Stopwatch() as ranking:
            for topic_id, (documents, features) in found.items():
                results[topic_id] = ranked(documents, weights.of(parts[topic_id]).ranker.scores(features), k)
        costs = joint_speed(settings, own.of, topic_set, watch.seconds + ranking.seconds)
        records = {WEIGHTS: weights.record()}
        return Retrieved(results if visual_ids is None else with_posts(results, runs), costs, visual_ids, records)

    def keep(self, job: FinishedSearch[LearnedSettings], folder: Path) -> Mapping[str, Any]:
        """Keep the weights, and the facts of all answers where features need them; the parts are kept beside it."""
        settings = job.settings
        shutil.copyfile(job.place / file_name(job.queries.test_name, WEIGHTS), folder / WEIGHTS)
        families = _of_posts(settings)
        if families:
            answers = (post for post in self.post_files.outlines() if isinstance(post, Post) and post.kind == "answer")
            wanted = job.queries.indexed
            found = [post.post_id for post in answers if wanted is None or post.post_id in wanted]
            keep_facts(folder / FACTS, self._facts(settings, found))
        return {
            "of": list(settings.learned.of),
            "features": list(settings.learned.features),
            "results": settings.retrieval.k,
            "years": parts_of(job.queries.topics),
            "topics": {topic: sorted(questions) for topic, questions in self.own_questions.items() if questions},
            "facts": bool(families),
        }

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the weights with the parts."""
        record, path = kept.record, kept.folder / WEIGHTS
        parts = kept.parts_named(entry(record, "of"))
        topics = {topic: frozenset(questions) for topic, questions in entry(record, "topics").items()}
        families, years, results = (entry(record, name) for name in ("features", "years", "results"))
        with faults_as(StoreError, "cannot be read as weights: {}; build the index again", path):
            weights = read_left_out(json.loads(path.read_text(encoding="utf-8")))
        facts = KeptFacts(kept.folder / FACTS) if entry(record, "facts") else None
        return LearnedSearch(parts, families, weights, years, topics, facts, results)

    def _saved(self, settings: LearnedSettings, names: Sequence[str]) -> LeftOut:
        path = settings.weights_path
        assert path is not None
        with faults_as(ConfigError, f"learned.weights={path}: {{}}"):
            weights = read_left_out(json.loads(path.read_text(encoding="utf-8")))
        if list(weights.features) != list(names):
            raise ConfigError(
                f"learned.weights={path} is of the features {', '.join(weights.features)}, and these are "
                f"{', '.join(names)}; name the conditions and families that it was learned with"
            )
        return weights

    def _facts(self, settings: LearnedSettings, found: Iterable[str]) -> Facts:
        """Return what the features need of the posts."""
        families = _of_posts(settings)
        if not families:
            return Facts()
        answers = frozenset(found)
        question_of = self.known_threads().question_of(answers)
        wanted = answers.union(question_of.values())
        outlines = self.post_files.outlines()
        posts = {post.post_id: post for post in outlines if isinstance(post, Post) and post.post_id in wanted}
        lengths: dict[str, int] = {}
        if families & {"length", "question_length"} and self._texts is not None:
            names = sorted(wanted if "question_length" in families else answers)
            with PostTexts(self._texts) as texts:
                for some in batched(names, _READ_TOGETHER):
                    lengths |= {name: len(post.title) + len(post.body) for name, post in texts.posts(some).items()}
        links: Counter[str] = Counter()
        if "links" in families and isinstance(self.corpus, Linked):
            topics = frozenset[str]().union(*self.own_questions.values())
            for link in self.corpus.links():
                ends = (link.post_id, link.related_id)
                links.update(ends if topics.isdisjoint(ends) else ())
        return Facts(posts, lengths, links, self.own_questions)


def _of_posts(settings: LearnedSettings) -> set[str]:
    """Return the families of features that are known of posts, and not of scores."""
    return set(settings.learned.features) & OF_ANSWERS.keys()


def parts_of(topics: Sequence[Topic]) -> dict[str, str]:
    """Return the year of each topic; a fold where no topic has a year.

    The fold depends on the topic's id alone. So saved weights know their own topics, whichever others come with them.

    >>> parts_of([Topic("A.1", Post("A.1", "topic")), Topic("A.201", Post("A.201", "topic"))])
    {'A.1': '2020', 'A.201': '2021'}
    >>> parts_of([Topic(name, Post(name, "topic")) for name in ("t1", "t2")])
    {'t1': 'fold 5', 't2': 'fold 4'}

    Raises:
        ConfigError: some topics have a year and others none.
    """
    years = {topic.topic_id: year_of(topic.topic_id) for topic in topics}
    if all(year is not None for year in years.values()):
        return {topic_id: str(year) for topic_id, year in years.items()}
    if any(year is not None for year in years.values()):
        lost = next(topic_id for topic_id, year in years.items() if year is None)
        raise ConfigError(f"topic {lost} has no year, and others have one; weights are learned across years")
    return {topic_id: f"fold {zlib.crc32(topic_id.encode(errors='surrogatepass')) % _FOLDS + 1}" for topic_id in years}


def _learned(
    settings: LearnedSettings,
    found: Mapping[str, tuple[list[str], Floats]],
    parts: Mapping[str, str],
    topic_set: TopicSet,
    visual_ids: Mapping[str, str] | None,
) -> LeftOut:
    """Return the weights that the judgments teach, year by year."""
    qrels: Qrels = judged(topic_set, visual_ids)
    names = {} if visual_ids is None else visual_ids
    topics = [
        _judged_topic(topic_id, parts[topic_id], *found[topic_id], qrels[topic_id], names)
        for topic_id in sorted(qrels)
        if topic_id in found
    ]
    own = settings.learned
    return fit_left_out(topics, own.learner, names_of(own.features, own.of), topic_set.relevant)


def _judged_topic(
    topic_id: str,
    part: str,
    documents: Sequence[str],
    features: Floats,
    grades: Mapping[str, Any],
    visual_ids: Mapping[str, str],
) -> JudgedTopic:
    """Return a topic with its judged documents; formulas are judged by their visual ids."""
    found_visual_ids = [visual_ids.get(name, name) for name in documents]
    places = [place for place, visual_id in enumerate(found_visual_ids) if visual_id in grades]
    known = np.array([grades[found_visual_ids[place]] for place in places], dtype=np.int64)
    missed = sorted(set(grades) - {found_visual_ids[place] for place in places})
    unfound = np.array([grades[name] for name in missed], dtype=np.int64)
    return JudgedTopic(topic_id, part, features[places], known, unfound)


@dataclass(frozen=True)
class LearnedSearch(Searchable):
    """Learned weights of other conditions' scores.

    Attributes:
        years: year of each topic of the experiment.
        topics: questions that are the topic, by its id.
        facts: facts of the posts; None where no feature needs them.
    """

    parts: Mapping[str, Part]
    families: Sequence[str]
    weights: LeftOut
    years: Mapping[str, str]
    topics: Mapping[str, frozenset[str]]
    facts: KeptFacts | None
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the weighted ranking; each part is searched."""
        systems = {name: {topic.topic_id: part.scores(topic)} for name, part in self.parts.items()}
        documents = documents_of(list(systems.values()), topic.topic_id)
        facts = Facts() if self.facts is None else self.facts.of(documents, self.topics)
        features = features_of(self.families, systems, facts, topic, documents)
        fitted = self.weights.of(self.years.get(topic.topic_id, ""))
        return ranked(documents, fitted.ranker.scores(features), self.results)

    def close(self) -> None:
        """Close the facts; the parts are closed by their owner."""
        if self.facts is not None:
            self.facts.close()
