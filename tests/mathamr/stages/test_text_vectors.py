"""Vectors of texts beside their model: texts that are too long are counted, and what a key depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def test_keys_stay_unchanged_while_an_encoder_is_opened_as_published() -> None:
    published = settings().set_away_from_default()
    opening = {"revision", "dtype", "trust_remote_code", "pooling", "query_prompt", "document_prompt", "truncate_dim"}
    assert not opening & published.keys()
    assert settings(pooling="cls").set_away_from_default() == published | {"pooling": "cls"}
