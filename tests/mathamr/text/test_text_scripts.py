"""From LaTeX to a fine-tuned encoder by the commands of docs/text.md."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.shared_files import only_writer
from mathamr.stages.learning import text_encoder
from mathamr.text.encoder import open_encoder
from mathamr.text.pairs import TextPair, write_pairs
from mathamr.text.sources.papers import extract
from mathamr.training.interruption import Interrupted
from scripts.text import finetune_text, statement_statistics

STATEMENT = (
    r"\begin{{lemma}}[Lemma {0} on $x_{0}$] Every ring number {0} has $a^{0} + b = c_{0}$ as its law. \end{{lemma}}"
)


def test_answers_with_threads_kept_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text_pairs = importlib.import_module("scripts.text.text_pairs")
    (tmp_path / "posts.jsonl").write_text(
        "".join(
            json.dumps({"post_id": f"q{i}", "kind": "question", "markup": "text", "body": f"What is ${i}+{i}$?"})
            + "\n"
            + json.dumps(
                {
                    "post_id": f"a{i}",
                    "kind": "answer",
                    "markup": "text",
                    "parent_id": f"q{i}",
                    "body": f"It is {2 * i}.",
                }
            )
            + "\n"
            for i in range(10)
        )
    )
    command = ["answers", "--corpus", "jsonl", "--root", str(tmp_path), "--positives", "answers", "--least-score", "0"]
    assert text_pairs.main([*command, "--test-share", "0.3", "--benchmark", str(tmp_path / "made")]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["answers"], made["train"], made["tests"]) == ({"answers": 10}, 7, {"unseen": 3})
    assert PairCollection(tmp_path / "made").tests() == ("unseen",)


def test_from_sources_to_an_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers")
    text_pairs, finetune_text = (
        importlib.import_module(f"scripts.text.{name}") for name in ("text_pairs", "finetune_text")
    )
    for paper in range(12):
        text = "\n".join(STATEMENT.format(10 * paper + i) for i in range(4))
        (tmp_path / f"p{paper}.tex").write_text(rf"\title{{Paper {paper}}}" + text)
    extract(sorted(tmp_path.glob("*.tex")), tmp_path / "papers.jsonl")
    for kind, count in (("formulas", "pairs of 12 groups"), ("statements", "50 pairs of 12 groups")):
        arguments = [kind, "--papers", str(tmp_path / "papers.jsonl"), "--out", str(tmp_path / "pairs.jsonl")]
        assert text_pairs.main(arguments) == 0
        assert count in capsys.readouterr().out
    asking = ["statements", "--papers", str(tmp_path / "papers.jsonl"), "--out", str(tmp_path / "x"), "--estimate"]
    assert text_pairs.main([*asking, "--model", "any", "--prices", "1", "2"]) == 0
    assert "48 questions to ask: about" in capsys.readouterr().out
    for words, message in (
        (["--estimate"], "--estimate has no effect without --model"),
        (["--server", "http://localhost"], "--server has no effect without --model"),
        (["--answers", "a.jsonl"], "--answers has no effect without --model"),
        (["--model", "any", "--per-minute", "0"], "--per-minute has no effect without --server"),
        (["--model", "any", "--prices", "1", "2"], "--prices has no effect without --estimate"),
    ):
        assert text_pairs.main([*asking[:-1], *words]) == 2
        assert message in capsys.readouterr().err
    statistics = ["--papers", str(tmp_path / "papers.jsonl"), "--unseen-papers", "1", "--encoders", "minilm"]
    assert statement_statistics.main(statistics) == 0
    tables = capsys.readouterr().out
    assert "| train | 44 | 91.7% |" in tables  # one paper of four is unseen, and nothing is left of the tenth
    assert "| papers | 12 |" in tables
    assert tables.count("| minilm | ") == 2
    assert "tokens also of minilm; most frequent: " in tables
    assert statement_statistics.main([*statistics[:-1], str(tmp_path / "no-encoder")]) == 2
    assert "name the encoder's folder" in capsys.readouterr().err
    command = ["--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "model"), "text=tiny"]
    small = ["text.batch_size=8", "text.pretraining_epochs=1", "text.pretraining_batch_size=2", "text.max_length=16"]
    assert finetune_text.main([*command, *small]) == 0
    lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines) == ["best", "before", "pairs", "epochs", "peak memory", "parameters", "speed"]
    assert lines["pairs"].strip() in ("45 trained on", "46 trained on")  # but for those of one paper
    records = [json.loads(line) for line in (tmp_path / "model" / "log.jsonl").read_text().splitlines()]
    assert [record["kind"] for record in records if record["kind"] != "step"] == ["start", "epoch"] * 2
    assert open_encoder(str(tmp_path / "model" / "best"), device="cpu").dimension == 64

    assert finetune_text.main([*command, "text.epochs=0.5"]) == 2
    assert finetune_text.main([*command, *small, "text.epochs=3"]) == 2  # another run's folder
    assert "text.epochs=1 then, 3 now" in capsys.readouterr().err

    def interrupted(*arguments: object, **options: object) -> None:
        raise Interrupted(None, 3, tmp_path)

    monkeypatch.setattr(text_encoder, "finetune", interrupted)
    assert finetune_text.main([*command, *small]) == 75
    assert text_pairs.main(["statements", "--papers", str(tmp_path / "gone"), "--out", str(tmp_path / "x")]) == 2


def test_a_second_training_into_one_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_pairs(tmp_path / "pairs.jsonl", [TextPair("Is it?", "It is.", "q", "a", group="q")])
    with only_writer(tmp_path / "model", "training into this folder"):
        given = ["--pairs", str(tmp_path / "pairs.jsonl"), "--out", str(tmp_path / "model"), "text=tiny"]
        assert finetune_text.main(given) == 2
    assert "another process is training into this folder" in capsys.readouterr().err
