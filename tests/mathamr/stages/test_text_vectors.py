"""Vectors of texts beside their model: texts that are too long are counted, and what a key depends on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mathamr.retrieval.exact.index import ExactIndex
from mathamr.stages.console import Console
from mathamr.stages.text_vectors import TextsToEncode, encode_texts
from mathamr.stages.vectors import EncodedPosts
from mathamr.text.encoder import TextEncoder
from mathamr.text.training.adapting import limit_length
from mathamr.text.training.tiny import make_tiny
from tests.mathamr.text.tiny_pairs import settings


def test_the_share_of_cut_texts_is_a_column_of_the_results(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    encoder = make_tiny(["ring field prime"] * 5, tmp_path / "tiny")
    limit_length(encoder, 6)
    texts = {"1": "ring " * 50, "2": "ring", "3": "field", "t": "prime"}

    def read(ids: object) -> list[str]:
        return [texts[name] for name in ids]  # type: ignore[attr-defined]

    def opened() -> TextEncoder:
        return encoder

    (tmp_path / "model").mkdir()
    posts = TextsToEncode({"1": "document", "2": "document", "3": "document"}, read)
    place = EncodedPosts(tmp_path / "model", "hash")
    encode_texts(place, opened, posts, TextsToEncode({"t": "query"}, read), Console(), tokens=False)
    assert place.costs(3)["texts_cut"] == 1 / 4
    assert EncodedPosts(tmp_path / "model", "hash").costs(3)["texts_cut"] == 1 / 4  # kept with the vectors


def test_a_text_that_changed_after_a_kill_is_encoded_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard of the old text lies there, complete."""
    pytest.importorskip("sentence_transformers")
    encoder = make_tiny(["ring field prime"] * 5, tmp_path / "tiny")
    (tmp_path / "model").mkdir()

    def encoded(text: str) -> EncodedPosts:
        place = EncodedPosts(tmp_path / "model", "hash")
        place.forget_changed({"t": f"digest of {text}"})
        topics = TextsToEncode({"t": "query"}, lambda ids: [text] * len(ids))
        encode_texts(place, lambda: encoder, TextsToEncode({}, list), topics, Console(), tokens=False)
        return place

    def killed(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ExactIndex, "build", killed)
        with pytest.raises(KeyboardInterrupt):
            encoded("ring")
    vectors = encoded("field prime").sets(["t"]).vectors.numpy()
    np.testing.assert_allclose(vectors, encoder.encode(["field prime"], "query"), atol=1e-6)


@pytest.mark.parametrize(("tokens", "expected"), [(False, ["cpu", "cpu"]), (True, [])])
def test_several_devices_share_the_work(
    tokens: bool, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes are started once, used for every text, and stopped; here they are none, since they start slowly."""
    pytest.importorskip("sentence_transformers")
    encoder = make_tiny(["ring field prime"] * 5, tmp_path / "tiny")
    started: list[str] = []
    pools: list[object] = []
    encode = encoder.model.encode

    def start(devices: list[str]) -> dict[str, object]:
        started.extend(devices)
        return {"stopped": 0}

    def stop(pool: dict[str, object]) -> None:
        pool["stopped"] = 1

    def one_process(texts: list[str], *, pool: object = None, **options: Any) -> Any:
        pools.append(pool)
        return encode(texts, **options)

    moved: list[object] = []
    monkeypatch.setattr(encoder.model, "to", moved.append)
    monkeypatch.setattr(encoder.model, "start_multi_process_pool", start)
    monkeypatch.setattr(encoder.model, "stop_multi_process_pool", stop)
    monkeypatch.setattr(encoder.model, "encode", one_process)
    (tmp_path / "model").mkdir()
    place = EncodedPosts(tmp_path / "model", "hash")
    posts = TextsToEncode({"1": "document"}, lambda ids: ["ring"] * len(ids))
    topics = TextsToEncode({"t": "query"}, lambda ids: ["ring"] * len(ids))
    encode_texts(place, lambda: encoder, posts, topics, Console(), tokens=tokens, devices=["cpu", "cpu"])
    assert started == expected
    assert moved == ([] if tokens else [encoder.model.device])  # back from the CPU
    assert pools == ([None] * 2 if tokens else [{"stopped": 1}] * 2)


def test_keys_stay_unchanged_while_an_encoder_is_opened_as_published() -> None:
    published = settings().set_away_from_default()
    opening = {"revision", "dtype", "trust_remote_code", "pooling", "query_prompt", "document_prompt", "truncate_dim"}
    assert not opening & published.keys()
    assert settings(pooling="cls").set_away_from_default() == published | {"pooling": "cls"}
