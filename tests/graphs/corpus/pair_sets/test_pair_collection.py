"""Files of pairs as a collection: what is searched, learned from and asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.corpus.corpus import Benchmark, benchmark, open_corpus
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, CorpusError


def pair(query: str, document: str) -> dict[str, Any]:
    return {"query": f"text of {query}", "document": f"text of {document}", "query_id": query, "document_id": document}


def write(folder: Path, name: str, *lines: dict[str, Any]) -> None:
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "answers.jsonl", *({"post_id": f"d{i}", "body": f"Document $x_{i}$."} for i in range(4)))
    write(tmp_path, "train.jsonl", pair("q1", "d1"), pair("q1", "d2"), pair("q2", "d2"), pair("q3", "elsewhere"))
    write(tmp_path, "topics-unseen.jsonl", {"post_id": "t1", "body": "Which?"})
    (tmp_path / "qrels-unseen.tsv").write_text("t1 0 d3 2\nt1 0 d0 1\n")
    return tmp_path


def test_posts_and_pairs(root: Path) -> None:
    corpus = open_corpus("pairs", root)
    posts = {post.post_id: post for post in corpus.posts() if isinstance(post, Post)}
    assert {name for name, post in posts.items() if post.kind == "answer"} == {"d0", "d1", "d2", "d3"}
    assert {name for name, post in posts.items() if post.kind == "question"} == {"q1", "q2", "q3", "elsewhere"}
    assert posts["q1"].body == "text of q1"
    assert list(corpus.pairs()) == [Pair("q1", "d1"), Pair("q1", "d2"), Pair("q2", "d2"), Pair("q3", "elsewhere")]
    assert not isinstance(corpus, Benchmark)
    with pytest.raises(CorpusError, match="the tests of collection pairs have names; name one or more of unseen"):
        benchmark(corpus)
    before = corpus.fingerprints()
    (root / "qrels-unseen.tsv").write_text("t1 0 d3 2\n")
    assert corpus.fingerprints() != before


def test_related_pairs_are_further_ones(root: Path) -> None:
    corpus = PairCollection(root)
    with pytest.raises(ConfigError, match=r"train.positives=related: no related.jsonl"):
        corpus.pair_files("related")
    with pytest.raises(ConfigError, match=r"train.positives=answers: a collection of pairs knows accepted and related"):
        corpus.pair_files("answers")
    write(root, "related.jsonl", pair("q1", "d1"), *[pair("q4", "d0")] * 2)
    assert training_pairs(corpus, "related", 1) == [*corpus.pairs(), Pair("q4", "d0")]
    assert "q4" in {post.post_id for post in corpus.posts() if isinstance(post, Post)}
    assert [path.name for path in corpus.pair_files("related")] == ["train.jsonl", "related.jsonl"]


def test_a_test_searches_the_files_that_it_judges(root: Path) -> None:
    corpus = PairCollection(root)
    assert corpus.test("unseen").searched is None
    write(root, "answers-more.jsonl", {"post_id": "e0", "body": "Another side."})
    write(root, "topics-back.jsonl", {"post_id": "d1", "body": "Document.", "tags": ["document"]})
    (root / "qrels-back.tsv").write_text("d1 0 e0 2\n")
    corpus = PairCollection(root)
    assert corpus.tests() == ("back", "unseen")
    back, unseen = corpus.test("back"), corpus.test("unseen")
    assert (back.searched, back.swapped) == ({"e0"}, True)
    assert (unseen.searched, unseen.swapped) == ({"d0", "d1", "d2", "d3"}, False)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("qrels-unseen.tsv", "t1 0 gone 2\n", "gone and 0 more are judged, but no answers of this folder"),
        ("topics-unseen.jsonl", '{"body": "Which?"}\n', "no topic_id"),
        ("topics-unseen.jsonl", "{\n", "not JSON"),
    ],
)
def test_a_broken_test_is_an_error(root: Path, name: str, content: str, message: str) -> None:
    (root / name).write_text(content)
    with pytest.raises(CorpusError, match=message):
        PairCollection(root).test("unseen")


def test_what_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(ConfigError, match=r"regular is no test of the collection in .*: unseen"):
        PairCollection(root).test("regular")
    for line in (
        {"query": "a", "document": "b"},
        pair("q1", "d1") | {"query_id": [1]},
        pair("q1", "d1") | {"query": 1},
        pair("half a pair \ud800", "d1"),
    ):
        write(root, "train.jsonl", line)
        with pytest.raises(CorpusError, match=r"train.jsonl:1: is no pair"):
            list(PairCollection(root).pairs())
