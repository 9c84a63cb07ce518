"""Trained models, each made once and shared by the conditions and experiments that use it.

    models = Models(Path("outputs/shared/arqmath-c2cab975a849"), console.say)
    trained, encoded = models.stage(job, system, topic_sets, log)      # None while another process works at this model

A model's folder ``models/MODELKEY`` holds

    trained.json    appears last: costs, and which code, machine and graphs made it
    best/           the checkpoint; ``last/``, from which an interrupted training resumes, is removed at the end
    log.jsonl       the records of training, of kinds start, step and epoch, also where it was interrupted
    source          the graphs of the training; with other graphs it starts again, and a finished model is kept in
                    ``MODELKEY-GRAPHS`` until these graphs are back
    encoded/        posts encoded by the model

A model from another version of the code is used unchanged; the rows of the results name that version, and a run says
it once for each version.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from experiments.plan import Job
from graphs.errors import TrainingError
from graphs.shared_files import is_locked, locked, read_json, write_json
from graphs.shared_files import key as digest_of
from graphs.whole_file import write_whole
from mathamr.stages.console import Console
from mathamr.stages.data.versions import mathamr_version
from mathamr.stages.settings import JobSettings
from mathamr.stages.sources import open_data
from mathamr.stages.topic_sets import Encoded, Log, TopicSet, Trained, check_step
from mathamr.systems import registry
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig
from mathamr.training.interruption import Interrupted

if TYPE_CHECKING:
    from mathamr.systems.system import System

LOCK = ".lock"
LOG = "log.jsonl"
_RECORD = "trained.json"
_CODE = "code"  # the version of mathamr/ that has begun an unfinished training

State = Literal["trained", "training elsewhere", "begun", "missing", "none"]


class Models:
    """Models below ``shared``, the folder of a collection; ``say`` prints their progress."""

    def __init__(self, shared: Path, say: Callable[[str], None]) -> None:
        self._shared = shared
        self._say = say
        self._failed: dict[str, str] = {}

    def folder(self, job: Job) -> Path:
        """Return the folder of a job's model."""
        return self._shared / "models" / job.model_key

    def state(self, job: Job) -> State:
        """Return the state of a job's model; ``none`` where the job trains no model."""
        if not job.model_key:
            return "none"
        folder = self.folder(job)
        if is_locked(folder / LOCK):
            return "training elsewhere"
        if (folder / _RECORD).exists():
            return "trained"
        return "begun" if (folder / "source").exists() else "missing"

    def is_of_other_code(self, job: Job) -> bool:
        """Return whether another version of ``mathamr/`` than the present one trained the model of a job."""
        record = read_json(self.folder(job) / _RECORD) if job.model_key else None
        return record is not None and record.get("mathamr") != mathamr_version()

    def wait(self, job: Job) -> None:
        """Wait until no other process works at the model of a job."""
        if job.model_key:
            with locked(self.folder(job) / LOCK, wait=True):
                pass

    def stage(
        self, job: Job, system: System[Any], topic_sets: Sequence[TopicSet], log: Log
    ) -> tuple[Trained, Encoded] | None:
        """Return the model of ``job`` and its vectors, existing or made now; ``None`` while another process makes them.

        If the job trains nothing, both are empty. ``log`` is called with the records of training, also if the model
        was trained earlier. Raises the errors of training, and raises them again, without training, for the next job
        with this model.
        """
        if not job.model_key:
            return Trained(Path()), Encoded(None)
        if job.model_key in self._failed:
            raise TrainingError(self._failed[job.model_key])
        folder = self.folder(job)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / LOCK) as mine:
            if not mine:
                return None
            self._start_anew_on_other_graphs(folder, system.source(job.settings))
            try:
                trained = self._finished(folder, system, log) or self._train(job, folder, system, topic_sets, log)
            except Interrupted:
                raise
            except Exception as error:
                # Not the error itself: it holds on to all that training had in memory.
                self._failed[job.model_key] = f"{type(error).__name__}: {error} (model of job {job.name})"
                raise
            encoded = system.encode(job.settings, trained, topic_sets)
            return trained, check_step(job.settings.track, "encode", encoded, Encoded)

    def _start_anew_on_other_graphs(self, folder: Path, source: str) -> None:
        """Leave the folder to a model of the graphs ``source``; a finished one of other graphs is kept beside it."""
        before, kept = _source_of(folder), _kept(folder, source)
        if before == source:
            if kept.exists():  # a kill, while the model moved away or came back
                for path in kept.iterdir():
                    if not (folder / path.name).exists():
                        path.replace(folder / path.name)
                shutil.rmtree(kept)
            return
        if before is not None and (folder / _RECORD).exists():
            beside = _kept(folder, before)
            self._say(f"  the graphs have changed since model {folder.name} was trained; it moves to {beside}")
            beside.mkdir(exist_ok=True)
            for path in sorted(folder.iterdir(), key=lambda path: path.name == _RECORD):  # the record last
                if path.name not in (LOCK, "source") and not path.name.startswith("encoded"):
                    shutil.rmtree(beside / path.name, ignore_errors=True)  # left by a kill after it came back
                    path.replace(beside / path.name)
        elif any(path.name != LOCK for path in folder.iterdir()) and not (kept / _RECORD).exists():
            self._say(f"  the graphs have changed since model {folder.name} was begun: it is trained anew")
        (folder / "source").unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if (kept / _RECORD).exists():
            self._say(f"  model {folder.name} of these graphs comes back from {kept}")
            shutil.copytree(kept, folder, dirs_exist_ok=True)
        write_whole(folder / "source", source)
        shutil.rmtree(kept, ignore_errors=True)

    def _finished(self, folder: Path, system: System[Any], log: Log) -> Trained | None:
        record, best = read_json(folder / _RECORD), system.best(folder)
        if record is None or best is None:
            return None
        self._say(f"  model {folder.name} is there already")
        for entry in read_log(folder / LOG):
            log(entry)
        return Trained(best, record["costs"], origin=record["origin"])

    def _train(self, job: Job, folder: Path, system: System[Any], topic_sets: Sequence[TopicSet], log: Log) -> Trained:
        begun = folder / _CODE
        if not (folder / LOG).exists():
            write_whole(begun, mathamr_version())
        with TrainingLog(folder / LOG) as written:

            def record(entry: dict[str, Any]) -> None:
                written(entry)
                log(entry)

            result = self._in_processes(job, folder, topic_sets, record) or system.train(job.settings, folder, record)
        trained = check_step(job.settings.track, "train", result, Trained)
        origin = {"model_code": checkpoint.code_version(), "model_machine": machine()}
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        content = {"key": job.model_key, "finished": now, "origin": origin, "costs": dict(trained.costs)}
        content["mathamr"] = begun.read_text(encoding="utf-8") if begun.exists() else ""  # "": begun by an earlier one
        write_json(folder / _RECORD, content)
        begun.unlink(missing_ok=True)
        system.tidy(folder)
        return replace(trained, origin=origin)

    def _in_processes(self, job: Job, folder: Path, topic_sets: Sequence[TopicSet], log: Log) -> Trained | None:
        """Train in ``train.processes`` processes; return None where that is one, which is this one."""
        train = getattr(job.settings, "train", None)
        if not isinstance(train, TrainConfig) or train.processes == 1:
            return None
        from mathamr.training.processes import number_of, run_ranks  # imports torch

        count = number_of(train.processes, train.device)
        if count == 1:
            return None
        plain = [replace(topic_set, measures={}) for topic_set in topic_sets]  # one of your own cannot be sent
        arguments = job.settings, self._shared, plain, folder
        return run_ranks(count, train.device, train_rank, arguments, log, folder)


def model_of(models: Path, key: str, source: str) -> Path | None:
    """Return the folder of the finished model that was trained on the graphs ``source``; None without one."""
    folder = models / key
    places = [folder] if _source_of(folder) == source else []
    return next((place for place in [*places, _kept(folder, source)] if (place / _RECORD).exists()), None)


def _source_of(folder: Path) -> str | None:
    """Return the graphs of the model in a folder."""
    stamp = folder / "source"
    return stamp.read_text(encoding="utf-8") if stamp.exists() else None


def _kept(folder: Path, source: str) -> Path:
    """Return the folder that keeps a finished model of the graphs ``source`` while ``folder`` has one of others."""
    return folder.with_name(f"{folder.name}-{digest_of(source)}")


def train_rank(log: Log, settings: JobSettings, shared: Path, topic_sets: Sequence[TopicSet], folder: Path) -> Trained:
    """Train as one rank of several, on what the process that has started them has prepared."""
    system: System[Any] = registry.find(settings.track)(open_data(settings.data), shared, Console())
    system.check(settings, topic_sets)
    system.prepare(settings, topic_sets)
    return system.train(settings, folder, log)


class TrainingLog:
    """``log.jsonl``, a record a line. A training that goes on repeats no step and loses none.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.jsonl"
    >>> with TrainingLog(path) as log:
    ...     for step in (1, 2, 3):
    ...         log({"kind": "step", "step": step})
    >>> with TrainingLog(path) as log:  # was killed; goes on from the checkpoint of step 2
    ...     log({"kind": "start", "step": 2})
    ...     log({"kind": "step", "step": 3})
    >>> [(entry["kind"], entry["step"]) for entry in read_log(path)]
    [('step', 1), ('step', 2), ('start', 2), ('step', 3)]
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> TrainingLog:
        self._file = self._path.open("a", encoding="utf-8", buffering=1)  # a line at a time: a kill loses none
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __call__(self, entry: dict[str, Any]) -> None:
        """Write a record; one of kind ``start`` drops the records that an earlier run wrote after its step."""
        if entry.get("kind") == "start":
            kept = [before for before in read_log(self._path) if before.get("step", 0) <= entry["step"]]
            self._file.close()
            write_whole(self._path, "".join(json.dumps(before) + "\n" for before in kept))
            self._file = self._path.open("a", encoding="utf-8", buffering=1)
        self._file.write(json.dumps(entry, default=float) + "\n")  # of NumPy or torch


def read_log(path: Path) -> list[dict[str, Any]]:
    """Return the records of a log; empty without a log. A line cut by a kill is left out."""
    records = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        with suppress(ValueError):
            records.append(json.loads(line))
    return records


def machine() -> str:
    """Return the processor and its cores for a row of the results: types of processors round sums differently."""
    file = Path("/proc/cpuinfo")  # of Linux; of some processors it has no name
    name = re.search(r"^model name\s*: (.*\S)", file.read_text(encoding="utf-8"), re.M) if file.is_file() else None
    return ", ".join([*([name[1]] if name else []), platform.machine(), f"{os.cpu_count()} cores"])
