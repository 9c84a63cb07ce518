"""The embedded collection: enough of it, complete judgments, no leaks, and nothing imported to make it."""

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphs.corpus.mathdocs import collection
from graphs.corpus.mathdocs.collection import MAX_QUESTION_WORDS, TOPIC_SHARE, MathDocs, is_topic
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import PlaceholderText, extract
from graphs.errors import ConfigError


@pytest.fixture(scope="module")
def corpus() -> MathDocs:
    return MathDocs()


@pytest.fixture
def kept(corpus: MathDocs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File of the cache, in a folder of the test."""
    entries = corpus._entries
    monkeypatch.setattr(collection, "_read_all", lambda: entries)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    collection._entries.cache_clear()
    list(corpus.posts())
    collection._entries.cache_clear()
    [path] = tmp_path.rglob("mathdocs-*.json")
    return path


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Empty collection in place of the docstrings; the list has an entry for each time that they are read."""
    calls: list[str] = []
    collection._entries.cache_clear()
    monkeypatch.setattr(collection, "_read_all", lambda: calls.append("read") or ())
    yield calls
    collection._entries.cache_clear()


@pytest.fixture(scope="module")
def posts(corpus: MathDocs) -> list[Post]:
    posts = list(corpus.posts())
    assert all(isinstance(post, Post) for post in posts)
    return [post for post in posts if isinstance(post, Post)]


@pytest.fixture(scope="module")
def texts(corpus: MathDocs, posts: list[Post]) -> dict[str, PlaceholderText]:
    return {post.post_id: extract(post) for post in [*posts, *(topic.post for topic in corpus.topics(1))]}


def test_there_is_enough_to_learn_from(corpus: MathDocs, posts: list[Post], texts: dict[str, PlaceholderText]) -> None:
    assert len(list(corpus.pairs())) >= 800
    assert len(corpus.topics(1)) >= 100
    assert sum(len(text.formulas) for text in texts.values()) >= 5_000
    assert len({post.post_id for post in posts}) == len(posts)


def test_no_post_is_empty_and_every_object_has_a_formula(texts: dict[str, PlaceholderText]) -> None:
    formulas: Counter[str] = Counter()
    for post_id, text in texts.items():
        assert any(re.search("[a-z]{3}", sentence) for sentence in text.sentences), post_id
        formulas[post_id.partition("/")[0]] += len(text.formulas)
    assert min(formulas.values()) >= 1


def test_the_topics_are_a_fixed_part_by_name(corpus: MathDocs, posts: list[Post]) -> None:
    names = {post.post_id.removesuffix("/answer") for post in posts if post.kind == "answer"}
    topics = {topic.topic_id for topic in corpus.topics(1)}
    assert topics == {name for name in names if is_topic(name)}
    assert abs(len(topics) / len(names) - TOPIC_SHARE) < 0.04
    assert not {pair.question_id.removesuffix("/question") for pair in corpus.pairs()} & topics


def test_judgments_are_complete_and_graded_by_see_also(corpus: MathDocs, posts: list[Post]) -> None:
    answers = {post.post_id for post in posts if post.kind == "answer"}
    judged: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for judgment in corpus.judgments(1):
        judged[judgment.topic_id][judgment.doc_id] = judgment.grade
    assert set(judged) == {topic.topic_id for topic in corpus.topics(1)}
    for topic, grades in judged.items():
        assert set(grades) == answers
        assert [doc for doc, grade in grades.items() if grade == 3] == [f"{topic}/answer"]
    assert {1, 2} <= {grade for grades in judged.values() for grade in grades.values()}


def test_no_question_and_no_answer_occurs_twice(posts: list[Post], corpus: MathDocs) -> None:
    questions = [post.title + post.body for post in posts if post.kind == "question"]
    questions += [topic.post.title + topic.post.body for topic in corpus.topics(1)]
    assert len(set(questions)) == len(questions)
    answers = [post.body for post in posts if post.kind == "answer"]
    assert len(set(answers)) == len(answers)


def test_no_question_names_its_object_as_code(corpus: MathDocs, texts: dict[str, PlaceholderText]) -> None:
    for post_id, text in texts.items():
        if post_id.endswith("/answer"):
            continue
        name = post_id.removesuffix("/question").rpartition(".")[2]
        joined = " ".join(text.sentences)
        if "_" in name.strip("_") or re.search(r"\d", name):
            assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", joined), post_id
        assert f"{name}(" not in joined, post_id


def test_questions_are_bounded_and_hold_no_markup_of_docstrings(texts: dict[str, PlaceholderText]) -> None:
    for post_id, text in texts.items():
        joined = " ".join(text.sentences)
        assert not re.search(r":math:|:func:|``|>>>|%\(\w+\)s|\.\. \w+::", joined), post_id
        if not post_id.endswith("/answer"):
            assert len(joined.split()) < 2 * MAX_QUESTION_WORDS, post_id


def test_an_object_as_it_comes_out(texts: dict[str, PlaceholderText]) -> None:
    name = "networkx.algorithms.centrality.katz.katz_centrality"
    question = texts.get(f"{name}/question") or texts[name]
    assert question.sentences[0] == "Compute the Katz centrality for the nodes of the graph G."
    assert r"x_i = \alpha \sum_{j} A_{ij} x_j + \beta," in [formula.latex for formula in question.formulas]
    assert any("eigenvector" in sentence for sentence in texts[f"{name}/answer"].sentences)


def test_task_2_and_years_are_refused(corpus: MathDocs) -> None:
    with pytest.raises(ConfigError, match="task 1"):
        corpus.topics(2)
    with pytest.raises(ConfigError, match="leave the years empty"):
        corpus.judgments(1, [2020])


def test_nothing_is_imported_and_the_result_is_the_same_in_another_process(
    corpus: MathDocs, posts: list[Post], tmp_path: Path
) -> None:
    script = (
        "import hashlib, sys; from graphs.corpus.mathdocs.collection import MathDocs; corpus = MathDocs()\n"
        "digest = hashlib.sha256(repr(list(corpus.posts())).encode()).hexdigest()\n"
        "loaded = [name for name in ('scipy', 'sympy', 'numpy', 'networkx', 'mpmath') if name in sys.modules]\n"
        "print(digest, corpus.fingerprints().posts, loaded)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}  # empty
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    digest = hashlib.sha256(repr(posts).encode()).hexdigest()
    assert done.stdout.split() == [digest, corpus.fingerprints().posts, "[]"]


def test_the_cache_gives_what_was_read(kept: Path, corpus: MathDocs, posts: list[Post], unread: list[str]) -> None:
    assert list(corpus.posts()) == posts
    assert unread == []


@pytest.mark.parametrize("damage", ["", '{"entries": [{"name": "a"}]}', '{"entries": 1}'])
def test_a_damaged_cache_is_replaced(kept: Path, corpus: MathDocs, unread: list[str], damage: str) -> None:
    kept.write_text(damage)
    assert (list(corpus.posts()), unread) == ([], ["read"])
    collection._entries.cache_clear()
    assert (list(corpus.posts()), unread) == ([], ["read"])


@pytest.mark.parametrize("place", ["{}/file", "/proc/nowhere", "~"])
def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, corpus: MathDocs, unread: list[str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", place.format(tmp_path))
    assert (list(corpus.posts()), unread) == ([], ["read"])
    assert not (tmp_path / "~").exists()
