"""Progress of a training run, and the differences that forbid resuming it.

>>> import torch
>>> state = RunState(step=2, losses=[3.5, 3.25])
>>> RunState.of(state.scalars(), torch.tensor(state.losses, dtype=torch.float64)) == state
True
>>> differences("train", {"epochs": 7, "seed": 1}, {"epochs": 9, "seed": 1})
['train.epochs=7 then, 9 now']
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from graphs.errors import TrainingError
from mathamr.training.result import EpochRecord, ValidationScore, loss_terms


@dataclass
class RunState:
    """Progress of a run.

    Attributes:
        step: optimizer steps done.
        best_step: step of the lowest validation loss; ``best_val_loss`` and ``best_val_mrr`` are its scores.
        epochs_without_improvement: epochs since the best step.
        epoch_seconds: training seconds of the current epoch; ``train_seconds`` those of earlier epochs.
        epochs: records of the finished epochs.
        losses: training loss of every step.
        terms: sum and number of each term of the loss over the steps of the current epoch.
        before: scores of the untrained model, if requested.
    """

    step: int = 0
    best_step: int | None = None
    best_val_loss: float | None = None
    best_val_mrr: float | None = None
    epochs_without_improvement: int = 0
    epoch_seconds: float = 0.0
    train_seconds: float = 0.0
    epochs: list[EpochRecord] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    terms: dict[str, tuple[float, int]] = field(default_factory=dict)
    before: ValidationScore | None = None

    def add_terms(self, record: Mapping[str, Any]) -> None:
        """Add the terms of the loss in the record of a step.

        >>> state = RunState()
        >>> state.add_terms({"loss": 3.0, "maxsim_loss": 2.0})
        >>> state.add_terms({"loss": 2.0, "maxsim_loss": 1.0, "formula_loss": 4.0})
        >>> state.mean_terms()
        {'maxsim_loss': 1.5, 'formula_loss': 4.0}
        """
        for name in loss_terms(record):
            total, steps = self.terms.get(name, (0.0, 0))
            self.terms[name] = total + record[name], steps + 1

    def mean_terms(self) -> dict[str, float]:
        """Return the mean of each term over the steps of the epoch that have it."""
        return {name: total / steps for name, (total, steps) in self.terms.items()}

    def scalars(self) -> dict[str, Any]:
        """Return all but ``losses`` and ``before``, as plain values."""
        values = dataclasses.asdict(self)
        del values["losses"], values["before"]
        return values

    @classmethod
    def of(cls, scalars: Mapping[str, Any], losses: Tensor, before: ValidationScore | None = None) -> RunState:
        """Restore a state from :meth:`scalars`; ``losses`` is float64 (step,)."""
        values = {**scalars, "epochs": [EpochRecord(**record) for record in scalars["epochs"]]}
        return cls(**values, losses=losses.tolist(), before=before)


def differences(name: str, old: Mapping[str, Any], new: Mapping[str, Any], free: Collection[str] = ()) -> list[str]:
    """Return the settings that differ, except those that are ``free`` to."""
    return [
        f"{name}.{key}={old.get(key)} then, {new.get(key)} now"
        for key in sorted(old.keys() | new.keys())
        if key not in free and old.get(key) != new.get(key)
    ]


def refuse_another_run(differing: Sequence[str], path: Path) -> None:
    """Raise for a run with other settings or data.

    >>> refuse_another_run(["train.seed=1 then, 2 now"], Path("last"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    graphs.errors.TrainingError: last: ... (train.seed=1 then, 2 now); use those, start anew (--resume never), or ...

    Raises:
        TrainingError: names what differs.
    """
    if differing:
        raise TrainingError(
            f"this run was started with other settings ({'; '.join(differing)}); "
            "use those, start anew (--resume never), or train into another folder",
            path=path,
        )
