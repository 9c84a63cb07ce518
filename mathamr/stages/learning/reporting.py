"""Records of training on the console and in files.

with training_stage("training", Console(), JsonLines(Path("model/log.jsonl"))) as report:
    train(..., log=report, progress=report.progress)
    # epoch 1: loss 0.6931, validation loss 0.7012, MRR 0.412, 3.1 s, 412.0 pairs/s
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphs.errors import TrainingError
from graphs.shared_files import only_writer
from mathamr.stages.console import Console, Stage
from mathamr.stages.topic_sets import Log
from mathamr.training.result import loss_terms


class TrainingReporter:
    """Receiver of training records: sets the number of steps, prints warnings, negatives and epochs, passes all on."""

    def __init__(self, console: Console, progress: Stage, log: Log | None = None) -> None:
        self._console, self.progress, self._log = console, progress, log

    def __call__(self, record: dict[str, Any]) -> None:
        if self._log is not None:
            self._log(record)
        if record["kind"] == "start":
            self.progress.expect(record["total_steps"])
            self.progress.skip(record["step"])
            if "warning" in record:
                self._console.say(f"  {record['warning']}")
        elif record["kind"] == "negatives":
            from mathamr.negatives import mining

            self._console.say(f"  {mining.as_text(record)}")
        elif record["kind"] == "epoch":
            self._console.say(f"  {epoch_as_text(record)}")


@contextmanager
def training_stage(name: str, console: Console, log: Log | None = None) -> Iterator[TrainingReporter]:
    """Open a stage of steps; yield the receiver of its records."""
    with console.stage(name, unit="steps") as progress:
        yield TrainingReporter(console, progress, log)
    if progress.total is not None and progress.done < progress.total:
        steps = f"{progress.done:,} of {progress.total:,} steps"
        console.say(f"  {name} ended after {steps}, because the validation loss no longer fell (patience)")


def epoch_as_text(record: Mapping[str, Any]) -> str:
    """Return the record of an epoch as a line; what was not measured is left out.

    >>> epoch_as_text({"epoch": 0, "stage": "pretraining", "train_loss": 0.69314, "seconds": 3.14})
    'epoch 1, pretraining: loss 0.693, 3.1 s'
    >>> epoch_as_text({"epoch": 1, "train_loss": 2.5, "maxsim_loss": 2.0, "formula_loss": 1.0, "seconds": 3.14})
    'epoch 2: loss 2.500 (maxsim 2.000, formula 1.000), 3.1 s'
    """
    stage = ", pretraining" if record.get("stage") == "pretraining" else ""
    parts = [f"loss {record['train_loss']:.3f}"]
    if len(terms := loss_terms(record)) > 1:
        named = (f"{name.removesuffix('_loss').replace('_', ' ')} {record[name]:.3f}" for name in terms)
        parts[0] += f" ({', '.join(named)})"
    if "val_loss" in record:
        parts += [f"validation loss {record['val_loss']:.3f}", f"MRR {record['val_mrr']:.3f}"]
    parts.append(f"{record['seconds']:.1f} s")
    if "pairs_per_s" in record:
        parts.append(f"{record['pairs_per_s']:,.1f} pairs/s")
    return f"epoch {record['epoch'] + 1}{stage}: {', '.join(parts)}"


@contextmanager
def only_trainer(out: Path) -> Iterator[None]:
    """Lock ``out`` for one training, on the first rank; errors as :func:`graphs.shared_files.only_writer`."""
    if int(os.environ.get("RANK", "0")) != 0:
        yield
        return
    with only_writer(out, "training into this folder"):
        yield


class JsonLines:
    """Log file of records, one JSON object a line; its folder is made with the first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, record: Mapping[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            message = f"the log cannot be written: {error.strerror}; make room, then run it again: it resumes"
            raise TrainingError(message, path=self._path) from error
