"""post_headers.db: what is read back is what was read, and there is all of it or nothing."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from graphs import database
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.leaks import marks, pairs_apart, pairs_without_topics
from graphs.corpus.mathdocs.collection import MathDocs
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair, Post, Topic
from graphs.corpus.record_ids import identified
from graphs.errors import Failure, StoreError
from graphs.row_digests import row_digest
from graphs.stores import posts as post_texts
from graphs.stores.post_headers import PURPOSE, PostHeaders, is_whole, recording
from graphs.stores.posts import PostTexts

POSTS: list[Post | Failure] = [
    Post("q", "question", "Is $x$ odd?", "<p>I ask.</p>", tags=("a", "b-c"), accepted_answer_id="b", score=10**30),
    Failure("", "read", "bad_row", "posts.xml:2: half a pair \ud800"),
    Post("a", "answer", body="No\0", markup="text", parent_id="q", score=-3, formula_prefix="2020:"),
    Post("b", "answer", body="$y$", parent_id="q"),
    Post("q", "question", "Another one with this id", markup="text"),
    Post("c d", "answer"),
]


def kept(folder: Path, posts: Iterable[Post | Failure]) -> tuple[Path, Path]:
    posts = list(identified(posts))
    with recording(folder / "post_headers.db") as record:
        for post in posts:
            record(post)
    post_texts.build(folder / "posts.db", posts, ())
    return folder / "post_headers.db", folder / "posts.db"


@pytest.mark.parametrize("name", ["odd", "none", "mathdocs"])
def test_posts_are_read_back_whole_and_in_order(name: str, tmp_path: Path) -> None:
    posts = {"odd": POSTS, "none": []}[name] if name != "mathdocs" else list(MathDocs().posts())[:600]
    headers, texts = kept(tmp_path, posts)
    posts = list(identified(posts))
    with PostHeaders(headers) as found, PostTexts(texts) as words:
        assert list(found.whole(words)) == posts
        assert list(found.failures()) == [post for post in posts if isinstance(post, Failure)]
        assert found.broken() == len(list(found.failures()))
        bare = [
            post if isinstance(post, Failure) else replace(post, title="", body="", markup="html", formula_prefix="")
            for post in posts
        ]
        assert list(found.posts()) == bare
        assert found.count() == len({post.post_id for post in posts if isinstance(post, Post)})


def test_a_broken_record_keeps_its_name_when_its_folder_moves() -> None:
    places = ("posts.jsonl", "/data/posts.jsonl", "/data/a b:1/posts.jsonl")
    names = {one.post_id for place in places for one in identified([Failure("7", "read", "x", f"{place}:3: no kind")])}
    assert len(names) == 1
    assert names != {one.post_id for one in identified([Failure("7", "read", "x", "posts.jsonl:4: no kind")])}


def test_wanted_posts_with_all_failures(tmp_path: Path) -> None:
    headers, texts = kept(tmp_path, POSTS)
    with PostHeaders(headers) as found, PostTexts(texts) as words:
        _, unread, _, wanted, *failures = identified(POSTS)
        assert list(found.whole(words, frozenset({"b", "elsewhere"}))) == [unread, wanted, *failures]
        assert found.known(frozenset({"b", "elsewhere"})) == {"b"}


def test_pairs_without_texts_are_those_of_the_posts(tmp_path: Path) -> None:
    lines = [
        {"post_id": "q1", "kind": "question", "accepted_answer_id": "a2"},
        {"post_id": "a2", "kind": "answer", "parent_id": "q1", "score": 1},
        {"post_id": "a1", "kind": "answer", "parent_id": "q1", "score": 4},
        {"post_id": "q2", "kind": "question", "accepted_answer_id": "a3"},
        {"post_id": "a3", "kind": "answer", "parent_id": "q2"},
    ]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "broken\n")
    corpus = JsonLines(tmp_path)
    path, _ = kept(tmp_path, corpus.posts())
    with PostHeaders(path) as found:
        for positives in ("accepted", "answers"):
            assert training_pairs(corpus, positives, 1, found.posts) == training_pairs(corpus, positives, 1)
        assert training_pairs(corpus, "answers", 1, found.posts) == [
            Pair("q1", "a2"), Pair("q2", "a3"), Pair("q1", "a1")
        ]  # fmt: skip


def test_topics_are_told_by_hashes(tmp_path: Path) -> None:
    posts = [*POSTS, Post("n", "question", "Other", "Words"), Post("m", "question", body="I ask")]
    topics = [Topic("t", Post("t", "topic", title="is x odd", markup="text"))]
    pairs = [Pair("q", "a"), Pair("n", "b"), Pair("n", "c"), Pair("m", "c")]
    path, _ = kept(tmp_path, posts)
    with PostHeaders(path) as found:
        expected = pairs_without_topics(pairs, posts, topics)
        assert pairs_apart(pairs, found.with_marks(), topics) == expected
        assert expected.kept == [Pair("n", "c"), Pair("m", "c")]  # b is an answer to q
        known = {post.post_id: found for post, found in found.with_marks()}
        assert known["n"] == marks(Post("", "question", "other", "words!"))
        assert len(known["n"].digests) == 3


def record_and_break_off(path: Path) -> None:
    with recording(path) as record:
        record(POSTS[0])
        raise OSError("the disk is gone")


def test_there_are_all_posts_or_none(tmp_path: Path) -> None:
    path = tmp_path / "post_headers.db"
    with pytest.raises(OSError, match="gone"):
        record_and_break_off(path)
    assert not is_whole(path)
    kept(tmp_path, POSTS)
    assert is_whole(path)
    with pytest.raises(OSError, match="gone"):
        record_and_break_off(path)
    with PostHeaders(path) as found:  # as it was
        assert len(list(found.posts())) == len(POSTS)
    with database.writer(path, "", purpose=PURPOSE) as connection:
        database.write_meta(connection, form=0)
        connection.commit()
    assert not is_whole(path)  # of another version
    (tmp_path / "other.db").write_text("no database")
    with pytest.raises(StoreError, match="not a readable SQLite database"):
        is_whole(tmp_path / "other.db")


def test_a_file_that_a_kill_left_unnamed_is_made_anew(tmp_path: Path) -> None:
    headers, _ = kept(tmp_path, POSTS[:1])
    headers.rename(tmp_path / "post_headers.db.new")
    kept(tmp_path, POSTS[:1])
    with PostHeaders(headers) as found:
        assert (found.count(), len(list(found.posts()))) == (1, 1)


def test_a_file_of_another_version_is_not_whole(tmp_path: Path) -> None:
    headers, _ = kept(tmp_path, POSTS[:1])
    assert (is_whole(headers), is_whole(headers, version="2")) == (True, False)


def test_posts_without_a_text_in_posts_db_are_left_out(tmp_path: Path) -> None:
    headers, _ = kept(tmp_path, POSTS)
    post_texts.build(tmp_path / "some.db", POSTS[:1], ())
    with PostHeaders(headers) as found, PostTexts(tmp_path / "some.db") as texts:
        assert [one for one in found.whole(texts) if isinstance(one, Post)] == POSTS[:1]


@pytest.mark.parametrize("answers", [False, True])
def test_marks_of_answers_are_recorded_when_asked(answers: bool, tmp_path: Path) -> None:
    answer = Post("b", "answer", body="Is every ring with one generator a field of this kind?", parent_id="q")
    with recording(tmp_path / "post_headers.db", answers=answers) as record:
        record(answer)
    with PostHeaders(tmp_path / "post_headers.db") as found:
        assert [known for _, known in found.with_marks()] == [marks(answer, answers=answers)]


@pytest.mark.parametrize("statement", ["UPDATE post SET kind = 'answer'", "UPDATE post SET failure = '[]'"])
def test_a_row_that_has_changed_is_named(statement: str, tmp_path: Path) -> None:
    headers, texts = kept(tmp_path, POSTS[:1])
    with database.writer(headers, "", purpose=PURPOSE) as connection:
        connection.execute(statement)
        connection.commit()
    with PostHeaders(headers) as found, PostTexts(texts) as whole:
        for read in (found.posts, found.with_marks, lambda: found.whole(whole)):
            with pytest.raises(StoreError, match=r"headers\.db: the row of post q is not what was written"):
                list(read())


@pytest.mark.parametrize(
    ("column", "text"),
    [("tags", "{"), ("tags", "7"), ("tags", "[17]"), ("failure", "{"), ("failure", '["q"]'), ("score", "many")],
)
def test_a_row_of_another_program_with_its_digest_is_named(column: str, text: str, tmp_path: Path) -> None:
    headers, _ = kept(tmp_path, POSTS[:1])
    with database.writer(headers, "", purpose=PURPOSE) as connection:
        connection.execute(f"UPDATE post SET {column} = ?", (text,))
        (row,) = connection.execute("SELECT * FROM post").fetchall()
        connection.execute("UPDATE post SET digest = ?", (row_digest(*row[1:-1]),))
        connection.commit()
    message = r"headers\.db: the row of post q is damaged \("
    with PostHeaders(headers) as found, pytest.raises(StoreError, match=message):
        list(found.posts())


def test_a_failure_that_has_changed_is_named_without_an_id(tmp_path: Path) -> None:
    headers, _ = kept(tmp_path, [Failure("b", "read", "bad_row", "no kind")])
    with database.writer(headers, "", purpose=PURPOSE) as connection:
        connection.execute("UPDATE post SET failure = '[]'")
        connection.commit()
    with PostHeaders(headers) as found, pytest.raises(StoreError, match="row of post without an id is not what was"):
        list(found.failures())


@pytest.mark.parametrize("statement", ["UPDATE post SET body = 'No'", "UPDATE formulas SET formula_ids = '[]'"])
def test_a_row_of_posts_that_has_changed_is_named(statement: str, tmp_path: Path) -> None:
    post_texts.build(tmp_path / "posts.db", POSTS[:1], [("q", ["17"])])
    with database.writer(tmp_path / "posts.db", "", purpose=post_texts.PURPOSE) as connection:
        connection.execute(statement)
        connection.commit()
    with (
        PostTexts(tmp_path / "posts.db") as texts,
        pytest.raises(StoreError, match=r"posts\.db: the row of post q is not what was written"),
    ):
        texts.get(["q"])
