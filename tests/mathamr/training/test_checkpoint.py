"""Checkpoints survive kills and full disks, and refuse what does not fit."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graphs.errors import TrainingError
from mathamr.training import checkpoint
from mathamr.training.checkpoint import CheckpointInfo, TrainingState, load, load_state, save
from tests.warm_process import start

INFO = CheckpointInfo(
    encoder={"hidden_dim": 4},
    train={"epochs": 2},
    vocabulary_hash="3f2a",
    config_hash="c0de",
    num_labels=9,
    num_relations=12,
    code_version="0.1.0",
    seed=7,
    step=1,
    epoch=0,
    best_step=None,
    best_val_loss=None,
    temperature=0.05,
)


def write(path: Path, step: int) -> None:
    state = TrainingState({"moment": torch.full((3,), float(step))}, {"step": step, "loss": 0.1 + 0.2})
    save(path, dataclasses.replace(INFO, step=step), {"weight": torch.full((5, 2), float(step))}, state)


def read(path: Path) -> int:
    """The step, after checking that all four files belong to it."""
    found = load(path)
    state = load_state(path)
    assert found.weights["weight"].unique().item() == found.info.step == state.scalars["step"]
    assert state.tensors["moment"].unique().item() == found.info.step
    assert state.scalars["loss"] == 0.1 + 0.2
    return found.info.step


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    weights = {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(2).bfloat16()}
    info = dataclasses.replace(INFO, best_step=3, best_val_loss=0.1 + 0.2)
    save(tmp_path / "best", info, weights)
    found = load(tmp_path / "best", vocabulary_hash="3f2a")
    assert found.info == info
    assert found.weights.keys() == weights.keys()
    assert all(torch.equal(found.weights[name], weights[name]) for name in weights)
    assert all(found.weights[name].dtype == weights[name].dtype for name in weights)


class Killed(BaseException):
    """Stands for SIGKILL: nothing handles it."""


def test_a_kill_at_any_instant_leaves_a_valid_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every system call of a save is the last one once; what is left is valid, and the next save goes through."""
    calls = 0
    dies_at = -1

    def mortal(function: Callable) -> Callable:
        def call(*args, **kwargs):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls == dies_at:
                raise Killed
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(os, "fsync", mortal(os.fsync))
    monkeypatch.setattr(Path, "rename", mortal(Path.rename))
    monkeypatch.setattr(Path, "mkdir", mortal(Path.mkdir))
    monkeypatch.setattr(checkpoint.shutil, "rmtree", mortal(checkpoint.shutil.rmtree))
    monkeypatch.setattr(checkpoint, "_write_synced", mortal(checkpoint._write_synced))
    write(tmp_path / "last", 0)
    write(tmp_path / "last", 1)
    calls_of_a_save = 0
    seen = set()
    for position in range(1, 100):
        calls, dies_at = 0, position
        before = read(tmp_path / "last")
        try:
            write(tmp_path / "last", before + 1)
        except Killed:
            found = read(tmp_path / "last")
            assert found in (before, before + 1)
            seen.add(found - before)
        else:
            calls_of_a_save = calls
            break
    assert calls_of_a_save > 15
    assert seen == {0, 1}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["last"]


@pytest.mark.parametrize("operation", ["_write_synced", "_sync"])
def test_a_full_disk_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    write(tmp_path / "last", 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, operation, full)
    with pytest.raises(TrainingError, match=r"step 2.*No space left on device; the checkpoint of step 1 is intact"):
        write(tmp_path / "last", 2)
    monkeypatch.undo()
    assert read(tmp_path / "last") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["last"]


FULL_DISK = """
import resource, sys, torch
from pathlib import Path
from mathamr.training import checkpoint
sys.path.insert(0, {folder!r})
import test_checkpoint as t
path = Path({path!r})
t.write(path, 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    checkpoint.save(path, t.INFO, {{"weight": torch.zeros(100_000)}})
except t.TrainingError as error:
    print(error)
print(t.read(path))
"""


def test_the_system_refusing_to_write_is_a_clear_message(tmp_path: Path) -> None:
    """A real refusal by the kernel, half-way through the weights."""
    code = FULL_DISK.format(folder=str(Path(__file__).parent), path=str(tmp_path / "last"))
    done = start(code, tmp_path).ended()
    assert done.returncode == 0, done.stderr
    assert "cannot write the checkpoint of step 1, 0.4 MiB: File too large; the checkpoint of step 1 is" in done.stdout
    assert done.stdout.splitlines()[-1] == "1"


def test_another_vocabulary_is_refused_with_both_hashes(tmp_path: Path) -> None:
    write(tmp_path / "last", 1)
    with pytest.raises(TrainingError, match=r"last: .*vocabulary 3f2a, not with 77b0"):
        load(tmp_path / "last", vocabulary_hash="77b0")
    with pytest.raises(TrainingError, match=r"last: .*graphs of configuration c0de, not with beef"):
        load(tmp_path / "last", vocabulary_hash="3f2a", config_hash="beef")


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoint.json", "state.json", "state.safetensors"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path / "last", 1)
    file = tmp_path / "last" / name
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(TrainingError, match=rf"{name}: damaged"):
        read(tmp_path / "last")


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise RuntimeError("unable to mmap 800000776 bytes: Cannot allocate memory (12)")

    write(tmp_path / "last", 1)
    monkeypatch.setattr("safetensors.torch.load_file", refuse)
    with pytest.raises(RuntimeError, match="unable to mmap"):
        load(tmp_path / "last")


def test_missing_and_foreign_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no checkpoint here"):
        load(tmp_path / "best")
    save(tmp_path / "best", INFO, {})
    with pytest.raises(TrainingError, match="resume from the 'last'"):
        load_state(tmp_path / "best")
    file = tmp_path / "best" / "checkpoint.json"
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, "format": 99}))
    with pytest.raises(TrainingError, match="not a checkpoint of format 1"):
        load(tmp_path / "best")
    file.write_text(json.dumps({name: value for name, value in values.items() if name != "sha256"}))
    with pytest.raises(TrainingError, match=r"wrong keys.*sha256"):
        load(tmp_path / "best")
    file.write_text(json.dumps({**values, "colour": "red"}))
    with pytest.raises(TrainingError, match="colour"):
        load(tmp_path / "best")


def test_the_code_version_tells_a_changed_checkout_from_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, "-C", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    module = tmp_path / "mathamr" / "training" / "checkpoint.py"
    module.parent.mkdir(parents=True)
    module.write_text("1")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    monkeypatch.setattr(checkpoint, "__file__", str(module))
    commit = git("rev-parse", "--short", "HEAD")
    described = checkpoint.code_version.__wrapped__  # not what is kept for this process
    assert described().endswith(f"+{commit}")
    module.write_text("2")
    assert described().endswith(f"+{commit}-dirty")
