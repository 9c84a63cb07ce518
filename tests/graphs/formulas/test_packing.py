"""Packed formula trees: any tree survives being packed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import FormulaError
from graphs.formulas.tree import FormulaTree, pack, unpack

LABELS = st.text(st.characters(exclude_characters="\x1f", exclude_categories=["Cs"]), max_size=8)


@st.composite
def trees(draw: st.DrawFn) -> FormulaTree:
    """Any tree in pre-order: each node hangs from the node before it or from one of that node's ancestors."""
    parents = [-1]
    for node in range(1, draw(st.integers(1, 30))):
        ancestors = [node - 1]
        while parents[ancestors[-1]] >= 0:
            ancestors.append(parents[ancestors[-1]])
        parents.append(draw(st.sampled_from(ancestors)))
    size = len(parents)
    labels = draw(st.lists(LABELS, min_size=size, max_size=size))
    edges = draw(st.lists(st.sampled_from("naboucdwe0159AZaz\u0080\u0120"), min_size=size - 1, max_size=size - 1))
    return FormulaTree(draw(st.sampled_from(["slt", "opt"])), tuple(labels), tuple(parents), ("", *edges))


@settings(deadline=None)
@given(trees())
def test_round_trip(tree: FormulaTree) -> None:
    assert unpack(pack(tree), tree.kind) == tree


def test_a_node_of_five_hundred_operands() -> None:
    tree = FormulaTree("opt", ("M!L-500", *["N!1"] * 500), (-1, *[0] * 500), ("", *map(chr, range(48, 548))))
    assert unpack(pack(tree), "opt") == tree


@pytest.mark.parametrize(
    "tree",
    [
        FormulaTree("slt", ("V!\x1f",), (-1,), ("",)),
        FormulaTree("slt", ("V!x", "V!y"), (-1, 0), ("", "nn")),
        FormulaTree("slt", ("V!x", "V!y"), (-1, 0), ("", "\x1f")),
    ],
)
def test_a_tree_that_bytes_cannot_tell_is_refused(tree: FormulaTree) -> None:
    with pytest.raises(FormulaError, match="cannot be packed"):
        pack(tree)
