"""A post past the bounds is cut where nothing is torn: no tag, no formula, no placeholder without its formula."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.corpus import post_limits
from graphs.corpus.post import Markup, PlaceholderText, Post
from graphs.corpus.text.placeholders import extract

SPAN = "<span class='math-container' id='{}'>$x_{}$</span>"
PIECES = st.sampled_from(
    ["<p>", "</p>", "<b>", "</b>", "word ", "a<b ", "End. ", "\n\n", "$y$ ", SPAN.format(1, 2), "<br>"]
)


def placeholders(text: PlaceholderText) -> list[int]:
    return [int(number) for sentence in text.sentences for number in re.findall(r"FORMULA_(\d+)", sentence)]


@pytest.mark.parametrize(
    ("markup", "room", "expected"),
    [
        ("short", 5, "short"),
        ("<p>One.</p><p>Two.</p>", 15, "<p>One.</p>"),
        ("One. Two. Three.", 12, "One. Two. "),
        ("one two three", 10, "one two "),
        ("a b", 0, ""),
        ("abcdefgh", 4, "abcd"),
        ("<i class='abcdefgh'>x", 15, ""),
        ("It is " + SPAN.format(7, 7), 40, "It is "),
        ("<p>x</p>" + SPAN.format(7, 7) + "z", 50, "<p>x</p>"),
    ],
)
def test_a_cut_tears_nothing(markup: str, room: int, expected: str) -> None:
    assert post_limits.cut(markup, room) == expected


@settings(deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), st.integers(0, 300))
def test_a_cut_is_a_beginning_with_whole_formulas(markup: str, room: int) -> None:
    kept = post_limits.cut(markup, room)
    assert markup.startswith(kept)
    assert len(kept) <= room or kept == markup
    assert kept.count("<span") == kept.count("</span")
    formulas = extract(Post("1", "answer", body=markup)).formulas
    assert {f.formula_id for f in extract(Post("1", "answer", body=kept)).formulas if f.formula_id == "1"} <= {
        f.formula_id for f in formulas
    }


@pytest.mark.parametrize("markup", ["html", "text"])
def test_a_post_is_read_up_to_the_characters_that_it_may_have(markup: Markup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(post_limits, "MAX_CHARACTERS", 100)
    text = extract(Post("1", "question", "A title. ", "It is $x$. " * 1000, markup))
    assert text.sentences == ("A title.", *(f"It is FORMULA_{i}." for i in range(8)))
    assert len(text.formulas) == 8
    assert text.cut == "a post of 11,009 characters; the first 97 are read"
    assert extract(Post("1", "question", "A title. ", "It is $x$. " * 8, markup)).cut == ""
    title = extract(Post("1", "question", "word " * 100, "It is $x$.", markup))
    assert title.formulas == ()
    assert len(title.sentences) == 1


@pytest.mark.parametrize("most", [0, 1, 5, 6])
def test_formulas_and_sentences_are_cut_together(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post("1", "answer", body="It is $x$. " * 3 + "One of $y$ and $z$. " + "No more. " * 3 + "It is $w$.")
    monkeypatch.setattr(post_limits, "MAX_FORMULAS", most)
    text = extract(post)
    assert len(text.formulas) == {0: 0, 1: 1, 5: 5, 6: 6}[most]
    assert placeholders(text) == list(range(len(text.formulas)))
    assert text.cut == ("" if most == 6 else f"a post of 6 formulas; at most {most} are read")
    monkeypatch.setattr(post_limits, "MAX_FORMULAS", 4)
    assert len(extract(post).sentences) == 3
    assert placeholders(extract(post)) == [0, 1, 2]
    assert len(extract(post).formulas) == 3
    monkeypatch.setattr(post_limits, "MAX_FORMULAS", 6)
    monkeypatch.setattr(post_limits, "MAX_SENTENCES", 4)
    text = extract(post)
    assert (len(text.sentences), placeholders(text), len(text.formulas)) == (4, [0, 1, 2, 3, 4], 5)
    assert text.cut == "a post of 8 sentences; the first 4 are read"


def test_every_real_size_is_within_the_bounds() -> None:
    text = extract(Post("1", "answer", body="It is $x+y$ here. " * 700, markup="text"))
    assert (len(text.formulas), len(text.sentences), text.cut) == (700, 700, "")
