"""Settings of the systems that train nothing: ``track=bm25``, ``structure``, ``latent`` and ``run``.

>>> list(BM25Settings.groups())
['retrieval', 'bm25', 'thread']
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from graphs.errors import ConfigError
from mathamr.evaluation.result_names import TestName, title
from mathamr.stages.settings import JobSettings, RetrievalConfig, ThreadConfig
from mathamr.structure.latent_config import LatentConfig
from mathamr.structure.scoring import StructureConfig


@dataclass(frozen=True, kw_only=True)
class RankingSettings(JobSettings):
    """Settings of a system that trains nothing: those of a ``group``, and the number of results."""

    group: ClassVar[str]

    retrieval: RetrievalConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the group, and the number of results."""
        return {self.group: self.key_settings(self.group), "k": self.retrieval.k}


# -- track=bm25 ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BM25Config:
    """Settings of BM25: compare ``by`` text, words and LaTeX; or by formulas, pairs of symbols in their trees.

    ``k1`` bounds what repetitions of a word add, ``b`` from 0 to 1 is how much long posts are marked down.
    """

    by: str
    k1: float = 1.5
    b: float = 0.75

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0 and 0 <= self.b <= 1):
            raise ConfigError(f"bm25.k1={self.k1} must be at least 0, and bm25.b={self.b} from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class BM25Settings(RankingSettings):
    """Settings of :class:`mathamr.systems.bm25.BM25System`."""

    group: ClassVar = "bm25"

    bm25: BM25Config
    thread: ThreadConfig = field(default_factory=ThreadConfig)

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings, the number of results, and how threads are read.

        Keys stay unchanged at the defaults of ``k1`` and ``b``.
        """
        own = {name: value for name, value in self.key_settings("bm25").items() if _BM25_DEFAULTS.get(name) != value}
        return {**super().result_key_parts(), "bm25": own, **self.thread.key_parts()}


_BM25_DEFAULTS = {one.name: one.default for one in fields(BM25Config) if one.name != "by"}


# -- track=structure -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StructureSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.structure.StructureSystem`."""

    group: ClassVar = "structure"

    structure: StructureConfig


# -- track=latent ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LatentSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.latent.LatentSystem`."""

    group: ClassVar = "latent"

    latent: LatentConfig


# -- track=run -------------------------------------------------------------------------------------------------------


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
        """Return the content hash of the run file for each task; empty where none is named.

        The collection may have no topics of a task without a file; ``GivenRunSystem.check`` demands the others.

        Raises:
            ConfigError: a file that is named does not exist, or is named for several tests.
        """
        files = [self._named(task) for task in self.tasks]
        return {"run": ["" if file is None else hashlib.sha256(file.read_bytes()).hexdigest() for file in files]}

    def path_of(self, task: TestName) -> Path:
        """Return the run file for a task or a test.

        Raises:
            ConfigError: no file is named for it, or one for several tests, or there is no such file.
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
