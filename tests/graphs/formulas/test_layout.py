"""graphs.formulas.layout: the rules that readers other than MathML's rely on."""

from graphs.formulas.layout import (
    Symbol,
    boxed,
    chain,
    enclosed,
    fence,
    finish,
    fraction,
    is_operator,
    linked,
    multiscripts,
    root,
    row,
    scripts,
    table,
    under_over,
)


def string(symbol: Symbol | None) -> str:
    assert symbol is not None
    return finish(symbol).tangent_string()


def test_nothing_is_a_part_like_any_other() -> None:
    assert row([]) is row([None, Symbol("W!"), Symbol("")]) is chain([None]) is None
    assert string(row([None, Symbol("V!x")])) == "[V!x]"
    assert string(fraction(None, Symbol("V!q"))) == "[O!divide,u[V!q]]"
    assert string(root(None)) == "[O!root]"
    assert string(scripts(None, Symbol("V!i"), None)) == "[W!,b[V!i]]"
    assert string(under_over(None, None, None)) == "[W!]"
    assert string(fence("(", [], ")")) == "[M!()]"
    assert string(table([])) == "[M!0x0]"
    assert string(enclosed("box", None)) == "[box]"


def test_a_blank_with_scripts_is_no_blank() -> None:
    assert string(row([scripts(None, None, Symbol("N!2")), Symbol("V!F")])) == "[W![V!F],a[N!2]]"


def test_chain_keeps_fences_and_row_does_not() -> None:
    assert string(chain([Symbol("("), Symbol("V!x"), Symbol(")")])) == "[([V!x[)]]]"
    assert string(row([Symbol("("), Symbol("V!x"), Symbol(")")])) == "[M!()1x1,w[V!x]]"


def test_a_row_that_begins_with_a_bar_closes_no_fence() -> None:
    bar, equation = Symbol("|"), chain([Symbol("|"), Symbol("="), Symbol("N!1")])
    assert string(row([bar, Symbol("V!x"), equation])) == "[|[V!x[|[=[N!1]]]]]"
    opening = chain([Symbol("("), Symbol("V!x")])
    assert string(row([opening, Symbol("V!y"), Symbol(")")])) == "[([V!x[V!y[)]]]]"


def test_operators_are_labels_without_type() -> None:
    assert [is_operator(Symbol(label)) for label in ("∑", "lim", "V!x", "M!1x1", "?a", "!")] == [True] * 2 + [
        False
    ] * 3 + [True]


def test_a_box_is_a_table_of_one_cell() -> None:
    assert string(boxed(Symbol("V!x"))) == string(table([[Symbol("V!x")]])) == "[M!1x1,w[V!x]]"


def test_tables_side_by_side_are_merged_only_when_they_fit() -> None:
    def column(*numbers: int) -> Symbol:
        return table([[Symbol(f"N!{number}")] for number in numbers])

    merged = row([column(1, 2), column(3, 4), column(5, 6)])
    assert merged is not None
    assert merged.label == "M!2x3"
    assert [cell.label for cell in linked(merged.w)] == ["N!1", "N!3", "N!5", "N!2", "N!4", "N!6"]
    ragged = table([[Symbol("N!1"), Symbol("N!2")], [Symbol("N!3")]])
    assert string(row([column(1, 2), ragged])).startswith("[M!2x1[M!2x2,")
    assert string(row([column(1, 2), column(3)])).startswith("[M!2x1[M!1x1,")


def test_boxes_side_by_side_keep_their_scripts_accents_and_order() -> None:
    def box(letter: str, edge: str = "") -> Symbol:
        symbol = boxed(Symbol(f"V!{letter}"))
        if edge:
            setattr(symbol, edge, Symbol("N!1"))
        return symbol

    assert string(row([box("x", "o"), box("y", "a")])) == "[M!1x1[M!1x1,a[N!1],w[V!y]],o[N!1],w[V!x]]"
    product = chain([box("x"), Symbol("⋅"), box("y")])
    assert string(row([product, box("z")])) == "[M!1x1[⋅[M!1x1[M!1x1,w[V!z]],w[V!y]]],w[V!x]]"


def test_scripts_before_and_after_a_symbol() -> None:
    symbol = multiscripts(Symbol("V!F"), [(Symbol("N!1"), None)], [(Symbol("N!2"), None)])
    assert string(symbol) == "[V!F,b[N!1],d[N!2]]"


def test_the_last_script_may_have_an_empty_base() -> None:
    script = scripts(None, Symbol("V!B"), None)
    symbol = multiscripts(Symbol("V!A"), [(Symbol("V!f"), None), (script, Symbol("V!c"))], [])
    assert string(symbol) == "[V!A,a[W![V!c]],b[V!f[W!,b[V!B]]]]"


def test_children_are_numbered_in_the_order_of_the_original() -> None:
    symbol = Symbol("M!()1x1")
    for edge in "edcbaownu":
        setattr(symbol, edge, Symbol(f"V!{edge}"))
    assert "".join(finish(symbol).edge_labels) == "aocnbudew"
    assert repr(symbol).startswith("Symbol('M!()1x1', a='V!a', o='V!o'")


def test_a_baseline_of_a_hundred_thousand_symbols() -> None:
    tree = finish(chain([Symbol("V!x") for _ in range(100_000)]) or Symbol("W!"))
    assert len(tree) == 100_000
