"""Trees are known by their place in the graph: foreign role names, shared nodes, nodes that the AMR has, too."""

from __future__ import annotations

import pytest

from graphs.amr.penman_text import decode as decode_penman
from graphs.amr.penman_text import encode
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind, decode
from graphs.graph.virtual_nodes import VirtualNodeSpec, add_virtual_nodes

OURS = (
    "(s / solve-01 :ARG1 (F0 / FORMULA_0"
    " :opt (o / O!SUP :opt-0 (v / V!x :opt-10 (z / V!z)) :opt-1 (n / N!2))"
    " :slt (x / V!x :slt-a (m / N!2) :slt-n (y / V!y :slt-w (w / V!w)))"
    " :mod (g / good)) :op1 (t / that) :ARG2 (F1 / FORMULA_1 :opt (q / V!q)))"
)
FORMULAS = {"FORMULA_0": "a", "FORMULA_1": "b"}


def members(graph: DocumentGraph) -> dict[str, str]:
    """For each label of a tree node its kind and formula, such as ``OPT 0``."""
    return {
        graph.labels[i]: f"{kind.name} {graph.formula[i]}"
        for i, kind in enumerate(graph.kinds)
        if kind > NodeKind.FORMULA
    }


@pytest.mark.parametrize(
    "renamed",
    [
        {":opt-10": ":opA", ":opt-": ":op", ":slt-": ":"},
        {":opt-": ":op-", ":slt-": ":SLT-"},
        {":opt-": ":opt", ":slt-n": ":Next", ":slt-a": ":above", ":slt-w": ":within"},
        {":opt-": ":Operand", ":slt-": ":edge-"},
        {":opt ": ":OPT ", ":slt ": ":Slt ", ":opt-": ":child-of", ":slt-": ":arg"},
    ],
)
def test_a_tree_is_the_same_whatever_its_roles_are_called(renamed: dict[str, str]) -> None:
    text = OURS
    for ours, theirs in renamed.items():
        text = text.replace(ours, theirs)
    native, foreign = decode(OURS, FORMULAS), decode(text, FORMULAS)
    assert (foreign.kinds, foreign.formula, foreign.sentence) == (native.kinds, native.formula, native.sentence)
    full = add_virtual_nodes(foreign, VirtualNodeSpec())
    below = {target for _, role, target in full.edges if role == ":virtual_formula"}
    assert below == {i for i, kind in enumerate(native.kinds) if kind > NodeKind.FORMULA}


def test_an_inverse_role_and_a_constant_below_a_tree_are_of_the_tree() -> None:
    text = "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 1 :font bold :part-of (w / whole :op3 (d / deep)))))"
    graph = decode(text, {"FORMULA_0": "a"})
    assert members(graph) == dict.fromkeys(["plus", "1", "bold", "whole", "deep"], "OPT 0")
    assert members(decode(encode(decode_penman(text)), {"FORMULA_0": "a"})) == members(graph)


@pytest.mark.parametrize(
    "text",
    [
        "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 (v / x :kind b))) :ARG2 (b / big :mod (v2 / very)))",
        "(s / see-01 :ARG2 (b / big :mod (v2 / very)) :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 (v / x :kind b))))",
        "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 (v / x :kind (b / big :mod (v2 / very))))) :ARG2 b)",
        "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 (v / x :kind b)) :mod (b / big :mod (v2 / very))))",
    ],
)
def test_a_node_that_the_amr_has_too_stays_of_the_amr_however_it_is_written(text: str) -> None:
    graph = decode(text, {"FORMULA_0": "a"})
    assert members(graph) == {"plus": "OPT 0", "x": "OPT 0"}
    assert graph.sentence[graph.labels.index("very")] == 0


def test_the_root_is_in_no_tree() -> None:
    graph = decode("(o / plus :opt-of (F0 / FORMULA_0))", {"FORMULA_0": "a"})
    assert (graph.kinds, graph.formula) == ([NodeKind.AMR, NodeKind.FORMULA], [-1, 0])


def test_a_tree_keeps_the_nodes_that_the_amr_and_other_trees_mention() -> None:
    text = (
        "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 (x / x) :op1 (y / y)))"
        " :ARG2 (r / root :domain y) :ARG3 (F1 / FORMULA_1 :opt x :slt (l / L :n y :font (i / italic)) :mod o)"
        " :ARG4 (F2 / FORMULA_2 :opt o))"
    )
    graph = decode(text, {f"FORMULA_{i}": str(i) for i in range(3)})
    assert members(graph) == {"plus": "OPT 0", "x": "OPT 0", "y": "OPT 0", "L": "SLT 1", "italic": "SLT 1"}
    assert graph.kinds[graph.labels.index("root")] is NodeKind.AMR
    full = add_virtual_nodes(graph, VirtualNodeSpec())
    own = [t for s, role, t in full.edges if role == ":virtual_formula" and s == full.representatives[2]]
    assert own == [graph.formula_nodes[2]]  # its tree is the first formula's


def test_a_formula_in_a_tree_and_the_root_of_the_graph_are_of_no_tree() -> None:
    text = (
        "(s / see-01 :ARG1 (F0 / FORMULA_0 :opt (o / plus :op0 s :op1 (F1 / FORMULA_1 :mod (m / more) :opt (q / q)))))"
    )
    graph = decode(text, {"FORMULA_0": "a", "FORMULA_1": "b"})
    assert members(graph) == {"plus": "OPT 0", "q": "OPT 1"}
    assert graph.kinds[graph.root] is NodeKind.AMR


def test_roles_of_the_amr_that_begin_like_ours_lead_into_no_tree() -> None:
    graph = decode("(F0 / FORMULA_0 :optional (p / possible-01) :opt (v / x))", {"FORMULA_0": "a"})
    assert members(graph) == {"x": "OPT 0"}
