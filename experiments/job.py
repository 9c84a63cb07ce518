"""A job: a condition with a seed, from its model to scores, in a separate folder (:mod:`experiments.job_folder`).

The model is in another folder, which jobs share (:mod:`experiments.models`). A result that does not depend on the seed
is computed for one seed and copied for the others. If a job fails, the results table shows it, and the other jobs run;
jobs that need the failed one fail too. Machines that share the folder of outputs share the jobs: a process claims a job
by a lock on its folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Any, cast

from experiments.analyses import job_analyses, job_examples
from experiments.job_folder import copied, kept_rankings, make_room, note_failure, write_per_topic
from experiments.models import LOG, Models
from experiments.plan import LOCK, Job, failure, finished, state
from experiments.result_row import ResultRow, identity
from experiments.tracking import logbook
from experiments.tracking.logbook import Logbook
from graphs.errors import ConfigError
from graphs.shared_files import key, locked, read_json, write_json
from mathamr.evaluation.completeness import COLUMNS, short
from mathamr.evaluation.metrics import Evaluation
from mathamr.evaluation.result_file import write_result
from mathamr.evaluation.result_names import column, file_name, title, titles
from mathamr.evaluation.runs import Run, qrels_of, write_run
from mathamr.retrieval.scores import SCORES, write_scores
from mathamr.stages import leak_control
from mathamr.stages.console import Console
from mathamr.stages.data.versions import mathamr_version
from mathamr.stages.settings import SearchSettings
from mathamr.stages.topic_sets import Encoded, Retrieved, TopicSet, Trained
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.judging import completed, judge
from mathamr.systems.parts import RANKINGS, run_left
from mathamr.systems.system import System
from mathamr.systems.thread_search import ThreadSearch, searches_of
from mathamr.training.interruption import Interrupted

LEAKS = "leaks.tsv"
"""Questions of training pairs that are topics, whose pairs are left out."""


class Outcome(Enum):
    """Outcome of a job: a result, a failure, or a wait for another process that runs it or a job that it needs."""

    ENDED = "ended"
    ELSEWHERE = "elsewhere"
    NEED_ELSEWHERE = "need elsewhere"


def run_job(
    job: Job, folder: Path, system: System[Any], models: Models, topic_sets: Sequence[TopicSet], console: Console
) -> Outcome:
    """Run ``job`` unless it is finished, and leave its result, or the reason of its failure, in its folder.

    Args:
        folder: ``outputs/EXP``.
        topic_sets: one a task.
    """
    place = folder / "jobs" / job.name
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / LOCK) as mine:
        if not mine:
            return Outcome.ELSEWHERE
        make_room(job, place, folder / "earlier")
        if finished(job, folder) or copied(job, place, folder, console):
            return Outcome.ENDED
        if models.state(job) == "training elsewhere" or any(state(n, folder) == "running elsewhere" for n in job.needs):
            return Outcome.NEED_ELSEWHERE  # before a logbook is opened that would stay empty
        try:
            _check_needs(job, folder)
            system.prepare(job.settings, topic_sets)
            with _logbook(job, folder, console) as book:
                searches = searches_of(system, job.settings, topic_sets)
                staged = models.stage(job, system, [search.queries for search in searches], book.record)
                if staged is None:
                    return Outcome.NEED_ELSEWHERE
                result = _run(job, place, system, models, *staged, searches, book, console)
        except Interrupted:
            raise  # the next call goes on from the checkpoint
        except Exception as error:  # noqa: BLE001 - whatever one job dies of (no memory, a library), others go on
            note_failure(job, place, error, console)
            return Outcome.ENDED
        for name in ("failed.json", "traceback.txt"):
            (place / name).unlink(missing_ok=True)
        write_result(place, result)
        speed = f", {result['time_per_epoch_s']:.1f} s an epoch" if "time_per_epoch_s" in result else ""
        first, called = next(iter(titles(job.experiment.measures).items()))
        console.say(f"{job.name}: {called} {result[column(topic_sets[0].test_name, first)]:.3f}{speed}")
        return Outcome.ENDED


def _check_needs(job: Job, folder: Path) -> None:
    for need in job.needs:
        if finished(need, folder) is None:
            reason = failure(need, folder)
            missing = "has no result; run it first: without experiment.only the same command does"
            raise ConfigError(f"{need.name}, which it needs, {missing if reason is None else f'failed: {reason}'}")


def _run(
    job: Job,
    place: Path,
    system: System[Any],
    models: Models,
    trained: Trained,
    encoded: Encoded,
    searches: Sequence[ThreadSearch],
    book: Logbook,
    console: Console,
) -> dict[str, Any]:
    """Search, score and analyse with the model's vectors."""
    topic_sets = [search.topic_set for search in searches]
    log = models.folder(job) / LOG
    if job.model_key and log.exists():
        shutil.copyfile(log, place / LOG)
    row = ResultRow()
    row.add("the job", {**identity(job), "regime": topic_sets[0].regime, "years": job.config.data.years})
    row.add("the job", {"source": system.source(job.settings), **trained.origin})
    row.add("the costs", {**trained.costs, **encoded.costs})
    pairs = system.pairs(job.settings)
    row.add("leak control", leak_control.counts(pairs))
    if pairs:
        leak_control.write_leaks(place / LEAKS, pairs)
    files = [trained.folder] if job.model_key else []
    shown = next((topic_set for topic_set in topic_sets if topic_set.task == 1), None)
    rankings = _Rankings(job, place, system, encoded)
    for search in searches:
        topic_set = search.topic_set
        run, costs, visual_ids = rankings.of(search)
        scores = judge(run, topic_set, visual_ids)
        whole = completed(system, encoded, topic_set, run, visual_ids, search.searchable)
        for line in short(whole):
            console.say(f"  {title(topic_set.test_name)}: {line}")
        judgments = {"judgments": topic_set.judged_by} if topic_set.judged_by else {}
        judgments["judgments_hash"] = key(qrels_of(topic_set.judgments))  # joined reports compare both hashes
        texts = sorted([one.topic_id, one.post.title, one.post.body, one.formula_id] for one in topic_set.topics)
        judgments["topic_texts_hash"] = key(texts)
        for part, values in (
            ("the measures", scores.aggregate),
            ("the topics", {"topics": scores.topics, "relevant_grade": topic_set.relevant}),
            ("the costs", costs),
            ("the topics", judgments | {name: whole[name] for name in COLUMNS}),
        ):
            row.add(part, {column(topic_set.test_name, name): value for name, value in values.items()})
        files += _write_scores(place, topic_set, run, scores, book)
        if topic_set.task == 2 and visual_ids is not None:
            examples = job_examples.formula_examples(topic_set, run, visual_ids, system.texts)
            write_json(place / "examples-task2.json", examples)
        if topic_set is shown:
            job_examples.write(job, place, system, encoded, topic_set, run)
            if search.queries is topic_set:  # else the vectors are those of questions
                row.add("the analyses", job_analyses.write(job, place, system, encoded, topic_set, run))
    write_json(place / RANKINGS, rankings.record())
    book.scores(row.columns)
    if job.config.wandb.artifacts:
        book.artifact(f"{job.experiment.name}-{job.name}", files, row.columns)
    return row.columns


def _write_scores(place: Path, topic_set: TopicSet, run: Run, scores: Evaluation, book: Logbook) -> list[Path]:
    """Write the run file, and the scores topic by topic; return both paths."""
    paths = [place / file_name(topic_set.test_name, name) for name in ("run.tsv", "per_topic.csv")]
    write_run(run, paths[0])
    write_per_topic(paths[1], scores)
    topics = [[topic, *of_topic.values()] for topic, of_topic in sorted(scores.per_topic.items())]
    book.table(file_name(topic_set.test_name, "topics"), ["topic", *scores.aggregate], topics)
    return paths


class _Rankings:
    """Rankings of a job: those of an earlier result with the same ones, or else those of a search."""

    def __init__(self, job: Job, place: Path, system: System[Any], encoded: Encoded) -> None:
        self._job, self._place, self._system, self._encoded = job, place, system, encoded
        parts = [read_json(place.with_name(need.name) / RANKINGS) or {} for need in job.needs]  # also their sources
        self._source = "+".join([system.rankings_source(job.settings), *(str(part.get("source")) for part in parts)])
        self._kept = kept_rankings(job, place, self._source)
        folder, kept = self._kept or (place, {})
        self._left = list(kept.get("left", []))
        for name in self._left:  # beside the run files
            shutil.copyfile(folder / Path(name).name, place / Path(name).name)
        self._code = mathamr_version() if self._kept is None else kept.get("mathamr")
        self._cut: dict[str, Sequence[str]] = kept.get("cut", {})
        self._costs: dict[str, Mapping[str, float]] = {}
        self._vectors: dict[str, str] = {}

    def of(self, search: ThreadSearch) -> tuple[Run, Mapping[str, float], Mapping[str, str] | None]:
        """Return the rankings of a topic set, their costs and, in Task 2, the visual ids of all formulas."""
        job, topic_set, name = self._job, search.topic_set, str(search.topic_set.test_name)
        if self._kept is None:
            retrieved, costs = _search(job, self._place / "index", self._system, self._encoded, search)
            run = Run.from_results(job.name, retrieved.results, task=topic_set.task)
            visual_ids = retrieved.visual_ids
            self._left += _leave(self._place, retrieved, search)
            self._cut[name] = sorted(retrieved.cut)
        else:
            folder, record = self._kept
            rankings = run_left(folder, topic_set.test_name, topic_set.task).rankings
            # Topics without a result have no line in the file.
            run = Run(job.name, rankings or {topic.topic_id: [] for topic in topic_set.topics}, topic_set.task)
            costs = record["costs"][name]
            visual_ids = self._system.visual_ids(job.settings) if topic_set.task == 2 else None
        self._costs[name] = costs
        if isinstance(self._encoded.vectors, EncodedPosts):
            topic_ids = (topic.post.post_id for topic in topic_set.topics)
            self._vectors[name] = self._encoded.vectors.kept_identity(topic_ids)
        return run, costs, visual_ids

    def record(self) -> dict[str, Any]:
        """Return the content of ``rankings.json``."""
        return {
            "key": self._job.run_key,
            "source": self._source,
            "costs": self._costs,
            "left": self._left,
            "cut": self._cut,
            "vectors": self._vectors,
            "mathamr": self._code,
        }


def _search(
    job: Job, folder: Path, system: System[Any], encoded: Encoded, search: ThreadSearch
) -> tuple[Retrieved, dict[str, float]]:
    """Return the rankings, and the costs of index and search; remove the index unless it is to be kept."""
    keep = isinstance(job.settings, SearchSettings) and job.settings.index.keep
    index_folder = folder.with_name(file_name(search.queries.test_name, folder.name))
    shutil.rmtree(index_folder, ignore_errors=True)  # what a killed run has left
    try:
        return search.run(system, job.settings, encoded, index_folder)
    finally:
        if not keep:
            shutil.rmtree(index_folder, ignore_errors=True)


def _leave(place: Path, retrieved: Retrieved, search: ThreadSearch) -> list[str]:
    """Save a search's scores and records beside its run file; return the names."""
    test, names = search.topic_set.test_name, []
    if search.depth is not None and search.topic_set.task == 1:
        pairs = cast(Mapping[str, Sequence[tuple[str, float]]], retrieved.results)
        names.append(file_name(test, SCORES))
        write_scores(place / names[-1], pairs, search.depth)
    for name, content in retrieved.records.items():
        names.append(file_name(test, name))
        write_json(place / names[-1], content)
    return names


def _logbook(job: Job, folder: Path, console: Console) -> AbstractContextManager[Logbook]:
    """Open the job's logbook; its id separates jobs of equal configuration in two experiments."""
    return logbook.open_logbook(
        job.config.wandb,
        folder,
        name=job.name,
        group=job.experiment.name,
        run_id=f"{job.experiment.name}-{job.key}",
        config={**job.record, "condition": job.condition},
        say=console.say,
    )
