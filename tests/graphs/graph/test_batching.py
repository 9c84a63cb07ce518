"""Batches: equal to the plain definition, within budget, and augmentation that spares the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.graph.batching import GraphBatch, collate, drop_edges, mask_nodes, within_budget
from graphs.graph.tensors import GraphArrays
from graphs.graph.virtual_nodes import AUXILIARY_RELATION
from graphs.graph.vocabulary import MASK, NUM_VIRTUAL_RELATIONS, Counts, Vocabulary


def random_graph(rng: np.random.Generator, *, num_nodes: int = 0, largest_label: int = 500) -> GraphArrays:
    """Content, then formula, sentence and document virtual nodes, with edges of both."""
    size = num_nodes or int(rng.integers(1, 12))
    formulas, sentences = int(rng.integers(0, 3)), int(rng.integers(0, 3))
    kinds = [0] * formulas + [1] * sentences + [2]
    edges = [
        (int(rng.integers(size)), NUM_VIRTUAL_RELATIONS + int(2 * rng.integers(5)), int(rng.integers(size)))
        for _ in range(int(rng.integers(0, 15)))
    ]
    for node, kind in enumerate(kinds, size):
        edges += [(node, 2 * kind, int(rng.integers(size))) for _ in range(int(rng.integers(0, 4)))]
    labels = [*rng.integers(8, largest_label, size).tolist(), *(2 + kind for kind in kinds)]
    return GraphArrays.from_edges(labels, edges, list(range(size, size + len(kinds))), kinds, len(kinds))


def reference(graphs: Sequence[GraphArrays]) -> dict[str, object]:
    """The definition of a batch, an element at a time."""
    out: dict[str, list] = {f.name: [] for f in fields(GraphBatch)}
    out["ptr"], edges = [0], []
    for number, graph in enumerate(graphs):
        offset = len(out["labels"])
        content = graph.num_nodes - graph.num_virtual
        out["labels"] += graph.labels.tolist()
        out["node_graph"] += [number] * graph.num_nodes
        out["is_virtual"] += [node >= content for node in range(graph.num_nodes)]
        out["virtual_kind"] += [-1] * content + [int(label) - 2 for label in graph.labels[content:]]
        out["representatives"] += [offset + node for node in graph.representatives.tolist()]
        out["representative_kind"] += graph.representative_kinds.tolist()
        out["ptr"].append(len(out["representatives"]))
        for s, t, r in zip(*graph.edge_index.tolist(), graph.relations.tolist(), strict=True):
            edges.append((r, s + offset, t + offset))
    edges.sort(key=lambda edge: edge[0])  # stable
    out["relation"] = [r for r, _, _ in edges]
    out["edge_index"] = [[s for _, s, _ in edges], [t for _, _, t in edges]]
    return {**out, "num_graphs": len(graphs), "sentence_vectors": None, "has_threads": False}


def assert_batch(batch: GraphBatch, graphs: Sequence[GraphArrays]) -> None:
    for name, expected in reference(graphs).items():
        value = getattr(batch, name)
        assert (value.tolist() if isinstance(value, torch.Tensor) else value) == expected, name
    for name in ("labels", "edge_index", "relation", "node_graph", "virtual_kind", "representatives", "ptr"):
        assert getattr(batch, name).dtype == torch.int64
    assert batch.is_virtual.dtype == torch.bool
    assert batch.edge_index.shape == (2, batch.num_edges)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 6))
def test_collate_equals_the_definition(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng) for _ in range(size)]
    assert_batch(collate(graphs), graphs)


def test_single_node_without_edges() -> None:
    lone = GraphArrays.from_edges([4], [], [0], [2], 1)
    assert_batch(collate([lone]), [lone])
    assert_batch(collate([lone, lone]), [lone, lone])


def test_moving_a_batch_moves_every_tensor() -> None:
    batch = collate([random_graph(np.random.default_rng(0))])
    batch = replace(batch, sentence_vectors=torch.zeros(1, 3)).to("meta")
    for f in fields(batch):
        if f.name not in ("num_graphs", "has_threads"):
            assert getattr(batch, f.name).device.type == "meta"


def augmentable() -> GraphBatch:
    rng = np.random.default_rng(5)
    return collate([random_graph(rng, num_nodes=40) for _ in range(60)])


def test_mask_spares_virtual_nodes_and_nothing_else() -> None:
    batch = augmentable()
    everything = mask_nodes(batch, 1.0, torch.Generator().manual_seed(0))
    assert (everything.labels[~batch.is_virtual] == MASK).all()
    assert everything.labels[batch.is_virtual].equal(batch.labels[batch.is_virtual])
    some = mask_nodes(batch, 0.1, torch.Generator().manual_seed(0))
    share = (some.labels == MASK).sum() / (~batch.is_virtual).sum()
    assert 0.07 < share < 0.13
    assert mask_nodes(batch, 0.0, torch.Generator()).labels.equal(batch.labels)


def test_dropout_spares_edges_of_virtual_nodes_and_nothing_else() -> None:
    batch = augmentable()
    touches = batch.is_virtual[batch.edge_index].any(dim=0)
    everything = drop_edges(batch, 1.0, torch.Generator().manual_seed(0))
    assert everything.edge_index.equal(batch.edge_index[:, touches])
    assert everything.relation.equal(batch.relation[touches])
    some = drop_edges(batch, 0.1, torch.Generator().manual_seed(0))
    share = 1 - (some.num_edges - touches.sum()) / (~touches).sum()
    assert 0.05 < share < 0.15
    assert (some.relation.diff() >= 0).all()
    assert drop_edges(batch, 0.0, torch.Generator()).num_edges == batch.num_edges


def test_dropout_spares_auxiliary_edges_without_virtual_nodes() -> None:
    auxiliary = Vocabulary.build(Counts(), size=8).relation_id(AUXILIARY_RELATION)
    edges = [(0, auxiliary, 1), (0, NUM_VIRTUAL_RELATIONS, 1)]
    left = drop_edges(collate([GraphArrays.from_edges([8, 9], edges, [0, 1], [0, 1], 0)]), 1.0, torch.Generator())
    assert left.relation.tolist() == [auxiliary, auxiliary + 1]


def test_augmentation_is_repeated_by_its_generator() -> None:
    batch = augmentable()

    def augmented(seed: int) -> GraphBatch:
        generator = torch.Generator().manual_seed(seed)
        return drop_edges(mask_nodes(batch, 0.1, generator), 0.1, generator)

    assert augmented(3).labels.equal(augmented(3).labels)
    assert augmented(3).edge_index.equal(augmented(3).edge_index)
    assert not augmented(3).labels.equal(augmented(4).labels)


def test_empty_batch_can_be_augmented() -> None:
    batch = collate([])
    assert drop_edges(mask_nodes(batch, 0.5, torch.Generator()), 0.5, torch.Generator()).num_graphs == 0


def test_batches_keep_within_the_budget_and_cover_every_graph_once_in_order() -> None:
    nodes = np.random.default_rng(0).integers(10, 300, 500)
    edges = 4 * nodes + 1
    batches = within_budget(nodes, edges, max_nodes=2000, max_edges=8000)
    assert [place for batch in batches for place in batch] == list(range(500))
    assert all(nodes[batch].sum() <= 2000 and edges[batch].sum() <= 8000 for batch in batches)
    for batch, following in pairwise(batches):  # each is full
        assert nodes[[*batch, following[0]]].sum() > 2000 or edges[[*batch, following[0]]].sum() > 8000


def test_graph_larger_than_the_budget_is_alone() -> None:
    sizes = [5, 50_000, 5, 6]
    assert within_budget(sizes, [1] * 4, max_nodes=20, max_edges=10) == [[0], [1], [2, 3]]
    assert within_budget([1] * 4, sizes, max_nodes=20, max_edges=20) == [[0], [1], [2, 3]]


def test_no_graphs_make_no_batches() -> None:
    assert within_budget([], [], max_nodes=1, max_edges=1) == []


def test_batch_is_immutable_but_replaceable() -> None:
    batch = augmentable()
    changed = replace(batch, labels=batch.labels + 1)
    assert not changed.labels.equal(batch.labels)
