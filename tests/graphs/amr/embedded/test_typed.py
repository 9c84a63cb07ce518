"""Mathematics typed without dollars: each expression is one concept of the graph, and English stays as it is."""

from __future__ import annotations

import penman
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.amr.embedded import EmbeddedParser
from graphs.amr.embedded.typed import name_expressions
from graphs.amr.penman_text import decode, label
from graphs.errors import Failure
from graphs.graph.labels import normalize
from graphs.graph.mathamr_plus import NodeKind

EXPRESSIONS = """
    n+1 n-1 -x x<1 x>1 x<=1 x=1 x!=1 x=-1 x^2 x*2 x->2 2x=3 10^-5 1/2 a/b 1,2 a_n a_{n+1} f(x) f(x,y) O(n^2)
    (n-1)/2 n(n+1)(2n+1)/6 |x| a|b {1,2} [0,1) P(A|B) 3≡1 x∈A A→B √2 |A∩B| axis=0 ~P Z_0 z_0 A·B X×Y V→W
""".split()  # noqa: SIM905


@pytest.fixture(scope="module")
def parser() -> EmbeddedParser:
    return EmbeddedParser()


def concepts_of(text: str | Failure) -> set[str]:
    assert isinstance(text, str)
    assert penman.decode(text).triples == decode(text).triples
    return {label(instance.target or "") for instance in decode(text).instances()}


@pytest.mark.parametrize("frame", ["{}", "Is the value {} known?", "If {}, then FORMULA_0.", "See (case {})."])
def test_each_expression_is_a_concept_of_its_own(parser: EmbeddedParser, frame: str) -> None:
    graphs = parser.parse([[frame.format(expression)] for expression in EXPRESSIONS])
    lost = [e for e, graph in zip(EXPRESSIONS, graphs, strict=True) if e not in concepts_of(graph)]
    assert lost == []


def test_labels_of_expressions_differ() -> None:
    expressions = [*EXPRESSIONS, "f'", "F'", "n!", "N!"]
    assert len({normalize(expression, NodeKind.AMR) for expression in expressions}) == len(expressions)


def test_signs_stay_in_words_that_are_no_expression(parser: EmbeddedParser) -> None:
    (first,), (second,) = (
        parser.parse([["We search for n=4..12 here."]]),
        parser.parse([["We search for n-4..12 here."]]),
    )
    assert "n=4" in concepts_of(first)
    assert "n=4" not in concepts_of(second)


def test_the_sign_of_a_size_is_no_variable(parser: EmbeddedParser) -> None:
    (text,) = parser.parse([["The n x n matrix is regular."]])
    assert "x" not in concepts_of(text)


@pytest.mark.parametrize(
    ("one", "other", "concept"),
    [
        ("n + 1", "(n+1)", "n+1"),
        ("x ≤ 1", "x<=1", "x<=1"),
        ("x ≠ y", "x != y", "x!=y"),
        ("n − 1", "n-1", "n-1"),
        ("f(x, y)", "f(x,y)", "f(x,y)"),
        ("x= 3", "x = 3", "x=3"),
        ("(f(x))", "f(x)", "f(x)"),
        ("x²+1=0", "x^2 + 1 = 0", "x^2+1=0"),
    ],
)
def test_spellings_of_an_expression_are_one_concept(parser: EmbeddedParser, one: str, other: str, concept: str) -> None:
    first, second = parser.parse([[f"Let {one} be given."], [f"Let {other} be given."]])
    assert concept in concepts_of(first)
    assert first == second


@pytest.mark.parametrize("sentence", ["The root is -3.", "Multiply by −3.", "It converges for FORMULA_0 -3.", "(-3)"])
def test_a_negative_number_is_a_number(parser: EmbeddedParser, sentence: str) -> None:
    (text,) = parser.parse([[sentence]])
    assert isinstance(text, str)
    assert "-3" in {target for _, _, target in decode(text).triples}


def test_a_typed_statement_is_read_as_a_formula_is(parser: EmbeddedParser) -> None:
    typed, formulas = parser.parse([["If x < 1, then y is even."], ["If FORMULA_0, then y is even."]])
    assert isinstance(typed, str)
    assert isinstance(formulas, str)
    assert typed.replace("x / x<1", "f / FORMULA_0") == formulas


@pytest.mark.parametrize(
    "text",
    [
        "A well-known p-group, if-and-only-if it is 2-dimensional and/or non-empty, w/o loss of generality.",
        "The x-y plane (see step (3), part (a), K-12 and person(s)) on 11/2016, pages 219--230, i.e. 10,000 steps.",
        "C++ is a(n) option^1 of WLOG|Wolfram; it's 5-10 times as fast -- I think!",
        "Is x a number - or a set?",
        "The (epsilon, delta) definition and a tuple (min, max), let a=the number of steps.",
        "It holds that x mod 3 = 1, sin x = 0, the trivial Square(1) - 1 = 0, V W V^T = A, mu + 2*c / np.pi + 1.",
        "If A x = b and A B = C, then x = 2 k, (A v = 0), x = y sin z or f = g o h, and x = 2 y.",
        "<b>This</b> is *really* e_mail@example.org, isn't it?",
        "",
    ],
)
def test_english_stays_as_it_is(text: str) -> None:
    assert name_expressions(text) == (text, {})


def test_statements_side_by_side_are_read() -> None:
    _, concepts = name_expressions("A n=2 graph has x=3 y=4, n = 3 s = {1,2}, a) x<1 b) x>1, and A = 0.")
    assert [*concepts.values()] == ["n=2", "x=3", "y=4", "n=3", "s={1,2}", "x<1", "x>1", "A=0"]


def test_a_name_is_never_that_of_a_formula() -> None:
    text, concepts = name_expressions("FORMULA_0 is n+1, FORMULA_1 is n-1")
    assert [*concepts.values()] == ["n+1", "n-1"]
    assert not {"FORMULA_0", "FORMULA_1"} & set(concepts)
    assert all(f" {name} " in f" {text} " for name in ("FORMULA_0", "FORMULA_1", *concepts))


@given(st.text("abxn01 +-*/^=<>!()[]{}|,.~_√≤−'\"", max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_typed_text_has_a_valid_graph(parser: EmbeddedParser, text: str) -> None:
    assert concepts_of(parser.parse([[text]])[0])


def test_long_text_takes_linear_time() -> None:
    """In quadratic time, one of these would take minutes."""
    for unit, count in (("x= ", 0), ("x + ", 0), ("(f(x) ", 20_000), ("'|x", 0)):
        assert len(name_expressions(unit * 20_000)[1]) == count
