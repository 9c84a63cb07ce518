"""A job: a condition with a seed, from its model to scores, in a separate folder.

    outputs/vn_connectivity/jobs/none-seed42/
        result.json                          key, scores, costs; appears last, so a job that was killed has none
        run.tsv, run-task2.tsv               the rankings, as submissions; run-NAME.tsv of a test NAME
        rankings.json                        key, costs and code of the rankings, identity of the topics' vectors,
                                             and the topics whose lists are cut
        per_topic.csv, per_topic-task2.csv   scores topic by topic
        leaks.tsv                            questions that are topics: their pairs are not learned from
        log.jsonl                            the records of training
        heat_map.json, examples.json,
        examples-task2.json                  see experiments.analyses.job_examples
        scores.npz                           longer rankings, if thread.depth is set
        geometry.json, weighting.json        see experiments.analyses.geometry and experiments.analyses.weighting
        failures.md                          see experiments.analyses.failures
        failed.json, traceback.txt           in place of result.json: why the job failed
        index/                               while it is searched, or with index.keep=true
        key                                  key of the above files

The model is in another folder, which jobs share (:mod:`experiments.models`). A result that does not depend on the seed
is computed for one seed and copied for the others. If a job fails, the results table shows it, and the other jobs run;
jobs that need the failed one fail too. Machines that share the folder of outputs share the jobs: a process claims a job
by a lock on its folder.

A folder holds one configuration. If a job runs with another one (other data, more epochs), the finished job moves to
``outputs/EXP/earlier/NAME-KEY``, and back when its configuration runs again; an unfinished job is removed.
"""

from __future__ import annotations

import csv
import shutil
import traceback
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Any, cast

from experiments.analyses import job_analyses, job_examples
from experiments.models import LOG, Models
from experiments.plan import LOCK, Job, failure, finished, state
from experiments.result_row import ResultRow, identity
from experiments.tracking import logbook
from experiments.tracking.logbook import Logbook
from graphs.errors import ConfigError, MathAMRError
from graphs.shared_files import locked, read_json, write_json
from graphs.whole_file import write_whole
from mathamr.evaluation.completeness import COLUMNS, short
from mathamr.evaluation.metrics import Evaluation
from mathamr.evaluation.result_file import read_result, write_result
from mathamr.evaluation.result_names import column, file_name, title, titles
from mathamr.evaluation.runs import Run, write_run
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
        _make_room(job, place, folder / "earlier")
        if finished(job, folder) or _copied(job, place, folder, console):
            return Outcome.ENDED
        if models.state(job) == "training elsewhere" or any(state(n, folder) == "running elsewhere" for n in job.needs):
            return Outcome.NEED_ELSEWHERE  # before a logbook is opened that would stay empty
        try:
            _check_needs(job, folder)
            system.prepare(job.settings, topic_sets)
            with _logbook(job, folder, console) as book:
                searches = searches_of(system, job.settings, topic_sets)
                made = models.stage(job, system, [search.queries for search in searches], book.record)
                if made is None:
                    return Outcome.NEED_ELSEWHERE
                result = _run(job, place, system, models, *made, searches, book, console)
        except Interrupted:
            raise  # the next call goes on from the checkpoint
        except Exception as error:  # noqa: BLE001 - whatever one job dies of (no memory, a library), others go on
            _note_failure(job, place, error, console)
            return Outcome.ENDED
        for name in ("failed.json", "traceback.txt"):
            (place / name).unlink(missing_ok=True)
        write_result(place, result)
        speed = f", {result['time_per_epoch_s']:.1f} s an epoch" if "time_per_epoch_s" in result else ""
        first, called = next(iter(titles(job.experiment.measures).items()))
        console.say(f"{job.name}: {called} {result[column(topic_sets[0].test_name, first)]:.3f}{speed}")
        return Outcome.ENDED


def _copied(job: Job, place: Path, folder: Path, console: Console) -> bool:
    """Return whether another seed of the condition has the same key, which no seed is part of, and a result to copy."""
    for other in sorted((folder / "jobs").glob(f"{job.condition}-seed*")):
        record = read_result(other)
        if other == place or record is None or record.get("key") != job.key:
            continue
        for path in other.iterdir():
            if path.is_dir():
                shutil.copytree(path, place / path.name, dirs_exist_ok=True)
            elif path.name not in (LOCK, "key", "result.json"):
                shutil.copyfile(path, place / path.name)
        write_result(place, {**record, "seed": job.seed})
        console.say(f"{job.name}: the result of seed {record['seed']}, since its key has no seed")
        return True
    return False


def _check_needs(job: Job, folder: Path) -> None:
    for need in job.needs:
        if finished(need, folder) is None:
            reason = failure(need, folder)
            missing = "has no result; run it first: without experiment.only the same command does"
            raise ConfigError(f"{need.name}, which it needs, {missing if reason is None else f'failed: {reason}'}")


def _note_failure(job: Job, place: Path, error: Exception, console: Console) -> None:
    reason = str(error).strip() or type(error).__name__
    if not isinstance(error, MathAMRError):  # not one of our messages, which say what to do: name it, keep its place
        reason = f"{type(error).__name__}: {reason.splitlines()[0]} (see {place / 'traceback.txt'})"
        write_whole(place / "traceback.txt", "".join(traceback.format_exception(error)))
    console.say(f"{job.name} failed: {reason}")
    write_json(place / "failed.json", {**identity(job), "error": type(error).__name__, "reason": reason})


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
    _write_per_topic(paths[1], scores)
    topics = [[topic, *of_topic.values()] for topic, of_topic in sorted(scores.per_topic.items())]
    book.table(file_name(topic_set.test_name, "topics"), ["topic", *scores.aggregate], topics)
    return paths


class _Rankings:
    """Rankings of a job: those of an earlier result with the same ones, or else those of a search."""

    def __init__(self, job: Job, place: Path, system: System[Any], encoded: Encoded) -> None:
        self._job, self._place, self._system, self._encoded = job, place, system, encoded
        parts = [read_json(place.with_name(need.name) / RANKINGS) or {} for need in job.needs]  # also their sources
        self._source = "+".join([system.rankings_source(job.settings), *(str(part.get("source")) for part in parts)])
        self._kept = _kept_rankings(job, place, self._source)
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
            asked = (topic.post.post_id for topic in topic_set.topics)
            self._vectors[name] = self._encoded.vectors.kept_identity(asked)
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


def _kept_rankings(job: Job, place: Path, source: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder of an earlier result with the same rankings, undamaged, and their record; None: nowhere."""
    earlier = place.parents[1] / "earlier"
    for folder in sorted(earlier.glob(f"{job.name}-*")):
        record = read_json(folder / RANKINGS) or {}
        fits = record.get("key") == job.run_key != "" and record.get("source") == source
        if fits and read_result(folder) is not None:  # None: damaged
            return folder, record
    return None


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


def _make_room(job: Job, place: Path, earlier: Path) -> None:
    """Remove from ``place`` what another configuration than that of ``job`` made."""
    stamp = place / "key"
    earlier_key = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
    if earlier_key != job.key:
        if earlier_key and (place / "result.json").exists():
            _move(place, earlier / f"{job.name}-{earlier_key}")
        stamp.unlink(missing_ok=True)  # before files that take long: this is no longer a job of that configuration
        for leftover in place.iterdir():
            if leftover.name == LOCK:
                continue
            if leftover.is_dir():
                shutil.rmtree(leftover)
            else:
                leftover.unlink()
        write_whole(stamp, job.key)
    kept = earlier / f"{job.name}-{job.key}"
    if kept.is_dir():
        _move(kept, place)
        shutil.rmtree(kept)


def _move(source: Path, target: Path) -> None:
    """Move what a job has left. Its result goes last: a kill in between leaves an unfinished job in ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    names = [path.name for path in source.iterdir() if path.name not in (LOCK, "key", "result.json")]
    for name in [*names, "result.json"]:
        if (target / name).is_dir():
            shutil.rmtree(target / name)
        if (source / name).exists():
            (source / name).replace(target / name)


def _write_per_topic(path: Path, scores: Evaluation) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["topic", *scores.aggregate])
        for topic, values in sorted(scores.per_topic.items()):
            table.writerow([topic, *(f"{values[measure]:.6f}" for measure in scores.aggregate)])
