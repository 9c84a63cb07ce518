"""Graphs with their virtual nodes as arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.graph import mathamr_plus
from graphs.graph.tensors import GraphArrays, to_arrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL, Counts, Vocabulary


@st.composite
def arrays(draw: st.DrawFn) -> GraphArrays:
    size = draw(st.integers(1, 8))
    node = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(node, st.integers(0, 6).map(lambda k: 2 * k), node), max_size=12))
    representatives = draw(st.lists(node, min_size=1, max_size=4))
    return GraphArrays.from_edges(
        labels=draw(st.lists(st.integers(0, 20_000), min_size=size, max_size=size)),
        edges=edges,
        representatives=representatives,
        representative_kinds=[draw(st.integers(0, 2)) for _ in representatives],
        num_virtual=draw(st.integers(0, size)),
    )


@settings(deadline=None)
@given(arrays())
def test_every_edge_has_its_inverse_and_relations_ascend(graph: GraphArrays) -> None:
    assert (np.diff(graph.relations) >= 0).all()
    edges = sorted(zip(*graph.edge_index.tolist(), graph.relations.tolist(), strict=True))
    inverses = sorted((t, s, r ^ 1) for s, t, r in edges)
    assert edges == inverses


def test_roles_made_elsewhere_are_not_virtual_ones() -> None:
    roles = (":virtual_formula", ":virtual_sentence", ":virtual_document", ":auxiliary_vn", ":unknown")
    text = "(s / x " + " ".join(f"{role} (v{i} / y)" for i, role in enumerate(roles)) + ")"
    vocabulary = Vocabulary.build(Counts(amr={"x": 1}), size=50)
    tensors = to_arrays(mathamr_plus.decode(text, {}), VirtualNodeSpec(structure="none"), vocabulary)
    assert {vocabulary.relation_name(r) for r in tensors.relations} == {":unknown", ":unknown*"}
    assert tensors.num_edges == 2 * len(roles)


def test_document_becomes_arrays_with_the_document_last() -> None:
    text = "(s / solve-01 :ARG1 (F0 / FORMULA_0 :slt (F0s0 / V!x :slt-a (F0s1 / N!2))))"
    graph = mathamr_plus.decode(text, {"FORMULA_0": "17"})
    counts = Counts(amr={"solve-01": 1}, formula={"V!x": 1}, relations={":ARG1": 1, ":slt": 1}, placeholders=1)
    vocabulary = Vocabulary.build(counts, size=50)
    tensors = to_arrays(graph, VirtualNodeSpec(), vocabulary)
    assert [vocabulary.labels[i] for i in tensors.labels] == [
        "solve-01", "FORMULA", "V!x", "[UNKNUM_INT]", "VIRTUAL_FORMULA", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT",
    ]  # fmt: skip
    assert tensors.representatives.tolist() == [4, 5, 6]
    virtual_kinds = tensors.labels[-tensors.num_virtual :] - FIRST_VIRTUAL_LABEL
    assert tensors.representative_kinds.tolist() == virtual_kinds.tolist() == [0, 1, 2]
    named = [
        (s, vocabulary.relation_name(r), t)
        for s, t, r in zip(*tensors.edge_index.tolist(), tensors.relations.tolist(), strict=True)
    ]
    assert (6, ":virtual_document", 4) in named
    assert (4, ":virtual_document*", 6) in named
    assert (2, ":unknown", 3) in named  # :slt-a, which the counts lack
    assert (1, ":slt", 2) in named
    assert (2, ":slt*", 1) in named
    assert len(named) == 2 * (3 + 2 + 2 + 3)
