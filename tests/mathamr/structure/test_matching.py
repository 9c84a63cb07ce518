"""Alignments as they are shown: drawings of trees, roles of symbols, renamings."""

import random

import pytest

from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import FormulaTree
from mathamr.evaluation.runs import Run
from mathamr.search import structured
from mathamr.search.structured import StructuredFormulas
from mathamr.structure.drawing import Drawn, as_markup, as_text, draw
from mathamr.structure.index import StructureIndex
from mathamr.structure.matching import MAX_NODES, Match, match_of
from tests.mathamr.structure.test_alignment import RULES, grown


def matched(query: str, formula: str) -> Match:
    match = match_of(StructureIndex.build([parse_latex(formula)], RULES), parse_latex(query), 0)
    assert match is not None
    return match


def leaves(drawn: Drawn) -> list[Drawn]:
    return [leaf for child in drawn.children for leaf in leaves(child)] if drawn.children else [drawn]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\int_0^\infty e^{-x^2}dx", "∫_0^∞e^{-x^2}dx"),
        (r"\sqrt[3]{x}+\frac{1}{n}", "√(x) of index (3)+(1)/(n)"),
        (r"\begin{pmatrix}a&b\\c&d\end{pmatrix}^{-1}", "(a, b; c, d)^{-1}"),
        (r"f(x,y)=[0,1]", "f(x,y)=[0,1]"),
        (r"\lim_{x\to 0}\sin x", "lim_{x→0} sin x"),
        (r"{}^3P_2+{}_{11}F", "{}^3P_2+{}_{11}F"),
        (r"\overline{ab}+\overline{c}", "{ab}^{ ̄}+c^{ ̄}"),
    ],
)
def test_all_symbols_are_drawn(latex: str, text: str) -> None:
    tree = parse_latex(latex).slt
    assert tree is not None
    assert as_text(draw(tree, dict.fromkeys(range(len(tree)), "equal"))) == text


def test_roles_are_the_same_in_both_formulas() -> None:
    match = matched("x^2+y^2=1+x", "a^2+b^3=1+b")
    assert str(match) == "9 of 9 symbols, x is a, y is b, 2 is changed to 3, x is changed to b"
    roles = [leaf.role for leaf in leaves(match.query)]
    assert roles == ["renamed", "equal", "equal", "renamed", "changed", "equal", "equal", "equal", "changed"]
    assert [leaf.role for leaf in leaves(match.formula)] == roles


def test_names_of_functions_are_changed_and_never_renamed() -> None:
    assert str(matched(r"\sin x+f", r"\cos y+g")) == "4 of 4 symbols, f is g, x is y, sin is changed to cos"
    assert str(matched(r"\sin x", "f x")) == "2 of 2 symbols, sin is changed to f"
    assert str(matched(r"x^N", r"y^\infty")) == "2 of 2 symbols, x is y, N is changed to ∞"


def test_signs_that_tangent_names_are_shown_as_signs() -> None:
    assert str(matched("?^2+b^2", "N^2+b^2")) == "5 of 5 symbols, ? is changed to N"


def test_a_letter_that_another_one_takes_is_not_changed_to_itself() -> None:
    match = matched("x+y+y", "x+x+x")
    assert str(match) == "5 of 5 symbols, y is x"
    assert [leaf.role for leaf in leaves(match.query)] == ["changed", "equal", "renamed", "equal", "renamed"]


def test_symbols_that_are_not_aligned_are_in_brackets() -> None:
    match = matched(r"\sqrt{2}", r"1+\sqrt{2}")
    assert (as_text(match.query), as_text(match.formula)) == ("√(2)", "⟨1+⟩√(2)")


@pytest.mark.parametrize(
    ("latex", "text"),
    [("x^2+1", "⟨x⟩^⟨2⟩⟨+1⟩"), (r"\frac{a}{b}c", "⟨(a)/(b)c⟩"), ("{}^3P", "{}^⟨3⟩⟨P⟩"), (r"\sqrt{xy}", "⟨√(xy)⟩")],
)
def test_a_bracket_ends_with_a_script(latex: str, text: str) -> None:
    tree = parse_latex(latex).slt
    assert tree is not None
    assert as_text(draw(tree, {})) == text


def test_text_of_a_formula_is_escaped() -> None:
    tree = FormulaTree("slt", ("T!<script>alert(1)</script>", 'V!"&x'), (-1, 0), ("", "n"))
    markup = as_markup(draw(tree, {}))
    assert markup == "<math><mtext>&lt;script&gt;alert(1)&lt;/script&gt;</mtext><mi>&quot;&amp;x</mi></math>"


def test_a_tree_of_any_depth_is_drawn() -> None:
    depth = 5000
    tree = FormulaTree("slt", ("V!x",) * depth, tuple(range(-1, depth - 1)), ("", *("a" for _ in range(depth - 1))))
    assert as_text(draw(tree, {})).count("x") < 200
    row = FormulaTree("slt", ("V!x",) * depth, tuple(range(-1, depth - 1)), ("", *("n" for _ in range(depth - 1))))
    assert as_text(draw(row, {})) == f"⟨{'x' * depth}⟩"


def test_any_tree_can_be_drawn() -> None:
    """Labels of an index may come from anywhere."""
    generator = random.Random(3)
    labels = ("M!", "M!()", "M!(]2x", "M!2x0", "M!1x1", "O!divide", "O!root", "W!", "", "?a", "M!&lsqb;)2x2", "E!")
    for _ in range(300):
        tree = grown(generator, "slt", generator.randint(1, 12))
        wild = tuple(generator.choice(labels) for _ in tree.labels)
        edges = ("", *(generator.choice("naboucdwe") for _ in wild[1:]))
        drawn = draw(FormulaTree("slt", wild, tree.parents, edges), {})
        assert as_markup(drawn).startswith("<math>")
        as_text(drawn)


def test_a_large_formula_has_no_match() -> None:
    index = StructureIndex.build([parse_latex("+".join(["x"] * MAX_NODES))], RULES)
    assert match_of(index, parse_latex("x+x"), 0) is None


def test_matches_of_a_search_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structured, "MAX_DRAWN", 10)
    formulas = [parse_latex("a+b") for _ in range(5)]
    found = StructuredFormulas(StructureIndex.build(formulas, RULES), [(str(number), "7") for number in range(5)])
    query = parse_latex("x+y")
    matches = found.matches(query, [number for number, _ in found.search(query, 5)])
    assert [match is not None for match in matches] == [True, True, False, False, False]  # six symbols each


def test_formulas_of_equal_scores_are_ordered_as_in_a_run() -> None:
    formulas = [parse_latex("a+b") for _ in range(3)]
    found = StructuredFormulas(StructureIndex.build(formulas, RULES), [("9", "7"), ("10", "7"), ("8", "7")])
    hits = [hit for _, hit in found.search(parse_latex("x+y"), 2)]
    assert [hit.doc_id for hit in hits] == ["9", "8"]
    assert [hit.doc_id for hit in Run.from_results("own", {"B.1": hits}, task=2).rankings["B.1"]] == ["9", "8"]
