"""Results of training: ranks of held-out documents, a record for each epoch, and one for the whole.

result.best, result.best_step, result.best_val_loss     # (Path('model/best'), 1406, 2.31)
[record.val_mrr for record in result.epochs]            # [0.31, 0.38, 0.41]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        epochs: record of each epoch.
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

    Args:
        scores: similarities (B, C).
        own: int64 (B,), column of each query's own document.
        known_positives: bool (B, C), documents known to answer a query.
    """
    score = scores.gather(1, own.unsqueeze(1))  # (B, 1)
    others = ~known_positives.scatter(1, own.unsqueeze(1), True)
    better = ((scores > score) & others).sum(1)
    equal = ((scores == score) & others).sum(1)
    return 1 + better + equal / 2
