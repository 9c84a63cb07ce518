"""Attention over constituents equals its reference in values and gradients, and the mean where it does not discern."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch, collate
from graphs.graph.tensors import GraphArrays
from mathamr import maxsim
from mathamr.model.constituent_attention import (
    ConstituentAttention,
    ConstituentPlan,
    attend,
    attend_reference,
    leads_up,
)
from mathamr.model.encoder import Encoder, EncoderConfig, EncoderLayer

MEAN = EncoderConfig(
    hidden_dim=8,
    projection_dim=4,
    num_layers=3,
    num_bases=3,
    num_blocks=None,
    edge_vectors=True,
    vn_init="random",
    vn_learned="embedding",
    vn_aggregation="mean",
    label_vectors=None,
    sentence_vectors=None,
)
ATTENTION = replace(MEAN, vn_aggregation="attention")
NUM_LABELS, NUM_RELATIONS = 12, 12

# Nodes 0 to 3; a formula node 4 over 2 and 3, a sentence node 5 over 0, 1 and 2, an isolated one 6, the document 7.
DOCUMENT = GraphArrays.from_edges(
    labels=[8, 9, 10, 11, 2, 3, 3, 4],
    edges=[(0, 8, 1), (1, 10, 2), (2, 10, 3), (4, 0, 2), (4, 0, 3), (5, 2, 0), (5, 2, 1), (5, 2, 2), (4, 6, 5)]
    + [(7, 4, node) for node in (4, 5, 0)],
    representatives=[4, 5, 6, 7],
    representative_kinds=[0, 1, 1, 2],
    num_virtual=4,
)
SINGLE = GraphArrays.from_edges([8, 4], [(1, 4, 0)], [1], [2], 1)
WITHOUT_VIRTUAL_NODES = GraphArrays.from_edges([8, 9], [(0, 8, 1)], [0, 1], [0, 1], 0)
LONE = GraphArrays.from_edges([8], [], [0], [1], 0)
BATCHES = {
    "documents": [DOCUMENT, SINGLE, DOCUMENT],
    "single constituent": [SINGLE],
    "no virtual nodes": [WITHOUT_VIRTUAL_NODES],
    "single node": [LONE],
    "all": [LONE, DOCUMENT, WITHOUT_VIRTUAL_NODES, SINGLE],
}


def encoder(config: EncoderConfig) -> Encoder:
    torch.manual_seed(0)
    return Encoder(config, NUM_LABELS, NUM_RELATIONS)


def plan_of(batch: GraphBatch, targets: Tensor | None = None) -> ConstituentPlan:
    return ConstituentPlan.build(batch.edge_index, batch.relation, num_nodes=batch.num_nodes, targets=targets)


@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_reference_in_values_and_gradients(name: str, dtype: torch.dtype, d: int) -> None:
    batch = collate(BATCHES[name])
    plan = plan_of(batch)
    torch.manual_seed(1)
    query = torch.randn(plan.node.numel(), d, dtype=dtype, requires_grad=True)
    x = torch.randn(batch.num_nodes, d, dtype=dtype, requires_grad=True)
    fast, plain = attend(3 * query, x, plan), attend_reference(3 * query, x, plan)
    bound = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(fast, plain, rtol=bound, atol=bound)
    upstream = torch.randn_like(fast)
    for ours, theirs in zip(
        torch.autograd.grad(fast, (query, x), upstream), torch.autograd.grad(plain, (query, x), upstream), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=bound, atol=bound)


def test_gradients_agree_with_finite_differences() -> None:
    batch = collate(BATCHES["documents"])
    plan = plan_of(batch)
    query = torch.randn(plan.node.numel(), 3, dtype=torch.float64, requires_grad=True)
    x = torch.randn(batch.num_nodes, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda query, x: attend(query, x, plan), (query, x))


def test_large_scores_do_not_overflow() -> None:
    plan = plan_of(collate([DOCUMENT]))
    x = torch.randn(8, 4) * 1e3
    assert torch.isfinite(attend(torch.full((len(plan.node), 4), 1e3), x, plan)).all()


def test_constituents_are_the_nodes_of_the_hierarchy_and_nothing_else() -> None:
    plan = plan_of(collate([DOCUMENT]))
    found = [(int(plan.node[s]), int(i)) for s, i in zip(plan.segment, plan.source, strict=True)]
    assert sorted(found) == [(4, 2), (4, 3), (5, 0), (5, 1), (5, 2), (7, 0), (7, 4), (7, 5)]
    assert plan.kind.tolist() == [0, 1, 2]


@pytest.mark.parametrize("edge_vectors", [True, False])
@pytest.mark.parametrize("name", BATCHES)
def test_attention_without_preference_is_the_mean(name: str, edge_vectors: bool) -> None:
    batch = collate(BATCHES[name])
    mean = encoder(replace(MEAN, edge_vectors=edge_vectors))
    attentive = encoder(replace(ATTENTION, edge_vectors=edge_vectors))
    missing, unexpected = attentive.load_state_dict(mean.state_dict(), strict=False)
    assert not unexpected
    assert all("attention" in name for name in missing)
    for layer in attentive.layers:
        assert isinstance(layer, EncoderLayer)
        assert isinstance(layer.attention, ConstituentAttention)
        torch.nn.init.zeros_(layer.attention.weight)
        torch.nn.init.zeros_(layer.attention.bias)
    torch.testing.assert_close(attentive(batch).vectors, mean(batch).vectors, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BATCHES)
def test_encoder_equals_its_messages_written_out(name: str) -> None:
    batch, model = collate(BATCHES[name]), encoder(ATTENTION)
    plans = model._plans(batch, None)
    x = torch.randn(batch.num_nodes, 8)
    layer = model.layers[0]
    assert isinstance(layer, EncoderLayer)
    attention, conv = layer.attention, layer.conv
    assert attention is not None
    assert plans[1] is not None
    assert conv.edge_vectors is not None
    expected = torch.zeros(batch.num_nodes, 8)
    for node in range(batch.num_nodes):
        for kind, relation in enumerate((1, 3, 5)):
            below = x[batch.edge_index[0, (batch.relation == relation) & (batch.edge_index[1] == node)]]
            if len(below):
                weight = torch.softmax(below @ (attention.weight @ x[node] + attention.bias[kind]) / 8**0.5, dim=0)
                matrix = conv.relation_matrices(torch.tensor([relation]))[0]
                expected[node] += weight @ below @ matrix + conv.edge_vectors[relation]
    torch.testing.assert_close(attention(x, plans[1], conv), expected, rtol=1e-5, atol=1e-5)


def test_a_plan_with_targets_computes_just_these_nodes() -> None:
    batch, model = collate(BATCHES["all"]), encoder(ATTENTION)
    targets = batch.representatives.flip(0)
    x = torch.randn(batch.num_nodes, 8)
    layer = model.layers[0]
    whole, some = layer(x, *model._plans(batch, None)), layer(x, *model._plans(batch, targets))
    torch.testing.assert_close(some, whole[targets], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BATCHES)
def test_every_parameter_gets_a_finite_gradient(name: str) -> None:
    # Distributed training waits for the gradient of every parameter.
    model = encoder(ATTENTION)
    documents = model(collate(BATCHES[name]))
    maxsim.scores(documents, documents).sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert torch.isfinite(parameter.grad).all(), parameter_name


def test_values_and_gradients_repeat_bit_for_bit() -> None:
    def run() -> list[Tensor]:
        model = encoder(ATTENTION)
        documents = model(collate(BATCHES["documents"]))
        maxsim.scores(documents, documents).triu(1).sum().backward()
        return [documents.vectors, *(p.grad for p in model.parameters() if p.grad is not None)]

    assert all(torch.equal(first, second) for first, second in zip(run(), run(), strict=True))


def test_bfloat16_autocast_stays_near_float32() -> None:
    batch = collate(BATCHES["documents"])
    expected = encoder(ATTENTION)(batch).vectors
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder(ATTENTION)(batch).vectors
    vectors.sum().backward()
    assert vectors.dtype == torch.float32
    assert (vectors - expected).abs().max() < 0.1


def test_edges_that_lead_up_are_no_others() -> None:
    assert leads_up(torch.arange(12)).nonzero().squeeze(1).tolist() == [1, 3, 5]


def test_an_unknown_aggregation_is_refused() -> None:
    with pytest.raises(ConfigError, match="vn_aggregation=max must be mean or attention"):
        replace(MEAN, vn_aggregation="max")
