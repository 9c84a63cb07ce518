"""The relational convolution equals its reference and PyG's, in values and gradients, on every shape of graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from graphs.errors import ConfigError, GraphError
from mathamr.model.relational_conv import (
    RelationalConv,
    multiply_grouped,
    multiply_grouped_backward,
    multiply_tiles,
    multiply_tiles_backward,
    relational_conv_reference,
)
from mathamr.model.relational_plan import TILE_SIZES, RelationalPlan

NUM_RELATIONS = 40


def edges(name: str) -> tuple[Tensor, Tensor, int]:
    """``edge_index`` (2, E), ``relation`` (E,) and the number of nodes of a graph with some peculiarity."""
    generator = torch.Generator().manual_seed(0)

    def random(num_edges: int, num_nodes: int, relations: int) -> tuple[Tensor, Tensor, int]:
        relation = torch.randint(relations, (num_edges,), generator=generator).sort().values
        return torch.randint(num_nodes, (2, num_edges), generator=generator), relation, num_nodes

    if name == "no edges":
        return torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64), 5
    if name == "single node":
        return torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64), 1
    if name == "self-loop":
        return torch.zeros(2, 1, dtype=torch.int64), torch.tensor([3]), 1
    if name == "isolated last node":
        edge_index, relation, num_nodes = random(60, 20, 7)
        return edge_index, relation, num_nodes + 1
    if name == "one edge a relation":
        edge_index, _, num_nodes = random(NUM_RELATIONS, 15, 1)
        return edge_index, torch.arange(NUM_RELATIONS), num_nodes
    if name == "one relation":
        return random(300, 30, 1)
    if name == "tiles of every size":  # relations of 1 to 1,600 edges
        relation = torch.arange(12).repeat_interleave(2 ** torch.arange(12) * 4 // 5 + 1)
        return torch.randint(1_500, (2, relation.numel()), generator=generator), relation, 1_500
    if name == "parallel edges":
        return torch.tensor([[0, 0, 1, 2], [2, 2, 2, 2]]), torch.tensor([4, 4, 4, 5]), 3
    if name == "hub":  # one node has edges from and to all others: the first is reduced, the second spread
        others, zeros = torch.arange(1, 50), torch.zeros(49, dtype=torch.int64)
        edge_index = torch.stack([torch.cat([others, zeros]), torch.cat([zeros, others])])
        return edge_index, torch.tensor([0] * 49 + [1] * 49), 50
    if name == "unsorted":
        edge_index, relation, num_nodes = random(200, 30, NUM_RELATIONS)
        return edge_index, relation.flip(0), num_nodes
    return random(2_000, 100, NUM_RELATIONS)


GRAPHS = (
    "no edges",
    "single node",
    "self-loop",
    "isolated last node",
    "one edge a relation",
    "one relation",
    "tiles of every size",
    "parallel edges",
    "hub",
    "unsorted",
    "many edges",
)
WEIGHTS: dict[str, dict[str, Any]] = {
    "bases": {"num_bases": 5, "num_blocks": None, "edge_vectors": True},
    "bases without edge vectors": {"num_bases": 5, "num_blocks": None, "edge_vectors": False},
    "blocks": {"num_bases": None, "num_blocks": 2, "edge_vectors": True},
    "full": {"num_bases": None, "num_blocks": None, "edge_vectors": True},
}


def layer(weights: str, dtype: torch.dtype, in_dim: int = 6, out_dim: int = 8) -> RelationalConv:
    torch.manual_seed(1)
    conv = RelationalConv(in_dim, out_dim, NUM_RELATIONS, **WEIGHTS[weights]).to(dtype)
    torch.nn.init.normal_(conv.bias)
    return conv


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Equal up to the rounding of the dtype: 1e-5 of the largest value in float32."""
    bound = 1e-5 if expected.dtype == torch.float32 else 1e-12
    scale = expected.abs().max().item() if expected.numel() else 1.0
    torch.testing.assert_close(actual, expected, rtol=bound, atol=bound * max(scale, 1.0))


def assert_same_values_and_gradients(conv: RelationalConv, graph: str) -> None:
    dtype = conv.root.dtype
    edge_index, relation, num_nodes = edges(graph)
    plan = RelationalPlan.build(
        edge_index, relation, num_nodes=num_nodes, num_relations=conv.num_relations, dtype=dtype
    )
    x = torch.randn(num_nodes, conv.in_dim, dtype=dtype, requires_grad=True)
    upstream = torch.randn(num_nodes, conv.out_dim, dtype=dtype)
    inputs = {"x": x, **dict(conv.named_parameters())}
    fast = conv(x, plan)
    plain = relational_conv_reference(conv, x, edge_index, relation)
    assert_close(fast, plain)
    fast_gradients = torch.autograd.grad(fast, list(inputs.values()), upstream, materialize_grads=True)
    plain_gradients = torch.autograd.grad(plain, list(inputs.values()), upstream, materialize_grads=True)
    for name, ours, theirs in zip(inputs, fast_gradients, plain_gradients, strict=True):
        assert ours.shape == inputs[name].shape
        assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_equals_the_reference_in_values_and_gradients(weights: str, graph: str, dtype: torch.dtype) -> None:
    assert_same_values_and_gradients(layer(weights, dtype), graph)


@pytest.mark.parametrize("graph", ["single node", "hub", "many edges"])
def test_dimension_one_equals_the_reference(graph: str) -> None:
    assert_same_values_and_gradients(layer("bases", torch.float32, in_dim=1, out_dim=1), graph)


def test_gradients_agree_with_finite_differences() -> None:
    conv = layer("bases", torch.float64, in_dim=3, out_dim=2)
    edge_index, relation, num_nodes = edges("isolated last node")
    plan = RelationalPlan.build(
        edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS, dtype=torch.float64
    )
    x = torch.randn(num_nodes, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: conv(x, plan), (x,))


@pytest.mark.parametrize("graph", ["isolated last node", "parallel edges", "hub", "many edges"])
def test_agrees_with_the_rgcn_of_pytorch_geometric(graph: str) -> None:
    from torch_geometric.nn import RGCNConv  # slow to import, for each worker that collects the tests

    conv = layer("bases without edge vectors", torch.float32)
    edge_index, relation, num_nodes = edges(graph)
    other = RGCNConv(conv.in_dim, conv.out_dim, NUM_RELATIONS, num_bases=5, aggr="mean")
    assert conv.comp is not None
    with torch.no_grad():
        for theirs, ours in ((other.weight, conv.weight), (other.comp, conv.comp), (other.root, conv.root)):
            theirs.copy_(ours)
        other.bias.copy_(conv.bias)
    plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)
    x = torch.randn(num_nodes, conv.in_dim)
    ours, theirs = conv(x, plan), other(x, edge_index, relation)
    assert_close(ours, theirs)
    upstream = torch.randn_like(ours)
    ours.backward(upstream)
    theirs.backward(upstream)
    for name in ("weight", "comp", "root", "bias"):
        assert_close(getattr(conv, name).grad, getattr(other, name).grad)


@pytest.mark.parametrize("weights", ["bases", "blocks"])
@pytest.mark.parametrize("graph", ["no edges", "isolated last node", "hub", "many edges"])
def test_a_plan_with_targets_computes_just_these_nodes(graph: str, weights: str) -> None:
    conv = layer(weights, torch.float64)
    edge_index, relation, num_nodes = edges(graph)
    targets = torch.tensor([num_nodes - 1, 0, 2])
    plan = RelationalPlan.build(
        edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS, targets=targets, dtype=torch.float64
    )
    x = torch.randn(num_nodes, conv.in_dim, dtype=torch.float64, requires_grad=True)
    some, plain = conv(x, plan), relational_conv_reference(conv, x, edge_index, relation)[targets]
    assert_close(some, plain)
    upstream = torch.randn_like(some)
    inputs = [x, *conv.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad(some, inputs, upstream, materialize_grads=True),
        torch.autograd.grad(plain, inputs, upstream, materialize_grads=True),
        strict=True,
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("edge_vectors", [True, False])
@pytest.mark.parametrize("graph", ["hub", "tiles of every size", "many edges"])
def test_one_grouped_product_equals_the_tiles(graph: str, edge_vectors: bool) -> None:
    edge_index, relation, num_nodes = edges(graph)
    plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)
    num_matrices = plan.relations.numel()
    z, dy = plan.gather.sum(torch.randn(num_nodes, 16)), plan.scatter_transposed.sum(torch.randn(num_nodes, 8))
    weight = torch.randn(num_matrices, 16, 8)
    vectors = torch.randn(num_matrices, 8) if edge_vectors else None
    assert_close(multiply_grouped(z, weight, vectors, plan), multiply_tiles(z, weight, vectors, plan))
    for ours, theirs in zip(
        multiply_grouped_backward(dy, z, weight, plan), multiply_tiles_backward(dy, z, weight, plan), strict=True
    ):
        assert_close(ours, theirs)


def test_the_plan_takes_the_side_with_fewer_rows() -> None:
    edge_index, relation, num_nodes = edges("hub")
    plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=2)
    assert plan.num_messages == 2  # one mean into the hub, one transformed hub: 98 edges


@pytest.mark.parametrize("graph", GRAPHS)
def test_products_are_few_and_hold_every_row(graph: str) -> None:
    edge_index, relation, num_nodes = edges(graph)
    plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)
    assert len(plan.groups) <= len(TILE_SIZES)
    assert plan.num_messages <= plan.num_rows == sum(g.rows.stop - g.rows.start for g in plan.groups)
    assert plan.relations.sort().values.tolist() == relation.unique().tolist()


def test_values_and_gradients_repeat_bit_for_bit() -> None:
    def run() -> list[Tensor]:
        conv = layer("bases", torch.float32)
        edge_index, relation, num_nodes = edges("many edges")
        plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)
        x = torch.randn(num_nodes, conv.in_dim, requires_grad=True)
        out = conv(x, plan)
        return [out, *torch.autograd.grad(out.square().sum(), [x, *conv.parameters()])]

    assert all(torch.equal(first, second) for first, second in zip(run(), run(), strict=True))


def test_bfloat16_autocast_stays_near_float32() -> None:
    conv = layer("bases", torch.float32)
    edge_index, relation, num_nodes = edges("many edges")
    plan = RelationalPlan.build(edge_index, relation, num_nodes=num_nodes, num_relations=NUM_RELATIONS)
    x = torch.randn(num_nodes, conv.in_dim)
    expected = conv(x, plan)
    with torch.autocast("cpu", torch.bfloat16):
        half = conv(x, plan)
    half.float().sum().backward()
    assert half.dtype == torch.bfloat16
    assert (half.float() - expected).abs().max() < 0.05 * expected.abs().max()
    assert conv.weight.grad is not None
    assert conv.weight.grad.dtype == torch.float32


def test_a_relation_outside_the_vocabulary_is_named() -> None:
    with pytest.raises(GraphError, match=r"relation has the value 9, outside 0\.\.4"):
        RelationalPlan.build(torch.tensor([[0], [1]]), torch.tensor([9]), num_nodes=2, num_relations=5)


def test_an_edge_to_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(GraphError, match=r"edge_index has the value -1, outside 0\.\.1"):
        RelationalPlan.build(torch.tensor([[-1], [1]]), torch.tensor([0]), num_nodes=2, num_relations=5)


def test_a_plan_for_another_number_of_relations_is_refused() -> None:
    plan = RelationalPlan.build(torch.tensor([[0], [1]]), torch.tensor([0]), num_nodes=2, num_relations=5)
    with pytest.raises(GraphError, match="the plan has 5 relations, the layer 40"):
        layer("bases", torch.float32)(torch.zeros(2, 6), plan)


@pytest.mark.parametrize(
    ("num_bases", "num_blocks", "message"),
    [
        (4, 2, "num_bases=4 and num_blocks=2 exclude each other"),
        (0, None, "num_bases=0 must be at least 1"),
        (None, 4, "num_blocks=4 must divide the dimensions 6 and 8"),
    ],
)
def test_decompositions_that_cannot_be_are_refused(num_bases: int | None, num_blocks: int | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RelationalConv(6, 8, 3, num_bases=num_bases, num_blocks=num_blocks, edge_vectors=True)
