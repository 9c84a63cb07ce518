"""``train.processes``: training in two processes gives the row that one gives, and both end together."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.run import _processes_of_torchrun, run, start
from graphs.errors import ConfigError
from mathamr.training import processes
from tests.experiments.tiny_settings import ROOT, TINY

TWO = ("train.processes=2",)


def composed(collection: Path, outputs: Path, *settings: str) -> Any:
    places = [f"data.root={collection}", f"outputs={outputs}", "train.epochs=3", "experiment.name=trial"]
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return validated(compose("config", ["+exp=trial", *TINY, *places, *settings]))


def records(outputs: Path) -> list[dict[str, Any]]:
    (log,) = outputs.glob("shared/*/models/*/log.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def losses(outputs: Path) -> list[float]:
    return [entry["loss"] for entry in records(outputs) if entry["kind"] == "step"]


def row(outputs: Path) -> dict[str, str]:
    with (outputs / "trial" / "results.csv").open(newline="") as file:
        (only,) = csv.DictReader(file)
    return only


@pytest.mark.usefixtures("warm_children")
@pytest.mark.slow
def test_two_processes_give_the_row_of_one_also_when_each_is_killed(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each rank draws its own masks. The learning rate is the thesis's: with a higher one Adam makes more of rounding.
    unmasked = ("train.node_mask=0", "train.edge_dropout=0", "train.learning_rate=1e-4")
    assert not run(composed(collection, tmp_path / "one", *unmasked), "").failed

    take = processes._Watch._take
    to_kill: list[int] = []

    def kill_after_an_epoch(self: Any, rank: int, kind: str, content: Any) -> None:
        take(self, rank, kind, content)
        if kind == "log" and content["kind"] == "epoch" and to_kill:
            os.kill(self._processes[to_kill.pop()].pid, signal.SIGKILL)

    monkeypatch.setattr(processes._Watch, "_take", kill_after_an_epoch)
    assert not run(composed(collection, tmp_path / "whole", *unmasked, *TWO), "").failed
    two = composed(collection, tmp_path / "two", *unmasked, *TWO)
    for rank in (0, 1):
        to_kill.append(rank)
        assert run(two, "").failed == 1
        assert f"rank {rank} of 2 was killed by SIGKILL" in row(tmp_path / "two")["status"]
    assert not run(two, "").failed
    assert losses(tmp_path / "two") == losses(tmp_path / "whole")  # bit for bit
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-6)
    ones, twos = row(tmp_path / "one"), row(tmp_path / "two")
    assert (ones["key"], ones["model_key"], ones["parameters"]) == (twos["key"], twos["model_key"], twos["parameters"])
    assert float(twos["ndcg_prime"]) == pytest.approx(float(ones["ndcg_prime"]), abs=1e-6)


@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_no_number_of_processes_is_refused(collection: Path, tmp_path: Path, number: str) -> None:
    with pytest.raises(ConfigError, match=f"train.processes={number} is not a number of processes"):
        run(composed(collection, tmp_path, f"train.processes={number}"), "")


def test_torchrun_in_front_asks_for_as_many_processes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": "0", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert _processes_of_torchrun(["+exp=trial"]) == ["train.processes=2"]
    assert not {"WORLD_SIZE", "RANK", "MASTER_PORT"} & os.environ.keys()
    assert _processes_of_torchrun(["+exp=trial"]) == []
    monkeypatch.setenv("RANK", "1")
    assert start(["no-setting"]) == 2  # a rank of nothing is no rank
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert start(["+exp=trial"]) == 0  # leaves all to rank 0
    monkeypatch.setenv("RANK", "0")
    capsys.readouterr()
    assert start(["+exp=trial"]) == 2
    assert "8 ranks on several machines; an experiment trains on one" in capsys.readouterr().err
