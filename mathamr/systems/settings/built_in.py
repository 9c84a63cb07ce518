"""Systems of this package by their value of ``track=``: settings, and where each system is.

>>> BUILT_IN["bm25"].place
'mathamr.systems.bm25:BM25System'

Settings are read, and jobs are planned, without torch: a system is imported when one of its jobs runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName, title
from mathamr.evaluation.runs import Task
from mathamr.stages.settings import JobSettings
from mathamr.systems.settings.combined import FusionSettings, LearnedSettings, RerankSettings
from mathamr.systems.settings.ranking import BM25Settings, LatentSettings, SparseSettings, StructureSettings
from mathamr.systems.settings.trained import GraphSettings, TextSettings


@dataclass(frozen=True, kw_only=True)
class GivenRunConfig:
    """Run files of another system: ``path`` of Task 1 or a test, ``task2_path`` of Task 2, ``paths`` of named tests."""

    path: str | None
    task2_path: str | None
    paths: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GivenRunSettings(JobSettings):
    """Settings of :class:`mathamr.systems.given_run.GivenRunSystem`."""

    run: GivenRunConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the content hash of the run file for each task, empty where none is named, and a version.

        The collection may have no topics of a task without a file; :meth:`check_tasks` demands the others.

        Raises:
            ConfigError: a file that is named does not exist, or is named for several tests.
        """
        files = [self._named(task) for task in self.tasks]
        return {
            "run": ["" if file is None else hashlib.sha256(file.read_bytes()).hexdigest() for file in files],
            "version": 2,
        }

    def check_tasks(self, tasks: Sequence[TestName]) -> None:
        """Check that each task has a run file."""
        for task in tasks:
            self.path_of(task)

    def cut_at(self, limit: int, task: Task) -> int:
        """Return 0: the depth of a given run is unknown."""
        return 0

    def path_of(self, task: TestName) -> Path:
        """Return the run file for a task or test.

        Raises:
            ConfigError: no file is named, it is missing, or one file is named for several tests.
        """
        path = self._named(task)
        if path is None:
            key = "task2_path=" if task == 2 else "path=" if task == 1 else f"paths.{task}"
            raise ConfigError(f"track=run needs run.{key}, the run file for {title(task)}")
        return path

    def _named(self, task: TestName) -> Path | None:
        """Return the run file that is named for a task or a test; None if none is."""
        key, value = ("task2_path", self.run.task2_path) if task == 2 else ("path", self.run.path)
        if isinstance(task, str):
            named = {test: file for test, file in self.run.paths.items() if file is not None}
            tests = [test for test in self.tasks if isinstance(test, str)]
            files = {test: named.get(test, value) for test in tests}
            shared = [test for test in tests if test != task and files.get(task) and files[test] == files[task]]
            if shared:
                raise ConfigError(
                    f"{files[task]} is the run file for the tests {task} and {', '.join(shared)}; name one for each: "
                    f"run: {{paths: {{{', '.join(f'{test}: {test}.tsv' for test in tests)}}}}}"
                )
            if task in named:
                key, value = f"paths.{task}", named[task]
        if value is None:
            return None
        path = Path(value)
        if not path.is_file():
            raise ConfigError(f"run.{key}={value} is no file")
        return path


class BuiltIn(NamedTuple):
    """A system of this package: its settings, and its class as ``MODULE:CLASS``, imported when it is used."""

    settings: type[JobSettings]
    place: str


BUILT_IN: Mapping[str, BuiltIn] = {
    "graph": BuiltIn(GraphSettings, "mathamr.systems.graph:GraphSystem"),
    "text": BuiltIn(TextSettings, "mathamr.systems.text:TextSystem"),
    "bm25": BuiltIn(BM25Settings, "mathamr.systems.bm25:BM25System"),
    "sparse": BuiltIn(SparseSettings, "mathamr.systems.sparse:SparseSystem"),
    "structure": BuiltIn(StructureSettings, "mathamr.systems.structure:StructureSystem"),
    "latent": BuiltIn(LatentSettings, "mathamr.systems.latent:LatentSystem"),
    "fusion": BuiltIn(FusionSettings, "mathamr.systems.fusion:FusionSystem"),
    "learned": BuiltIn(LearnedSettings, "mathamr.systems.learned:LearnedSystem"),
    "rerank": BuiltIn(RerankSettings, "mathamr.systems.rerank:RerankSystem"),
    "run": BuiltIn(GivenRunSettings, "mathamr.systems.given_run:GivenRunSystem"),
}
"""Systems by their value of ``track=``."""
