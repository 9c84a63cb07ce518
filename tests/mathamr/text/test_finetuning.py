"""Fine-tuning a tiny encoder: losses fall, the best epoch is kept, two processes do what one does."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.corpus.post import Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, TrainingError
from mathamr.negatives.text import Mining
from mathamr.text import finetuning
from mathamr.text.encoder import CARD, Opening, TextEncoder, open_encoder
from mathamr.text.finetuning import tidy
from mathamr.text.linearize import linearized
from mathamr.text.pairs import write_pairs
from mathamr.text.training import adapting
from mathamr.text.training.adapting import limit_length
from tests.mathamr.text.tiny_pairs import file_of, opened, pairs_of, settings, weights
from tests.warm_process import free_port, start

finetune = partial(finetuning.finetune, mining=Mining)


@pytest.mark.parametrize(
    "changes",
    [
        {"loss": "mnrl", "negatives": 1},
        {"loss": "symmetric", "mini_batch": 3},
        {"loss": "triplet", "negatives": 4, "margin": 0.8, "negative_source": "model"},
        {"loss": "cosine", "negatives": 2, "negative_closest": None},
        {"loss": "mnrl", "matryoshka": [64.0, 16.0], "separate": True},
        {"loss": "mnrl", "precision": "bf16"},
        {"loss": "maxsim", "negatives": 1},
    ],
    ids=str,
)
def test_every_loss_falls_and_finds_more(tiny_folder: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    encoder, records = opened(tiny_folder), []
    result = finetune(
        settings(epochs=3, **changes),
        encoder,
        file_of(tmp_path),
        out=tmp_path / "m",
        seed=1,
        mining=Mining,
        log=records.append,
    )
    curve = result.loss_curve
    assert sum(curve[-5:]) < 0.8 * sum(curve[:5])
    assert result.best_val_loss < result.before.loss
    assert [record["kind"] for record in records if record["kind"] not in ("step", "negatives")] == ["start"] + [
        "epoch"
    ] * 3
    assert result.costs["train_pairs"] == 54
    assert result.costs["epochs"] == len(result.history) == 3
    again = open_encoder(str(result.best), device="cpu")
    for side in ("query", "document"):
        np.testing.assert_allclose(
            again.encode(["word1 word2"], side), encoder.encode(["word1 word2"], side), atol=1e-6
        )


def test_a_checkpoint_in_bf16_is_trained_in_float32(tiny_folder: Path, tmp_path: Path) -> None:
    """In bf16 a step is rounded away, or to a hundred times its size."""
    half, whole = (opened(tiny_folder) for _ in range(2))
    half.model.bfloat16()
    whole.model.bfloat16().float()  # the same weights
    results = [
        finetune(settings(epochs=1), one, file_of(tmp_path), out=tmp_path / name, seed=1)
        for one, name in ((half, "half"), (whole, "whole"))
    ]
    assert results[0].loss_curve == results[1].loss_curve
    for name, weight in weights(half).items():
        torch.testing.assert_close(weight, weights(whole)[name])


@pytest.mark.parametrize("changes", [{}, {"separate": True}, {"matryoshka": [64.0, 16.0]}], ids=str)
def test_the_code_of_the_card_gives_the_vectors_of_the_text_track(
    tiny_folder: Path, tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts, mean and normalisation, texts that are cut, shorter vectors, and linearised formulas."""
    model = opened(tiny_folder).model
    cut = 16 if "matryoshka" in changes else None
    encoder = TextEncoder(model, "tiny", query="word3: ", document="word4 word5: ", truncate_dim=cut)
    config = settings(epochs=1, max_length=12, linearize=True, **changes)
    best = finetune(config, encoder, file_of(tmp_path), out=tmp_path / "m", seed=1).best
    monkeypatch.chdir(best)
    card = (best / CARD).read_text()
    asked, long = r"word6 $word1word2$ is $x^2_n$.", "word1 $a^2$ word2 " * 20
    code = card.split("```")[1].removeprefix("python\n")
    names: dict[str, Any] = {}
    exec(code.replace("Is $x^2+1$ irreducible?", asked).replace("Let $x^2+1=0$.", long), names)
    posts = [Post("1", "topic", body=text, markup="text") for text in (asked, long)]
    texts = [as_text(linearized(extract(post))) for post in posts]  # as systems write posts for encoders
    track = open_encoder(str(best), device="cpu", opening=Opening(truncate_dim=cut))
    limit_length(track, config.max_length)
    assert track.cut(texts, "document") == 2
    assert names["vectors"].shape == (1, cut or 64)
    np.testing.assert_allclose(names["vectors"], track.encode(texts[:1], "query"), atol=1e-6)
    np.testing.assert_allclose(names["others"], track.encode(texts[1:], "document"), atol=1e-6)
    np.testing.assert_allclose(names["vectors"], encoder.encode(texts[:1], "query"), atol=1e-6)  # before the export
    assert np.abs(names["vectors"] - track.encode([asked], "query")).max() > 1e-3  # typed formulas differ
    assert "cut at 12 tokens" in card
    assert "'word4 word5: ' before documents" in card


def test_separate_encoders_part_and_shared_ones_do_not(tiny_folder: Path, tmp_path: Path) -> None:
    pairs = file_of(tmp_path)
    sides = {}
    for separate in (False, True):
        encoder = opened(tiny_folder)
        finetune(settings(epochs=1, separate=separate), encoder, pairs, out=tmp_path / str(separate), seed=1)
        again = open_encoder(str(tmp_path / str(separate) / "best"), device="cpu")
        sides[separate] = [again.encode(["word1 word2"], side) for side in ("query", "document")]
        assert again.parameters == encoder.parameters
        assert len(again.encode_tokens(["word1 word2"], "document")) == 1
    np.testing.assert_array_equal(*sides[False])
    assert np.abs(sides[True][0] - sides[True][1]).max() > 1e-3


def test_less_memory_leaves_the_gradient_what_it_is(tiny_folder: Path, tmp_path: Path) -> None:
    pairs, found = file_of(tmp_path), []
    for i, changes in enumerate(({}, {"mini_batch": 3}, {"gradient_checkpointing": True})):
        config = settings(epochs=1, loss="symmetric", negatives=1, **changes)
        encoder = opened(tiny_folder)
        found.append(finetune(config, encoder, pairs, out=tmp_path / str(i), seed=1).loss_curve)
        assert not encoder.model[0].auto_model.is_activation_checkpointing  # afterwards
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-3)


def test_a_guide_leaves_out_negatives(tiny_folder: Path, tmp_path: Path) -> None:
    pairs = file_of(tmp_path)
    curves = {}
    for name, guide in (("plain", None), ("guided", str(tiny_folder))):
        config = settings(epochs=1, loss="symmetric", negatives=1, guide=guide)
        curves[name] = finetune(config, opened(tiny_folder), pairs, out=tmp_path / name, seed=1).loss_curve
    assert curves["plain"][0] > curves["guided"][0] > 0
    with pytest.raises(TrainingError, match="guide"):
        finetune(settings(epochs=1), opened(tiny_folder), pairs, out=tmp_path / "guided", seed=1)


def test_a_step_may_take_several_batches(tiny_folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Six batches are three steps of two, or two of four and two; the libraries print nothing."""
    pairs, first = file_of(tmp_path), []
    capfd.readouterr()
    for batches, steps in ((1, 6), (2, 3), (4, 2)):
        records: list[dict[str, Any]] = []
        config = settings(epochs=1, gradient_accumulation=batches)
        result = finetune(config, opened(tiny_folder), pairs, out=tmp_path / f"{batches}", seed=1, log=records.append)
        assert len(result.loss_curve) == records[0]["total_steps"] == steps
        assert result.costs["pairs_per_second"] == pytest.approx(48 / result.costs["time_per_epoch_s"])
        assert records[-1]["pairs_per_s"] == pytest.approx(result.costs["pairs_per_second"], rel=0.5)
        first.append(result.loss_curve[0])
    assert min(first[0], result.history[0].train_loss) < first[1] < 3
    assert capfd.readouterr() == ("", "")


def test_low_rank_additions_end_in_the_weights(tiny_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="the extra lora (peft) is not installed")
    encoder, records = opened(tiny_folder), []
    names = list(weights(encoder))
    config = settings(epochs=2, lora=4, learning_rate=5e-3)
    result = finetune(config, encoder, file_of(tmp_path), out=tmp_path / "m", seed=1, log=records.append)
    assert result.best_val_loss < result.before.loss
    assert records[0]["parameters"] < encoder.parameters
    assert list(weights(encoder)) == names
    assert all(weight.requires_grad for weight in encoder.model.parameters())  # it can be trained again
    again = open_encoder(str(result.best), device="cpu")
    np.testing.assert_allclose(again.encode(["word1"], "query"), encoder.encode(["word1"], "query"), atol=1e-6)


def test_low_rank_additions_need_a_package(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapting, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"text\.lora=4 needs the package peft: pip install 'mathamr-plus\[lora\]'"):
        finetune(settings(lora=4), opened(tiny_folder), file_of(tmp_path), out=tmp_path / "m", seed=1)


def test_a_finished_run_trains_nothing_and_a_new_one_begins_anew(tiny_folder: Path, tmp_path: Path) -> None:
    pairs, config = file_of(tmp_path), settings(epochs=1)
    first = finetune(config, opened(tiny_folder), pairs, out=tmp_path / "m", seed=1)
    stamp = (first.best / "modules.json").stat().st_mtime_ns
    encoder, records = opened(tiny_folder), []
    again = finetune(config, encoder, pairs, out=tmp_path / "m", seed=1, log=records.append)
    assert [record["kind"] for record in records] == ["start"]
    assert (again.loss_curve, again.best_val_mrr) == (first.loss_curve, first.best_val_mrr)
    assert (first.best / "modules.json").stat().st_mtime_ns == stamp
    with pytest.raises(TrainingError, match=r"text\.epochs=1 then, 2 now; training\.seed=1 then, 2 now"):
        finetune(dataclasses.replace(config, epochs=2), opened(tiny_folder), pairs, out=tmp_path / "m", seed=2)
    with pytest.raises(TrainingError, match=r"training\.encoder"):  # what was trained is no base
        finetune(config, encoder, pairs, out=tmp_path / "m", seed=1)
    other = finetune(config, opened(tiny_folder), pairs, out=tmp_path / "m", seed=2, resume="never")
    assert other.loss_curve != first.loss_curve
    tidy(tmp_path / "m")
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == ["best"]


def test_without_epochs_the_encoder_is_what_it_is(tiny_folder: Path, tmp_path: Path) -> None:
    plain = opened(tiny_folder)
    encoder = TextEncoder(plain.model, "tiny", query="query: ", document="passage: ")
    before = weights(encoder)
    result = finetune(settings(epochs=0), encoder, file_of(tmp_path), out=tmp_path / "m", seed=1)
    assert all(torch.equal(before[name], weight) for name, weight in weights(encoder).items())
    assert (result.best_val_loss, result.history) == (result.before.loss, ())
    again = open_encoder(str(result.best), device="cpu")
    assert again.model.max_seq_length == 16
    assert again.prompt("document") == "passage: "  # the prompts are kept with the encoder


def test_training_stops_when_the_validation_loss_does_not_fall(tiny_folder: Path, tmp_path: Path) -> None:
    pairs = file_of(tmp_path)
    config = settings(epochs=9, patience=1, learning_rate=0.5)  # far too much
    encoder = opened(tiny_folder)
    result = finetune(config, encoder, pairs, out=tmp_path / "m", seed=1)
    assert result.stopped_early
    assert len(result.history) < 9
    assert result.best_val_loss == min(record.val_loss for record in result.history)


def test_other_pairs_may_choose_the_best_epoch(tiny_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, records = file_of(tmp_path / "other", 10), []
    finetune(
        settings(epochs=1), opened(tiny_folder), file_of(tmp_path), out=tmp_path / "m", seed=1, validation=other,
        log=records.append,
    )  # fmt: skip
    assert (records[0]["train_pairs"], records[0]["validation_pairs"]) == (60, 10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 64}, "54 pairs do not fill a batch of text.batch_size=64"),
        ({"max_length": 513}, "text.max_length=513, but .* takes 512 tokens at most"),
        ({"matryoshka": [32, 16]}, "must begin with the encoder's own dimension, 64"),
        ({"validation_fraction": 0.001}, "30 groups .* cannot be split"),
    ],
)
def test_what_cannot_be_is_refused(tiny_folder: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, TrainingError), match=message):
        finetune(settings(**changes), opened(tiny_folder), file_of(tmp_path), out=tmp_path / "m", seed=1)


def test_pairs_of_one_group_have_no_negatives(tiny_folder: Path, tmp_path: Path) -> None:
    one = write_pairs(tmp_path / "one.jsonl", [replace(pair, group="g") for pair in pairs_of(20)])
    with pytest.raises(TrainingError, match="all pairs are of one group, which has no negatives"):
        finetune(settings(), opened(tiny_folder), one, out=tmp_path / "m", seed=1, validation=file_of(tmp_path, 8))


def test_negatives_need_what_mines_them(tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"text\.negatives=1 hard negatives for each query, but no miner is given"):
        finetuning.finetune(settings(negatives=1), opened(tiny_folder), file_of(tmp_path), out=tmp_path / "m", seed=1)


RANKS = """
import json, os, sys
from pathlib import Path
from tests.mathamr.text.tiny_pairs import file_of, opened, settings
from mathamr.negatives.text import Mining
from mathamr.text.finetuning import finetune
from mathamr.text.pairs import PairFile
import sentence_transformers

tiny, pairs, out = map(Path, {paths!r})
other = os.fork()  # after the imports, which take longer than the training
os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(int(other == 0))
config = settings(epochs=1, negatives=1, negative_source="model", negative_closest=None, batch_size=8)
result = finetune(config, opened(tiny), PairFile(pairs), out=out, seed=1, mining=Mining)
said = json.dumps([result.loss_curve, result.best_val_loss, result.before.loss])
(out.parent / ("rank-1" if other == 0 else "rank-0")).write_text(said)
if other:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
"""


def test_two_processes_learn_what_one_does(tiny_folder: Path, tmp_path: Path) -> None:
    """Up to rounding: this encoder has no dropout, which each process would draw independently."""
    pairs = file_of(tmp_path)
    config = settings(epochs=1, negatives=1, negative_source="model", negative_closest=None, batch_size=8)
    expected = finetune(config, opened(tiny_folder), pairs, out=tmp_path / "one", seed=1)
    code = RANKS.format(paths=[str(tiny_folder), str(pairs.path), str(tmp_path / "two")])
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ended = start(code, tmp_path, **shared).ended()
    assert ended.returncode == 0, ended
    said = (tmp_path / "rank-0").read_text()
    assert (tmp_path / "rank-1").read_text() == said
    curve, loss, before = json.loads(said)
    np.testing.assert_allclose(curve, expected.loss_curve, rtol=1e-3)
    np.testing.assert_allclose([loss, before], [expected.best_val_loss, expected.before.loss], rtol=1e-3)
    one, two = (open_encoder(str(tmp_path / name / "best"), device="cpu") for name in ("one", "two"))
    np.testing.assert_allclose(one.encode(["word1"], "query"), two.encode(["word1"], "query"), atol=1e-3)
