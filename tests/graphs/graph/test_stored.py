"""Stored graphs: their bytes, and graphs that cannot be stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import Failure, GraphError
from graphs.graph import mathamr_plus, tensors
from graphs.graph.stored import StoredArrays, convert, decode, encode, size_of, to_stored
from graphs.graph.vocabulary import NUM_VIRTUAL_RELATIONS, Counts, Vocabulary, count


@st.composite
def arrays(draw: st.DrawFn, *, largest_label: int = 20_000) -> StoredArrays:
    size = draw(st.integers(1, 8))
    node = st.integers(0, size - 1)
    nodes = st.lists(node, max_size=4)
    roots, trees = draw(nodes), draw(st.lists(nodes, max_size=3))
    return StoredArrays.from_edges(
        labels=draw(st.lists(st.integers(0, largest_label), min_size=size, max_size=size)),
        edges=draw(
            st.lists(st.tuples(node, st.integers(0, 5).map(lambda k: NUM_VIRTUAL_RELATIONS + 2 * k), node), max_size=12)
        ),
        root=draw(node),
        formulas=[(draw(node), draw(st.integers(0, max(0, len(roots) - 1)))) for _ in trees],
        trees=trees,
        sentence_roots=roots,
        concepts=[draw(nodes) for _ in roots],
    )


def small() -> StoredArrays:
    return StoredArrays.from_edges(
        labels=[8, 9, 10],
        edges=[(1, 12, 2), (0, 10, 1)],
        root=0,
        formulas=[(1, 0)],
        trees=[[2]],
        sentence_roots=[0],
        concepts=[[0, 1]],
    )


@settings(deadline=None)
@given(arrays())
def test_stored_graph_reads_back(graph: StoredArrays) -> None:
    assert (np.diff(graph.relations) >= 0).all()
    assert decode(encode(graph), "1") == graph


@settings(deadline=None)
@given(arrays(largest_label=1 << 30))
def test_large_ids_read_back(graph: StoredArrays) -> None:
    assert decode(encode(graph), "1") == graph


def test_graph_of_70000_nodes_reads_back() -> None:
    size = 70_000
    edges = [(node, NUM_VIRTUAL_RELATIONS, node + 1) for node in range(size - 1)]
    graph = StoredArrays.from_edges([8] * size, edges, size - 1, sentence_roots=[0], concepts=[range(size)])
    assert decode(encode(graph), "1") == graph


@pytest.mark.parametrize(("label", "width"), [((1 << 16) - 1, 2), (1 << 16, 4)])
def test_a_number_past_16_bits_makes_a_graph_wide(label: int, width: int) -> None:
    blob = encode(StoredArrays.from_edges([label], [], 0))
    assert (decode(blob, "1").labels.tolist(), blob[4]) == ([label], width)


def test_roles_named_like_those_of_virtual_nodes_are_unknown() -> None:
    graph = mathamr_plus.decode("(s / say-01 :virtual_sentence (y / you))", {})
    assert to_stored(graph, "both", Vocabulary.build(Counts(), size=8)).relations.tolist() == [NUM_VIRTUAL_RELATIONS]


def test_stored_form_is_fixed() -> None:
    """Files of one machine are read on every other: the bytes are little-endian and do not change unnoticed."""
    header = "0200414d" + "".join(f"{number:02x}000000" for number in (2, 3, 2, 2, 1, 1, 1, 2, 0))
    labels, edges, tree, concepts, formula, root = (
        "080009000a00",
        "0000010001000200",
        "0200",
        "00000100",
        "0100",
        "0000",
    )
    runs, places_and_sizes = "0a0001000c000100", "0000010000000200"
    assert encode(small()).hex() == header + labels + edges + tree + concepts + formula + root + runs + places_and_sizes


@pytest.mark.parametrize("size", [0, 5, 39, 40, 79])
def test_truncated_graph_names_the_post(size: int) -> None:
    with pytest.raises(GraphError, match=f"post 255: stored graph has {size} bytes"):
        decode(encode(small())[:size], "255")


def test_foreign_bytes_name_the_post() -> None:
    with pytest.raises(GraphError, match="post 255: not a stored graph of this version"):
        decode(b"x" * 60, "255")


def test_a_number_past_all_nodes_names_the_post() -> None:
    blob = bytearray(encode(replace(small(), labels=np.array([8, 70_000, 10], np.int32))))
    blob[68:72] = (1 << 31).to_bytes(4, "little")  # the tree node, which 32 bits with a sign do not hold
    with pytest.raises(GraphError, match="post 255: a number of 2147483648; the file is damaged"):
        decode(bytes(blob), "255")


def test_edges_that_are_not_of_a_graph_are_not_stored() -> None:
    graph = small()
    for relations in (graph.relations[::-1], graph.relations + 1, graph.relations - NUM_VIRTUAL_RELATIONS):
        with pytest.raises(GraphError, match="not sorted by even relations"):
            encode(replace(graph, relations=relations))


ROOT_IN_A_TREE = "(v / x :ARG0 (F0 / FORMULA_0 :opt v))"


def test_a_graph_whose_root_a_tree_mentions_keeps_it_and_one_without_a_root_is_not_stored() -> None:
    graph = mathamr_plus.decode(ROOT_IN_A_TREE, {"FORMULA_0": "17"})
    vocabulary = Vocabulary.build(Counts(amr={"x": 1}), size=50)
    for formulas in ("both", "slt"):
        assert size_of(to_stored(graph, formulas, vocabulary)).nodes == 2
    with pytest.raises(GraphError, match="the root is node -1, but the graph has the nodes 0"):
        encode(to_stored(replace(graph, root=-1), "both", vocabulary))


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
    made = convert(mathamr_plus.decode, "slt", Vocabulary.build(Counts(), size=50), rows)
    assert [(result.post_id, result.stage) for result in made if isinstance(result, Failure)] == [
        (post_id, "tensors") for post_id, _, _ in rows[:-2]
    ]
    for result in made:
        if isinstance(result, Failure):
            result.message.encode()


def test_a_graph_too_large_to_be_encoded_is_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(m / multi-sentence " + " ".join(f":snt{i} (s{i} / say-01 :quant {i})" for i in range(1, 6)) + ")"
    row = ("7", text, "{}")
    vocabulary = Vocabulary.build(count([row], mathamr_plus.decode), size=100)
    for bound, value, message in (
        ("MAX_NODES", 5, "a graph of 6 nodes; at most 5"),  # before it is read
        ("MAX_NODES", 10, "a graph of 11 nodes; at most 10"),
        ("MAX_EDGES", 19, "a graph of 20 edges; at most 19"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(tensors, bound, value)
            (failure,) = convert(mathamr_plus.decode, "both", vocabulary, [row])
        assert isinstance(failure, Failure)
        assert (failure.post_id, failure.stage, failure.kind) == ("7", "tensors", "too_large")
        assert failure.message.startswith(message)
