"""Overlap of a query and a found post."""

from __future__ import annotations

import pytest

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract
from mathamr.search.overlap import MAX_ASKED, MAX_FORMULAS, MAX_LATEX, overlaps


def text(body: str) -> PlaceholderText:
    return extract(Post("7", "answer", body=body, markup="text"))


def test_common_words_have_the_order_of_the_query_each_once_and_no_function_words() -> None:
    [overlap] = overlaps(
        text("Is the Limit of a limit unique?"), [text("Unique is the limit, and the limit is finite.")]
    )
    assert overlap.words == ("limit", "unique")
    assert overlap.formulas == ()


def test_numbers_of_two_digits_are_common_words_even_in_a_formula_of_the_post() -> None:
    query = text("Is 1729 a taxicab number for 2 cubes?")
    overlap, other = overlaps(query, [text("Then $1729 = 1^3+12^3$."), text("Entry 11A1729 has 2 taxicabs.")])
    assert (overlap.words, other.words) == (("1729",), ())


@pytest.mark.parametrize(
    ("query", "document", "match"),
    [
        ("x^2+1", "a+1, y^2+1", "4 of 4 symbols, x is y"),
        ("x^2+1", "y^3+1", "4 of 4 symbols, 2 is changed to 3, x is y"),
        (r"\int_0^1 f(x)\,dx", "n!", None),
        ("x^2+1", r"\frac{", None),
        (r"\frac{", "x^2+1", None),
    ],
)
def test_the_most_similar_formula_of_a_post_is_shown_with_its_match(
    query: str, document: str, match: str | None
) -> None:
    [overlap] = overlaps(text(f"Look at ${query}$."), [text(f"Take $q$ and $ {document} $.")])
    found = [one.match for one in overlap.formulas if one.query == query]
    assert (found == []) if match is None else (sorted(found[0].split(", ")) == sorted(match.split(", ")))


def test_each_formula_of_the_query_has_one_line_and_few_are_compared() -> None:
    body = " ".join(f"$x^{{{number}}}+1$" for number in range(2 * MAX_ASKED))
    [overlap, other] = overlaps(text(f"$x$ {body} $x$"), [text(body), text("No formula.")])
    assert len(overlap.formulas) == MAX_ASKED
    assert all(one.match.startswith(("4 of 4", "1 of 1")) for one in overlap.formulas)
    assert other.formulas == ()


def test_formulas_after_a_very_long_one_are_not_compared() -> None:
    long = "+".join(["y^2"] * (MAX_LATEX // 2))
    [overlap, other] = overlaps(text(f"$y^2$ ${long}$ $z^3$"), [text("$z^3$ $y^2$"), text(f"${long}$ $y^2$")])
    assert [one.query for one in overlap.formulas] == ["y^2"]
    assert other.formulas == ()


def test_of_many_formulas_those_with_signs_of_the_query_are_compared() -> None:
    many = " ".join(f"$u_{{{number}}}$" for number in range(MAX_FORMULAS))
    [overlap] = overlaps(text("Is $a^2+b^2=c^2$?"), [text(f"{many} and $x^2+y^2=z^2$.")])
    assert [one.document for one in overlap.formulas] == ["x^2+y^2=z^2"]


@pytest.mark.parametrize(
    ("query", "document", "match"),
    [
        ("n!", r"y_n = 1", None),
        ("-x", "x=1", None),
        ("x^2", "n^k", None),
        ("p", "x", None),
        ("p", "p", "1 of 1 symbols"),
        (r"\sin x", r"\sin(x)", "1 of 2 symbols"),
        (r"\sin x", r"dx$ and $\sin(x)", "1 of 2 symbols"),
        ("a=b", "x=1", "2 of 3 symbols, a is x"),
    ],
)
def test_a_single_variable_or_number_makes_no_similar_formula(query: str, document: str, match: str | None) -> None:
    [overlap] = overlaps(text(f"Is ${query}$ so?"), [text(f"Take ${document}$.")])
    assert [one.match for one in overlap.formulas] == ([] if match is None else [match])
