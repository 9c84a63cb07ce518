"""graphs.formulas.tree: edges and the string form."""

from graphs.formulas.tree import FormulaTree, position_label


def test_equal_labels_keep_their_own_parents() -> None:
    """The string form of the original cannot tell the two ``plus`` apart when it is read back; edges can."""
    tree = FormulaTree("opt", ("U!plus", "U!plus", "N!1", "V!k", "N!1"), (-1, 0, 1, 1, 0), ("", "0", "0", "0", "0"))
    assert tree.edges() == [(0, "0", 1), (1, "0", 2), (1, "0", 3), (0, "0", 4)]
    assert len(tree) == 5


def test_the_string_of_an_slt_prints_next_first_and_within_before_element() -> None:
    tree = FormulaTree("slt", ("M!()1x1", *(f"V!{i}" for i in range(1, 10))), (-1, *[0] * 9), ("", *"aocnbudew"))
    string = "[M!()1x1[V!4],a[V!1],b[V!5],o[V!2],u[V!6],c[V!3],d[V!7],w[V!9],e[V!8]]"
    assert tree.tangent_string() == string


def test_the_string_of_an_opt_prints_positions_below_an_unordered_operator_too() -> None:
    tree = FormulaTree("opt", ("U!times", *(f"N!{i}" for i in range(12))), (-1, *[0] * 12), ("", *["0"] * 12))
    string = tree.tangent_string()
    assert string.startswith("[U!times,0[N!0],1[N!1]")
    assert string.endswith(",9[N!9],A[N!10],B[N!11]]")


def test_position_labels_do_not_repeat() -> None:
    labels = [position_label(position) for position in range(500)]
    assert labels[:12] == list("0123456789AB")
    assert len(set(labels)) == 500
    assert {len(label) for label in labels} == {1}


def test_a_chain_of_a_hundred_thousand_symbols_is_a_tree() -> None:
    number = 100_000
    tree = FormulaTree("slt", ("V!x",) * number, (-1, *range(number - 1)), ("", *("n" * (number - 1))))
    assert tree.tangent_string() == "[V!x" * number + "]" * number
    assert tree.edges()[-1] == (number - 2, "n", number - 1)
