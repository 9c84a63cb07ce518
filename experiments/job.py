"""One job: a condition with a seed, from trained model to scores, in a folder of its own.

    outputs/vn_connectivity/jobs/none-seed42/
        result.json      key, scores, costs; appears last, so a job that was killed has none
        run.tsv          the ranking, as a submission
        per_topic.csv    scores topic by topic
        model/           checkpoints; an interrupted training goes on from them
        failed.json      in place of result.json: why the job failed
        key              what the above was made with

A job that fails says so in the results table, and the others go on. Two machines that share the outputs through a
folder share the jobs: each job is claimed by a lock on its folder.

A folder holds one configuration. A finished job of another one (other data, more epochs) moves to
``outputs/EXP/earlier/NAME-KEY`` when its place is taken, and back when it is asked for again; an unfinished one is
removed.
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from experiments import logbook
from experiments.logbook import Logbook
from experiments.outputs import locked, write_whole
from experiments.plan import Job, finished
from experiments.progress import Console
from experiments.tracks.track import Question, Track
from graphs.errors import MathAMRError
from mathamr.evaluation.efficiency import Stopwatch, peak_gpu_memory, peak_memory, reset_peak_memory
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
    with locked(place / ".lock") as mine:
        if not mine:
            console.say(f"{job.name}: another process is at it")
            return
        _make_room(job, place, folder / "earlier")
        if finished(job, folder):
            return
        try:
            reset_peak_memory()
            track.prepare(job.config, question)
            with _logbook(job, folder, console) as book:
                result = _run(job, place, track, question, book)
        except Interrupted:
            raise  # the next call goes on from the checkpoint
        except MathAMRError as error:
            console.say(f"{job.name} failed: {error}")
            _write_json(place / "failed.json", {**_identity(job), "error": type(error).__name__, "reason": str(error)})
            return
        (place / "failed.json").unlink(missing_ok=True)
        _write_json(place / "result.json", result)
        console.say(f"{job.name}: nDCG' {result['ndcg_prime']:.3f}, {result['time_per_epoch_s']:.1f} s an epoch")


def _run(job: Job, place: Path, track: Track, question: Question, book: Logbook) -> dict[str, Any]:
    trained = track.train(job.config, place / "model", book.record)
    indexed = track.index(job.config, trained, question)
    with Stopwatch() as watch:
        results = track.retrieve(job.config, trained, indexed, question)
    gpu_memory = peak_gpu_memory()  # since training began, which starts that measurement
    run = Run.from_results(job.name, results, task=1)
    write_run(run, place / "run.tsv")
    scores = judge(run, question)
    _write_per_topic(place / "per_topic.csv", scores)
    result = {
        **_identity(job),
        **{measure: scores.aggregate[measure] for measure in MEASURES},
        "topics": scores.topics,
        "regime": question.regime,
        **trained.costs,
        **indexed.costs,
        "queries_per_second": len(results) / watch.seconds,
        "peak_memory_bytes": peak_memory(),
        **({"peak_gpu_memory_bytes": gpu_memory} if gpu_memory else {}),
    }
    book.scores(result)
    topics = [[topic, *(values[measure] for measure in MEASURES)] for topic, values in sorted(scores.per_topic.items())]
    book.table("topics", ["topic", *MEASURES], topics)
    if job.config.wandb.artifacts:
        files = [trained.folder, place / "run.tsv", place / "per_topic.csv"]
        book.artifact(f"{job.config.experiment.name}-{job.name}", "model", files, result)
    return result


def _logbook(job: Job, folder: Path, console: Console) -> AbstractContextManager[Logbook]:
    """The job's logbook; its id tells jobs of equal configuration in two experiments apart."""
    config = cast(dict[str, Any], OmegaConf.to_container(job.config, resolve=True))
    del config["wandb"], config["experiment"]
    return logbook.opened(
        job.config.wandb,
        folder,
        name=job.name,
        group=job.config.experiment.name,
        run_id=f"{job.config.experiment.name}-{job.key}",
        config={**config, "condition": job.condition},
        say=console.say,
    )


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


def _make_room(job: Job, place: Path, earlier: Path) -> None:
    """Leave in ``place`` only what the configuration of ``job`` has made, whether finished or half done."""
    stamp = place / "key"
    found = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
    if found != job.key:
        if found and (place / "result.json").exists():
            _move(place, earlier / f"{job.name}-{found}")
        for leftover in place.iterdir():
            if leftover.name == ".lock":
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
    names = [path.name for path in source.iterdir() if path.name not in (".lock", "key", "result.json")]
    for name in [*names, "result.json"]:
        if (target / name).is_dir():
            shutil.rmtree(target / name)
        if (source / name).exists():
            (source / name).replace(target / name)


def _write_per_topic(path: Path, scores: Evaluation) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["topic", *MEASURES])
        for topic, values in sorted(scores.per_topic.items()):
            table.writerow([topic, *(f"{values[measure]:.6f}" for measure in MEASURES)])


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_whole(path, json.dumps(content, indent=1) + "\n")
