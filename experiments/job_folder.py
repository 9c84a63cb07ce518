"""Folder of a job: its files, results of other configurations that make room, and results that are copied.

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

A folder holds one configuration. If a job runs with another one (other data, more epochs), the finished job moves to
``outputs/EXP/earlier/NAME-KEY``, and back when its configuration runs again; an unfinished job is removed.
"""

from __future__ import annotations

import csv
import shutil
import traceback
from pathlib import Path
from typing import Any

from experiments.plan import LOCK, Job
from experiments.result_row import identity
from graphs.errors import MathAMRError
from graphs.extensions import package_at_fault
from graphs.shared_files import read_json, write_json
from graphs.whole_file import write_whole
from mathamr.evaluation.metrics import Evaluation
from mathamr.evaluation.result_file import read_result, write_result
from mathamr.stages.console import Console
from mathamr.systems.parts import RANKINGS


def make_room(job: Job, place: Path, earlier: Path) -> None:
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


def copied(job: Job, place: Path, folder: Path, console: Console) -> bool:
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


def kept_rankings(job: Job, place: Path, source: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder of an earlier result with the same rankings, undamaged, and their record; None: nowhere."""
    earlier = place.parents[1] / "earlier"
    for folder in sorted(earlier.glob(f"{job.name}-*")):
        record = read_json(folder / RANKINGS) or {}
        fits = record.get("key") == job.run_key != "" and record.get("source") == source
        if fits and read_result(folder) is not None:  # None: damaged
            return folder, record
    return None


def note_failure(job: Job, place: Path, error: Exception, console: Console) -> None:
    """Print why a job failed, and write it to ``failed.json``, with ``traceback.txt`` after a fault of the program."""
    reason = str(error).strip() or type(error).__name__
    if not isinstance(error, MathAMRError):  # not one of our messages, which say what to do: name it, keep its place
        package = package_at_fault(error)
        owner = f"a fault of {package}: " if package else ""
        reason = f"{owner}{type(error).__name__}: {reason.splitlines()[0]} (see {place / 'traceback.txt'})"
        write_whole(place / "traceback.txt", "".join(traceback.format_exception(error)))
    console.say(f"{job.name} failed: {reason}")
    write_json(place / "failed.json", {**identity(job), "error": type(error).__name__, "reason": reason})


def write_per_topic(path: Path, scores: Evaluation) -> None:
    """Write the scores topic by topic, a column for each measure."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["topic", *scores.aggregate])
        for topic, values in sorted(scores.per_topic.items()):
            table.writerow([topic, *(f"{values[measure]:.6f}" for measure in scores.aggregate)])
