"""A teacher's order reaches the student: values by hand, and what is learned. Its gradients: test_step.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import softmax
from tiny_collection import ENCODER, settings, teacher_of

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, TrainingError
from graphs.stores.store import GraphStore
from mathamr.training.graph.distillation import distillation_loss
from mathamr.training.graph.trainer import train


def test_the_loss_is_the_divergence_of_the_shares() -> None:
    rng = np.random.default_rng(1)
    scores, teacher = rng.normal(size=(2, 3, 5))
    own, wanted = softmax(scores / 0.2, axis=1), softmax(teacher / 0.5, axis=1)
    by_hand = (wanted * np.log(wanted / own)).sum(1).mean()
    found = distillation_loss(torch.tensor(scores), torch.tensor(0.2), torch.tensor(teacher), 0.5)
    assert float(found) == pytest.approx(by_hand, rel=1e-5)


def test_a_student_of_the_same_shares_is_told_nothing() -> None:
    scores = torch.tensor([[0.9, 0.1, 0.4]], requires_grad=True)
    distillation_loss(scores, torch.tensor(0.05), scores.detach() + 3.0, 0.05).backward()
    assert scores.grad is not None
    torch.testing.assert_close(scores.grad, torch.zeros(1, 3), atol=1e-5, rtol=0)


def test_a_student_comes_nearer_to_its_teacher(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    config = settings(teacher="any", distill_weight=10.0, epochs=6, node_mask=0.0, edge_dropout=0.0)
    records: list[dict[str, object]] = []
    train(config, store, pairs, ENCODER, out=tmp_path, teacher=teacher_of(), log=records.append)
    losses = [record["distill_loss"] for record in records if record["kind"] == "step"]
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])  # type: ignore[arg-type]


def test_a_run_goes_on_with_its_own_teacher_alone(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    config = settings(teacher="any", epochs=1)
    train(config, store, pairs, ENCODER, out=tmp_path, teacher=teacher_of())
    assert json.loads((tmp_path / "best" / "checkpoint.json").read_text())["train"]["teacher"] == "any"
    with pytest.raises(TrainingError, match="other settings"):
        train(config, store, pairs, ENCODER, out=tmp_path, teacher=teacher_of("another"))


def test_a_teacher_without_vectors_and_vectors_without_a_teacher(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"train\.teacher=minilm, but the vectors of a teacher are not given"):
        train(settings(teacher="minilm"), store, pairs, ENCODER, out=tmp_path)
    with pytest.raises(ConfigError, match=r"train\.teacher=None, but the vectors of a teacher are given"):
        train(settings(), store, pairs, ENCODER, out=tmp_path, teacher=teacher_of())
