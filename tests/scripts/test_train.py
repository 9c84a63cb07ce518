"""scripts/train.py: a summary, or one message and an exit code."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore, config_hash
from mathamr.stages.learning import graph_model
from mathamr.stages.learning.reporting import only_trainer
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig
from mathamr.training.interruption import Interrupted
from scripts import train
from tests.mathamr.tiny_collection import make_store

SMALL = ["train.epochs=2", "train.batch_size=8", "model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> GraphStore:
    return make_store(tmp_path_factory.mktemp("graphs") / "preprocessed.db")


@pytest.fixture
def command(store: GraphStore, tmp_path: Path) -> list[str]:
    (tmp_path / "pairs.tsv").write_text("".join(f"q{i}\ta{i}\n" for i in range(48)) + "q1\tlost\n")
    return ["--tensors", str(store.path), "--pairs", str(tmp_path / "pairs.tsv"), "--out", str(tmp_path / "model")]


def test_it_trains_and_says_what_came_of_it(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main([*command, *SMALL]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == ["best", "pairs", "epochs", "speed", "peak memory", "parameters"]
    assert "43 trained on, 5 held out, 1 left out (1 post without graph: lost)" in lines["pairs"]
    assert "graphs/s" in lines["speed"]
    assert "relational_layers" in lines["parameters"]
    records = [json.loads(line) for line in (tmp_path / "model" / "log.jsonl").read_text().splitlines()]
    assert [record["kind"] for record in records].count("step") == 10
    assert checkpoint.load(tmp_path / "model" / "best").info.encoder["hidden_dim"] == 16
    assert train.main([*command, *SMALL]) == 0  # finished: answers at once
    assert "epochs:      2, " in capsys.readouterr().out


def test_a_single_held_out_question_is_warned_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main([*command, *SMALL, "train.epochs=1", "train.validation_fraction=0.02"]) == 0
    warning = "1 question is held out, so its validation loss is always 0; use train.validation_fraction=0.05"
    assert warning in " ".join(capsys.readouterr().err.split())


def test_virtual_nodes_are_those_of_the_file_or_asked_for(
    command: list[str], store: GraphStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circular = VirtualNodeSpec(connectivity="circular")
    assert train.main([*command, *SMALL, "train.epochs=1", "--connectivity", "circular"]) == 0
    trained_on = checkpoint.load(tmp_path / "model" / "best").info.config_hash
    assert trained_on == config_hash(circular, store.vocabulary) != store.config_hash
    assert train.main([*command, *SMALL, "--structure", "flat"]) == 2
    assert "structure is 'flat'; give one of full, global, none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.epochz=3"], "epochz"),
        (["train=nowhere"], "nowhere"),
        (["train.batch_size=many"], "many"),
        (["train.batch_size=1000"], "train.batch_size=1000 is larger than the training set of 43 pairs"),
    ],
)
def test_a_setting_that_does_not_fit_is_a_message_and_code_2(
    command: list[str], settings: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main([*command, *settings]) == 2
    assert message in capsys.readouterr().err


def test_the_pairs_know_what_is_held_out_together(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def stopped(config: TrainConfig, *_: object, **__: object) -> None:
        seen.append(config.positives)
        raise KeyboardInterrupt

    monkeypatch.setattr(graph_model, "train", stopped)
    (tmp_path / "pairs.positives").write_text("duplicates")
    train.main([*command, *SMALL])
    assert "train.positives=duplicates, as" in capsys.readouterr().err
    (tmp_path / "pairs.positives").unlink()  # pairs from elsewhere
    train.main([*command, *SMALL])
    train.main([*command, *SMALL, "train.positives=all"])
    assert seen == ["duplicates", "accepted", "all"]
    (tmp_path / "pairs.positives").write_bytes(b"\xff")
    assert train.main([*command, *SMALL]) == 2


def test_a_bad_file_is_a_message_with_its_line(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.tsv").write_text("q1\ta1\nq2 a2\n")
    assert train.main(command) == 2
    assert "pairs.tsv:2: 1 columns, 2 are needed" in capsys.readouterr().err
    (tmp_path / "pairs.tsv").write_text("q1\ta1\nq2\tq2\n")
    assert train.main(command) == 2
    assert "pairs.tsv:2: post q2 is paired with itself" in capsys.readouterr().err
    (tmp_path / "pairs.tsv").unlink()
    assert train.main(command) == 2
    assert "pairs.tsv: cannot be read" in capsys.readouterr().err


def test_hard_negatives_come_from_a_file(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hard.tsv").write_text("".join(f"q{i}\ta{j}\n" for i in range(48) for j in range(0, 48, 5)))
    hard = ["--negatives", str(tmp_path / "hard.tsv")]
    assert train.main([*command, *hard, *SMALL, "train.negatives=2"]) == 0
    assert train.main([*command, *SMALL, "train.negatives=2"]) == 2
    assert "but none are given" in capsys.readouterr().err
    mined = ["train.negatives=2", "train.negative_source=model", "train.negative_closest=null"]
    assert train.main([*command, *SMALL, *mined, "--resume=never"]) == 0
    assert "hard negatives by model: of 48 questions, 0 have none; posts: 480 kept, " in capsys.readouterr().err
    assert train.main([*command, *hard, *SMALL]) == 2
    assert "hard negatives are given, but train.negatives=0 draws none" in capsys.readouterr().err


def test_an_interrupted_run_has_its_own_code(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Interrupted(signal.SIGUSR1, 7, "model/last")

    monkeypatch.setattr(graph_model, "train", stopped)
    assert train.main([*command, *SMALL]) == 75
    assert "stopped by SIGUSR1 after step 7, saved" in capsys.readouterr().err


def test_a_second_ctrl_c_has_the_code_of_shells(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(graph_model, "train", stopped)
    assert train.main([*command, *SMALL]) == 130
    assert "stopped; the same command resumes" in capsys.readouterr().err


def test_two_cannot_train_into_one_folder(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with only_trainer(tmp_path / "model"):
        assert train.main([*command, *SMALL]) == 2
    assert "model: another process is training into this folder" in capsys.readouterr().err
    assert not (tmp_path / "model" / "best").exists()


def test_a_folder_that_cannot_be_written_to_is_named(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").write_text("a file")
    assert train.main([*command, *SMALL]) == 2
    assert "model: cannot be written to (File exists); choose another folder" in capsys.readouterr().err
