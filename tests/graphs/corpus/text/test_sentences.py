"""Sentence splitting: what ends a sentence and what only looks like it."""

import pytest

from graphs.corpus.text.sentences import MAX_WORDS, split


@pytest.mark.parametrize(
    "text",
    [
        "We use e.g. induction, i.e. the usual one.",
        "See Thm. 3.2, Eq. (5), Fig. 1, Sec. 4 and pp. 10 of G. H. Hardy et al. for this.",
        "W.l.o.g. let FORMULA_0 be positive, resp. FORMULA_1.",
        "The value is 3.14 or 2.71.",
        "So 1, 2, ... and then the rest.",
        "Since n! is even, we are done.",
        "By Prof. Dr. Smith vs. Mr. Jones.",
        "1. Let FORMULA_0 be a set.",
        "It is approx. FORMULA_0 here, cf. FORMULA_1.",
        "Is it a.e. zero w.r.t. the measure?",
    ],
)
def test_these_are_one_sentence(text: str) -> None:
    assert split(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A group. A ring.", ["A group.", "A ring."]),
        ("Why? Because! It is.", ["Why?", "Because!", "It is."]),
        ("Let FORMULA_0. Then FORMULA_1. FORMULA_2 holds.", ["Let FORMULA_0.", "Then FORMULA_1.", "FORMULA_2 holds."]),
        ('He said "it is odd." Then he left.', ['He said "it is odd."', "Then he left."]),
        ("(This is so.) The next is not.", ["(This is so.)", "The next is not."]),
        ("It holds for all x in A. Then B is empty.", ["It holds for all x in A.", "Then B is empty."]),
        ("i tried this. any help is welcome", ["i tried this.", "any help is welcome"]),
        ("It equals 3. Now let y be 4.", ["It equals 3.", "Now let y be 4."]),
        ("Yes. Then it is odd.", ["Yes.", "Then it is odd."]),
        ("他说：“是。” 好！ Then x。", ["他说：“是。”", "好！", "Then x。"]),
        ("他说「『好。』」然后走了。", ["他说「『好。』」", "然后走了。"]),
        ("I wonder... Maybe not.", ["I wonder...", "Maybe not."]),
        ("It is zero.Then we stop.", ["It is zero.", "Then we stop."]),
        ("Use sets, groups, etc. The rest is clear.", ["Use sets, groups, etc.", "The rest is clear."]),
    ],
)
def test_these_are_several(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_nothing_is_lost_and_white_space_is_normalised() -> None:
    text = "  One\n two.\tThree!  Four?  "
    assert " ".join(split(text)) == "One two. Three! Four?"
    assert split("") == split(" \n ") == []


def test_a_text_without_punctuation_is_cut_into_bounded_sentences() -> None:
    words = [f"w{i}" for i in range(5 * MAX_WORDS + 7)]
    parts = split(" ".join(words))
    assert max(len(part.split()) for part in parts) <= MAX_WORDS
    assert " ".join(parts).split() == words


def test_a_long_sentence_is_cut_at_a_semicolon_where_there_is_one() -> None:
    words = ["word"] * (MAX_WORDS + 50)
    words[MAX_WORDS - 20] = "here;"
    assert split(" ".join(words))[0].endswith("here;")
