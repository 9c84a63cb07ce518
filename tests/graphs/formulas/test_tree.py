"""graphs.formulas.tree: numbering, edges and the string form."""

from graphs.formulas.tree import FormulaTree, TreeNode, position_label


def test_nodes_are_numbered_in_pre_order_and_edges_point_down() -> None:
    left = TreeNode("U!plus", [("0", TreeNode("V!a")), ("0", TreeNode("V!b"))])
    tree = FormulaTree.from_node(TreeNode("O!minus", [("0", left), ("1", TreeNode("N!1"))]), "opt")
    assert tree.labels == ("O!minus", "U!plus", "V!a", "V!b", "N!1")
    assert tree.edges() == [(0, "0", 1), (1, "0", 2), (1, "0", 3), (0, "1", 4)]
    assert len(tree) == 5


def test_equal_labels_keep_their_own_parents() -> None:
    """The string form of the original cannot tell the two ``plus`` apart when it is read back; edges can."""
    inner = TreeNode("U!plus", [("0", TreeNode("N!1")), ("0", TreeNode("V!k"))])
    tree = FormulaTree.from_node(TreeNode("U!plus", [("0", inner), ("0", TreeNode("N!1"))]), "opt")
    assert tree.edges() == [(0, "0", 1), (1, "0", 2), (1, "0", 3), (0, "0", 4)]


def test_the_string_of_an_slt_prints_next_first_and_within_before_element() -> None:
    children = [("a", "V!1"), ("o", "V!2"), ("c", "V!3"), ("n", "V!4"), ("b", "V!5")]
    children += [("u", "V!6"), ("d", "V!7"), ("e", "V!8"), ("w", "V!9")]
    root = TreeNode("M!()1x1", [(edge, TreeNode(label)) for edge, label in children])
    string = "[M!()1x1[V!4],a[V!1],b[V!5],o[V!2],u[V!6],c[V!3],d[V!7],w[V!9],e[V!8]]"
    assert FormulaTree.from_node(root, "slt").tangent_string() == string


def test_the_string_of_an_opt_prints_positions_below_an_unordered_operator_too() -> None:
    root = TreeNode("U!times", [("0", TreeNode(f"N!{number}")) for number in range(12)])
    string = FormulaTree.from_node(root, "opt").tangent_string()
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
