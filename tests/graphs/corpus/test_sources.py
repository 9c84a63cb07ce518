"""Collections to learn from: pairs out of questions or problems alone, and the first pairs of any collection."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphs.corpus.corpus import Benchmark, TrainingPairs, benchmark, open_corpus
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair, Post
from graphs.corpus.sources import Source
from graphs.errors import CorpusError, Failure


def written(folder: Path, name: str, lines: Sequence[Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_question_is_a_pair_of_its_title_and_body(tmp_path: Path) -> None:
    lines = [
        {"question_id": 3, "title": "Is $x$ odd?", "body": "Let <b>it</b> be.", "tags": ["parity"]},
        {"question_id": 4, "title": "No body"},
        {"question_id": 5, "body": "No title"},
        {"question_id": 6, "title": "A", "body": "B"},
    ]
    root = written(tmp_path / "titles", "questions_01.jsonl", lines)
    written(root, "answers.jsonl", [{"answer_id": 9, "question_id": 3, "body": "Yes."}])
    corpus = open_corpus("titles", root)
    assert list(corpus.pairs()) == [Pair("3", "3/body"), Pair("6", "6/body")]
    title, body, *_ = [post for post in corpus.posts() if isinstance(post, Post)]
    assert (title.title, title.body, title.kind, title.markup) == ("Is $x$ odd?", "", "question", "html")
    assert (body.title, body.body, body.kind, body.markup) == ("", "Let <b>it</b> be.", "answer", "html")
    assert corpus.fingerprints() != open_corpus("jsonl", root).fingerprints()


def test_problems_and_their_solutions(tmp_path: Path) -> None:
    lines = [
        {"problem": "Find $x$.", "solution": "[asy]\ndraw((0,0));\n[/asy]It is $1$.", "type": "Algebra", "level": "5"},
        {"problem": "Find $y$.", "solution": "[asy]draw();"},
        {"problem": "Find $z$.", "solution": "It is $2$."},
        {"problem": 7, "solution": "?"},
    ]
    corpus = open_corpus("problems", written(tmp_path / "math", "train.jsonl", lines))
    posts = list(corpus.posts())
    assert [post.post_id for post in posts if isinstance(post, Failure)] == ["train-2", "train-4"]
    assert list(corpus.pairs()) == [Pair("train-1", "train-1/solution"), Pair("train-3", "train-3/solution")]
    assert isinstance(posts[0], Post)
    assert isinstance(posts[1], Post)
    assert (posts[0].tags, posts[1].body) == (("Algebra",), "It is $1$.")


@pytest.mark.parametrize("name", ["titles", "problems"])
def test_what_is_learned_from_has_no_topics(tmp_path: Path, name: str) -> None:
    corpus = open_corpus(name, written(tmp_path / "some", "questions.jsonl", []))
    assert isinstance(corpus, TrainingPairs)
    assert not isinstance(corpus, Benchmark)
    with pytest.raises(CorpusError, match=f"{name} has no topics: it is learned from, as one of data.sources"):
        benchmark(corpus)
    assert corpus.formulas() is None


def test_a_folder_without_problems_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no \*\.jsonl \(or \*\.jsonl\.gz\) here"):
        open_corpus("problems", tmp_path)


def test_a_source_is_the_first_pairs_and_their_posts_alone(tmp_path: Path) -> None:
    posts = [{"post_id": f"q{i}", "kind": "question", "title": f"Is ${i}$ odd?"} for i in range(4)]
    posts += [{"post_id": f"a{i}", "kind": "answer", "body": "No.", "parent_id": f"q{i}"} for i in (2, 1, 0)]
    corpus = open_corpus("jsonl", written(tmp_path / "posts", "posts.jsonl", posts))
    some = Source(corpus, most_pairs=2)
    assert some.pairs() == [Pair("q2", "a2"), Pair("q1", "a1")]
    assert [post.post_id for post in some.posts()] == ["q1", "q2", "a2", "a1"]
    everything = Source(corpus)
    assert [post.post_id for post in everything.posts()] == ["q0", "q1", "q2", "a2", "a1", "a0"]
    prints = {source.fingerprints() for source in (some, everything, Source(corpus, 3))}
    assert len(prints | {corpus.fingerprints()}) == 4
    assert Source(corpus, 2).fingerprints() == some.fingerprints()


def test_of_two_answers_of_a_source_with_one_id_the_first_makes_a_pair(tmp_path: Path) -> None:
    posts: list[dict[str, str]] = [{"post_id": f"q{i}", "kind": "question", "body": "?"} for i in range(3)]
    posts += [{"post_id": f"a{i % 2}", "kind": "answer", "body": f"{i}.", "parent_id": f"q{i}"} for i in range(3)]
    corpus = open_corpus("jsonl", written(tmp_path / "posts", "posts.jsonl", posts))
    assert Source(corpus).pairs() == [Pair("q0", "a0"), Pair("q1", "a1")] == training_pairs(corpus, "accepted", 0)


def test_broken_records_of_a_source_are_its_failures(tmp_path: Path) -> None:
    posts = [{"post_id": "q1", "kind": "question", "body": "?"}, {"post_id": 7.5}]
    posts.append({"post_id": "a1", "kind": "answer", "body": "No.", "parent_id": "q1"})
    source = Source(open_corpus("jsonl", written(tmp_path / "posts", "posts.jsonl", posts)))
    assert [type(post) for post in source.posts()] == [Post, Failure, Post]
