"""Any text as MathML: a tree of either kind or a FormulaError, also of megabytes and ten thousand levels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import FormulaError
from graphs.formulas.content import parse_opt
from graphs.formulas.mathml import MAX_CHARACTERS
from graphs.formulas.presentation import parse_slt
from graphs.formulas.tree import FormulaTree

NAMES = (
    "math semantics mrow mi mn mo msup mtable mtr mtd mfenced merror apply ci cn csymbol plus minus root int matrix "
)
NAMES += "matrixrow interval list set cerror share annotation-xml annotation mstyle mmultiscripts mprescripts qvar x:mi"
PIECES = [
    *(f"<{name}>" for name in NAMES.split()),
    *(f"</{name}>" for name in NAMES.split()),
    *"x1,<>&;/ \n\x00\ud800é",
    '<csymbol cd="latexml">',
    '<csymbol cd="ambiguous">superscript</csymbol>',
    '<math xmlns="http://www.w3.org/1998/Math/MathML">',
    '<annotation-xml encoding="MathML-Content">',
    "<!DOCTYPE math>",
    "<!-- -->",
    "<?x?>",
    "<![CDATA[",
    "&lt;",
    "&nothing;",
]
PARSERS = pytest.mark.parametrize("parse", [parse_slt, parse_opt])
Parse = Callable[[str], FormulaTree]


def nodes(parse: Parse, mathml: str) -> int:
    """How many nodes the tree has; 0: an error record."""
    try:
        tree = parse(mathml)
    except FormulaError:
        return 0
    assert len(tree.labels) == len(tree.parents) == len(tree.edge_labels)
    assert all(0 <= parent < node for node, parent in enumerate(tree.parents) if node)
    return len(tree)


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30), text=st.text(max_size=30))
def test_any_text_gives_a_tree_or_an_error_record(pieces: list[str], text: str) -> None:
    for parse in (parse_slt, parse_opt):
        for mathml in (
            "".join(pieces),
            f"<math>{''.join(pieces)}</math>",
            text,
            f"<math>{text}{''.join(pieces)}</math>",
        ):
            assert nodes(parse, mathml) <= 2 * len(mathml)


@PARSERS
def test_ten_thousand_levels_are_an_error_record(parse: Parse) -> None:
    for name in ("mrow", "msqrt", "apply", "semantics", "x"):
        for end in (f"</{name}>" * 10_000, ""):
            with pytest.raises(FormulaError) as refused:
                parse(f"<math>{f'<{name}>' * 10_000}{end}</math>")
            assert refused.value.kind in ("too_deep", "unknown_tag")


@PARSERS
@pytest.mark.parametrize(
    "inner",
    [
        "<mi>" + "x" * 1_000_000 + "</mi>",
        "<mrow>" + "<mo>+</mo>" * 100_000 + "</mrow>",
        "<apply><plus/>" + "<ci>x</ci>" * 100_000 + "</apply>",
        "<apply><minus/>" + "<ci>x</ci>" * 100_000 + "</apply>",
        "<list>" + "<ci>x</ci>" * 100_000,
        "<" * 1_000_000,
        "&" * 1_000_000,
        "</mrow>" * 150_000,
        "\x00" * 1_000_000,
        " " * 1_000_000,
    ],
    ids=range(10),
)
def test_a_megabyte_is_a_tree_or_an_error_record(parse: Parse, inner: str) -> None:
    assert nodes(parse, f"<math>{inner}</math>") < 300_000
    assert nodes(parse, inner) < 300_000


@PARSERS
def test_more_than_is_read_is_refused(parse: Parse) -> None:
    with pytest.raises(FormulaError, match="at most 8,000,000 are read") as refused:
        parse("<math><mi>" + "x" * MAX_CHARACTERS + "</mi></math>")
    assert refused.value.kind == "too_long"
