"""The encoder gives unit vectors in the batch's order, whatever the structure, and starts virtual nodes as asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch, collate, mask_nodes, within_budget
from graphs.graph.tensors import GraphArrays
from graphs.graph.vocabulary import MASK
from mathamr import maxsim
from mathamr.model.config import VIRTUAL_NODE_STARTS
from mathamr.model.encoder import Encoder, EncoderConfig, EncoderLayer
from mathamr.model.node_features import NodeFeatures
from mathamr.model.relational_conv import relational_conv_reference

NUM_LABELS, NUM_RELATIONS = 12, 10
CONFIG = EncoderConfig(
    hidden_dim=8,
    projection_dim=4,
    num_layers=3,
    num_bases=3,
    num_blocks=None,
    edge_vectors=True,
    vn_init="zero",
    vn_learned="embedding",
    vn_aggregation="mean",
    label_vectors=None,
    sentence_vectors=None,
)
FORMULA, SENTENCE, DOCUMENT = 0, 1, 2


def batch_of(
    labels: list[int],
    edges: list[tuple[int, int, int]],
    kinds: list[int],
    graph_of: list[int],
    representatives: list[int],
    ptr: list[int],
) -> GraphBatch:
    """A batch from edges (source, relation, target); inverses are to be listed too."""
    edges = sorted(edges, key=lambda edge: edge[1])
    virtual_kind = torch.tensor(kinds)
    return GraphBatch(
        labels=torch.tensor(labels),
        edge_index=torch.tensor([[e[0] for e in edges], [e[2] for e in edges]], dtype=torch.int64),
        relation=torch.tensor([e[1] for e in edges], dtype=torch.int64),
        node_graph=torch.tensor(graph_of),
        is_virtual=virtual_kind >= 0,
        virtual_kind=virtual_kind,
        representatives=torch.tensor(representatives),
        representative_kind=torch.tensor([DOCUMENT if kinds[r] < 0 else kinds[r] for r in representatives]),
        ptr=torch.tensor(ptr),
        num_graphs=len(ptr) - 1,
    )


def two_documents() -> GraphBatch:
    """Nodes 0 to 2 with a sentence node 3 over 0 and 1, a formula node 4 over 2, document 5; node 6 with document 7.

    A second sentence node, 8 of the second graph, has nothing below it.
    """
    down = [(3, 0, 0), (3, 0, 1), (4, 1, 2), (5, 2, 3), (5, 2, 4), (5, 2, 0), (7, 2, 6)]
    edges = [(0, 8, 1), (1, 9, 2), *down, *((t, r + 3, s) for s, r, t in down)]
    kinds = [-1, -1, -1, SENTENCE, FORMULA, DOCUMENT, -1, DOCUMENT, SENTENCE]
    # The document is last within a graph: here the order of representatives, not of nodes, is what counts.
    return batch_of([6, 7, 8, 3, 2, 4, 9, 4, 3], edges, kinds, [0] * 6 + [1] * 3, [4, 3, 5, 8, 7], [0, 3, 5])


def encoder(config: EncoderConfig = CONFIG) -> Encoder:
    torch.manual_seed(0)
    return Encoder(config, NUM_LABELS, NUM_RELATIONS)


def test_vectors_are_unit_float32_in_the_order_of_the_representatives() -> None:
    batch = two_documents()
    documents = encoder()(batch)
    assert documents.vectors.shape == (5, 4)
    assert documents.vectors.dtype == torch.float32
    torch.testing.assert_close(documents.vectors.norm(dim=1), torch.ones(5))
    assert documents.ptr.tolist() == [0, 3, 5]
    swapped = encoder()(replace(batch, representatives=batch.representatives[torch.tensor([2, 1, 0, 3, 4])]))
    torch.testing.assert_close(swapped.vectors[[2, 1, 0, 3, 4]], documents.vectors)


def test_equals_the_equations_written_out() -> None:
    model, batch = encoder(), two_documents()
    hidden = model.features(batch)
    for layer in model.layers:  # Eq. 3.1
        assert isinstance(layer, EncoderLayer)
        normed = functional.layer_norm(hidden, (8,), layer.norm.weight, layer.norm.bias)
        update = relational_conv_reference(layer.conv, normed, batch.edge_index, batch.relation)
        hidden = hidden + functional.gelu(update)
    first, first_norm, _, second, second_norm = model.projection.layers  # Eq. 3.3
    expected = functional.normalize(second_norm(second(functional.gelu(first_norm(first(hidden))))), dim=1)
    expected = expected[batch.representatives]
    torch.testing.assert_close(model(batch).vectors, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_blocks", [None, 1])
@pytest.mark.parametrize("hidden_dim", [1, 8])
def test_with_masked_labels_and_few_relations_gradients_are_those_of_the_equations(
    hidden_dim: int, num_blocks: int | None
) -> None:
    model = encoder(replace(CONFIG, hidden_dim=hidden_dim, num_bases=None, num_blocks=num_blocks))
    batch = mask_nodes(two_documents(), 0.5, torch.Generator().manual_seed(0))
    assert (batch.labels == MASK).any()
    x = model.features(batch)
    layer = model.layers[0]
    assert isinstance(layer, EncoderLayer)
    plan = model._plans(batch, None)[0]
    normed = layer.norm(x)
    plain = x + functional.gelu(relational_conv_reference(layer.conv, normed, batch.edge_index, batch.relation))
    fast = layer(x, plan)
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    parameters = [model.features.labels.weight, *layer.parameters()]
    upstream = torch.randn_like(fast)
    for ours, theirs in zip(
        torch.autograd.grad(fast, parameters, upstream, retain_graph=True),
        torch.autograd.grad(plain, parameters, upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_document_is_encoded_alike_alone_and_in_a_batch() -> None:
    both = encoder()(two_documents())
    alone = batch_of([9, 4, 3], [(1, 2, 0), (0, 5, 1)], [-1, DOCUMENT, SENTENCE], [0, 0, 0], [2, 1], [0, 2])
    torch.testing.assert_close(encoder()(alone).vectors, both.vectors[3:], rtol=1e-5, atol=1e-6)


def test_ordinary_nodes_represent_where_there_are_no_virtual_nodes() -> None:
    # One node is the formula and the root of its sentence: it represents both, with one vector.
    batch = batch_of([6, 7, 8], [(0, 8, 1)], [-1, -1, -1], [0, 0, 0], [1, 1, 0], [0, 3])
    vectors = encoder()(batch).vectors
    assert torch.equal(vectors[0], vectors[1])
    assert not torch.allclose(vectors[0], vectors[2])


def test_single_node_without_edges() -> None:
    documents = encoder()(batch_of([6], [], [-1], [0], [0], [0, 1]))
    assert torch.isfinite(documents.vectors).all()


def post_of_50000_nodes() -> GraphArrays:
    """A long chain with two sentences and the document on top."""
    size = 50_000 - 3
    edges = [(node, 8, node + 1) for node in range(size - 1)]
    edges += [(size + node % 2, 2, node) for node in range(size)]
    edges += [(size + 2, 4, node) for node in (size, size + 1, 0)]
    return GraphArrays.from_edges(
        [6 + node % 6 for node in range(size)] + [3, 3, 4], edges, [*range(size, size + 3)], [1, 1, 2], 3
    )


@pytest.mark.parametrize("vn_aggregation", ["mean", "attention"])
def test_a_graph_of_50000_nodes_trains_alone_in_its_batch(vn_aggregation: str) -> None:
    small = GraphArrays.from_edges([8, 9, 4], [(2, 4, 0), (0, 8, 1)], [2], [2], 1)
    graphs = [small, post_of_50000_nodes(), small]
    nodes, edges = [g.num_nodes for g in graphs], [g.num_edges for g in graphs]
    batches = within_budget(nodes, edges, max_nodes=10_000, max_edges=40_000)
    assert batches == [[0], [1], [2]]
    model = encoder(replace(CONFIG, vn_aggregation=vn_aggregation))
    documents = model(collate([graphs[i] for i in batches[1]]))
    maxsim.scores(documents, documents).sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("pair", sorted(VIRTUAL_NODE_STARTS), ids="/".join)
def test_every_parameter_of_every_start_gets_a_gradient(pair: tuple[str, str]) -> None:
    model = encoder(replace(CONFIG, vn_init=pair[0], vn_learned=pair[1]))
    documents = model(two_documents())
    maxsim.scores(documents, documents).triu(1).sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("pair", sorted(VIRTUAL_NODE_STARTS), ids="/".join)
def test_without_virtual_nodes_every_parameter_still_gets_a_gradient(pair: tuple[str, str]) -> None:
    # Distributed training waits for the gradient of every parameter.
    model = encoder(replace(CONFIG, vn_init=pair[0], vn_learned=pair[1]))
    documents = model(batch_of([6, 7, 8], [(0, 8, 1)], [-1, -1, -1], [0, 0, 0], [1, 0], [0, 2]))
    maxsim.scores(documents, documents).sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


def test_collated_graphs_can_be_encoded() -> None:
    graph = GraphArrays.from_edges(
        labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1
    )
    torch.manual_seed(0)
    model = Encoder(replace(CONFIG, vn_init="mean", vn_learned="none"), num_labels=12, num_relations=14)
    documents = model(collate([graph, graph]))
    assert documents.ptr.tolist() == [0, 1, 2]
    torch.testing.assert_close(documents.vectors[0], documents.vectors[1])


def starts(vn_init: str, vn_learned: str) -> tuple[NodeFeatures, Tensor]:
    torch.manual_seed(0)
    features = NodeFeatures(replace(CONFIG, vn_init=vn_init, vn_learned=vn_learned), NUM_LABELS)
    return features, features(two_documents())


@pytest.mark.parametrize("vn_learned", ["none", "embedding"])
def test_zero_starts_are_zero_and_ordinary_nodes_have_their_labels(vn_learned: str) -> None:
    features, x = starts("zero", vn_learned)
    assert torch.equal(x[[3, 4, 5, 7, 8]], torch.zeros(5, 8))
    assert torch.equal(x[[0, 1, 2, 6]], features.labels.weight[[6, 7, 8, 9]])


def test_random_starts_are_one_vector_for_each_kind() -> None:
    features, x = starts("random", "embedding")
    assert features.virtual_nodes is not None
    assert torch.equal(x[[4, 3, 5]], features.virtual_nodes)
    assert torch.equal(x[7], x[5])
    assert 0 < features.virtual_nodes.abs().max() <= (6 / (3 + 8)) ** 0.5


def test_mean_starts_are_means_of_the_labels_below() -> None:
    features, x = starts("mean", "none")
    label = features.labels.weight
    torch.testing.assert_close(x[3], label[[6, 7]].mean(0))
    torch.testing.assert_close(x[4], label[8])
    torch.testing.assert_close(x[5], label[[6, 7, 8]].mean(0))  # a document has its whole graph below
    torch.testing.assert_close(x[7], label[9])
    assert torch.equal(x[8], torch.zeros(8))


def test_projections_transform_the_mean() -> None:
    _, means = starts("mean", "none")
    features, x = starts("mean", "projection")
    torch.testing.assert_close(x[[3, 4, 5]], features.projections[0](means[[3, 4, 5]]))
    features, x = starts("mean", "typed_projection")
    for node, kind in ((4, FORMULA), (3, SENTENCE), (5, DOCUMENT)):
        torch.testing.assert_close(x[node], features.projections[kind](means[node]))


@pytest.mark.parametrize(("vn_init", "vn_learned"), [("random", "none"), ("zero", "projection"), ("one", "none")])
def test_starts_that_the_thesis_does_not_have_are_refused(vn_init: str, vn_learned: str) -> None:
    with pytest.raises(ConfigError, match=f"{vn_init}/{vn_learned} is unknown. Choose from: mean/none"):
        encoder(replace(CONFIG, vn_init=vn_init, vn_learned=vn_learned))


def test_a_size_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_layers=0 must be at least 1"):
        replace(CONFIG, num_layers=0)


def test_parameters_are_counted_by_group() -> None:
    counts = encoder().parameters_by_group()
    conv = 3 * 8 * 8 + NUM_RELATIONS * 3 + 8 * 8 + 8 + NUM_RELATIONS * 8
    assert counts == {
        "labels": NUM_LABELS * 8,
        "relational_layers": 3 * (conv + 16),
        "projection": 8 * 8 + 8 + 16 + 8 * 4 + 4 + 8,
        "virtual_nodes": 3 * 8,
        "total": sum(parameter.numel() for parameter in encoder().parameters()),
    }


def test_bfloat16_autocast_gives_float32_unit_vectors() -> None:
    batch = two_documents()
    expected = encoder()(batch).vectors
    with torch.autocast("cpu", torch.bfloat16):
        vectors = encoder()(batch).vectors
    assert vectors.dtype == torch.float32
    assert (vectors - expected).abs().max() < 0.1
