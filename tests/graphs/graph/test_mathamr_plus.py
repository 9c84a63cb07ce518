"""Every way in which a placeholder comes back from a parser ends with one node a formula, connected and readable."""

import json
from pathlib import Path

import penman
import pytest

from graphs.amr.penman_text import blocks, decode
from graphs.corpus.post import FormulaRef
from graphs.errors import GraphError
from graphs.formulas.tree import FormulaTree, ParsedFormula, position_label
from graphs.graph.mathamr_plus import DocumentGraph, MathAMRPlus, NodeKind, build
from graphs.graph.mathamr_plus import decode as decode_plus

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"

X_SQUARED = ParsedFormula(
    slt=FormulaTree("slt", ("V!x", "N!2"), (-1, 0), ("", "a")),
    opt=FormulaTree("opt", ("O!SUP", "V!x", "N!2"), (-1, 0, 0), ("", "0", "1")),
)


def formulas(count: int) -> list[FormulaRef]:
    return [FormulaRef(f"id{i}", "x^2") for i in range(count)]


def built(amr: str, count: int) -> tuple[MathAMRPlus, DocumentGraph]:
    plus = build(decode(amr), formulas(count), [X_SQUARED] * count)
    return plus, decode_plus(plus.penman, plus.formula_map)


def is_connected(graph: DocumentGraph) -> bool:
    neighbours: dict[int, list[int]] = {i: [] for i in range(len(graph.labels))}
    for source, _, target in graph.edges:
        neighbours[source].append(target)
        neighbours[target].append(source)
    seen, stack = {graph.root}, [graph.root]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return len(seen) == len(graph.labels)


@pytest.mark.parametrize(
    ("amr", "count", "attachments"),
    [
        ("(s / solve-01 :ARG1 (f / FORMULA_0))", 1, ["concept"]),
        ("(s / solve-01 :ARG1 (f / formula_0))", 1, ["concept"]),
        ("(s / solve-01 :ARG1 (f / FORMULA_0-th))", 1, ["concept"]),
        ('(s / solve-01 :ARG1 (t / string-entity :value "FORMULA_0"))', 1, ["string"]),
        ('(s / solve-01 :ARG1 (t / thing :name (n / name :op1 "FORMULA_0" :op2 "Theorem")))', 1, ["string"]),
        ("(s / solve-01 :ARG1 (f / FORMULA_0-FORMULA_1))", 2, ["string", "string"]),
        ("(s / solve-01 :ARG1 (f / FORMULA_1))", 2, ["root", "concept"]),
        ("(a / amr-empty)", 3, ["root", "root", "root"]),
        ("(f / FORMULA_0)", 2, ["concept", "root"]),
        ("(a / and :op1 (f / FORMULA_0) :op2 (f2 / FORMULA_0))", 1, ["concept"]),
        ("(f / FORMULA_0 :mod (g / FORMULA_0))", 1, ["concept"]),
        ('(f / FORMULA_0 :ARG1-of (h / hold-01 :ARG2 "FORMULA_0"))', 1, ["concept"]),
        ("(F0 / find-01 :ARG1 (F1o2 / FORMULA_0))", 1, ["concept"]),
        ("(s / solve-01 :ARG1 (f / FORMULA_12))", 2, ["root", "root"]),
        ("(s / solve-01 :ARG1 (f / FORMULA_2) :ARG2 (g / FORMULA0))", 2, ["concept", "root"]),
        ("(s / solve-01 :ARG0 (f / formula-01) :ARG1 (g / subformula_0))", 1, ["root"]),
        ("(f / formula-01 :ARG1 (g / FORMULA_0))", 2, ["concept", "root"]),
        ('(f / FORMULA_0-01 :ARG2 (n / name :op1 "Formula01"))', 2, ["concept", "root"]),
    ],
)
def test_every_formula_has_one_node_with_its_trees(amr: str, count: int, attachments: list[str]) -> None:
    plus, graph = built(amr, count)
    assert list(plus.attachments.values()) == attachments
    assert [graph.labels[node] for node in graph.formula_nodes] == [f"FORMULA_{i}" for i in range(count)]
    assert graph.formula_ids == [f"id{i}" for i in range(count)]
    for i in range(count):
        trees = [graph.kinds[node] for node in range(len(graph.labels)) if graph.formula[node] == i]
        assert trees.count(NodeKind.OPT) == 3
        assert trees.count(NodeKind.SLT) == 2
        assert graph.labels.count(f"FORMULA_{i}") == 1
    assert all(graph.sentence[node] < 0 for node, kind in enumerate(graph.kinds) if kind > NodeKind.FORMULA)
    assert is_connected(graph)


@pytest.mark.parametrize(
    ("amr", "expected", "attachment"),
    [
        ("(F0 / say-01 :ARG0 (F0_ / you))", "(F0__ / say-01 :ARG0 (F0_ / you) :math (F0 / FORMULA_0))", "root"),
        ("(s / say-01 :ARG0 (formula_0 / you))", "(s / say-01 :ARG0 (formula_0 / you) :math (F0 / FORMULA_0))", "root"),
        (
            "(a / and :op1 (f / FORMULA_0 :mod (b / big)) :op2 (g / FORMULA_0 :mod b))",
            "(a / and :op1 (F0 / FORMULA_0 :mod (b / big)) :op2 F0)",
            "concept",
        ),
        ("(f / FORMULA_0 :mod (g / FORMULA_0))", "(F0 / FORMULA_0)", "concept"),
        ('(f / FORMULA_0 :op1 "FORMULA_0")', "(F0 / FORMULA_0)", "concept"),
    ],
)
def test_no_node_is_joined_and_no_edge_doubled(amr: str, expected: str, attachment: str) -> None:
    plus = build(decode(amr), formulas(1), [ParsedFormula(None, None)])
    assert (plus.penman, plus.attachments) == (expected, {"FORMULA_0": attachment})


def test_a_graph_that_would_not_read_back_is_refused() -> None:
    amr = penman.Graph([("s", ":instance", "say-01"), ("s", ":op1", "a b")], top="s")
    with pytest.raises(GraphError, match="does not round-trip through Penman"):
        build(amr, [], [])


def test_what_reads_like_one_of_our_variables_stays_what_it_is() -> None:
    _, graph = built("(s / F0 :ARG1 (f / FORMULA_0) :quant F0 :mod F0s0 :ARG2 (F0o1 / F1))", 1)
    own = {(graph.labels[s], role, graph.labels[t]) for s, role, t in graph.edges if graph.kinds[t] is NodeKind.AMR}
    assert own == {("F0", ":quant", "F0"), ("F0", ":mod", "F0s0"), ("F0", ":ARG2", "F1")}


def test_of_two_concepts_of_one_node_no_formula_is_lost() -> None:
    """The reader of Penman text refuses such a graph; one from elsewhere may have it."""
    amr = penman.Graph([("f", ":instance", "FORMULA_0"), ("f", ":instance", "FORMULA_1")], top="f")
    plus = build(amr, formulas(2), [X_SQUARED] * 2)
    assert plus.attachments == {"FORMULA_0": "concept", "FORMULA_1": "string"}
    assert len(decode_plus(plus.penman, plus.formula_map).formula_nodes) == 2


def test_two_mentions_become_one_node_with_two_incoming_edges() -> None:
    _, graph = built("(a / and :op1 (f / FORMULA_0 :mod (l / large)) :op2 (f2 / FORMULA_0 :mod (s / small)))", 1)
    node = graph.formula_nodes[0]
    assert sorted(role for _, role, target in graph.edges if target == node) == [":op1", ":op2"]
    assert sorted(graph.labels[t] for s, role, t in graph.edges if s == node and role == ":mod") == ["large", "small"]


def test_a_dropped_formula_belongs_to_no_sentence_and_the_others_to_theirs() -> None:
    _, graph = built(
        "(m / multi-sentence :snt1 (s / solve-01 :ARG1 (f / FORMULA_0)) :snt2 (h / hold-01 :quant 3 :ARG1 f))", 2
    )
    assert [graph.labels[root] for root in graph.sentence_roots] == ["solve-01", "hold-01"]
    assert graph.sentence[graph.formula_nodes[0]] == 0
    assert graph.sentence[graph.formula_nodes[1]] == -1
    assert graph.sentence[graph.root] == -1
    assert graph.sentence[graph.labels.index("3")] == 1


@pytest.mark.parametrize("label", ["M!()1x1", "/", ":", 'a"b', "a b", "~1", "#", "\\", "−", "\u2028", "T!\\mathbb"])
def test_any_label_of_a_tree_survives(label: str) -> None:
    tree = FormulaTree("slt", (label, "V!x"), (-1, 0), ("", "w"))
    plus = build(decode("(f / FORMULA_0)"), formulas(1), [ParsedFormula(tree, None)])
    graph = decode_plus(plus.penman, plus.formula_map)
    assert [graph.labels[i] for i in range(len(graph.labels)) if graph.kinds[i] is NodeKind.SLT] == [label, "V!x"]


def test_a_long_list_of_operands_has_numbered_roles() -> None:
    labels, edges = [f"V!{i}" for i in range(80)], [position_label(i) for i in range(80)]
    tree = FormulaTree("opt", ("M!L-80", *labels), (-1, *[0] * 80), ("", *edges))
    plus = build(decode("(f / FORMULA_0)"), formulas(1), [ParsedFormula(None, tree)])
    graph = decode_plus(plus.penman, plus.formula_map)
    assert {(role, graph.labels[t]) for _, role, t in graph.edges if role != ":opt"} == {
        (f":opt-{i}", f"V!{i}") for i in range(80)
    }


def test_a_formula_as_long_as_a_page_is_a_graph() -> None:
    labels = [f"V!{i}" for i in range(5001)]
    tree = FormulaTree("slt", tuple(labels), tuple(range(-1, 5000)), ("", *["n"] * 5000))
    plus = build(decode("(f / FORMULA_0)"), formulas(1), [ParsedFormula(tree, None)])
    assert len(decode_plus(plus.penman, plus.formula_map).labels) == 5002


def test_a_formula_without_trees_keeps_its_node() -> None:
    plus = build(decode("(p / prove-01 :ARG1 (f / FORMULA_0))"), formulas(1), [ParsedFormula(None, None)])
    graph = decode_plus(plus.penman, plus.formula_map)
    assert graph.kinds[graph.formula_nodes[0]] is NodeKind.FORMULA
    assert len(graph.labels) == 2


def test_formulas_and_trees_of_different_number_are_refused() -> None:
    with pytest.raises(GraphError, match="2 formulas but trees of 1"):
        build(decode("(p / prove-01)"), formulas(2), [X_SQUARED])


def test_a_formula_map_that_names_a_missing_formula_is_refused() -> None:
    with pytest.raises(GraphError, match=r"FORMULA_3 \(q_7\)"):
        decode_plus("(f / FORMULA_0)", {"FORMULA_3": "q_7"})


def test_of_two_nodes_of_a_formula_the_first_is_the_formula() -> None:
    graph = decode_plus("(a / and :op1 (f / FORMULA_0) :op2 (g / FORMULA_0))", {"FORMULA_0": "q_7"})
    assert graph.kinds == [NodeKind.AMR, NodeKind.FORMULA, NodeKind.AMR]
    assert (graph.formula_nodes, graph.formula) == ([1], [-1, 0, -1])


@pytest.mark.shared
def test_real_parses_of_arqmath_topics_keep_every_formula() -> None:
    path = SHARED / "amr" / "arqmath_topics_parsed.penman"
    if not path.exists():
        pytest.skip("the development data is not beside the repository")
    how: dict[str, int] = {}
    count = 0
    with path.open(encoding="utf-8") as lines:
        for block in blocks(lines):
            graph = decode(block.text)
            names = json.loads(block.metadata["formula_map"])
            highest = max((int(name.removeprefix("FORMULA_")) for name in names), default=-1)
            refs = [FormulaRef(names.get(f"FORMULA_{i}", "not in the map"), "x^2") for i in range(highest + 1)]
            plus = build(graph, refs, [X_SQUARED] * len(refs))
            full = decode_plus(plus.penman, plus.formula_map)
            assert is_connected(full), block.metadata["id"]
            assert set(names.values()) <= set(full.formula_ids)
            assert set(penman.decode(plus.penman).triples) == set(decode(plus.penman).triples)
            for attachment in plus.attachments.values():
                how[attachment] = how.get(attachment, 0) + 1
            count += 1
    assert count == 285
    assert how["string"] > how["root"] > 200
