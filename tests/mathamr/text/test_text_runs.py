"""Runs of text encoders: signals, kills, full disks and damage, and runs that go on to the same loss."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import TrainingError
from mathamr.negatives.text import Mining
from mathamr.text import finetuning
from mathamr.text.encoder import TextEncoder
from mathamr.text.finetuning import Finetuned
from mathamr.text.pairs import PairFile
from mathamr.text.training.runs import Recorded
from mathamr.training.interruption import Interrupted
from tests.mathamr.text.tiny_pairs import file_of, opened, settings, weights

HARD = {"negatives": 1, "negative_source": "model", "negative_closest": None, "mini_batch": 5}
Train = partial[Finetuned]


class Killed(BaseException):
    """What no handler of the run catches, as a kill."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> PairFile:
    return file_of(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def uninterrupted(
    tiny_folder: Path, pairs: PairFile, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Finetuned, TextEncoder]:
    """Two epochs of six steps, with dropout and negatives that are mined in each."""
    encoder = opened(tiny_folder, dropout=0.1)
    out = tmp_path_factory.mktemp("whole")
    return finetuning.finetune(settings(**HARD), encoder, pairs, out=out, seed=1, mining=Mining), encoder


def stopped(step: int, how: Any) -> Any:
    """Return a log that calls ``how`` after a step."""

    def log(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == step:
            how()

    return log


def send() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def die() -> None:
    raise Killed


@pytest.mark.parametrize(
    ("stop_at", "how", "saved"),
    [(3, send, 3), (6, send, 6), (9, die, 8)],
    ids=["within an epoch", "at its end", "killed in the second"],
)
def test_an_interrupted_run_goes_on_to_the_same_loss(
    tiny_folder: Path,
    tmp_path: Path,
    pairs: PairFile,
    uninterrupted: tuple[Finetuned, TextEncoder],
    stop_at: int,
    how: Any,
    saved: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without saved random generators, which ranks after the first do not have; no saved step is removed."""
    monkeypatch.setattr(Recorded, "_load_rng_state", lambda trainer, checkpoint: None)
    removed, remove = list[Path](), shutil.rmtree

    def noted(path: Path, **options: Any) -> None:
        removed.append(path)
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", noted)
    config, rest = settings(checkpoint_every=4, **HARD), list[dict[str, Any]]()
    train = partial(finetuning.finetune, config, pairs=pairs, out=tmp_path, seed=1, mining=Mining)
    with pytest.raises((Interrupted, Killed), match=None if how is die else f"after step {stop_at}, saved"):
        train(encoder=opened(tiny_folder, dropout=0.1), log=stopped(stop_at, how))
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == [f"checkpoint-{saved}"]
    assert tmp_path / f"checkpoint-{saved}" not in removed
    (tmp_path / "checkpoint-9-copy").mkdir()  # of the user
    encoder = opened(tiny_folder, dropout=0.1)
    before = torch.get_rng_state()
    result = train(encoder=encoder, log=rest.append)
    assert torch.equal(torch.get_rng_state(), before)  # the caller's generator is its own
    expected, whole = uninterrupted
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-12", "checkpoint-9-copy"]
    np.testing.assert_allclose(result.loss_curve, expected.loss_curve, rtol=1e-4)
    assert (result.before, len(result.history)) == (expected.before, 2)
    assert result.best_val_loss == pytest.approx(expected.best_val_loss, rel=1e-4)
    assert [record["step"] for record in rest if record["kind"] == "step"] == list(range(saved + 1, 13))
    for name, weight in weights(whole).items():
        torch.testing.assert_close(weights(encoder)[name], weight, rtol=1e-3, atol=1e-5)


def test_a_full_disk_leaves_the_last_checkpoint(
    tiny_folder: Path, tmp_path: Path, pairs: PairFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(finetuning.finetune, settings(checkpoint_every=2), pairs=pairs, out=tmp_path, seed=1)
    save, calls = torch.save, list[str]()

    def full(content: Any, path: Any, *more: Any, **options: Any) -> None:
        calls.append(str(path))
        if "checkpoint-4" in calls[-1]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(content, path, *more, **options)

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(TrainingError, match=r"checkpoint-4.*No space left on device.*intact. Free space or choose"):
        train(encoder=opened(tiny_folder))
    assert all(".writing" in path for path in calls)  # nothing else is pickled
    monkeypatch.undo()
    rest: list[dict[str, Any]] = []
    train(encoder=opened(tiny_folder), log=rest.append)
    assert next(record["step"] for record in rest if record["kind"] == "step") == 3
    assert not (tmp_path / ".writing").exists()


def test_a_damaged_checkpoint_is_refused(tiny_folder: Path, tmp_path: Path, pairs: PairFile) -> None:
    """Before any of it is read."""
    train = partial(finetuning.finetune, settings(), pairs=pairs, out=tmp_path, seed=1)
    with pytest.raises(Interrupted):
        train(encoder=opened(tiny_folder), log=stopped(2, send))
    path = tmp_path / "checkpoint-2" / "optimizer.pt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(TrainingError, match=r"checkpoint-2/optimizer.pt: not what training has written; remove its"):
        train(encoder=opened(tiny_folder))
    assert train(encoder=opened(tiny_folder), resume="never").history


def test_a_gradient_that_is_not_finite_stops_the_run(tiny_folder: Path, tmp_path: Path, pairs: PairFile) -> None:
    encoder = opened(tiny_folder)
    with torch.no_grad():
        next(encoder.model.parameters()).fill_(float("nan"))
    message = r"epoch 1, step 1: the gradient is not finite: norm nan, loss nan; start anew \(--resume never\) with a"
    with pytest.raises(TrainingError, match=message):
        finetuning.finetune(settings(), encoder, pairs, out=tmp_path, seed=1)
    assert not list(tmp_path.glob("checkpoint-*"))


def test_the_setting_decides_on_the_precision(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, curves = file_of(tmp_path), []
    for i, said in enumerate(("no", "bf16")):
        monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", said)
        config = settings(epochs=1)
        curves.append(finetuning.finetune(config, opened(tiny_folder), pairs, out=tmp_path / str(i), seed=1).loss_curve)
    assert curves[0] == curves[1]
