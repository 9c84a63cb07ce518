"""Finished jobs of any system, kept in a folder that mathamr search opens.

print(index_job(Path("outputs/best_answers"), "text_bm25", None, Path("index")))
# index:     24,370 posts of arqmath-mini-1f0c3a5be2d4, ranked by text_bm25 of best_answers, seed 42

The steps of the job run again with the same settings. Its model, and the vectors stored beside it, are reused; its
index is built again. The conditions that the job reads are kept in the same folder, so an index needs no other folder.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.configuration.composition import configuration_of
from experiments.configuration.config import read
from experiments.indexes.finished_jobs import PART_INDEXED, finished_condition
from experiments.models import Models
from experiments.options import search_hint
from experiments.plan import Job, finished, plan
from experiments.topic_sets import read_topic_sets, tasks_of
from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post
from graphs.counts import counted
from graphs.errors import ConfigError
from graphs.stores.posts import PostTexts
from mathamr.search_index import PARTS, IndexedJob, identity_of, keep, write_index
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.sources import open_data
from mathamr.systems import registry
from mathamr.systems.searchable.kept import FinishedSearch
from mathamr.systems.system import System
from mathamr.systems.thread_search import ThreadSearch, searches_of


def index_job(
    folder: Path, condition: str, seed: int | None = None, out: Path | None = None, *, root: Path | None = None
) -> str:
    """Write the index of a finished job, which :func:`finished_condition` finds; return a summary of it.

    Args:
        out: folder of the index; None: ``outputs/EXP/indexes/CONDITION-seedN``.
        root: present folder of the collection.

    Raises:
        ConfigError: no such condition, no finished job, or a system that cannot be kept.
    """
    experiment, seed, _ = finished_condition(folder, condition, seed)
    composed = configuration_of(experiment["command"], root)
    config = read(composed)
    corpus = open_data(config.data)
    job = next(job for job in plan(composed, corpus.fingerprints()) if (job.condition, job.seed) == (condition, seed))
    for track in _tracks(job):
        registry.find(track).check_kept()
    keeper = _Keeper(folder, job, corpus, Console())
    out = out or folder / "indexes" / job.name
    count, posts_db = keeper.posts(job)
    key = job.run_key or job.key
    identity = IndexedJob(experiment["name"], condition, seed, identity_of(corpus), key, count)
    write_index(out, posts_db, lambda place: keeper.keep(job, place), identity)
    return (
        f"index:     {counted(count, 'post')} of {identity.collection}, ranked by {condition} of {experiment['name']}, "
        f"seed {seed}\n{search_hint(out)}"
    )


def _tracks(job: Job) -> set[str]:
    """Return the systems of a job and of the jobs that it needs."""
    return {job.settings.track}.union(*map(_tracks, job.needs))


class _Keeper:
    """Makes the index of a job of ``folder`` (``outputs/EXP``) again, and of the jobs that it needs."""

    def __init__(self, folder: Path, job: Job, corpus: Corpus, console: Console) -> None:
        self._folder, self._corpus, self._console = folder, corpus, console
        self._shared = folder.parent / "shared" / identity_of(corpus)
        self._files, tasks = PostFiles(corpus, self._shared, console), tasks_of(job.experiment, corpus)
        self._topic_sets = read_topic_sets(job.config.data, job.experiment, corpus, self._files, tasks, console)
        self._systems: dict[str, System[Any]] = {}

    def posts(self, job: Job) -> tuple[int, Path]:
        """Return the number of posts that a job may find, and the file of their texts."""
        system = self._prepared(job)
        topic_set = self._search(system, job).topic_set
        path = system.posts_db
        with PostTexts(path) as texts:
            answers = texts.post_ids("answer")
        if (wanted := topic_set.indexed) is None:
            return len(answers), path
        with self._files.headers() as kept:
            posts = (post for post in kept.posts() if isinstance(post, Post) and post.kind == "answer")
            if any(post.post_id not in wanted for post in posts):
                self._console.say(PART_INDEXED.format(job.config.data.regime))
        return sum(answer in wanted for answer in answers), path

    def keep(self, job: Job, place: Path) -> dict[str, Any]:
        """Keep a job in ``place``, after the jobs that it needs; return its entry of the manifest."""
        result = finished(job, self._folder)
        if result is None:
            raise ConfigError(f"{job.name} has no result of this configuration; run the experiment again")
        parts = {need.condition: self.keep(need, place / PARTS / need.condition) for need in job.needs}
        self._console.say(f"keeping {job.name}")
        system = self._prepared(job)
        search = self._search(system, job)
        models = Models(self._shared, self._console.say)
        if models.state(job) not in ("trained", "none"):
            raise ConfigError(
                f"the model {job.model_key} of {job.name} is {models.state(job)}; run the experiment again"
            )
        if job.model_key and system.source(job.settings) != result["source"]:
            raise ConfigError(
                f"the graphs have changed since {job.name} has finished; remove its result.json, and run it again"
            )
        searches = searches_of(system, job.settings, self._topic_sets)
        staged = models.stage(job, system, [one.queries for one in searches], lambda record: None)
        if staged is None:
            raise ConfigError(
                f"the model of {job.name} is being trained by another process; wait until it has finished"
            )
        trained, encoded = staged
        working = place / "working"
        with closing(system.index(job.settings, encoded, search.queries, working)) as indexed:
            finished_search = FinishedSearch(
                job.settings, trained, encoded, indexed, search.queries, self._folder / "jobs" / job.name
            )
            kept = keep(system, finished_search, search, place, parts)
        shutil.rmtree(working, ignore_errors=True)
        return kept

    def _prepared(self, job: Job) -> System[Any]:
        name = job.settings.track
        if name not in self._systems:
            self._systems[name] = registry.find(name)(self._corpus, self._shared, self._console)
        system = self._systems[name]
        system.check(job.settings, self._topic_sets)
        system.prepare(job.settings, self._topic_sets)
        return system

    def _search(self, system: System[Any], job: Job) -> ThreadSearch:
        """Return how a job searches for answers."""
        for search in searches_of(system, job.settings, self._topic_sets):
            if search.topic_set.task == 1:
                return search
        raise ConfigError(f"{job.name} finds only formulas; the index of a graph model finds them by their structure")
