r"""Any string: a tree or an error record, in bounded time and depth."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.formulas.latex import parse_latex, read_macros
from graphs.formulas.latex.reader import HANDLERS, MAX_DEPTH, MAX_TOKENS
from graphs.formulas.latex.symbols import ACCENTS, SYMBOLS
from graphs.formulas.latex.tokens import MAX_BRACKETED, bracketed
from graphs.formulas.tree import FormulaTree, ParsedFormula

PIECES = [
    *SYMBOLS,
    *ACCENTS,
    *HANDLERS,
    *"abxyz0123456789{}{}{}^_^_()[]|<>,.;:&$%#~ =+-*/!'",
    *(rf"\begin{{{name}}}" for name in ("matrix", "cases", "align", "array", "nothing")),
    *(rf"\end{{{name}}}" for name in ("matrix", "cases", "align", "array", "nothing")),
    r"\left(",
    r"\right)",
    r"\left.",
    r"\right|",
    r"\\",
    "{}",
    r"\newcommand{\q}[1]{#1#1}",
    r"\q",
    r"\def\z#1#2{#2}",
    r"\z",
    r"\frac{a}{b}",
]


NODES_A_PIECE = 8  # a command alone may be many: the operator, the places left empty, an error around them
LEVELS_A_GROUP = 4  # a box, a script, what is within


def levels(tree: FormulaTree) -> int:
    """How deep a layout tree is nested: the edges down to a node, without those along a row."""
    depth = [0] * len(tree)
    for node in range(1, len(tree)):
        depth[node] = depth[tree.parents[node]] + (tree.edge_labels[node] not in "ne")
    return max(depth)


def faults(parsed: ParsedFormula, most_nodes: int = NODES_A_PIECE * MAX_TOKENS) -> list[str]:
    """What is wrong with the trees, in words: nothing where each is one, or has its error.

    A tree may be no larger than ``most_nodes``, nor nested deeper than groups may be.
    """
    refused = {kind for kind, _ in parsed.errors}
    found = []
    for kind, tree in (("slt", parsed.slt), ("opt", parsed.opt)):
        if (tree is None) != (kind in refused):
            found.append(f"{kind}: a tree and an error, or neither")
        if tree is not None:
            if not all(tree.labels):
                found.append(f"{kind}: a node without a label")
            if tree.parents[0] != -1 or any(parent >= child for child, parent in enumerate(tree.parents)):
                found.append(f"{kind}: parents {tree.parents} are not those of a tree")
            if len(tree) > most_nodes:
                found.append(f"{kind}: {len(tree)} nodes, more than {most_nodes}")
    if parsed.slt is not None and levels(parsed.slt) > LEVELS_A_GROUP * MAX_DEPTH:
        found.append(f"slt: {levels(parsed.slt)} levels, more than {LEVELS_A_GROUP * MAX_DEPTH}")
    return found


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_any_text(latex: str) -> None:
    assert not faults(parse_latex(latex), NODES_A_PIECE * (len(latex) + 1))


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_sequence_of_commands(pieces: list[str]) -> None:
    most = NODES_A_PIECE * (MAX_TOKENS if {r"\q", r"\z"} & {*pieces} else len(pieces) + 1)
    assert not faults(parse_latex(" ".join(pieces)), most)
    assert not faults(parse_latex("".join(pieces)))


def test_every_fault_is_found() -> None:
    tree = FormulaTree("slt", ("a", "", "c"), (-1, 2, 0), ("", "n", "n"))
    assert faults(ParsedFormula(tree, None, (("slt", "refused"),)), 2) == [
        "slt: a tree and an error, or neither",
        "slt: a node without a label",
        "slt: parents (-1, 2, 0) are not those of a tree",
        "slt: 3 nodes, more than 2",
        "opt: a tree and an error, or neither",
    ]
    deep = LEVELS_A_GROUP * MAX_DEPTH + 2
    tree = FormulaTree("slt", ("x",) * deep, tuple(range(-1, deep - 1)), ("", *"a" * (deep - 1)))
    assert faults(ParsedFormula(tree, None, (("opt", "refused"),))) == [f"slt: {deep - 1} levels, more than {deep - 2}"]


def test_an_enclosure_without_a_notation_has_a_label() -> None:
    slt = parse_latex(r"\enclose{}{x}").slt
    assert slt is not None
    assert slt.labels == ("longdiv", "V!x")  # MathML's default


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=20))
def test_any_definitions(text: str, pieces: list[str]) -> None:
    macros = read_macros(text + r"\newcommand{\q}[1]{" + "".join(pieces) + "}")
    assert not faults(parse_latex(r"\q{x}+\q y", macros))


@pytest.mark.parametrize(
    "opening", ["{", "x^{", "x_{a^{", r"\sqrt{", r"\frac{1}{", r"\hat{", r"\left(", r"\begin{matrix}"]
)
@pytest.mark.parametrize("depth", [20, 59, 61, 400, 1_300])
def test_nesting_is_bounded(opening: str, depth: int) -> None:
    parsed = parse_latex(opening * depth + "x")
    assert not faults(parsed)
    if depth > MAX_DEPTH and "{" in opening:
        assert parsed.slt is parsed.opt is None
        assert "nested" in parsed.errors[0][1]


@pytest.mark.parametrize(
    "latex",
    [
        "{" * 10_000 + "}" * 10_000,
        "{" * 10_000,
        "(" * 9_000 + "x" + ")" * 9_000,
        "(" * 400 + "x",
        r"\left(" * 3_000,
        r"x^{" * 5_000,
        "x^" * 9_000,
        "|" * 5_000,
        "a|b" * 3_000,
        "||a||b" * 2_000,
        "a<" * 6_000,
        "-x+y" * 2_500,
        r"\{x|" * 36 + "y" + r"\}" * 36,
        r"\langle a|" * 1_800,
        r"\begin{matrix}" * 1_000,
        "&" * 19_999,
        "\\" * 19_999,
        "'" * 19_999,
        r"\def\a{\a\a}\a",
        "".join(rf"\def\a{chr(98 + i)}{{\a{chr(97 + i)}\a{chr(97 + i)}}}" for i in range(20)) + r"\av",
        "\x00\ud800😀",
        r"\newcommand{\q}[1]{#²#٣#0#}\q{x}²٣",
        r"\mathrel\sideset}7",
        "x" * 1_000_000,
        "{" * 1_000_000,
        "|a:b," * 3_900,
        "(*x)(\\ge a)" * 1_500,
        r"\|\|_1" * 2_500,
        "a:b,c\\mid d;" * 1_400,
        r"\def\a{\frac\a\a}\a",
        r"\def\a{\frac\b\b}\def\b{\frac\a\a}\a",
        r"\begin{matrix}" + r"\\[ " * 4_000,
        r"\\[" + " " * 30_000 + "x",
    ],
    ids=range(33),
)
def test_hostile_input(latex: str) -> None:
    assert not faults(parse_latex(latex))


def test_a_bracket_without_an_end_is_not_searched_to_the_end_of_the_formula() -> None:
    stack = ["]", *"x" * MAX_BRACKETED, "["]
    assert bracketed(stack) is None
    del stack[1]
    assert bracketed(stack) == ["x"] * (MAX_BRACKETED - 1)
    assert not stack


def test_many_definitions_are_cut_short() -> None:
    assert len(read_macros("".join(rf"\def\a{chr(97 + i % 26)}{{x}}" for i in range(20_000)))) == 26


SHARED = Path(__file__).resolve().parents[4] / ".." / "shared" / "data" / "math-train" / "train.jsonl"


@pytest.mark.shared
def test_formulas_of_solved_problems_are_read_almost_always() -> None:
    if not SHARED.exists():
        pytest.skip(f"no collection of problems at {SHARED}")
    import json
    import re

    formulas: set[str] = set()
    with SHARED.open(encoding="utf-8") as lines:
        for line in lines:
            formulas.update(re.findall(r"(?<!\\)\$([^$]+)\$", json.loads(line)["solution"]))
            if len(formulas) > 8_000:
                break
    unread = 0
    for formula in formulas:
        parsed = parse_latex(formula)
        assert not faults(parsed)
        unread += any(
            tree is not None and any(label[:2] == "E!" for label in tree.labels) for tree in (parsed.slt, parsed.opt)
        )
    assert unread < 0.015 * len(formulas)
