"""Runs that another system has made: a file in the place of a search, in the same tables and tests.

    conditions:
      ours: {}
      theirs: {track: run, run: {path: runs/TangentS-task1.tsv, task2_path: runs/TangentS-task2.tsv}}

Tests with names have a file each: ``run: {paths: {easy: runs/easy.tsv, hard: runs/hard.tsv}}`` beside ``experiment``.
A condition can change those that are named there, be it by null.

A file has the columns of a submission or TREC's six (:func:`mathamr.evaluation.runs.read_run`). What it says is taken
as it is: results are ordered by score, repeated documents keep their best place, and what lies beyond 1,000 is cut.
Results for topics that are not asked, and formulas that the collection does not have, are counted and left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from omegaconf import MISSING, DictConfig

from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from mathamr.evaluation.result_names import Asked, title
from mathamr.evaluation.runs import Hit, Run, read_run
from mathamr.stages.searching import say_lost
from mathamr.stages.topic_sets import Encoded, Indexed, Question, Retrieved
from mathamr.systems.registry import system
from mathamr.systems.system import System


@dataclass
class GivenRunConfig:
    """Run files of another system: ``path`` of Task 1 or a test, ``task2_path`` of Task 2, ``paths`` of named tests."""

    path: str | None = MISSING
    task2_path: str | None = MISSING
    paths: dict[str, str | None] = field(default_factory=dict)


def path_of(config: DictConfig, asked: Asked) -> Path:
    """Return the run file for a task or a test.

    Raises:
        ConfigError: no file is named for it, or one for several tests, or there is no such file.
    """
    path = _named(config, asked)
    if path is None:
        key = "task2_path=" if asked == 2 else "path=" if asked == 1 else f"paths.{asked}"
        raise ConfigError(f"track=run needs run.{key}, the run file for {title(asked)}")
    return path


def _named(config: DictConfig, asked: Asked) -> Path | None:
    """Return the run file that is named for a task or a test; None if none is."""
    key, value = ("task2_path", config.run.task2_path) if asked == 2 else ("path", config.run.path)
    if isinstance(asked, str):
        named = {test: file for test, file in (config.run.get("paths") or {}).items() if file is not None}
        tests = [test for test in _tasks(config) if isinstance(test, str)]
        files = {test: named.get(test, value) for test in tests}
        shared = [test for test in tests if test != asked and files.get(asked) and files[test] == files[asked]]
        if shared:
            raise ConfigError(
                f"{files[asked]} is the run file for the tests {asked} and {', '.join(shared)}; name one for each: "
                f"run: {{paths: {{{', '.join(f'{test}: {test}.tsv' for test in tests)}}}}}"
            )
        if asked in named:
            key, value = f"paths.{asked}", named[asked]
    if value is None:
        return None
    path = Path(value)
    if not path.is_file():
        raise ConfigError(f"run.{key}={value} is no file")
    return path


def _tasks(config: DictConfig) -> list[Asked]:
    return list(config.experiment.get("tasks") or [1])


def identity(config: DictConfig) -> list[str]:
    """Return the content hash of the run file for each task; empty where none is named.

    The collection may have no topics of a task without a file; :meth:`GivenRunSystem.check` demands the others.

    Raises:
        ConfigError: a file that is named does not exist, or is named for several tests.
    """
    files = [_named(config, task) for task in _tasks(config)]
    return ["" if file is None else hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


@system("run")
class GivenRunSystem(System):
    """Take the rankings of run files."""

    groups: ClassVar = {"run": GivenRunConfig}

    @classmethod
    def result_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return the content hashes of the run files."""
        return {"run": identity(config)}

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Read every file once: a run that cannot be read is refused before anything runs."""
        for question in questions:
            if not self._read(config, question).rankings:
                raise ConfigError(
                    f"{path_of(config, question.asked)} has no result for any topic of {title(question.asked)}"
                )

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Return the rankings of the file."""
        run = self._read(config, question)
        found = [topic for topic in question.topics if topic.topic_id in run.rankings]
        say_lost(self.console, question, found, "have no result in the run")
        self._say_judged(question, run)
        if question.task == 1:
            return Retrieved(run.rankings)
        post_of = self._posts_of_formulas({hit.doc_id for hits in run.rankings.values() for hit in hits})
        known: dict[str, list[Hit]] = {}
        lost = 0
        for topic_id, hits in run.rankings.items():
            own = [
                Hit(hit.doc_id, hit.score, hit.post_id or post_of[hit.doc_id]) for hit in hits if hit.doc_id in post_of
            ]
            lost += len(hits) - len(own)
            if own:
                known[topic_id] = own
        if lost:
            self.console.say(f"  {title(question.asked)}: {lost:,} formulas of the run are not in the collection")
        return Retrieved(known, {}, self.visual_ids(config))

    def _read(self, config: DictConfig, question: Question) -> Run:
        run = read_run(path_of(config, question.asked), task=question.task)
        topics = {topic.topic_id for topic in question.topics}
        others = len(run.rankings.keys() - topics)
        if others:
            self.console.once(f"  {path_of(config, question.asked)}: results for {others} topics that are not asked")
        return Run(run.name, {name: hits for name, hits in run.rankings.items() if name in topics}, run.task)

    def _say_judged(self, question: Question, run: Run) -> None:
        """Say how many results are judged: none is a sign of other ids."""
        if question.task == 2:  # judged by visual id
            return
        judged = {(judgment.topic_id, judgment.doc_id) for judgment in question.judgments}
        results = [(topic, hit.doc_id) for topic, hits in run.rankings.items() for hit in hits]
        count = sum(result in judged for result in results)
        warning = "; are its ids those of this collection?" if not count else ""
        self.console.say(
            f"  {title(question.asked)}: {count:,} of {len(results):,} results of the run are judged{warning}"
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
