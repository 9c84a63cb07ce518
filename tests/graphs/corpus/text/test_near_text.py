"""Near-identical texts: the estimate against the share that it estimates, and edits that make no other question."""

import random

import pytest

from graphs.corpus.text.near_text import NEAR, NearTexts, signature, similarity

WORDS = [f"word{number}" for number in range(5_000)]


def jaccard(one: list[str], other: list[str]) -> float:
    first, second = ({tuple(words[i : i + 3]) for i in range(len(words) - 2)} for words in (one, other))
    return len(first & second) / len(first | second)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.7, 0.9, 1.0])
def test_the_estimate_is_unbiased_and_close(share: float) -> None:
    errors = []
    for seed in range(60):
        draw = random.Random(seed)
        one = draw.choices(WORDS, k=200)
        cut = round(200 * 2 * share / (1 + share))
        other = one[:cut] + draw.choices(WORDS, k=200 - cut)
        errors.append(similarity(signature(" ".join(one)), signature(" ".join(other))) - jaccard(one, other))
    assert abs(sum(errors) / len(errors)) < 0.02
    assert max(map(abs, errors)) < 0.18  # four standard deviations


QUESTION = (
    "<p>Let $f$ be a continuous function on $[0,1]$ with $f(0)=f(1)$. Show that for every natural number $n$ there is "
    "a point $c$ with $f(c) = f(c+\\frac{1}{n})$. I tried the intermediate value theorem for the difference $g(x) = "
    "f(x+\\frac{1}{n}) - f(x)$, but do not see why it has both signs.</p>"
)


@pytest.mark.parametrize(
    ("edited", "near"),
    [
        (QUESTION, True),
        (f"Chord of length 1/n {QUESTION} Thanks in advance!", True),
        (QUESTION.replace("$", "$$").replace("<p>", "<div class='a'>").upper(), True),
        (QUESTION.replace("natural number", "integer"), True),
        (QUESTION.replace("but do not see why", "but cannot see why"), True),
        (QUESTION[: len(QUESTION) // 2], False),
        (QUESTION.replace("f", "h").replace("n", "m").replace("continuous", "bounded"), False),
        ("", False),
    ],
)
def test_edits_of_a_question(edited: str, near: bool) -> None:
    texts = NearTexts(
        {"topic": QUESTION, "other": "How many groups of order eight have an element of order four? " * 2}
    )
    found = texts.similar(signature(edited))
    assert [name for name, similarity in found if similarity >= NEAR] == ["topic"] * near


def test_the_most_similar_text_comes_first() -> None:
    texts = NearTexts({"edited": QUESTION.replace("natural number", "integer"), "equal": QUESTION})
    assert [name for name, _ in texts.similar(signature(QUESTION))] == ["equal", "edited"]


def test_short_texts_have_no_signature() -> None:
    assert signature("Is every finite ring commutative?") == b""
    assert NearTexts({"short": "Is every finite ring commutative?"}).similar(signature(QUESTION)) == []
    assert NearTexts({}).similar(signature(QUESTION)) == []


def test_odd_texts() -> None:
    assert len(signature("\ud800 " * 3 + "a b c d e f g h i j <" * 9)) == 128
    assert signature("<" * 1_000_000) == signature("<" * 100)  # one run of three, whatever the length
