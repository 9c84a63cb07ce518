"""Overlap of a query and a found post."""

from __future__ import annotations

import pytest

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract
from mathamr.search.overlap import MAX_ASKED, MAX_LATEX, overlaps


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
    long = "+".join(["x"] * MAX_LATEX)
    [overlap, other] = overlaps(text(f"$y^2$ ${long}$ $z^3$"), [text("$z^3$ $y^2$"), text(f"${long}$ $y^2$")])
    assert [one.query for one in overlap.formulas] == ["y^2"]
    assert other.formulas == ()
