"""Training loop of every learner: epochs of steps, validation, checkpoints, and resuming.

    run = Run(learning, checkpoints, config, world, signal)
    run.begin("auto")
    run.start({"train_pairs": 2582}, log, progress)
    while not run.is_finished:
        while run.state.step < run.end_of_epoch:
            run.count_step({"loss": 2.5, "seconds": 0.1})
        run.end_epoch()
    run.state.best_step, run.state.best_val_loss     # (1406, 2.31)

The graph trainer takes the steps (:mod:`mathamr.training.graph.trainer`), or that of a library
(:mod:`mathamr.text.training.runs`). A step depends only on the seed and the number of the step, so on the CPU a resumed
run has, bit for bit, the weights of an uninterrupted run. :class:`Checkpoints` keep ``last``, and ``best``:
the weights of the lowest validation loss, or the last ones without validation. A finished run trains nothing.

>>> schedule = Schedule((20, 50, 50), patient_from=1)  # an epoch of pretraining before two
>>> schedule.first_step(2), schedule.total
(70, 120)
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mathamr.evaluation.efficiency import peak_device_memory, reset_peak_gpu_memory
from mathamr.memory import give_back_memory
from mathamr.training.config import LearningConfig
from mathamr.training.distributed import Ranks
from mathamr.training.interruption import Interrupted, StopSignal
from mathamr.training.result import EpochRecord, RunState, ValidationScore

Log = Callable[[dict[str, Any]], None]
Progress = Callable[[int], None]


@dataclass(frozen=True)
class Schedule:
    """Optimizer steps of each epoch; ``patience`` counts epochs from ``patient_from`` on, those of the last stage."""

    steps: tuple[int, ...]
    patient_from: int = 0

    def first_step(self, epoch: int) -> int:
        """Return the number of steps before an epoch."""
        return sum(self.steps[:epoch])

    @property
    def total(self) -> int:
        """Number of steps of all epochs."""
        return sum(self.steps)


class Learner(Protocol):
    """Model with its data: ``items`` of the ``unit`` in each step over all ranks, e.g. 32 pairs."""

    unit: str
    items: int
    schedule: Schedule

    def validate(self) -> ValidationScore | None:
        """Score the model, equal on every rank; None without held-out data."""

    def epoch_record(self, epoch: int) -> dict[str, Any]:
        """Return entries of an epoch's log record beside its scores."""


class Checkpoints(Protocol):
    """Checkpoints of one run. Only rank 0 saves; a checkpoint is written atomically."""

    @property
    def last(self) -> Path:
        """Checkpoint that an interrupted run resumes from."""

    def restore(self) -> RunState | None:
        """Load ``last``, None if it does not exist; raise TrainingError if it is damaged or of another run."""

    def remove(self) -> None:
        """Delete both checkpoints."""

    def save_last(self, state: RunState) -> None:
        """Replace ``last``; raise TrainingError for weights that are not finite or a full disk, and keep the older."""

    def save_best(self, state: RunState) -> None:
        """Replace ``best``; errors as in :meth:`save_last`."""


class Run:
    """A training run; ``state`` is its progress."""

    def __init__(
        self, learning: Learner, checkpoints: Checkpoints, config: LearningConfig, world: Ranks, signal: StopSignal
    ) -> None:
        self._learning, self._schedule, self._checkpoints = learning, learning.schedule, checkpoints
        self._config, self._world, self._signal = config, world, signal
        self.state = RunState()
        self.tell: Log = lambda record: None
        self._advance: Progress = lambda steps: None

    def begin(self, resume: str) -> None:
        """Resume from the last checkpoint with ``auto``; otherwise, or without a checkpoint, start anew."""
        restored = None if resume == "never" else self._checkpoints.restore()
        if restored is not None:
            self.state = restored
            return
        if self._world.is_main:
            self._checkpoints.remove()

    def start(self, about: Mapping[str, Any], log: Log | None, progress: Progress | None) -> None:
        """Write the first record, with the entries ``about``.

        Args:
            log: function that receives records of the kinds start, step and epoch, on rank 0 only.
            progress: function called on each rank with the number of steps done since its last call.
        """
        if log is not None and self._world.is_main:
            self.tell = log
        self._advance = progress or self._advance
        reset_peak_gpu_memory(self._world.device)
        schedule, before = self._schedule, self.state.before
        record = {
            "kind": "start",
            "step": self.state.step,
            "total_steps": schedule.total,
            "steps_per_epoch": schedule.steps[-1] if schedule.steps else 0,
            "ranks": self._world.size,
            "device": str(self._world.device),
        }
        if before is not None:
            record |= {"val_loss": before.loss, "val_mrr": before.mrr}
        self.tell({**record, **about})

    @property
    def end_of_epoch(self) -> int:
        """Number of steps at the end of the current epoch."""
        return self._schedule.first_step(len(self.state.epochs) + 1)

    @property
    def is_finished(self) -> bool:
        """True after the last epoch, or if the validation loss has stopped falling."""
        state, patience = self.state, self._config.patience
        return len(state.epochs) >= len(self._schedule.steps) or state.epochs_without_improvement >= patience

    def count_step(self, record: dict[str, Any]) -> None:
        """Record an optimizer step, with its ``loss`` and ``seconds``."""
        state = self.state
        state.step += 1
        state.losses.append(record["loss"])
        state.add_terms(record)
        state.epoch_seconds += record["seconds"]
        self.tell({"kind": "step", "step": state.step, "epoch": len(state.epochs), **record})
        self._advance(1)

    def save_if_due(self) -> None:
        """Save within an epoch, if a checkpoint is due; the end of an epoch is saved after scoring."""
        every = self._config.checkpoint_every
        if every and self.state.step % every == 0 and self.state.step < self.end_of_epoch:
            self._save_last()

    def _save_last(self) -> None:
        if self._world.is_main:
            self._checkpoints.save_last(self.state)

    def stop_if_told(self) -> None:
        """Save and raise :class:`Interrupted` if a rank has received a signal."""
        if self._world.any(self._signal.received is not None):
            self._save_last()
            self._world.any(False)  # no rank exits before rank 0 has saved
            raise Interrupted(self._signal.received, self.state.step, self._checkpoints.last)

    def end_epoch(self) -> None:
        """Score the model, save it, and record the epoch."""
        state, start = self.state, time.perf_counter()
        score = self._learning.validate()
        epoch = len(state.epochs)
        losses = state.losses[self._schedule.first_step(epoch) :]
        train_loss = sum(losses) / len(losses)
        val_loss, val_mrr = (train_loss, 0.0) if score is None else (score.loss, score.mrr)
        record = EpochRecord(epoch, state.step, train_loss, val_loss, val_mrr, state.epoch_seconds)
        state.epochs.append(record)
        state.train_seconds += state.epoch_seconds
        state.epoch_seconds = 0.0
        improved = score is None or state.best_val_loss is None or val_loss < state.best_val_loss
        improved |= val_loss == 0  # one held-out pair has no negatives: its loss is always 0, so the last epoch counts
        if improved:
            state.best_step, state.best_val_loss, state.best_val_mrr = state.step, val_loss, val_mrr
        impatient = not improved and epoch >= self._schedule.patient_from
        state.epochs_without_improvement = state.epochs_without_improvement + 1 if impatient else 0
        if improved and self._world.is_main:
            self._checkpoints.save_best(state)  # before the record and last: a kill between repeats this epoch's end
        shown = dataclasses.asdict(record)
        if score is None:
            del shown["val_loss"], shown["val_mrr"]
        terms, state.terms = state.mean_terms(), {}
        self.tell(
            {
                "kind": "epoch",
                **shown,
                **terms,
                **self._learning.epoch_record(epoch),
                "validation_seconds": time.perf_counter() - start,
                f"{self._learning.unit}_per_s": len(losses) * self._learning.items / max(record.seconds, 1e-9),
                "best": improved,
                "peak_memory_bytes": peak_device_memory(self._world.device),
            }
        )
        self._save_last()  # after the record, which a kill would lose; a resumed run drops it and repeats the epoch
        give_back_memory()
