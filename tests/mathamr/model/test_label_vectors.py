"""Vectors of the labels' words: from any encoder, kept by hash and in checkpoints, refused where they do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_collection import ENCODER, encoder_config, settings

from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch, collate, mask_nodes
from graphs.graph.tensors import GraphArrays
from graphs.graph.vocabulary import MASK, RESERVED_LABELS, RESERVED_RELATIONS, Vocabulary
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.label_vectors import (
    LabelText,
    hash_of,
    label_text_reference,
    made_from,
    of_labels,
    path_of,
    read,
    source_of,
    write,
)
from mathamr.training import checkpoint
from mathamr.training.graph.trainer import train

VOCABULARY = Vocabulary([*RESERVED_LABELS, "solve-01", "equat", "V!x", "O!SUP"], RESERVED_RELATIONS)
PLAIN = replace(ENCODER, hidden_dim=8, projection_dim=4, num_bases=3)


def letters(texts: list[str]) -> list[list[float]]:
    """A text encoder of a kind."""
    return [[text.count("s"), text.count("x"), len(text)] for text in texts]


def batch() -> GraphBatch:
    graph = GraphArrays.from_edges(
        [8, 9, 10, 8, 2, 4], [(0, 8, 1), (0, 8, 3), (4, 0, 2), (5, 4, 4), (5, 4, 0)], [4, 5], [0, 2], 2
    )
    return collate([graph, graph])


def encoder(vn_init: str = "zero", vn_learned: str = "embedding") -> Encoder:
    vectors = of_labels(VOCABULARY, letters)
    config = replace(PLAIN, label_vectors=hash_of(vectors), vn_init=vn_init, vn_learned=vn_learned)
    torch.manual_seed(0)
    return Encoder(config, VOCABULARY.num_labels, VOCABULARY.num_relations, label_vectors=vectors)


def test_labels_have_vectors_of_their_words_and_the_reserved_ones_zeros() -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return letters(texts)

    vectors = of_labels(VOCABULARY, encode, {"equat": "equation"})
    assert asked == ["equation", "solve", "superscript", "x"]
    assert vectors.tolist() == [[0, 0, 0]] * 8 + [[1, 0, 5], [0, 0, 8], [0, 1, 1], [2, 0, 11]]


def test_nodes_have_the_sum_of_both_embeddings() -> None:
    model = encoder()
    text, x = model.features.text, model.features(batch())
    assert text is not None
    both = model.features.labels.weight[[8, 9, 10, 8]] + label_text_reference(text, [8, 9, 10, 8])
    torch.testing.assert_close(x[:4], both)
    assert not torch.allclose(x[:4], model.features.labels.weight[[8, 9, 10, 8]])
    assert torch.equal(x[4:6], torch.zeros(2, 8))  # virtual nodes have a start of their own


def test_fast_path_equals_the_reference_in_values_and_gradients() -> None:
    text = encoder().features.text
    assert text is not None
    for labels in ([8, 9, 8, 8, MASK, 11], [8], []):
        upstream = torch.randn(len(labels), 8)
        fast = text(torch.tensor(labels, dtype=torch.int64))
        plain = label_text_reference(text, labels) if labels else 0 * text.weight[:0]
        torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-6)
        (ours,), (theirs,) = (torch.autograd.grad(out, [text.weight], upstream) for out in (fast, plain))
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_mean_starts_are_means_of_the_sums() -> None:
    model = encoder("mean", "none")
    x = model.features(batch())
    torch.testing.assert_close(x[4], x[2])
    torch.testing.assert_close(x[5], x[:4].mean(0))


def test_vectors_are_frozen_and_their_projection_learns() -> None:
    model = encoder()
    model(batch()).vectors[:, 0].sum().backward()
    text = model.features.text
    assert text is not None
    assert not text.vectors.requires_grad
    assert text.weight.grad is not None
    assert text.weight.grad.abs().sum() > 0
    counts = model.parameters_by_group()
    assert (counts["label_vectors"], counts["virtual_nodes"]) == (3 * 8, 3 * 8)


def test_a_masked_node_has_nothing_of_its_words() -> None:
    text = encoder().features.text
    assert text is not None
    masked = mask_nodes(batch(), 1.0, torch.Generator())
    assert torch.equal(text(masked.labels[~masked.is_virtual]), torch.zeros(8, 8))


def test_files_are_found_by_hash(tmp_path: Path) -> None:
    vectors = of_labels(VOCABULARY, letters)
    found = write(tmp_path, vectors, VOCABULARY)
    assert read(tmp_path, found, VOCABULARY).equal(vectors)
    assert [file.name for file in tmp_path.iterdir()] == [f"label_vectors-{found}.safetensors"]
    other = Vocabulary([*VOCABULARY.labels[:-1], "O!SUB"], RESERVED_RELATIONS)
    with pytest.raises(ConfigError, match=f"belongs to the vocabulary {VOCABULARY.hash}, the graphs to {other.hash}"):
        read(tmp_path, found, other)
    with pytest.raises(ConfigError, match=r"label_vectors-beef\.safetensors is missing or damaged"):
        read(tmp_path, "beef", VOCABULARY)
    path_of(tmp_path, "beef").write_bytes(b"nothing of the kind")
    with pytest.raises(ConfigError, match="is missing or damaged"):
        read(tmp_path, "beef", VOCABULARY)


def test_files_are_found_by_what_they_were_made_from(tmp_path: Path) -> None:
    vectors, source = of_labels(VOCABULARY, letters), source_of(VOCABULARY, "letters")
    assert made_from(tmp_path, source) is None
    found = write(tmp_path, vectors, VOCABULARY, source)
    path_of(tmp_path, "beef").write_bytes(b"nothing of the kind")
    assert made_from(tmp_path, source) == found
    other = Vocabulary([*VOCABULARY.labels[:-1], "O!SUB"], RESERVED_RELATIONS)
    others = {source_of(VOCABULARY, "words"), source_of(VOCABULARY, "letters", {"equat": "equation"})}
    others.add(source_of(other, "letters"))
    assert len(others) == 3
    assert [made_from(tmp_path, one) for one in others] == [None] * 3


def test_vectors_that_do_not_fit_are_refused() -> None:
    vectors = of_labels(VOCABULARY, letters)
    text = LabelText(hash_of(vectors), VOCABULARY.num_labels, 8)
    with pytest.raises(ConfigError, match=f"model.label_vectors={hash_of(vectors)} of 12 labels is configured"):
        text.take(vectors + 1)
    with pytest.raises(ConfigError, match=r"shape \(11, 3\)"):
        text.take(vectors[1:])
    with pytest.raises(ConfigError, match="but the encoder has none yet"):
        text(torch.tensor([8]))
    with pytest.raises(ConfigError, match=r"label vectors are given, but model\.label_vectors is null"):
        Encoder(PLAIN, 12, 10, label_vectors=vectors)


@pytest.mark.parametrize("wrong", [[[1.0]], [1.0] * 4, [[float("nan")]] * 4], ids=["too few", "flat", "not finite"])
def test_a_text_encoder_that_gives_something_else_is_refused(wrong: list[Any]) -> None:
    with pytest.raises(ConfigError, match="for 4 texts"):
        of_labels(VOCABULARY, lambda texts: wrong)


def test_a_checkpoint_holds_the_vectors_and_training_needs_their_file(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:

    found = write(store.path.parent, of_labels(store.vocabulary, letters), store.vocabulary)
    config = encoder_config(label_vectors=found, vn_aggregation="attention")
    result = train(settings(epochs=2), store, pairs, config, out=tmp_path / "whole")
    kept = checkpoint.load_encoder(result.best, config_hash=store.config_hash)
    path_of(store.path.parent, found).unlink()
    again = checkpoint.load_encoder(result.best, config_hash=store.config_hash)
    graphs = store.load(["q0", "a0"])
    assert torch.equal(kept(graphs).vectors, again(graphs).vectors)
    assert again.features.text is not None
    assert hash_of(again.features.text.vectors) == found
    with pytest.raises(ConfigError, match=r"is missing or damaged .* make it with"):
        train(settings(epochs=2), store, pairs, config, out=tmp_path / "other")
