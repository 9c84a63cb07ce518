"""Training of a text encoder: the objectives and states that :mod:`mathamr.training.loop` needs.

    state = learn(objective, model, config, identity, out=out, world=world, signal=signal)
    state.best_val_loss                                 # 1.42, and the model has the weights of that step

An :class:`Objective` computes the gradients of a step; this module has AdamW, the learning rate and the clipping.
``OUT/last.safetensors`` and ``OUT/best.safetensors`` are one file each, with the run's state in their metadata.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from graphs.errors import TrainingError
from graphs.whole_file import whole_file
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.text.config import TextConfig
from mathamr.training.distributed import Ranks
from mathamr.training.interruption import StopSignal
from mathamr.training.loop import Log, Progress, Run, Schedule, Step
from mathamr.training.result import ValidationScore
from mathamr.training.schedule import warmed_up
from mathamr.training.state import RunState, differences, refuse_another_run

_WEIGHT, _MOMENT, _OWN, _LOSSES = "weight.", "optimizer.", "objective.", "losses"  # prefixes of tensors' names


class Objective(Protocol):
    """Learning objective with its data: ``items`` of the ``unit`` in each step, e.g. 32 pairs."""

    steps_per_epoch: int
    items: int
    unit: str

    def begin_epoch(self, epoch: int, log: Log) -> None:
        """Prepare the steps of an epoch."""

    def backward(self, epoch: int, number: int) -> float:
        """Add this rank's gradients of step ``number`` of an epoch to the parameters; return the loss of all ranks."""

    def validate(self) -> ValidationScore | None:
        """Score the model, equal on every rank; None without held-out data."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the objective's own state, for resuming."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state of :meth:`tensors`."""


def learn(
    objective: Objective,
    model: nn.Module,
    config: TextConfig,
    identity: Mapping[str, Mapping[str, Any]],
    *,
    out: Path,
    world: Ranks,
    signal: StopSignal,
    resume: str = "auto",
    about: Mapping[str, Any] | None = None,
    log: Log | None = None,
    progress: Progress | None = None,
) -> RunState:
    """Train ``model``, or resume a run of the same ``identity``; leave it with its best weights.

    Args:
        identity: settings and data by name and key, equal whenever the run resumes.
        about: entries of the first record; ``log`` and ``progress`` as of :meth:`mathamr.training.loop.Run.finish`.

    Raises:
        TrainingError: a checkpoint of another run, a gradient that is not finite, a full disk.
        Interrupted: a signal; the state is saved.
    """
    learning = TextLearning(objective, model, config, world, out / "last.safetensors")
    checkpoints = _Checkpoints(learning, identity, out)
    run = Run(
        learning,
        checkpoints,
        patience=config.patience,
        checkpoint_every=config.checkpoint_every,
        world=world,
        signal=signal,
        scores_first=True,
    )
    run.begin(resume)
    parameters = sum(parameter.numel() for parameter in learning.parameters.values())
    run.finish({"parameters": parameters, **(about or {})}, log, progress)
    if run.state.epochs:
        world.any(False)  # no rank reads before rank 0 has written
        checkpoints.load_best()
    return run.state


class TextLearning:
    """A text encoder with its optimizer: a :class:`mathamr.training.loop.Learning`; equal on all ranks."""

    def __init__(self, objective: Objective, model: nn.Module, config: TextConfig, world: Ranks, last: Path) -> None:
        self.objective, self._model, self._config, self._world, self._last = objective, model, config, world, last
        self.unit, self.items = objective.unit, objective.items
        self.schedule = Schedule((objective.steps_per_epoch,) * config.epochs)
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        world.broadcast([parameter.data for parameter in self.parameters.values()])
        # Biases and normalisation weights, which are vectors, are exempt from weight decay.
        groups = [
            {"params": [p for p in self.parameters.values() if p.ndim > 1], "weight_decay": config.weight_decay},
            {"params": [p for p in self.parameters.values() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)

    @contextmanager
    def epoch(self, epoch: int, done: int, log: Log) -> Iterator[Step]:
        """Prepare the objective for the epoch."""
        self.objective.begin_epoch(epoch, log)
        yield lambda step: self._timed_step(epoch, step)

    def _timed_step(self, epoch: int, step: int) -> dict[str, Any]:
        config = self._config
        with Stopwatch(self._world.device) as watch:
            rate = warmed_up(step, total=self.schedule.total, highest=config.learning_rate, warmup=config.warmup)
            loss, norm = self._step(epoch, step, rate)
        return {"loss": loss, "grad_norm": norm, "learning_rate": rate, "seconds": watch.seconds}

    def _step(self, epoch: int, step: int, rate: float) -> tuple[float, float]:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        self._model.train()
        loss = self.objective.backward(epoch, step - self.schedule.first_step(epoch))
        parameters = list(self.parameters.values())
        self._world.sum_gradients(parameters, [])
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._config.grad_clip))
        if not torch.isfinite(torch.tensor(norm)):
            raise TrainingError(
                f"epoch {epoch + 1}, step {step + 1}: the gradient is not finite: norm {norm}, loss "
                f"{loss:.4g}; resume with a lower learning rate or with text.precision=fp32",
                path=self._last,
            )
        self.optimizer.step()
        return loss, norm

    def validate(self) -> ValidationScore | None:
        """Score the model by its objective."""
        return self.objective.validate()

    def epoch_record(self, epoch: int) -> dict[str, Any]:
        """Return nothing beyond the scores."""
        return {}


class _Checkpoints:
    """``OUT/last.safetensors`` and ``OUT/best.safetensors``: a :class:`mathamr.training.loop.Checkpoints`."""

    def __init__(self, learning: TextLearning, identity: Mapping[str, Mapping[str, Any]], out: Path) -> None:
        self._learning, self._identity, self._out = learning, identity, out
        self.last, self.best = out / "last.safetensors", out / "best.safetensors"

    def restore(self) -> RunState | None:
        """Load ``last`` if it exists."""
        if not self.last.exists():
            return None
        learning = self._learning
        tensors, scalars = _read(self.last)
        differing = [
            change
            for name, values in self._identity.items()
            for change in differences(name, scalars["identity"].get(name, {}), values)
        ]
        refuse_another_run(differing, self.last)
        self._take_over(_under(_WEIGHT, tensors))
        # The optimizer numbers its parameters group by group.
        groups = learning.optimizer.state_dict()["param_groups"]
        in_order = (p for group in learning.optimizer.param_groups for p in group["params"])
        numbers = {id(p): i for i, p in enumerate(in_order)}
        moments = {
            numbers[id(parameter)]: _under(f"{_MOMENT}{name}.", tensors)
            for name, parameter in learning.parameters.items()
            if any(key.startswith(f"{_MOMENT}{name}.") for key in tensors)
        }
        learning.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        learning.objective.restore(_under(_OWN, tensors))
        before = None if scalars["before"] is None else ValidationScore(**scalars["before"])
        return RunState.of(scalars["progress"], tensors[_LOSSES], before)

    def remove(self) -> None:
        """Delete both files, and the encoder exported from them."""
        self._out.mkdir(parents=True, exist_ok=True)
        self.last.unlink(missing_ok=True)
        self.best.unlink(missing_ok=True)
        shutil.rmtree(self._out / "best", ignore_errors=True)

    def save_last(self, state: RunState) -> None:
        """Write weights, moments, the objective's tensors, and the state."""
        learning = self._learning
        for name, parameter in learning.parameters.items():
            if not torch.isfinite(parameter).all():
                raise TrainingError(f"{name} is not finite; resume with a lower learning rate")
        moments = {
            f"{_MOMENT}{name}.{key}": value
            for name, parameter in learning.parameters.items()
            for key, value in learning.optimizer.state.get(parameter, {}).items()
        }
        own = {f"{_OWN}{name}": tensor for name, tensor in learning.objective.tensors().items()}
        losses = {_LOSSES: torch.tensor(state.losses, dtype=torch.float64)}
        scalars = {
            "identity": self._identity,
            "progress": state.scalars(),
            "before": None if state.before is None else dataclasses.asdict(state.before),
        }
        _write(self.last, {**self._weights(), **moments, **own, **losses}, scalars)

    def save_best(self, state: RunState) -> None:
        """Write only the weights."""
        _write(self.best, self._weights(), {"step": state.step})

    def load_best(self) -> None:
        """Load the weights of ``best`` into the model."""
        self._take_over(_under(_WEIGHT, _read(self.best)[0]))

    def _take_over(self, weights: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._learning.parameters.items():
                parameter.copy_(weights[name])

    def _weights(self) -> dict[str, Tensor]:
        return {f"{_WEIGHT}{name}": parameter.detach() for name, parameter in self._learning.parameters.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _write(path: Path, tensors: Mapping[str, Tensor], scalars: Mapping[str, Any]) -> None:
    try:
        with whole_file(path) as partial:
            content = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
            save_file(content, partial, metadata={"scalars": json.dumps(scalars, allow_nan=False)})
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"cannot be written ({error}); the earlier checkpoint is intact. Free space or choose another folder, then "
            "repeat the call to resume",
            path=path,
        ) from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        with safe_open(path, "pt") as file:
            scalars = json.loads(file.metadata()["scalars"])
            return {name: file.get_tensor(name) for name in list(file.keys())}, scalars
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"damaged or unreadable ({error}); start anew with resume='never'", path=path) from error
