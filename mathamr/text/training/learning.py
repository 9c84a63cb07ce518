"""Steps of training until its end, whatever is learned: what fine-tuning and pretraining share.

    run = Run(objective, model, config, identity, out=out, world=world, signal=signal)
    run.go("auto", {"train_pairs": 2582}, log, progress)

An :class:`Objective` says what a step's gradients are; everything it does depends on the seed and the number of the
step alone. So a run that goes on from ``OUT/last.safetensors`` has, on the CPU, bit for bit the weights of one that was
never interrupted. ``OUT/best.safetensors`` holds the weights of the lowest validation loss, or the last ones where
nothing is validated. Both files appear whole. A call on a finished run trains nothing.

Records for the log are those of :mod:`mathamr.training.graph.trainer`.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from graphs.errors import TrainingError
from graphs.whole_file import whole_file
from mathamr.evaluation.efficiency import Stopwatch, give_back_memory, peak_device_memory, reset_peak_gpu_memory
from mathamr.text.config import TextConfig
from mathamr.training.distributed import Ranks
from mathamr.training.graph.validation import ValidationScore
from mathamr.training.interruption import Interrupted, StopSignal
from mathamr.training.result import EpochRecord
from mathamr.training.schedule import warmed_up
from mathamr.training.state import RunState, differences

Log = Callable[[dict[str, Any]], None]
Progress = Callable[[int], None]

_WEIGHT, _MOMENT, _OWN, _LOSSES = "weight.", "optimizer.", "objective.", "losses"  # what a tensor's name begins with


class Objective(Protocol):
    """What is learned, and from what: ``items`` of the ``unit`` in each step, e.g. 32 pairs."""

    steps_per_epoch: int
    items: int
    unit: str

    def begin_epoch(self, epoch: int, log: Log) -> None:
        """Make what the steps of an epoch need."""

    def backward(self, epoch: int, number: int) -> float:
        """Add this rank's gradients of step ``number`` of an epoch to the parameters; returns the loss of all ranks."""

    def validate(self) -> ValidationScore | None:
        """How good the model is now, on every rank the same; None where that is not asked."""

    def tensors(self) -> dict[str, Tensor]:
        """What the objective itself has learned, and needs to go on."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what :meth:`tensors` gave."""


class Run:
    """One run: a model, its optimizer, and where it stands (``state``; ``before``: scores of the untrained model)."""

    def __init__(
        self,
        objective: Objective,
        model: nn.Module,
        config: TextConfig,
        identity: Mapping[str, Mapping[str, Any]],
        *,
        out: Path,
        world: Ranks,
        signal: StopSignal,
    ) -> None:
        """``identity`` must be the same when a run goes on, by name and key."""
        self._objective, self._model, self._config, self._identity = objective, model, config, identity
        self._world, self._signal, self._out = world, signal, out
        self.last, self.best = out / "last.safetensors", out / "best.safetensors"
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        world.broadcast([parameter.data for parameter in self._parameters.values()])
        # Biases and the weights of normalisation, which are vectors, are not to shrink.
        groups = [
            {"params": [p for p in self._parameters.values() if p.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in self._parameters.values() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)
        self._total_steps = objective.steps_per_epoch * config.epochs
        self.state = RunState()
        self.before: ValidationScore | None = None

    # Checkpoints

    def restore(self) -> bool:
        """Go on from ``OUT/last.safetensors`` where it is; returns whether it is.

        Raises:
            TrainingError: what is there is of another run, or damaged.
        """
        if not self.last.exists():
            return False
        tensors, scalars = _read(self.last)
        differing = [
            change
            for name, values in self._identity.items()
            for change in differences(name, scalars["identity"].get(name, {}), values)
        ]
        if differing:
            raise TrainingError(
                f"this run was begun with other settings ({'; '.join(differing)}); "
                "go on with those, start anew with resume='never', or train into another folder",
                path=self.last,
            )
        self._take_over(_under(_WEIGHT, tensors))
        # The optimizer numbers its parameters group by group.
        numbers = {id(p): i for i, p in enumerate(p for group in self._optimizer.param_groups for p in group["params"])}
        moments = {
            numbers[id(parameter)]: _under(f"{_MOMENT}{name}.", tensors)
            for name, parameter in self._parameters.items()
            if any(key.startswith(f"{_MOMENT}{name}.") for key in tensors)
        }
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self._objective.restore(_under(_OWN, tensors))
        self.state = RunState.of(scalars["progress"], tensors[_LOSSES])
        self.before = None if scalars["before"] is None else ValidationScore(**scalars["before"])
        return True

    def begin(self) -> None:
        """Begin anew: remove what is there, and score the model as it came."""
        if self._world.is_main:
            self.last.parent.mkdir(parents=True, exist_ok=True)
            self.last.unlink(missing_ok=True)
            self.best.unlink(missing_ok=True)
            shutil.rmtree(self._out / "best", ignore_errors=True)
        self.before = self._objective.validate()

    def load_best(self) -> None:
        """Give the model the weights of ``OUT/best.safetensors``."""
        self._take_over(_under(_WEIGHT, _read(self.best)[0]))

    def _take_over(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                parameter.copy_(weights[name])

    def _weights(self) -> dict[str, Tensor]:
        return {f"{_WEIGHT}{name}": parameter.detach() for name, parameter in self._parameters.items()}

    def _save_last(self) -> None:
        if not self._world.is_main:
            return
        for name, parameter in self._parameters.items():
            if not torch.isfinite(parameter).all():
                raise TrainingError(f"{name} is no longer finite; go on with a lower learning rate")
        moments = {
            f"{_MOMENT}{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._optimizer.state.get(parameter, {}).items()
        }
        own = {f"{_OWN}{name}": tensor for name, tensor in self._objective.tensors().items()}
        losses = {_LOSSES: torch.tensor(self.state.losses, dtype=torch.float64)}
        scalars = {
            "identity": self._identity,
            "progress": self.state.scalars(),
            "before": None if self.before is None else dataclasses.asdict(self.before),
        }
        _write(self.last, {**self._weights(), **moments, **own, **losses}, scalars)

    # Training

    def go(self, resume: str, about: Mapping[str, Any], log: Log | None, progress: Progress | None) -> None:
        """Begin, or with ``auto`` go on where a run was interrupted, and :meth:`finish`.

        ``about`` goes to the first record. On rank 0 alone ``log`` and ``progress`` are told.
        """
        if resume == "never" or not self.restore():
            self.begin()
        tell: Log = log if log is not None and self._world.is_main else lambda record: None
        tell({**self.start_record(), **about})
        self.finish(tell, progress if progress is not None and self._world.is_main else lambda steps: None)

    def finish(self, log: Log, progress: Progress) -> None:
        """Train from where the run stands to its end, then give the model its best weights.

        Raises:
            TrainingError: a gradient that is not finite, a full disk; ``OUT/last.safetensors`` is what it was.
            Interrupted: told to stop, and saved.
        """
        reset_peak_gpu_memory(self._world.device)
        progress(self.state.step)
        while not self.finished:
            self._train_epoch(log, progress)
            self._end_epoch(log)
            self._stop_if_told()
        if self.state.epochs:
            self._world.any(False)  # no rank reads before rank 0 has written
            self.load_best()

    @property
    def finished(self) -> bool:
        """Whether nothing is left to train."""
        state, config = self.state, self._config
        return len(state.epochs) >= config.epochs or state.epochs_without_improvement >= config.patience

    def start_record(self) -> dict[str, Any]:
        """The record of the kind ``start``."""
        record = {
            "kind": "start",
            "step": self.state.step,
            "total_steps": self._total_steps,
            "steps_per_epoch": self._objective.steps_per_epoch,
            "parameters": sum(parameter.numel() for parameter in self._parameters.values()),
            "ranks": self._world.size,
            "device": str(self._world.device),
        }
        if self.before is not None:
            record |= {"val_loss": self.before.loss, "val_mrr": self.before.mrr}
        return record

    def _train_epoch(self, log: Log, progress: Progress) -> None:
        state, per_epoch = self.state, self._objective.steps_per_epoch
        epoch = len(state.epochs)
        self._objective.begin_epoch(epoch, log)
        for number in range(state.step - epoch * per_epoch, per_epoch):
            with Stopwatch(self._world.device) as watch:
                rate = self._learning_rate()
                loss, norm = self._step(epoch, number, rate)
            state.step += 1
            state.losses.append(loss)
            state.epoch_seconds += watch.seconds
            record = {"kind": "step", "step": state.step, "epoch": epoch, "loss": loss, "grad_norm": norm}
            log({**record, "learning_rate": rate, "seconds": watch.seconds})
            progress(1)
            self._stop_if_told()
            every = self._config.checkpoint_every
            if every and state.step % every == 0 and state.step % per_epoch:
                self._save_last()

    def _learning_rate(self) -> float:
        config = self._config
        return warmed_up(self.state.step, total=self._total_steps, highest=config.learning_rate, warmup=config.warmup)

    def _step(self, epoch: int, number: int, rate: float) -> tuple[float, float]:
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad()
        self._model.train()
        loss = self._objective.backward(epoch, number)
        parameters = list(self._parameters.values())
        self._world.sum_gradients(parameters, [])
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._config.grad_clip))
        if not torch.isfinite(torch.tensor(norm)):
            raise TrainingError(
                f"epoch {epoch + 1}, step {self.state.step + 1}: the gradient is not finite: norm {norm}, loss "
                f"{loss:.4g}; go on with a lower learning rate or with text.precision=fp32",
                path=self.last,
            )
        self._optimizer.step()
        return loss, norm

    def _stop_if_told(self) -> None:
        if self._world.any(self._signal.received is not None):
            self._save_last()
            self._world.any(False)  # no rank leaves, and takes the others with it, before rank 0 has saved
            raise Interrupted(self._signal.received, self.state.step, self.last)

    def _end_epoch(self, log: Log) -> None:
        state, per_epoch = self.state, self._objective.steps_per_epoch
        start = time.perf_counter()
        score = self._objective.validate()
        losses = state.losses[len(state.epochs) * per_epoch :]
        train_loss = sum(losses) / len(losses)
        val_loss, val_mrr = (score.loss, score.mrr) if score is not None else (train_loss, 0.0)
        improved = score is None or state.best_val_loss is None or val_loss < state.best_val_loss
        record = EpochRecord(len(state.epochs), state.step, train_loss, val_loss, val_mrr, state.epoch_seconds)
        state.epochs.append(record)
        state.train_seconds += state.epoch_seconds
        state.epoch_seconds = 0.0
        state.epochs_without_improvement = 0 if improved else state.epochs_without_improvement + 1
        if improved:
            state.best_step, state.best_val_loss, state.best_val_mrr = state.step, val_loss, val_mrr
            if self._world.is_main:  # first: a kill before the next line repeats this epoch's end and writes the same
                _write(self.best, self._weights(), {"step": state.step})
        self._save_last()
        shown = dataclasses.asdict(record)
        if score is None:
            del shown["val_loss"], shown["val_mrr"]
        log(
            {
                "kind": "epoch",
                **shown,
                "validation_seconds": time.perf_counter() - start,
                f"{self._objective.unit}_per_s": per_epoch * self._objective.items / max(record.seconds, 1e-9),
                "best": improved,
                "peak_memory_bytes": peak_device_memory(self._world.device),
            }
        )
        give_back_memory()


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _write(path: Path, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
    try:
        with whole_file(path) as partial:
            content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(content, partial, metadata={"scalars": json.dumps(scalars, allow_nan=False)})
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"cannot be written ({error}); what was saved before is intact. Free space or choose another folder, then "
            "start again: the same call goes on",
            path=path,
        ) from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, "pt") as file:
            scalars = json.loads(file.metadata()["scalars"])
            return {name: file.get_tensor(name) for name in list(file.keys())}, scalars
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"damaged or unreadable ({error}); start anew with resume='never'", path=path) from error
