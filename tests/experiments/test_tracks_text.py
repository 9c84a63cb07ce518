"""The text track: vectors of texts and of tokens, fine-tuning on the graph track's pairs, what is made only once."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from experiments import run as runner
from experiments.report import results
from graphs.corpus.corpus import open_corpus
from graphs.corpus.pairs import training_pairs
from graphs.errors import ConfigError
from mathamr.evaluation.runs import read_run
from mathamr.training.pairs import split_pairs
from tests.experiments.test_tracks import BASE, BM25, configured

pytestmark = [
    pytest.mark.usefixtures("without_plots"),
    pytest.mark.skipif(
        find_spec("sentence_transformers") is None, reason="the extra text (sentence-transformers) is not installed"
    ),
]
CONDITIONS: dict[str, Any] = {
    "base": BASE,
    "tokens": {"track": "text", "text": {"epochs": 0, "late_interaction": True}},
    "tuned": {"track": "text", "text": {"epochs": 1, "batch_size": 8}},
    "pretrained": {"track": "text", "text": {"epochs": 0, "pretraining_epochs": 1}},
    "both_trained": {"track": "text", "text": {"epochs": 1, "batch_size": 8, "pretraining_epochs": 1}},
    "both": {"track": "fusion", "fusion": {"of": ["tuned", "base"]}},
}


def test_text_is_searched_trained_and_kept(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [f"data.root={collection}", f"outputs={tmp_path / 'out'}"]
    config = configured(CONDITIONS, *place, seeds=(1,))
    ended = runner.run(config, "command")
    assert ended.failed == 0, ended.table
    rows = {row["condition"]: row for row in results.read(tmp_path / "out" / "tracks").rows}
    assert rows["base"]["vectors"] == 40  # a vector an answer; the empty one has none
    assert rows["tokens"]["vectors"] > 400
    assert rows["base"]["model_key"] == rows["tokens"]["model_key"] != rows["tuned"]["model_key"]
    assert rows["both"]["vectors"] == 80
    posts = {f"{kind}{i}" for kind in "qa" for i in range(40)}
    pairs = training_pairs(open_corpus("jsonl", collection), config.train.positives, config.train.least_score)
    split = split_pairs(pairs, posts, validation_fraction=config.train.validation_fraction)
    assert rows["tuned"]["train_pairs"] == len(split.train)  # as of the graph track
    assert rows["tuned"]["time_per_epoch_s"] > 0
    assert rows["pretrained"]["pretraining_seconds"] > 0
    assert rows["pretrained"]["model_key"] not in (rows["base"]["model_key"], rows["tuned"]["model_key"])
    assert rows["both_trained"]["pretraining_seconds"] == rows["pretrained"]["pretraining_seconds"]  # shared
    assert capsys.readouterr().err.count("pretrained encoder") == 1
    jobs = tmp_path / "out" / "tracks" / "jobs"
    assert [json.loads(line)["kind"] for line in (jobs / "tuned-seed1" / "log.jsonl").read_text().splitlines()].count(
        "epoch"
    ) == 1
    models = tmp_path / "out" / "shared"
    assert not list(models.rglob("pairs.jsonl"))
    assert not list(models.rglob("last.safetensors"))
    assert not list(models.rglob("windows-*"))
    assert not list(models.rglob("preprocessed-*"))  # no graphs were made
    assert len(read_run(jobs / "tokens-seed1" / "run.tsv", task=1).rankings["T.0"]) == 40
    capsys.readouterr()
    again = configured({"base": BASE, "words": BM25}, *place, "retrieval.k=5", seeds=(1, 2))
    assert runner.run(again, "command").failed == 0
    said = capsys.readouterr().err
    assert "is there already" in said
    assert "encoding:" not in said
    first = [read_run(jobs / f"base-seed{seed}" / "run.tsv", task=1).rankings for seed in (1, 2)]
    assert first[0] == first[1]
    assert len(first[0]["T.0"]) == 5


def test_what_text_cannot_do_is_said_before_anything_runs(collection: Path, tmp_path: Path) -> None:
    place = [f"data.root={collection}", f"outputs={tmp_path / 'out'}"]
    for overrides, message in (
        ([f"text.encoder={tmp_path / 'none'}"], "the encoder '.*none' is not on this machine: there is no such folder"),
        (["text.epochs=1", "train.pairs=[titles]"], "learns from the pairs of the collection alone, not from titles"),
        (["retrieval.exact=false"], "the backend exact cannot do approximate maxsim"),
    ):
        with pytest.raises(ConfigError, match=message):
            runner.run(configured({"base": {"track": "text"}}, "text.epochs=0", *place, *overrides), "command")
    (collection / "topics2.jsonl").write_text(
        json.dumps({"post_id": "F.1", "body": "Where is $x^2+1$?", "formula_id": "F.1:0"}) + "\n"
    )
    (collection / "qrels2.tsv").write_text("F.1\t0\ta0:0\t3\n")
    config = configured({"base": BASE}, *place)
    config.experiment.tasks = [1, 2]
    with pytest.raises(
        ConfigError, match=r"track=text cannot do Task 2.* tracks graph, bm25, structure, latent, fusion, learned, run"
    ):
        runner.run(config, "command")
