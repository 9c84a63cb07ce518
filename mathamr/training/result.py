"""Progress and results of training: ranks of held-out documents, a record for each epoch, and one for the whole.

result.best, result.best_step, result.best_val_loss     # (Path('model/best'), 1406, 2.31)
[record.val_mrr for record in result.epochs]            # [0.31, 0.38, 0.41]

Beside them are the state of a run, and the differences that forbid resuming it:

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
from typing import TYPE_CHECKING, Any

from graphs.errors import TrainingError

if TYPE_CHECKING:
    from torch import Tensor


_TOTALS = frozenset(["train_loss", "val_loss"])


def loss_terms(record: Mapping[str, Any]) -> list[str]:
    """Return the keys of the terms of the training loss in the record of a step or an epoch.

    >>> loss_terms({"epoch": 0, "train_loss": 3.0, "maxsim_loss": 2.0, "formula_loss": 1.0, "val_loss": 2.5})
    ['maxsim_loss', 'formula_loss']
    """
    return [name for name in record if name.endswith("_loss") and name not in _TOTALS]


@dataclass(frozen=True, slots=True)
class ValidationScore:
    """``loss``: mean over held-out pairs. ``mrr``: mean reciprocal rank of a question's answer among all answers."""

    loss: float
    mrr: float


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """An epoch: mean training loss, scores on the held-out pairs, and seconds of training without validation."""

    epoch: int
    step: int
    train_loss: float
    val_loss: float
    val_mrr: float
    seconds: float


@dataclass(frozen=True)
class TrainResult:
    """Result of a training.

    Attributes:
        best: checkpoint of the lowest validation loss.
        best_step: optimizer step of that checkpoint; ``best_val_loss`` and ``best_val_mrr`` are its scores.
        stopped_early: True if the validation loss stopped falling before the last epoch.
        loss_curve: training loss of every optimizer step.
        time_per_epoch_s: mean seconds of an epoch, without validation.
        pairs_per_s: training pairs a second over all ranks, without validation.
        peak_memory_bytes: peak memory of the GPU, or of the process on the CPU.
        parameters: number of parameters of each part of the model, and ``total``.
        train_pairs: number of training pairs; ``validation_pairs`` that of held-out pairs.
        left_out: number of pairs without graphs; ``missing`` lists the posts without one.
    """

    best: Path
    best_step: int
    best_val_loss: float
    best_val_mrr: float
    epochs: tuple[EpochRecord, ...]
    stopped_early: bool
    loss_curve: tuple[float, ...]
    time_per_epoch_s: float
    pairs_per_s: float
    peak_memory_bytes: int
    parameters: dict[str, int]
    train_pairs: int
    validation_pairs: int
    left_out: int
    missing: tuple[str, ...]


# The reciprocal rank is taken over only the first pairs (as many as the thesis holds out, section 4.3.1). With ten
# times as many pairs, ranking all against all would take longer than an epoch.
MRR_PAIRS = 5_000
QUERIES_AT_ONCE = 256


def rank_of(scores: Tensor, own: Tensor, known_positives: Tensor) -> Tensor:
    """Return the rank of each query's own document, 1 for the best: float (B,).

    Other known answers do not count. Half of the documents with equal scores rank before it, so that collapsed vectors
    rank in the middle, not at the top.

    >>> import torch
    >>> scores = torch.tensor([[0.3, 0.9, 0.1], [0.5, 0.5, 0.5]])
    >>> rank_of(scores, torch.tensor([0, 1]), torch.zeros(2, 3, dtype=torch.bool))
    tensor([2., 2.])

    Shapes: ``scores`` (B, C); ``own`` int64 (B,), column of each query's own document; ``known_positives`` bool (B, C).
    """
    score = scores.gather(1, own.unsqueeze(1))  # (B, 1)
    others = ~known_positives.scatter(1, own.unsqueeze(1), True)
    better = ((scores > score) & others).sum(1)
    equal = ((scores == score) & others).sum(1)
    return 1 + better + equal / 2


@dataclass
class RunState:
    """Progress of a run.

    Attributes:
        best_step: step of the lowest validation loss; ``best_val_loss`` and ``best_val_mrr`` are its scores.
        epochs_without_improvement: epochs since the best step.
        epoch_seconds: training seconds of the current epoch; ``train_seconds`` those of earlier epochs.
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
