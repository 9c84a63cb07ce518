"""One job: a condition with a seed, from trained model to scores, in a folder of its own.

    outputs/vn_connectivity/jobs/none-seed42/
        result.json      key, scores, costs; appears last, so a job that was killed has none
        run.tsv          the ranking, as a submission
        per_topic.csv    scores topic by topic
        model/           checkpoints; an interrupted training goes on from them
        failed.json      in place of result.json: why the job failed

A job that fails says so in the results table, and the others go on. Two machines that share the outputs through a
folder share the jobs: each job is claimed by a lock on its folder.
"""

from __future__ import annotations

import csv
import datetime
import fcntl
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.plan import Job, finished
from experiments.progress import Console
from experiments.tracks.track import Question, Track
from graphs.errors import MathAMRError
from mathamr.evaluation.efficiency import Stopwatch, peak_memory
from mathamr.evaluation.metrics import Evaluation, evaluate
from mathamr.evaluation.runs import Run, qrels_of, write_run
from mathamr.training.checkpoint import code_version
from mathamr.training.interruption import Interrupted

MEASURES = ("ndcg_prime", "map_prime", "p_prime_10", "bpref", "recall_1000")


def run_job(job: Job, folder: Path, track: Track, question: Question, console: Console) -> None:
    """Run ``job`` unless it is finished, and leave its result, or the reason of its failure, in its folder.

    Args:
        folder: ``outputs/EXP``.
    """
    place = folder / "jobs" / job.name
    place.mkdir(parents=True, exist_ok=True)
    with _claimed(place) as mine:
        if not mine:
            console.say(f"{job.name}: another process is at it")
            return
        if finished(job, folder):
            return
        _drop_leftovers(job, place)
        try:
            result = _run(job, place, track, question)
        except Interrupted:
            raise  # the next call goes on from the checkpoint
        except MathAMRError as error:
            console.say(f"{job.name} failed: {error}")
            _write_json(place / "failed.json", {**_identity(job), "error": type(error).__name__, "reason": str(error)})
            return
        (place / "failed.json").unlink(missing_ok=True)
        _write_json(place / "result.json", result)
        console.say(f"{job.name}: nDCG' {result['ndcg_prime']:.3f}, {result['time_per_epoch_s']:.1f} s an epoch")


def _run(job: Job, place: Path, track: Track, question: Question) -> dict[str, Any]:
    track.prepare(job.config, question)
    trained = track.train(job.config, place / "model")
    indexed = track.index(job.config, trained, question)
    with Stopwatch() as watch:
        results = track.retrieve(job.config, trained, indexed, question)
    run = Run.from_results(job.name, results, task=1)
    write_run(run, place / "run.tsv")
    scores = judge(run, question)
    _write_per_topic(place / "per_topic.csv", scores)
    return {
        **_identity(job),
        **{measure: scores.aggregate[measure] for measure in MEASURES},
        "topics": scores.topics,
        "regime": question.regime,
        **trained.costs,
        **indexed.costs,
        "queries_per_second": len(results) / watch.seconds,
        "peak_memory_bytes": peak_memory(),
    }


def judge(run: Run, question: Question) -> Evaluation:
    """Score a run on the question's topics."""
    return evaluate(run, qrels_of(question.judgments), task=1, regime=question.regime, collection=question.collection)


def _identity(job: Job) -> dict[str, Any]:
    return {
        "condition": job.condition,
        "seed": job.seed,
        "key": job.key,
        "code": code_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


@contextmanager
def _claimed(place: Path) -> Iterator[bool]:
    """Hold the lock of a job's folder; yields whether it was free."""
    with (place / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _drop_leftovers(job: Job, place: Path) -> None:
    """Remove what an earlier configuration left; what this one left half done stays."""
    stamp = place / "key"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == job.key:
        return
    for leftover in place.iterdir():
        if leftover.name == ".lock":
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    stamp.write_text(job.key, encoding="utf-8")


def _write_per_topic(path: Path, scores: Evaluation) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["topic", *MEASURES])
        for topic, values in sorted(scores.per_topic.items()):
            table.writerow([topic, *(f"{values[measure]:.6f}" for measure in MEASURES)])


def _write_json(path: Path, content: dict[str, Any]) -> None:
    """Write in one step: a reader sees the old file or the new one."""
    partial = path.with_name(f".{path.name}.part")
    partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
