"""Batches of stored graphs: equal to the plain way for all virtual nodes, and damage named with its post."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import GraphError
from graphs.graph.batching import GraphBatch, collate
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.packed import collate_packed, extended
from graphs.graph.stored import HEADER_BYTES, StoredArrays, decode, encode, to_stored
from graphs.graph.tensors import to_arrays
from graphs.graph.virtual_nodes import FormulaMode, VirtualNodeSpec
from graphs.graph.vocabulary import NUM_VIRTUAL_RELATIONS, Counts, Vocabulary
from tests.graphs.graph.random_documents import documents, loose_documents

VOCABULARY = Vocabulary.build(
    Counts(amr={f"c{i}": 9 - i for i in range(8)}, formula={"V!x": 3}, relations={":ARG0": 3, ":opt": 2, ":slt": 1}),
    size=50,
)
DOCUMENT = VirtualNodeSpec(structure="global")


def assert_equal(one: GraphBatch, other: GraphBatch) -> None:
    for f in fields(one):
        found, expected = getattr(one, f.name), getattr(other, f.name)
        if isinstance(expected, torch.Tensor):
            assert found.dtype == expected.dtype, f.name
            assert found.tolist() == expected.tolist(), f.name
        else:
            assert found == expected, f.name


def assert_plain(graphs: Sequence[DocumentGraph], mode: FormulaMode) -> None:
    """Both ways to a batch give the same, whatever the virtual nodes."""
    blobs = [encode(to_stored(graph, mode, VOCABULARY)) for graph in graphs]
    for spec in VirtualNodeSpec.every(formulas=mode, thread="none"):
        plain = [to_arrays(graph, spec, VOCABULARY) for graph in graphs]
        assert_equal(collate_packed(blobs, spec), collate(plain))
        assert [extended(blob, spec, "1") for blob in blobs] == plain


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(documents(), loose_documents()), max_size=5), st.sampled_from(get_args(FormulaMode)))
def test_every_hierarchy_equals_the_plain_one(graphs: list[DocumentGraph], mode: FormulaMode) -> None:
    assert_plain(graphs, mode)


def bare(kind: NodeKind, **changes: list[int]) -> DocumentGraph:
    """A single node."""
    formulas = [0] if kind is NodeKind.FORMULA else []
    parts = {"sentence": [-1], "formula": [0 if formulas else -1], "sentence_roots": [], **changes}
    return DocumentGraph(["c1"], [kind], [], 0, **parts, formula_nodes=formulas, formula_ids=[str(i) for i in formulas])


@pytest.mark.parametrize("mode", get_args(FormulaMode))
def test_graphs_without_formulas_or_sentences_are_equal_too(mode: FormulaMode) -> None:
    concept, formula = bare(NodeKind.AMR), bare(NodeKind.FORMULA)
    sentence = bare(NodeKind.AMR, sentence=[0], sentence_roots=[0])
    empty = bare(NodeKind.AMR, sentence_roots=[0])
    rooted = DocumentGraph(["c1", "c2"], [NodeKind.AMR] * 2, [(1, ":ARG0", 0)], 1, [-1] * 2, [-1] * 2, [], [], [])
    for graphs in ([], [concept], [formula], [sentence], [empty], [concept, formula, empty, sentence, rooted]):
        assert_plain(graphs, mode)


def small(label: int = 9, relation: int = NUM_VIRTUAL_RELATIONS + 4) -> StoredArrays:
    """Three nodes, two edges; node 1 is formula 0 with tree node 2, sentence 0 has the nodes 0 and 1."""
    return StoredArrays.from_edges(
        labels=[8, label, 10],
        edges=[(0, NUM_VIRTUAL_RELATIONS + 2, 1), (1, relation, 2)],
        root=0,
        formulas=[(1, 0)],
        trees=[[2]],
        sentence_roots=[0],
        concepts=[[0, 1]],
    )


@pytest.mark.parametrize("spec", VirtualNodeSpec.every(formulas="both", thread="none"), ids=str)
def test_graphs_of_both_widths_in_one_batch(spec: VirtualNodeSpec) -> None:
    wide = small(label=70_000)
    one, other = (collate_packed([encode(graph)], spec) for graph in (small(), wide))
    for graphs in ([small(), wide, small()], [wide, wide]):
        together = collate_packed([encode(graph) for graph in graphs], spec)
        expected = [(other if graph is wide else one).labels for graph in graphs]
        assert together.labels.equal(torch.cat(expected))
        assert together.num_edges == len(graphs) * one.num_edges


def test_relations_past_16_bits_are_sorted_too() -> None:
    batch = collate_packed([encode(small(relation=1 << 16)), encode(small())], DOCUMENT)
    assert batch.relation.tolist() == sorted(batch.relation.tolist())


@pytest.mark.parametrize("cut", [1, 10, 50])
def test_truncated_graph_in_a_batch_is_named(cut: int) -> None:
    blobs = [encode(small()) for _ in range(3)]
    blobs[1] = blobs[1][:-cut]
    with pytest.raises(GraphError, match="post 20: stored graph has"):
        collate_packed(blobs, DOCUMENT, post_ids=["10", "20", "30"])
    with pytest.raises(GraphError, match="post at position 1 of the batch"):
        collate_packed(blobs, DOCUMENT)


def test_id_outside_the_vocabulary_is_named_with_its_post() -> None:
    bound = NUM_VIRTUAL_RELATIONS + 4
    blobs = [encode(small(label, bound)) for label in (9, 99, 9)]
    with pytest.raises(GraphError, match="post 20: label 99 is outside the vocabulary of 50"):
        collate_packed(blobs, DOCUMENT, post_ids=["10", "20", "30"], num_labels=50, num_relations=50)
    with pytest.raises(GraphError, match=f"post 10: relation {bound} is outside the vocabulary of {bound}"):
        collate_packed(blobs, DOCUMENT, post_ids=["10", "20", "30"], num_relations=bound)


DAMAGE = {  # of `small`: which 16 bits of the body, their value, what is said
    "source": (3, 3, r"an edge joins node 3, but the graph has the nodes 0\.\.2"),
    "target": (6, 700, r"an edge joins node 700, but the graph has the nodes 0\.\.2"),
    "tree node": (7, 3, r"a formula has the node 3, but the graph has the nodes 0\.\.2"),
    "concept": (9, 3, r"a sentence has the node 3, but the graph has the nodes 0\.\.2"),
    "formula": (10, 3, r"a formula is node 3, but the graph has the nodes 0\.\.2"),
    "sentence": (11, 9, r"the root of a sentence is node 9, but the graph has the nodes 0\.\.2"),
    "relation": (12, 6, "edges of relation 6, which virtual nodes have"),
    "run": (13, 5, "runs of 6 edges, header says 2"),
    "tree size": (17, 2, "formulas of 2 tree nodes, header says 1"),
    "concept size": (19, 0, "sentences of 0 concepts, header says 2"),
    "root": (-2, 3, r"the root is node 3, but the graph has the nodes 0\.\.2"),
    "format": (-20, 3, "not a stored graph of this version"),
    "counts": (-16, 2, "stored graph has 80 bytes, its header says 78"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_graph_in_a_batch_is_named(damage: str) -> None:
    place, value, message = DAMAGE[damage]
    sound = encode(small())
    at = HEADER_BYTES + 2 * place
    damaged = sound[:at] + value.to_bytes(2, "little") + sound[at + 2 :]
    lone = encode(StoredArrays.from_edges([4], [], 0))
    with pytest.raises(GraphError, match=f"post 20: {message}"):
        collate_packed([lone, damaged, sound], DOCUMENT, post_ids=["10", "20", "30"])
    with pytest.raises(GraphError, match=f"post 20: {message}"):
        decode(damaged, "20")
