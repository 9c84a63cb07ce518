"""Jobs that run one after another, alongside other processes of the same experiment.

Runner(corpus, shared, folder, models, topic_sets, console).run(jobs)
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.models import Models
from experiments.plan import LOCK, Job
from graphs.corpus.corpus import Corpus
from graphs.errors import ConfigError, MathAMRError, MissingEncoderError
from graphs.shared_files import is_locked, locked
from mathamr.evaluation.result_names import TestName
from mathamr.memory import give_back_memory
from mathamr.stages.console import Console
from mathamr.stages.retrieval.threads import check_thread
from mathamr.stages.settings import JobSettings
from mathamr.stages.topic_sets import TopicSet
from mathamr.systems import registry

if TYPE_CHECKING:
    from mathamr.systems.system import System


def check_tasks(base: JobSettings | None, jobs: Sequence[Job], tasks: Sequence[TestName]) -> None:
    """Raise for settings that cannot work, whatever the posts and topics are; once for each condition.

    ``base`` is that of :meth:`Runner.check`; the collection has topics of ``tasks``.
    """
    if base is not None:
        base.check_tasks(tasks)
    for condition, job in {job.condition: job for job in jobs}.items():
        try:
            job.settings.check_tasks(tasks)
        except MathAMRError as error:
            raise ConfigError(f"condition {condition}: {error}") from error


class Runner:
    """Runner of jobs, alongside other processes that run the same jobs.

    Args:
        shared: folder of the collection's files that jobs share.
        folder: ``outputs/EXP``.
        topic_sets: topics that the jobs are measured on, task by task.
    """

    def __init__(
        self,
        corpus: Corpus,
        shared: Path,
        folder: Path,
        models: Models,
        topic_sets: Sequence[TopicSet],
        console: Console,
    ) -> None:
        self._corpus, self._shared, self._folder, self._models = corpus, shared, folder, models
        self._topic_sets, self._console = topic_sets, console
        self._systems: dict[str, System[Any]] = {}

    def _system(self, name: str) -> System[Any]:
        if name not in self._systems:
            self._systems[name] = registry.find(name)(self._corpus, self._shared, self._console)
        return self._systems[name]

    def check(self, base: JobSettings | None, jobs: Sequence[Job]) -> list[Job]:
        """Raise for settings that cannot work, once for each condition; return the jobs that can run.

        Conditions whose text encoder is missing are left out with a message, together with those that need their
        rankings, unless ``experiment.only`` names conditions or the experiment has no others.

        Args:
            base: settings of the command line; their errors come first and name no condition; None: no job is of their
                track.
        """
        from experiments.analyses import geometry  # imports torch

        experiment = jobs[0].experiment
        geometry.check(experiment.analyses, jobs[0].config.geometry)
        if base is not None:
            self._check(base)
        first = {job.condition: job for job in jobs}
        missing: dict[str, ConfigError] = {}
        for condition, job in sorted(first.items(), key=lambda item: item[1].depth):
            if lacking := [need.condition for need in job.needs if need.condition in missing]:
                missing[condition] = ConfigError(f"condition {condition} needs {lacking[0]}, which is left out")
                continue
            try:
                self._check(job.settings)
            except MathAMRError as error:
                explained = ConfigError(f"condition {condition}: {error}")
                if not isinstance(error, MissingEncoderError) or experiment.only:
                    raise explained from error
                missing[condition] = explained
        if set(missing) == set(experiment.conditions):
            raise next(iter(missing.values()))
        if missing:
            self._console.say(f"  conditions left out: {', '.join(missing)}; {next(iter(missing.values()))}")
        return [job for job in jobs if job.condition not in missing]

    def _check(self, settings: JobSettings) -> None:
        kind = registry.find(settings.track)
        registry.check_abilities(kind, self._topic_sets)
        check_thread(settings, kind.reads, self._topic_sets)
        self._system(settings.track).check(settings, self._topic_sets)

    def prepare(self, jobs: Sequence[Job]) -> None:
        """Make the files that the jobs share before any model is trained: texts, formula trees, graphs, tensors."""
        for job in jobs:  # what is finished takes no time
            self._system(job.settings.track).prepare(job.settings, self._topic_sets)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run the jobs; those that wait for another process come last.

        Raises:
            ConfigError: another process runs one of them with other settings or data.
        """
        from experiments.job import Outcome, run_job  # imports torch

        if warning := next(filter(None, map(_missing_gpu, jobs)), ""):
            self._console.say(warning)
        gc.collect()
        gc.freeze()  # modules and parsers stay: walking them after each job takes as long as a small job
        pending, ended = list(jobs), 0
        while pending:
            elsewhere: list[Job] = []
            waiting: list[Job] = []
            for job in pending:
                self._console.say(f"[{ended + 1}/{len(jobs)}] {job.name}")
                if {need.name for need in job.needs} & {other.name for other in [*elsewhere, *waiting]}:
                    self._console.say("  a dependency is being built by another process")
                    waiting.append(job)
                    continue
                system = self._system(job.settings.track)
                outcome = run_job(job, self._folder, system, self._models, self._topic_sets, self._console)
                gc.collect()  # a job's tensors may be in cycles: the next job is not charged for them
                give_back_memory()
                if outcome is Outcome.ENDED:
                    ended += 1
                elif outcome is Outcome.ELSEWHERE:
                    self._console.say("  running in another process")
                    elsewhere.append(job)
                else:
                    self._console.say("  a dependency is being built by another process")
                    waiting.append(job)
            stuck = len(waiting) + len(elsewhere) == len(pending)
            # Once more: the other process may have ended, or died. Jobs that others need come first.
            pending = sorted([*waiting, *elsewhere], key=lambda job: job.depth)
            if stuck and not waiting:
                if any(not is_locked(self._folder / "jobs" / job.name / LOCK) for job in elsewhere):
                    continue  # that process has ended since; it may have had other settings
                self._refuse_other_settings(elsewhere)
                return
            if stuck:
                self._console.say(f"  waiting for a dependency of {waiting[0].name}, being built by another process")
                self._wait(waiting[0])

    def _refuse_other_settings(self, elsewhere: Sequence[Job]) -> None:
        """Raise if another process runs one of these jobs with other settings or data: its result will not be ours."""
        for job in elsewhere:
            place = self._folder / "jobs" / job.name
            with suppress(FileNotFoundError):  # with a result, the folder is being cleared for these settings
                others = (place / "key").read_text(encoding="utf-8") != job.key and not (place / "result.json").exists()
                if others and is_locked(place / LOCK):
                    raise ConfigError(
                        f"{job.name} is running in another process with other settings or data, in the same folder "
                        f"{self._folder}; choose another folder with experiment.name=NAME, or run this command again "
                        "when that process has ended"
                    )

    def _wait(self, job: Job) -> None:
        """Wait until no process is building the model of a job or one of its dependencies."""
        self._models.wait(job)
        for need in job.needs:
            with locked(self._folder / "jobs" / need.name / LOCK, wait=True):
                pass


def _missing_gpu(job: Job) -> str:
    """Return a warning if the job has a model, which would run on the CPU of a Slurm job; otherwise ""."""
    from mathamr.training.distributed import missing_gpu  # imports torch

    train = getattr(job.settings, "train", None)
    return missing_gpu(train.device) if job.model_key and train is not None else ""
