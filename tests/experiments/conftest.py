"""Experiments in tests keep no logbook with Weights & Biases, unless a test asks for one."""

import pytest


@pytest.fixture(autouse=True)
def without_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "disabled")
