"""Vectors of sentences in the model: what they add and where, what is refused, and training with them."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_collection import ENCODER, encoder_config, settings, with_vectors

from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch, collate
from graphs.graph.tensors import GraphArrays
from graphs.graph.virtual_nodes import VirtualKind
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder, EncoderConfig
from mathamr.model.encoding import encode
from mathamr.model.sentence_text import starts_reference
from mathamr.search.query import QueryEncoder
from mathamr.training import checkpoint
from mathamr.training.graph.formula_pairs import FormulaViews, formulas_of
from mathamr.training.graph.trainer import train
from mathamr.training.interruption import Interrupted

PLAIN = replace(ENCODER, hidden_dim=8, projection_dim=4, num_bases=3)
# Two nodes, and virtual nodes of a formula, of some sentences and of the document.
KINDS = [VirtualKind.FORMULA, VirtualKind.SENTENCE, VirtualKind.SENTENCE, VirtualKind.DOCUMENT]


def graph(kinds: list[VirtualKind]) -> GraphArrays:
    virtual = list(range(2, 2 + len(kinds)))
    edges = [(0, 8, 1), *((node, 2 * kind, 0) for node, kind in zip(virtual, kinds, strict=True))]
    return GraphArrays.from_edges([9, 10, *(2 + kind for kind in kinds)], edges, virtual, list(kinds), len(kinds))


def batch(kinds: list[list[VirtualKind]]) -> GraphBatch:
    count = sum(one.count(VirtualKind.SENTENCE) for one in kinds)
    made = torch.randn(count, 5, generator=torch.Generator().manual_seed(1))
    return replace(collate([graph(one) for one in kinds]), sentence_vectors=made)


def encoder(config: EncoderConfig = PLAIN, identity: str | None = "letters") -> Encoder:
    torch.manual_seed(0)
    return Encoder(replace(config, sentence_vectors=identity), 12, 10, sentence_dim=5 if identity else None)


@pytest.mark.parametrize("start", [("zero", "embedding"), ("zero", "none"), ("mean", "typed_projection")])
@pytest.mark.parametrize("kinds", [[KINDS, KINDS[2:], KINDS[:1]], [KINDS[3:]], []], ids=["some", "no sentence", "none"])
def test_fast_path_equals_the_reference_in_values_and_gradients(
    start: tuple[str, str], kinds: list[list[VirtualKind]]
) -> None:
    config = replace(PLAIN, vn_init=start[0], vn_learned=start[1])
    with_text, without = encoder(config), encoder(config, None)
    graphs, text = batch(kinds), with_text.features.sentences
    assert text is not None
    assert graphs.sentence_vectors is not None
    fast, plain = with_text.features(graphs), without.features(graphs)
    virtual = graphs.is_virtual
    found = graphs.virtual_kind[virtual].tolist()
    sums = starts_reference(plain[virtual], found, VirtualKind.SENTENCE, graphs.sentence_vectors, text)
    wanted = plain.index_copy(0, torch.nonzero(virtual).squeeze(1), torch.stack(sums)) if sums else plain
    torch.testing.assert_close(fast, wanted)
    upstream = torch.randn(fast.shape)
    (ours,) = torch.autograd.grad(fast, [text.weight], upstream)
    theirs = torch.autograd.grad(wanted, [text.weight], upstream, allow_unused=True)[0]
    torch.testing.assert_close(ours, torch.zeros_like(ours) if theirs is None else theirs)


def test_all_other_weights_begin_as_they_do_without() -> None:
    with_text, without = encoder().state_dict(), encoder(identity=None).state_dict()
    assert with_text.keys() - without.keys() == {"features.sentences.weight"}
    assert all(with_text[name].equal(weight) for name, weight in without.items())
    assert encoder().parameters_by_group()["sentence_vectors"] == 5 * 8
    assert "sentence_vectors" not in encoder(identity=None).parameters_by_group()


def test_the_projection_learns_also_in_bfloat16() -> None:
    model = encoder()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(batch([KINDS, KINDS])).vectors
    found[:, 0].sum().backward()
    weight = model.features.sentences.weight  # type: ignore[union-attr]
    assert weight.grad is not None
    assert weight.grad.abs().sum() > 0


def test_what_does_not_fit_is_refused() -> None:
    model, graphs = encoder(), batch([KINDS])
    with pytest.raises(ConfigError, match=r"this model is a hybrid: .* of letters; these graphs have none. Only exp"):
        model(replace(graphs, sentence_vectors=None))
    with pytest.raises(ConfigError, match=r"of length 3 are given, model\.sentence_vectors=letters takes 5"):
        model(replace(graphs, sentence_vectors=torch.ones(2, 3)))


def test_training_goes_on_after_a_stop_without_a_changed_bit(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    graphs, config = with_vectors(store, tmp_path), encoder_config(sentence_vectors="letters")

    def stop_at_6(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = train(settings(epochs=2), graphs, pairs, config, out=tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(settings(epochs=2), graphs, pairs, config, out=tmp_path / "out", log=stop_at_6)
    resumed = train(settings(epochs=2, workers=0), graphs, pairs, config, out=tmp_path / "out")
    assert resumed.loss_curve == whole.loss_curve
    weights = [checkpoint.load(path / "best").weights for path in (tmp_path / "whole", tmp_path / "out")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
    pure = train(settings(epochs=2), store, pairs, encoder_config(), out=tmp_path / "pure")
    assert whole.best_val_loss < pure.best_val_loss  # the text tells the theme


def test_only_graphs_with_the_vectors_of_its_encoder_are_trained_on_and_encoded(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    config = encoder_config(sentence_vectors="letters")
    graphs, others = with_vectors(store, tmp_path), with_vectors(store, tmp_path, "words", first=1)
    hybrid = r"this model is a hybrid: beside graphs it reads sentence vectors of letters; these graphs have "
    with pytest.raises(ConfigError, match=f"{hybrid}none"):
        train(settings(epochs=1), store, pairs, config, out=tmp_path / "none")
    best = train(settings(epochs=1), graphs, pairs, config, out=tmp_path / "out").best
    assert checkpoint.load(best).info.encoder["sentence_vectors"] == "letters"
    model = checkpoint.load_encoder(best, config_hash=store.config_hash)
    assert encode(model, graphs, ["q0", "a1"]).sizes.tolist() == store.load(["q0", "a1"]).ptr.diff().tolist()
    with pytest.raises(ConfigError, match=f"{hybrid}those of words"):
        encode(model, others, ["q0"])
    with pytest.raises(ConfigError, match=f"{hybrid}none"):
        encode(model, store, ["q0"])
    with pytest.raises(ConfigError, match=f"{hybrid}none"):
        QueryEncoder(model, store.vocabulary, store.spec)


def test_no_text_reaches_a_formula_in_its_views(store: GraphStore, tmp_path: Path) -> None:
    posts = ["q1", "a1", "a17", "q2"]
    found = formulas_of(posts, {post_id: ["v"] for post_id in posts}, np.random.default_rng(0))
    graphs = [with_vectors(store, tmp_path, name, first).load(posts) for name, first in (("one", 0), ("two", 1))]
    views = [FormulaViews(store.vocabulary)(graph) for graph in graphs]
    torch.manual_seed(0)
    config, vocabulary = encoder_config(sentence_vectors="letters"), store.vocabulary
    model = Encoder(config, vocabulary.num_labels, vocabulary.num_relations, sentence_dim=26).eval()
    with torch.no_grad():
        whole = [found.vectors(model(graph)) for graph in graphs]
        alone = [[found.vectors(model(view)) for view in of_text] for of_text in views]
    assert not torch.allclose(whole[0], whole[1], atol=1e-3)
    for one, two in zip(*alone, strict=True):
        assert torch.equal(one, two)
