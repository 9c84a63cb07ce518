"""Virtual nodes: which there are, what they cover, and that nothing is lost in any combination."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings

from graphs.errors import ConfigError, GraphTooLargeError
from graphs.graph import virtual_nodes
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.virtual_nodes import (
    VIRTUAL_LABELS,
    FormulaMode,
    VirtualKind,
    VirtualNodeSpec,
    add_virtual_nodes,
    places,
    select_formulas,
)
from tests.graphs.graph.random_documents import documents

AMR, FORMULA, OPT, SLT = NodeKind


def two_sentences() -> DocumentGraph:
    """ "Let FORMULA_0. Solve FORMULA_2." with FORMULA_1 dropped by the parser; FORMULA_2 has no OPT.

    0 multi-sentence, 1 let-01, 2 FORMULA_0 (3 OPT, 4 and 5 SLT), 6 solve-01, 7 FORMULA_2 (8 SLT), 9 FORMULA_1 (10 OPT)
    """
    return DocumentGraph(
        labels=[
            "multi-sentence", "let-01", "FORMULA_0", "V!x", "V!x", "N!2",
            "solve-01", "FORMULA_2", "+", "FORMULA_1", "V!y",
        ],
        kinds=[AMR, AMR, FORMULA, OPT, SLT, SLT, AMR, FORMULA, SLT, FORMULA, OPT],
        edges=[
            (0, ":snt1", 1), (1, ":ARG1", 2), (2, ":opt", 3), (2, ":slt", 4), (4, ":slt-a", 5), (0, ":snt2", 6),
            (6, ":ARG1", 7), (7, ":slt", 8), (0, ":math", 9), (9, ":opt", 10),
        ],
        root=0,
        sentence=[-1, 0, 0, -1, -1, -1, 1, 1, -1, -1, -1],
        formula=[-1, -1, 0, 0, 0, 0, -1, 2, 2, 1, 1],
        sentence_roots=[1, 6],
        formula_nodes=[2, 9, 7],
        formula_ids=["10", "11", "12"],
    )  # fmt: skip


def only_formulas() -> DocumentGraph:
    """A post that is FORMULA_0 with FORMULA_1 hanging from it."""
    return DocumentGraph(
        labels=["FORMULA_0", "FORMULA_1", "V!x"],
        kinds=[FORMULA, FORMULA, SLT],
        edges=[(0, ":math", 1), (1, ":slt", 2)],
        root=0,
        sentence=[0, -1, -1],
        formula=[0, 1, 1],
        sentence_roots=[0],
        formula_nodes=[0, 1],
        formula_ids=["1", "2"],
    )


def covered(edges: list[tuple[int, str, int]], node: int, relation: str) -> list[int]:
    return [target for source, role, target in edges if source == node and role == relation]


def test_full_hierarchy_covers_trees_sentences_and_document() -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec())
    assert graph.labels[11:] == ["VIRTUAL_FORMULA"] * 3 + ["VIRTUAL_SENTENCE"] * 2 + ["VIRTUAL_DOCUMENT"]
    assert graph.representatives == [11, 12, 13, 14, 15, 16]
    assert [covered(graph.edges, n, ":virtual_formula") for n in (11, 12, 13)] == [[3, 4, 5], [10], [8]]
    assert [covered(graph.edges, n, ":virtual_sentence") for n in (14, 15)] == [[1, 2], [6, 7]]
    assert covered(graph.edges, 16, ":virtual_document") == [11, 12, 13, 14, 15, 0]


def test_formula_without_kept_trees_is_covered_by_its_own_node() -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec(formulas="opt"))
    nodes = {label: node for node, label in enumerate(graph.labels)}
    third = graph.representatives[2]
    assert covered(graph.edges, third, ":virtual_formula") == [nodes["FORMULA_2"]]
    assert "+" not in nodes


@pytest.mark.parametrize(("mode", "gone", "kept"), [("opt", SLT, OPT), ("slt", OPT, SLT)])
def test_one_tree_mode_drops_the_other_tree(mode: FormulaMode, gone: NodeKind, kept: NodeKind) -> None:
    graph = select_formulas(two_sentences(), mode)
    assert gone not in graph.kinds
    assert graph.kinds.count(kept) == two_sentences().kinds.count(kept)
    assert graph.formula_ids == ["10", "11", "12"]
    assert [graph.labels[node] for node in graph.formula_nodes] == ["FORMULA_0", "FORMULA_1", "FORMULA_2"]


def test_no_formulas_leaves_the_text_alone() -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec(formulas="none"))
    assert graph.labels == [
        "multi-sentence",
        "let-01",
        "solve-01",
        "VIRTUAL_SENTENCE",
        "VIRTUAL_SENTENCE",
        "VIRTUAL_DOCUMENT",
    ]
    assert graph.representative_kinds == [VirtualKind.SENTENCE, VirtualKind.SENTENCE, VirtualKind.DOCUMENT]


def test_no_formulas_reties_what_a_formula_node_held() -> None:
    # "FORMULA_0 that is even", the sentence's root being the formula, which also has an argument below it.
    graph = DocumentGraph(
        labels=["FORMULA_0", "even-02", "number", "V!x"],
        kinds=[FORMULA, AMR, AMR, OPT],
        edges=[(1, ":ARG1", 0), (0, ":domain", 2), (0, ":opt", 3)],
        root=0,
        sentence=[0, 0, 0, -1],
        formula=[0, -1, -1, 0],
        sentence_roots=[0],
        formula_nodes=[0],
        formula_ids=["5"],
    )
    selected = select_formulas(graph, "none")
    assert selected.labels == ["even-02", "number"]
    assert selected.edges == [(0, ":domain", 1)]
    assert selected.root == 0
    assert selected.sentence_roots == [0]


def test_no_formulas_ties_each_part_once_to_the_first_parent() -> None:
    graph = DocumentGraph(
        labels=["a", "b", "c", "d", "FORMULA_0", "FORMULA_1"],
        kinds=[AMR, AMR, AMR, AMR, FORMULA, FORMULA],
        edges=[
            (0, ":ARG0", 4), (1, ":ARG1", 4), (4, ":mod", 2), (4, ":part", 3), (0, ":x", 3), (0, ":y", 5), (5, ":z", 2),
        ],
        root=0,
        sentence=[0] * 6,
        formula=[-1, -1, -1, -1, 0, 1],
        sentence_roots=[1],
        formula_nodes=[4, 5],
        formula_ids=["1", "2"],
    )  # fmt: skip
    selected = select_formulas(graph, "none")
    assert selected.edges == [(0, ":x", 3), (1, ":ARG1", 0), (0, ":mod", 2)]
    assert selected.sentence_roots == [1]


def test_a_root_that_is_a_formula_becomes_its_first_neighbour() -> None:
    graph = DocumentGraph(
        ["a", "FORMULA_0", "b"],
        [AMR, FORMULA, AMR],
        [(1, ":r", 2), (2, ":q", 0)],
        1,
        [0] * 3,
        [-1, 0, -1],
        [1],
        [1],
        [""],
    )
    assert select_formulas(graph, "none").root == 1


def test_a_formula_in_no_sentence_follows_the_one_before_it() -> None:
    assert places(replace(two_sentences(), formula_nodes=[9, 7, 9, 2])) == [0, 1, 1, 0]


def test_too_many_auxiliary_edges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = VirtualNodeSpec(connectivity="sequential")
    monkeypatch.setattr(virtual_nodes, "MAX_AUXILIARY_EDGES", 4)
    add_virtual_nodes(two_sentences(), spec)
    monkeypatch.setattr(virtual_nodes, "MAX_AUXILIARY_EDGES", 3)
    with pytest.raises(GraphTooLargeError, match="5 formulas and sentences have 4 edges"):
        add_virtual_nodes(two_sentences(), spec)


def test_no_formulas_drops_sentences_of_formulas_only() -> None:
    graph = two_sentences()
    graph.kinds[1], graph.labels[1] = FORMULA, "FORMULA_3"
    graph.formula_nodes.append(1)
    graph.formula[1] = 3
    extended = add_virtual_nodes(graph, VirtualNodeSpec(formulas="none"))
    assert extended.labels == ["multi-sentence", "solve-01", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT"]


def test_global_node_is_tied_to_every_node_and_represented_last() -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec(structure="global"))
    assert graph.num_virtual == 1
    assert graph.labels[-1] == "VIRTUAL_DOCUMENT"
    assert covered(graph.edges, 11, ":virtual_document") == list(range(11))
    assert graph.representatives == [2, 9, 7, 1, 6, 11]
    assert graph.representative_kinds == [0, 0, 0, 1, 1, 2]


def test_without_virtual_nodes_formula_nodes_and_sentence_roots_represent() -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec(structure="none"))
    assert graph.num_virtual == 0
    assert graph.edges == two_sentences().edges
    assert graph.representatives == [2, 9, 7, 1, 6]


def test_sentence_root_that_is_a_formula_is_represented_once() -> None:
    graph = add_virtual_nodes(only_formulas(), VirtualNodeSpec(structure="none"))
    assert graph.representatives == [0, 1]
    assert graph.representative_kinds == [0, 0]


# In document order: sentence 0, FORMULA_0, FORMULA_1 (in no sentence, so behind FORMULA_0), sentence 1, FORMULA_2.
ORDER = [14, 11, 12, 15, 13]


@pytest.mark.parametrize(
    ("connectivity", "pairs"),
    [
        ("none", []),
        ("sequential", list(pairwise(ORDER))),
        ("circular", [*pairwise(ORDER), (ORDER[-1], ORDER[0])]),
        ("fully_connected", [(ORDER[i], ORDER[j]) for i in range(5) for j in range(i + 1, 5)]),
    ],
)
def test_auxiliary_edges_follow_the_document(connectivity: str, pairs: list[tuple[int, int]]) -> None:
    graph = add_virtual_nodes(two_sentences(), VirtualNodeSpec(connectivity=connectivity))
    assert [(s, t) for s, role, t in graph.edges if role == ":auxiliary_vn"] == pairs


def test_ring_of_two_is_a_chain() -> None:
    spec = VirtualNodeSpec(connectivity="circular", formulas="none")
    assert len([e for e in add_virtual_nodes(two_sentences(), spec).edges if e[1] == ":auxiliary_vn"]) == 1


def test_unknown_structure_is_refused_with_the_choices() -> None:
    with pytest.raises(ConfigError, match="structure is 'flat'; give one of full, global, none"):
        VirtualNodeSpec(structure="flat")  # type: ignore[arg-type]


def test_threads_without_document_nodes_are_refused() -> None:
    with pytest.raises(ConfigError, match="joins the document nodes of posts"):
        VirtualNodeSpec(structure="none", thread="question")


def is_connected(graph: DocumentGraph) -> bool:
    neighbours: dict[int, set[int]] = {node: set() for node in range(len(graph.labels))}
    for source, _, target in graph.edges:
        neighbours[source].add(target)
        neighbours[target].add(source)
    reached, stack = {graph.root}, [graph.root]
    while stack:
        fresh = neighbours[stack.pop()] - reached
        reached |= fresh
        stack += fresh
    return len(reached) == len(graph.labels)


@settings(max_examples=150, deadline=None)
@given(documents())
def test_every_combination_keeps_the_contracts(graph: DocumentGraph) -> None:
    for spec in VirtualNodeSpec.every(thread="none"):
        extended = add_virtual_nodes(graph, spec)
        size = len(extended.labels)
        assert len(extended.representatives) == len(set(extended.representatives)) > 0
        assert all(0 <= node < size for s, _, t in extended.edges for node in (s, t))
        assert len(extended.kinds) == size - extended.num_virtual
        assert not set(extended.labels[: size - extended.num_virtual]) & set(VIRTUAL_LABELS)
        assert extended.representative_kinds == sorted(extended.representative_kinds)
        if spec.structure == "full":
            assert extended.representatives == list(range(size - extended.num_virtual, size))
        if spec.structure != "none":
            assert extended.representatives[-1] == size - 1
            assert extended.labels[-1] == "VIRTUAL_DOCUMENT"
        if spec.formulas != "none":
            assert extended.representative_kinds.count(VirtualKind.FORMULA) == len(graph.formula_nodes)


@settings(max_examples=200, deadline=None)
@given(documents())
def test_selecting_formulas_keeps_a_graph_connected(graph: DocumentGraph) -> None:
    assert is_connected(graph)
    for mode in get_args(FormulaMode):
        selected = select_formulas(graph, mode)
        assert is_connected(selected)
        if mode == "none":
            concepts = [label for label, kind in zip(graph.labels, graph.kinds, strict=True) if kind is AMR]
            assert selected.labels == (concepts or [graph.labels[graph.root]])
            assert all(0 <= root < len(selected.labels) for root in [selected.root, *selected.sentence_roots])


def test_post_of_formulas_alone_still_has_a_representative() -> None:
    for spec in VirtualNodeSpec.every(thread="none"):
        assert add_virtual_nodes(only_formulas(), spec).representatives
