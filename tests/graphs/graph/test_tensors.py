"""Graph arrays and their stored bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import Failure, GraphError
from graphs.graph import mathamr_plus, tensors, virtual_nodes
from graphs.graph.tensors import Convert, GraphArrays, decode, encode, to_arrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL, Counts, Vocabulary, count


@st.composite
def arrays(draw: st.DrawFn, *, largest_label: int = 20_000) -> GraphArrays:
    size = draw(st.integers(1, 8))
    node = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(node, st.integers(0, 6).map(lambda k: 2 * k), node), max_size=12))
    representatives = draw(st.lists(node, min_size=1, max_size=4))
    return GraphArrays.from_edges(
        labels=draw(st.lists(st.integers(0, largest_label), min_size=size, max_size=size)),
        edges=edges,
        representatives=representatives,
        representative_kinds=[draw(st.integers(0, 2)) for _ in representatives],
        num_virtual=draw(st.integers(0, size)),
    )


def small() -> GraphArrays:
    return GraphArrays.from_edges(
        labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1
    )


@settings(deadline=None)
@given(arrays())
def test_every_edge_has_its_inverse_and_relations_ascend(graph: GraphArrays) -> None:
    assert (np.diff(graph.relations) >= 0).all()
    edges = sorted(zip(*graph.edge_index.tolist(), graph.relations.tolist(), strict=True))
    inverses = sorted((t, s, r ^ 1) for s, t, r in edges)
    assert edges == inverses


@settings(deadline=None)
@given(arrays())
def test_stored_graph_reads_back(graph: GraphArrays) -> None:
    assert decode(encode(graph), "1") == graph


@settings(deadline=None)
@given(arrays(largest_label=1 << 30))
def test_large_ids_read_back(graph: GraphArrays) -> None:
    assert decode(encode(graph), "1") == graph


def test_graph_of_70000_nodes_reads_back() -> None:
    size = 70_000
    edges = [(node, 10, node + 1) for node in range(size - 1)]
    graph = GraphArrays.from_edges([8] * size, edges, [size - 1], [2], 1)
    assert decode(encode(graph), "1") == graph


def test_stored_form_is_fixed() -> None:
    """Files of one machine are read on every other: the bytes are little-endian and do not change unnoticed."""
    header = "0100414d" + "02000000" + "03000000" + "02000000" + "02000000" + "01000000" + "01000000"
    labels, edges, runs, representatives = "090008000400", "0200000000000100", "040001000a000100", "02000200"
    assert encode(small()).hex() == header + labels + edges + runs + representatives


@pytest.mark.parametrize("size", [0, 5, 27, 28, 53])
def test_truncated_graph_names_the_post(size: int) -> None:
    with pytest.raises(GraphError, match=f"post 255: stored graph has {size} bytes"):
        decode(encode(small())[:size], "255")


def test_foreign_bytes_name_the_post() -> None:
    with pytest.raises(GraphError, match="post 255: not a stored graph of this version"):
        decode(b"x" * 60, "255")


def test_runs_that_do_not_add_up_name_the_post() -> None:
    blob = bytearray(encode(small()))
    blob[-6] = 7  # length of the last run
    with pytest.raises(GraphError, match="post 255: runs of 8 edges, header says 2"):
        decode(bytes(blob), "255")


def test_unsorted_edges_are_not_stored() -> None:
    graph = small()
    with pytest.raises(GraphError, match="not sorted by relation"):
        encode(replace(graph, edge_index=graph.edge_index[:, ::-1], relations=graph.relations[::-1]))


def test_roles_made_elsewhere_are_not_virtual_ones() -> None:
    roles = (":virtual_formula", ":virtual_sentence", ":virtual_document", ":auxiliary_vn", ":unknown")
    text = "(s / x " + " ".join(f"{role} (v{i} / y)" for i, role in enumerate(roles)) + ")"
    vocabulary = Vocabulary.build(Counts(amr={"x": 1}), size=50)
    tensors = to_arrays(mathamr_plus.decode(text, {}), VirtualNodeSpec(structure="none"), vocabulary)
    assert {vocabulary.relation_name(r) for r in tensors.relations} == {":unknown", ":unknown*"}
    assert tensors.num_edges == 2 * len(roles)


ROOT_IN_A_TREE = "(v / x :ARG0 (F0 / FORMULA_0 :opt v))"


def test_a_graph_whose_root_a_tree_mentions_keeps_it_and_one_without_a_root_is_not_stored() -> None:
    graph = mathamr_plus.decode(ROOT_IN_A_TREE, {"FORMULA_0": "17"})
    vocabulary = Vocabulary.build(Counts(amr={"x": 1}), size=50)
    assert to_arrays(graph, VirtualNodeSpec(), vocabulary).num_nodes == 5
    assert to_arrays(graph, VirtualNodeSpec(formulas="slt"), vocabulary).num_nodes == 5
    with pytest.raises(GraphError, match="node -1, but the graph has the nodes 0"):
        encode(to_arrays(replace(graph, root=-1), VirtualNodeSpec(), vocabulary))


def test_whatever_a_graph_made_elsewhere_raises_is_a_record_of_its_post() -> None:
    rows = [
        ("broken", "(s / solve-01", "{}"),
        ("no JSON", "(s / solve-01)", "{"),
        ("deep", "(s / solve-01)", "[" * 100_000),
        ("list", "(s / FORMULA_0)", '["FORMULA_0"]'),
        ("null", "(s / FORMULA_0)", "null"),
        ("number", "(s / FORMULA_0)", '{"FORMULA_0": 1}'),
        ("surrogate", "(s / solve-01)", r'{"FORMULA_\ud800": "1"}'),
        ("root", ROOT_IN_A_TREE, '{"FORMULA_0": "17"}'),
        ("many", "(s / solve-01 :op" + "9" * 5000 + " (t / t :op" + "9" * 5000 + " s))", "{}"),
    ]
    convert = Convert(mathamr_plus.decode, VirtualNodeSpec(formulas="slt"), Vocabulary.build(Counts(), size=50))
    made = convert(rows)
    assert [(result.post_id, result.stage) for result in made if isinstance(result, Failure)] == [
        (post_id, "tensors") for post_id, _, _ in rows[:-2]
    ]
    for result in made:
        if isinstance(result, Failure):
            result.message.encode()


def test_document_becomes_arrays_with_the_document_last() -> None:
    text = "(s / solve-01 :ARG1 (F0 / FORMULA_0 :slt (F0s0 / V!x :slt-a (F0s1 / N!2))))"
    graph = mathamr_plus.decode(text, {"FORMULA_0": "17"})
    counts = Counts(amr={"solve-01": 1}, formula={"V!x": 1}, relations={":ARG1": 1, ":slt": 1}, placeholders=1)
    vocabulary = Vocabulary.build(counts, size=50)
    tensors = to_arrays(graph, VirtualNodeSpec(), vocabulary)
    assert [vocabulary.label_name(i) for i in tensors.labels] == [
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


def test_a_graph_too_large_to_be_encoded_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(m / multi-sentence " + " ".join(f":snt{i} (s{i} / say-01 :quant {i})" for i in range(1, 6)) + ")"
    row = ("7", text, "{}")
    vocabulary = Vocabulary.build(count([row], mathamr_plus.decode), size=100)

    def converted(**spec: Any) -> object:
        return Convert(mathamr_plus.decode, VirtualNodeSpec(**spec), vocabulary)([row])[0]

    assert not isinstance(converted(connectivity="fully_connected"), Failure)
    monkeypatch.setattr(virtual_nodes, "MAX_AUXILIARY_EDGES", 9)
    assert "5 formulas and sentences, fully connected, have 10 edges" in str(converted(connectivity="fully_connected"))
    assert not isinstance(converted(connectivity="circular"), Failure)
    for bound, value, message in (
        ("MAX_NODES", 5, "a graph of 6 nodes; at most 5"),  # before it is read
        ("MAX_NODES", 10, "a graph of 11 nodes; at most 10"),  # before it gets virtual nodes
        ("MAX_NODES", 16, "a graph of 17 nodes; at most 16"),
        ("MAX_EDGES", 51, "a graph of 52 edges; at most 51"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(tensors, bound, value)
            failure = converted()
        assert isinstance(failure, Failure)
        assert (failure.post_id, failure.stage, failure.kind) == ("7", "tensors", "too_large")
        assert failure.message.startswith(message)
