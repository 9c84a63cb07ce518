"""Ranks in processes of their own: what comes back, and how they end together."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest
import torch

from graphs.errors import ConfigError, TrainingError
from mathamr.training.distributed import ranks
from mathamr.training.interruption import Interrupted, listen
from mathamr.training.processes import Log, run_ranks


def summed(log: Log, factor: int) -> int:
    """Return the sum of the ranks' numbers, and log each rank's."""
    with ranks("cpu") as world:
        parameter = torch.nn.Parameter(torch.zeros(1))
        parameter.grad = torch.tensor([float(world.rank + 1)])
        world.sum_gradients([parameter], [])
        log({"kind": "step", "rank": world.rank})
        return factor * int(parameter.grad.item())


def until_told(log: Log) -> None:
    """Train until a signal comes, as the training loop does."""
    with ranks("cpu") as world, listen() as stop:
        step = 0
        while not world.any(stop.received is not None):
            step += 1
            log({"kind": "step", "step": step})
            time.sleep(0.02)
        raise Interrupted(stop.received, step, "model")


def fails_on_the_second(log: Log) -> None:
    """Fail on rank 1, while rank 0 waits for it."""
    with ranks("cpu") as world:
        if world.rank == 1:
            raise ConfigError("no such thing")
        world.any(False)


def test_what_rank_0_returns_and_logs_comes_back() -> None:
    records: list[dict[str, Any]] = []
    assert run_ranks(2, "cpu", summed, (10,), records.append) == 30
    assert records == [{"kind": "step", "rank": 0}]


def test_a_signal_stops_all_ranks_which_have_saved() -> None:
    def tell(record: dict[str, Any]) -> None:
        if record["step"] == 3:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1)).start()

    with pytest.raises(Interrupted, match="stopped by SIGUSR1 after step"):
        run_ranks(2, "cpu", until_told, (), tell)


def test_the_error_of_one_rank_is_that_of_all() -> None:
    with pytest.raises(TrainingError, match="no such thing"):
        run_ranks(2, "cpu", fails_on_the_second, (), print)


def test_one_gpu_by_number_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"use train\.device=cuda with train\.processes=2"):
        run_ranks(2, "cuda:1", fails_on_the_second, (), print)
