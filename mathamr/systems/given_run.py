"""Runs that another system has made: a file in the place of a search, in the same tables and tests.

    conditions:
      ours: {}
      theirs: {track: run, run: {path: runs/TangentS-task1.tsv, task2_path: runs/TangentS-task2.tsv}}

A file has the columns of a submission or TREC's six (:func:`mathamr.evaluation.runs.read_run`). What it says is taken
as it is: results are ordered by score, repeated documents keep their best place, and what lies beyond 1,000 is cut.
Results for topics that are not asked, and formulas that the collection does not have, are counted and left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """Run files of another system: ``path`` of Task 1 or a test, ``task2_path`` of Task 2."""

    path: str | None = MISSING
    task2_path: str | None = MISSING


def path_of(config: DictConfig, asked: Asked) -> Path:
    """Return the run file for a task or a test.

    Raises:
        ConfigError: no file is named for it, or there is no such file.
    """
    name = "task2_path" if asked == 2 else "path"
    value = config.run[name]
    if value is None:
        raise ConfigError(f"track=run needs run.{name}=, the run file for {title(asked)}")
    path = Path(value)
    if not path.is_file():
        raise ConfigError(f"run.{name}={value} is no file")
    return path


def identity(config: DictConfig) -> list[str]:
    """Return the content hash of each run file that is named.

    Raises:
        ConfigError: there is no such file.
    """
    tasks = list(config.experiment.get("tasks") or [1])
    return [hashlib.sha256(path_of(config, task).read_bytes()).hexdigest() for task in tasks]


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
        if question.task == 1:
            return Retrieved(run.rankings)
        post_of = self._posts_of_formulas()
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

    def _posts_of_formulas(self) -> Mapping[str, str]:
        """Return the post of each formula of the collection."""
        posts = (post for post in self.corpus.posts() if isinstance(post, Post))
        return {formula.formula_id: post.post_id for post in posts for formula in extract(post).formulas}
