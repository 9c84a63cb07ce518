"""Data of a training run of a text encoder: batches of items, and the objective's own state.

class Windows(Task):
    unit = "windows"
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from graphs.errors import ConfigError
from mathamr.text.training.batches import Rows
from mathamr.training.distributed import Ranks
from mathamr.training.loop import Log, Schedule
from mathamr.training.result import ValidationScore


class Task(ABC):
    """Items of the ``unit``, in batches over all ranks: a :class:`mathamr.training.loop.Learner`.

    Args:
        setting: name of the setting of the batch size.
        batch_size: items of a batch.
        batches: batches of an epoch; ``accumulation`` of them make an optimizer step.

    Raises:
        ConfigError: batches that cannot be shared evenly.
    """

    unit = "pairs"

    def __init__(
        self, setting: str, batch_size: int, batches: int, world: Ranks, *, epochs: int, accumulation: int = 1
    ) -> None:
        if batch_size % world.size:
            raise ConfigError(
                f"text.{setting}={batch_size} {self.unit} cannot be shared evenly by {world.size} ranks; use a multiple"
            )
        self.batch_size, self.batches_per_epoch, self.epoch = batch_size, batches, 0
        self.items = batch_size * accumulation
        self.schedule = Schedule((-(-batches // accumulation),) * epochs)

    @abstractmethod
    def __getitem__(self, row: int) -> dict[str, Any]:
        """Return an item, for the trainer's collator."""

    @abstractmethod
    def batches(self, epoch: int) -> Rows:
        """Return the items of each batch of an epoch, int64 (batches, batch_size)."""

    @abstractmethod
    def trainer(self, arguments: Callable[[type], Any]) -> Any:
        """Return a :class:`mathamr.text.training.runs.Recorded`; ``arguments`` makes its arguments of their class."""

    def begin_epoch(self, epoch: int, log: Log) -> None:
        """Prepare the items of an epoch."""
        self.epoch = epoch

    def validate(self) -> ValidationScore | None:
        """Score the model, equal on every rank; None without held-out data."""
        return None

    def epoch_record(self, epoch: int) -> dict[str, Any]:
        """Return nothing beyond the scores."""
        return {}

    def tensors(self) -> dict[str, Tensor]:
        """Return the task's own state, for resuming."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:  # noqa: B027 -- nothing to restore by default
        """Restore the state of :meth:`tensors`."""
