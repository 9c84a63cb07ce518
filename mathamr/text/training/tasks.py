"""Data of a training run of a text encoder: batches of items, and the objective's own state.

class Windows(Task):
    unit, setting = "windows", "pretraining_batch_size"
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphs.errors import ConfigError
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder
from mathamr.text.training.batches import Rows
from mathamr.training.distributed import Ranks
from mathamr.training.loop import Log, Schedule
from mathamr.training.result import ValidationScore


@dataclass(eq=False)
class Task(ABC):
    """Items of the ``unit``, in batches over all ranks: a :class:`mathamr.training.loop.Learner`.

    Attributes:
        config: settings; ``setting`` names that of the batch size.
        model: model that is trained: that of ``encoder``, perhaps with a head.
        world: ranks that share each batch.

    Raises:
        ConfigError: batches that cannot be shared evenly.
    """

    config: TextConfig
    encoder: TextEncoder
    model: Any
    seed: int
    world: Ranks

    unit = "pairs"
    setting = "batch_size"

    def __post_init__(self) -> None:
        self.batch_size: int = getattr(self.config, self.setting)
        self.epoch, self.batches_per_epoch, accumulation = 0, self.count_batches(), self.config.gradient_accumulation
        if self.batch_size % self.world.size:
            raise ConfigError(
                f"text.{self.setting}={self.batch_size} {self.unit} cannot be shared evenly by {self.world.size} "
                "ranks; use a multiple"
            )
        self.items = self.batch_size * accumulation
        self.schedule = Schedule((-(-self.batches_per_epoch // accumulation),) * self.config.epochs)

    @abstractmethod
    def count_batches(self) -> int:
        """Return the number of batches of an epoch; raise TrainingError for too few items."""

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
