"""Runs that another system has made: a file in the place of a search, in the same tables and tests.

    conditions:
      ours: {}
      theirs: {track: run, run: {path: runs/TangentS-task1.tsv, task2_path: runs/TangentS-task2.tsv}}

Tests with names have a file each: ``run: {paths: {easy: runs/easy.tsv, hard: runs/hard.tsv}}`` beside ``experiment``.
A condition can change those that are named there, be it by null.

A file has the columns of a submission or TREC's six (:func:`mathamr.evaluation.runs.read_run`). Its results are ordered
as in the official evaluation (:func:`mathamr.evaluation.runs.official_order`), and what lies beyond 1,000 is cut.
Results for topics that are not asked, and formulas that the collection does not have, are counted and left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from mathamr.evaluation.metrics import judged_results
from mathamr.evaluation.result_names import title
from mathamr.evaluation.runs import Hit, Run, decreasing, official_order, qrels_of, read_run, repeated_lines
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.registry import system
from mathamr.systems.settings.built_in import GivenRunSettings
from mathamr.systems.system import System


@system("run")
class GivenRunSystem(System[GivenRunSettings]):
    """Rankings of given run files."""

    def check(self, settings: GivenRunSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Read every file once: a run that cannot be read is refused before anything runs."""
        for topic_set in topic_sets:
            if not self._read(settings, topic_set).rankings:
                name = topic_set.test_name
                raise ConfigError(f"{settings.path_of(name)} has no result for any topic of {title(name)}")

    def retrieve(
        self, settings: GivenRunSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet
    ) -> Retrieved:
        """Return the rankings of the file."""
        run = self._read(settings, topic_set)
        with_results = [topic for topic in topic_set.topics if topic.topic_id in run.rankings]
        topic_set.say_lost(self.console, with_results, "have no result in the run")
        self._say_judged(topic_set, run)
        if topic_set.task == 1:
            return Retrieved(run.rankings)
        found = {hit.doc_id for hits in run.rankings.values() for hit in hits}
        post_of = self._posts_of_formulas(found)
        known: dict[str, list[Hit]] = {}
        for topic_id, hits in run.rankings.items():
            with_posts = [
                Hit(hit.doc_id, hit.score, hit.post_id or post_of[hit.doc_id]) for hit in hits if hit.doc_id in post_of
            ]
            if with_posts:
                known[topic_id] = with_posts
        if lost := found - post_of.keys():
            self.console.say(
                f"  {title(topic_set.test_name)}: {len(lost):,} of {len(found):,} formulas of the run are not in the "
                f"collection, e.g. {min(lost)}"
            )
        return Retrieved(known, {}, self.visual_ids(settings))

    def _read(self, settings: GivenRunSettings, topic_set: TopicSet) -> Run:
        path = settings.path_of(topic_set.test_name)
        run = read_run(path, task=topic_set.task)
        topics = {topic.topic_id for topic in topic_set.topics}
        if others := len(run.rankings.keys() - topics):
            self.console.once(f"  {path}: results for {others} topics that are not asked")
        if note := repeated_lines(run):
            self.console.once(f"  {path}: {note}")
        ordered = {
            name: decreasing(official_order(hits, run.task)) for name, hits in run.rankings.items() if name in topics
        }
        return Run(run.name, ordered, run.task)

    def _say_judged(self, topic_set: TopicSet, run: Run) -> None:
        """Print how many results are judged, 0 of which suggests other ids, and how many documents are unknown."""
        if topic_set.task == 2:  # judged by visual id
            return
        results = [hit.doc_id for hits in run.rankings.values() for hit in hits]
        count = judged_results(run, qrels_of(topic_set.judgments))
        warning = "; are its ids those of this collection?" if not count else ""
        self.console.say(
            f"  {title(topic_set.test_name)}: {count:,} of {len(results):,} results of the run are judged{warning}"
        )
        if topic_set.regime == "mini" or not count:  # judgments of documents elsewhere do not count
            return
        found = frozenset(results)
        with self.post_files.headers() as headers:
            unknown = found - headers.known(found)
        if unknown:
            self.console.say(
                f"  {title(topic_set.test_name)}: {len(unknown):,} of {len(found):,} documents of the run are not in "
                f"the collection, e.g. {min(unknown)}; judged ones count, although no other system can find them; "
                "data.regime=mini leaves their judgments out"
            )

    def _posts_of_formulas(self, wanted: Set[str]) -> Mapping[str, str]:
        """Return the post of each of the ``wanted`` formulas that the collection has. Memory grows with these only."""
        return {
            formula.formula_id: post.post_id
            for post in self.post_files.every_post()
            if isinstance(post, Post)
            for formula in extract(post).formulas
            if formula.formula_id in wanted
        }
