"""Data sets of the package ir_datasets, here made of lists and registered under ids of their own."""

from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.queries.ir_dataset import IrDataset
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError, Failure

ir_datasets = pytest.importorskip("ir_datasets", reason="the extra 'datasets' is not installed")
Thread = namedtuple("Thread", "doc_id title body tags")
Plain = namedtuple("Plain", "doc_id text")
Query = namedtuple("Query", "query_id text")


def registered(name: str, docs: list[Any], queries: list[Any], qrels: list[tuple[str, str, int]]) -> None:
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, TrecQrel

    class Docs(BaseDocs):
        def docs_iter(self) -> Iterator[Any]:
            return iter(docs)

        def docs_cls(self) -> Any:
            return type(docs[0])

        def docs_count(self) -> int:
            return len(docs)

        def docs_namespace(self) -> str:
            return "mathamr-test"

    class Queries(BaseQueries):
        def queries_iter(self) -> Iterator[Any]:
            return iter(queries)

        def queries_cls(self) -> Any:
            return Query

        def queries_namespace(self) -> str:
            return "mathamr-test"

    class Qrels(BaseQrels):
        def qrels_iter(self) -> Iterator[Any]:
            return (TrecQrel(query, doc, grade, "0") for query, doc, grade in qrels)

        def qrels_defs(self) -> dict[int, str]:
            return {}

    if name not in ir_datasets.registry:
        ir_datasets.registry.register(name, Dataset(Docs(), Queries(), *([Qrels()] if qrels else [])))


DOCS = [Thread("1", "Parity", "Let $x=2k$.", ("a",)), Thread("2", "Rings", "None.", ()), Thread("a b", "", "t", ())]


def test_a_data_set_is_a_collection() -> None:
    registered("mathamr-test/one/test", DOCS, [Query("1", "Is $y$ odd?")], [("1", "2", 1), ("1", "1", -2)])
    registered("mathamr-test/one/train", DOCS, [Query("9", "Rings?"), Query("1", "?")], [("9", "2", 1), ("1", "1", 1)])
    corpus = open_corpus("ir_datasets", dataset_id="mathamr-test/one/test")
    posts = list(corpus.posts())
    assert [post.post_id for post in posts if isinstance(post, Post)] == ["1", "2", "query:9"]
    (failure,) = [post for post in posts if isinstance(post, Failure)]
    assert failure.kind == "bad_post"
    assert "mathamr-test/one/test (documents):3: post_id 'a b'" in failure.message
    assert isinstance(posts[0], Post)
    assert (posts[0].title, extract(posts[0]).formulas[0].latex) == ("Parity", "x=2k")
    assert corpus.judgments(1, []) == [Judgment("1", "2", 1), Judgment("1", "1", 0)]
    assert list(corpus.pairs()) == [Pair("query:9", "2")]
    assert corpus.fingerprints() == open_corpus("ir_datasets", dataset_id="mathamr-test/one/test").fingerprints()


def test_documents_of_text_alone_and_no_training_pairs() -> None:
    registered("mathamr-test/two", [Plain("1", "Let $x$.")], [Query("1", "x?")], [("1", "1", 4)])
    corpus = open_corpus("ir_datasets", dataset_id="mathamr-test/two")
    (post,) = corpus.posts()
    assert isinstance(post, Post)
    assert post.body == "Let $x$."
    assert not list(corpus.pairs())


def test_what_cannot_be_opened() -> None:
    with pytest.raises(ConfigError, match=r"data\.id is missing"):
        open_corpus("ir_datasets")
    with pytest.raises(ConfigError, match=r"data\.id='mathamr-test/none' is no data set"):
        open_corpus("ir_datasets", dataset_id="mathamr-test/none")
    with pytest.raises(ConfigError, match=r"data\.id=x: collection 'jsonl' has no such choice"):
        open_corpus("jsonl", "/", dataset_id="x")
    registered("mathamr-test/three", DOCS, [Query("1", "x?")], [])
    with pytest.raises(CorpusError, match=r"data\.id=mathamr-test/three has no qrels"):
        open_corpus("ir_datasets", dataset_id="mathamr-test/three")


def test_a_judgment_changes_neither_graphs_nor_searches() -> None:
    queries, train = [Query("1", "x?"), Query("9", "Rings?")], [("9", "2", 1)]
    found = []
    for name, qrels in (("four", [("1", "2", 1)]), ("five", [("1", "2", 1), ("1", "1", 0)])):
        registered(f"mathamr-test/{name}/test", DOCS, queries, qrels)
        registered(f"mathamr-test/{name}/train", DOCS, queries, train)
        corpus = IrDataset(f"mathamr-test/{name}/test")
        corpus.dataset_id = "mathamr-test/same/test"  # an edition of one data set
        found.append(corpus.fingerprints())
    before, after = found
    assert (after.graphs, after.searches) == (before.graphs, before.searches)
    assert after.judgments != before.judgments
