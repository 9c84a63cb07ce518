"""Masked language modelling: the loss falls, the encoder changes, an interrupted run goes on to the same loss."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import ConfigError, TrainingError
from mathamr.text.encoder import open_encoder
from mathamr.text.pretraining import _with_head, depends_on, logits_at, pretrain, windows_of
from mathamr.text.training.adapting import separate
from mathamr.training.interruption import Interrupted
from tests.mathamr.text.tiny_pairs import WORDS, opened, settings, weights

TEXTS = [" ".join(WORDS[i % 40 : i % 40 + 9] * 3) for i in range(12)]
SMALL = {"pretraining_epochs": 2, "pretraining_window": 32, "pretraining_overlap": 6, "pretraining_learning_rate": 3e-3}


def test_the_loss_falls_and_the_encoder_is_the_one_that_was_trained(tiny_folder: Path, tmp_path: Path) -> None:
    encoder = opened(tiny_folder)
    before = weights(encoder)
    result = pretrain(settings(**SMALL), encoder, iter(TEXTS), out=tmp_path / "m", seed=1)
    assert sum(result.losses[-3:]) < 0.95 * sum(result.losses[:3])
    after = weights(encoder)
    assert all(not torch.equal(before[name], after[name]) for name in before)
    again = weights(open_encoder(str(result.best), device="cpu"))
    assert all(torch.equal(again[name], after[name]) for name in after)
    assert result.costs["pretraining_windows_per_second"] > 0


def test_an_interrupted_run_goes_on_to_the_same_loss(tiny_folder: Path, tmp_path: Path) -> None:
    config = settings(**SMALL)
    whole = opened(tiny_folder, dropout=0.1)
    expected = pretrain(config, whole, TEXTS, out=tmp_path / "whole", seed=1)

    def stop(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 3:
            os.kill(os.getpid(), signal.SIGUSR1)

    with pytest.raises(Interrupted):
        pretrain(config, opened(tiny_folder, dropout=0.1), TEXTS, out=tmp_path / "m", seed=1, log=stop)
    encoder = opened(tiny_folder, dropout=0.1)
    result = pretrain(config, encoder, TEXTS, out=tmp_path / "m", seed=1)
    np.testing.assert_allclose(result.losses, expected.losses, rtol=1e-4)
    for name, weight in weights(whole).items():
        torch.testing.assert_close(weights(encoder)[name], weight, rtol=1e-3, atol=1e-5)


def test_every_window_is_read_once_an_epoch_beside_others_of_its_length(tiny_folder: Path, tmp_path: Path) -> None:
    texts = [" ".join(WORDS[i % 40 : i % 40 + 1 + i % 7] * (1 + i % 5)) for i in range(90)]
    seen: list[tuple[int, ...]] = []
    encoder = opened(tiny_folder)
    hook = encoder.model[0].auto_model.register_forward_pre_hook(
        lambda module, args, inputs: seen.append(tuple(inputs["attention_mask"].sum(1).tolist())), with_kwargs=True
    )
    config = settings(**SMALL | {"pretraining_epochs": 2, "pretraining_batch_size": 8})
    windows = pretrain(config, encoder, texts, out=tmp_path, seed=1).windows
    hook.remove()
    steps = windows // 8
    lengths = [sorted(length for batch in epoch for length in batch) for epoch in (seen[:steps], seen[steps:])]
    assert [len(epoch) for epoch in lengths] == [8 * steps] * 2
    assert seen[:steps] != seen[steps:]
    spread = [max(batch) - min(batch) for batch in seen]
    assert sum(spread) / len(spread) < 4
    assert sorted(seen[:steps], key=max) != seen[:steps]  # short ones do not come first


def test_a_sample_of_the_texts_is_one_for_every_seed(tiny_folder: Path, tmp_path: Path) -> None:
    config = settings(**SMALL | {"pretraining_texts": 4, "pretraining_batch_size": 2})
    whole = pretrain(settings(**SMALL), opened(tiny_folder), TEXTS, out=tmp_path / "whole", seed=1).windows
    some = [pretrain(config, opened(tiny_folder), TEXTS, out=tmp_path / f"{n}", seed=n).windows for n in (1, 2)]
    assert some[0] == some[1] < whole
    assert "pretraining_texts" not in depends_on(settings(**SMALL))  # keys stay unchanged without a limit
    assert "pretraining_texts" not in settings(**SMALL).set_away_from_default()
    assert depends_on(config)["pretraining_texts"] == 4


def test_words_are_said_of_hidden_tokens_alone(tiny_folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    bert = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=50, **small))
    for model in (bert, transformers.AutoModelForMaskedLM.from_pretrained(tiny_folder)):
        model.eval()
        inputs = {"input_ids": torch.randint(5, 50, (3, 7)), "attention_mask": torch.ones(3, 7, dtype=torch.int64)}
        inputs["attention_mask"][1, 4:] = 0
        asked = (torch.rand(3, 7) < 0.4) & inputs["attention_mask"].bool()
        found = []
        for logits in (model(**inputs).logits[asked], logits_at(model, inputs, asked, model.get_output_embeddings())):
            model.zero_grad()
            logits.logsumexp(1).sum().backward()
            found.append((logits, *(one.grad for one in model.parameters() if one.grad is not None)))
        for expected, fast in zip(*found, strict=True):
            torch.testing.assert_close(fast, expected)


def test_the_head_is_of_the_same_commit_as_the_encoder(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    transformer = next(module for module in open_encoder(str(tiny_folder)).model if hasattr(module, "auto_model"))
    given = list[dict[str, Any]]()
    model_class = transformers.AutoModelForMaskedLM
    plain = model_class.from_pretrained

    def with_options(*arguments: Any, **options: Any) -> Any:
        given.append(options)
        return plain(*arguments, dtype=options["dtype"])

    monkeypatch.setattr(model_class, "from_pretrained", with_options)
    _with_head(transformer)
    transformer.auto_model.config._commit_hash = "ab12"
    _with_head(transformer)
    assert [options.get("revision") for options in given] == [None, "ab12"]


def test_long_texts_become_windows_that_share_tokens(tiny_folder: Path, tmp_path: Path) -> None:
    tokenizer = opened(tiny_folder).model.tokenizer
    text = " ".join(WORDS)
    windows = windows_of(tokenizer, ["few", text], 30, 6, tmp_path / "windows.arrow")
    content = [window["input_ids"][1:-1] for window in windows]  # without the marks of the ends
    assert all(len(window) == 28 for window in content[:-1])
    assert all(first[-6:] == second[:6] for first, second in pairwise(content))
    joined = content[0] + [token for window in content[1:] for token in window[6:]]
    assert joined == tokenizer(text)["input_ids"][1:-1]


def test_what_cannot_be_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    encoder = opened(tiny_folder)
    with pytest.raises(ConfigError, match="pretraining_epochs=0 trains nothing"):
        pretrain(settings(), encoder, TEXTS, out=tmp_path, seed=1)
    with pytest.raises(ConfigError, match=r"pretraining_window=1024, but .* takes 512"):
        pretrain(settings(**SMALL | {"pretraining_window": 1024}), encoder, TEXTS, out=tmp_path, seed=1)
    with pytest.raises(TrainingError, match="0 windows of text do not fill a batch"):
        pretrain(settings(**SMALL), encoder, ["few"], out=tmp_path, seed=1)
    separate(encoder)
    with pytest.raises(ConfigError, match="has two encoders"):
        pretrain(settings(**SMALL), encoder, TEXTS, out=tmp_path, seed=1)
