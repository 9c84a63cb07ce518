"""posts.db: posts as they came, with the titles of their questions and the formulas of their graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs import database
from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import StoreError
from graphs.row_digests import row_digest
from graphs.stores.posts import PURPOSE, PostTexts, beginning_of, build

POSTS = [
    Post("b", "answer", body="Two.", parent_id="q"),
    Post("q", "question", title="Is it odd?", body="I ask."),
    Post("e", "answer", body=" ", parent_id="q"),
    Post("a", "answer", title="Own", body="One.", parent_id="q"),
    Post("b", "question", body="Another one with this id"),
    Post("x", "answer", body="Lost.", parent_id="gone"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    counted: list[int] = []
    assert build(tmp_path / "posts.db", POSTS, [("b", ["1"])], counted.append) == 5
    assert sum(counted) == len(POSTS)
    return tmp_path / "posts.db"


def test_ids_are_sorted_and_posts_without_text_left_out(path: Path) -> None:
    with PostTexts(path) as texts:
        assert (texts.post_ids(), texts.post_ids("answer")) == (["a", "b", "q", "x"], ["a", "b", "x"])
        assert list(texts.all_ids()) == ["a", "b", "e", "q", "x"]
        assert texts.with_text(["x", "e", "b", "none"]) == ["x", "b"]


def test_an_answer_has_the_title_of_its_question_unless_it_has_one(path: Path) -> None:
    with PostTexts(path) as texts:
        found = texts.get(["a", "b", "x", "none"])
    assert {post_id: post.title for post_id, post in found.items()} == {"a": "Own", "b": "Is it odd?", "x": ""}
    assert [found[post_id].question_id for post_id in "abx"] == ["q", "q", ""]
    assert [found[post_id].question_snippet() for post_id in "abx"] == ["Is it odd? I ask.", "I ask.", ""]


def test_of_one_id_the_first_post_and_the_last_formulas_count(path: Path) -> None:
    assert build(path, [Post("b", "answer", body="New.")], [("b", ["2", "3"])]) == 5
    with PostTexts(path) as texts:
        found = texts.get(["a", "b"])
    assert (found["b"].snippet(), found["b"].formula_ids, found["a"].formula_ids) == ("Two.", ["2", "3"], [])


@pytest.mark.parametrize(("characters", "expected"), [(8, "aa bb cc"), (7, "aa bb ...")])
def test_a_beginning_ends_before_the_word_that_goes_past_it(characters: int, expected: str) -> None:
    text = extract(Post("1", "answer", body="aa bb cc"))
    assert beginning_of(text, PlaceholderText((), ()), characters) == expected


@pytest.mark.parametrize(
    ("title", "body", "snippet"),
    [
        ("Let $a$.", "Then $b$.", "Then $b$."),
        ("Is $a$? Is $b$?", "I ask of $c$.", "I ask of $c$."),
        ("Let $a$.", "", ""),
        ("Let $a$.", "Let $a$. Then $b$.", "Let $a$. Then $b$."),
    ],
)
def test_a_snippet_begins_after_the_title(title: str, body: str, snippet: str, tmp_path: Path) -> None:
    build(tmp_path / "posts.db", [Post("1", "question", title=title, body=body)], [])
    with PostTexts(tmp_path / "posts.db") as texts:
        found = texts.get(["1"])["1"]
    assert (found.title, found.snippet()) == (title, snippet)


def test_an_answer_that_begins_like_the_title_with_another_formula_is_shown_whole(tmp_path: Path) -> None:
    posts = [
        Post("q", "question", title="Is $x$ odd?"),
        *(Post(f, "answer", body=f"Is ${f}$ odd? No.", parent_id="q") for f in "xy"),
    ]
    build(tmp_path / "posts.db", posts, [])
    with PostTexts(tmp_path / "posts.db") as texts:
        found = texts.get(["x", "y"])
    assert (found["x"].snippet(), found["y"].snippet()) == ("No.", "Is $y$ odd? No.")


@pytest.mark.parametrize("text", ["{", "7", '{"17": "18"}', "[17]"])
def test_formula_ids_of_another_program_with_their_digest_are_named(text: str, path: Path) -> None:
    with database.writer(path, "", purpose=PURPOSE) as connection:
        connection.execute("UPDATE formulas SET formula_ids = ?, digest = ?", (text, row_digest("b", text)))
        connection.commit()
    with PostTexts(path) as texts, pytest.raises(StoreError, match=r"posts\.db: the row of post b is damaged \("):
        texts.get(["b"])
