"""A build continues only with the topics that it was begun with, and takes trees from a complete formulas.db."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from parrot import Parrot, posts

from graphs import database
from graphs.corpus.files import FormulaFiles, TopicFormulaFiles
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, StoreError
from graphs.formulas import store, tsv
from graphs.stores import collection, exchange, shards
from graphs.stores.collection import Collection
from graphs.stores.origin import TOPICS
from graphs.stores.shards import Shard
from mathamr.stages.console import Console
from mathamr.stages.data.graphs import POSTS, CollectionSettings, build_collection
from mathamr.stages.parsers import factory
from mathamr.stages.settings import GraphConfig

GRAPH = GraphConfig(
    parser="penman_file",
    structure="none",
    connectivity="none",
    formulas="both",
    vocabulary_size=100,
    number_threshold=1,
)


def with_topics(path: Path, topics: str, shard: str = "1/1") -> None:
    stream = Shard.parse(shard).of([*posts(6), *(Post(f"T.{i}", "topic", body="Why?") for i in range(6))])
    collection.build(path, stream, Parrot, source="test", shard=shard, topics=topics)


def topics_of(path: Path) -> object:
    with Collection(path) as graphs:
        return graphs.meta.get(TOPICS)


def forget_topics(path: Path) -> None:
    """Leave the file as an earlier version made it."""
    with collection.writer(path) as connection:
        connection.execute("DELETE FROM meta WHERE key = ?", (TOPICS,))
        connection.commit()


def test_a_collection_of_one_state_of_the_topics_is_not_continued_with_another(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with_topics(path, "1f")
    with_topics(path, "1f")
    with pytest.raises(StoreError, match=r"begun with topics_hash '1f', now asked .* '2e'; .*leave the topics out"):
        with_topics(path, "2e")
    collection.build(path, posts(7), Parrot, source="test")
    assert topics_of(path) == "1f"
    forget_topics(path)
    with_topics(path, "2e")
    assert topics_of(path) is None  # its graphs may be of others
    collection.build(tmp_path / "posts.db", posts(7), Parrot, source="test")
    with_topics(tmp_path / "posts.db", "2e")
    assert topics_of(tmp_path / "posts.db") == "2e"


def test_the_state_of_the_topics_passes_through_merges_and_penman_files(tmp_path: Path) -> None:
    one, two = tmp_path / "1.db", tmp_path / "2.db"
    with_topics(one, "1f", "1/2")
    with_topics(two, "2e", "2/2")
    with pytest.raises(StoreError, match=r"its topics_hash is '2e', that of .*1.db is '1f'.* earlier topics again"):
        shards.merge(tmp_path / "merged.db", [one, two])
    with collection.writer(two) as connection:
        database.write_meta(connection, **{TOPICS: "1f"})
        connection.commit()
    shards.merge(tmp_path / "merged.db", [one, two])
    with Collection(tmp_path / "merged.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
    exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    assert topics_of(tmp_path / "merged.db") == topics_of(tmp_path / "again.db") == "1f"
    forget_topics(two)
    shards.merge(tmp_path / "unknown.db", [one, two])
    assert topics_of(tmp_path / "unknown.db") is None


def test_an_import_that_replaces_another_has_the_topics_of_its_own_file(tmp_path: Path) -> None:
    path, file = tmp_path / "c.db", tmp_path / "c.penman"
    for topics in ("1f", None, "1f", "2e"):
        header = "" if topics is None else f'# ::collection {{"{TOPICS}": "{topics}"}}\n\n'
        file.write_text(f"{header}# ::id 1\n(a / ask-01)\n")
        exchange.import_penman(file, path)
        assert topics_of(path) == topics
    with_posts = tmp_path / "built.db"
    with_topics(with_posts, "1f")
    with pytest.raises(StoreError):
        exchange.import_penman(file, with_posts)
    assert topics_of(with_posts) == "1f"


class Published(JsonLines):
    """A collection that publishes trees: in two files of its posts, and in files of its topics of two years."""

    def topics(self, task: int, years: Sequence[int] = ()) -> list[Topic]:
        return super().topics(task, ())

    def formulas(self) -> FormulaFiles:
        def file(name: str) -> PackedFile:
            return PackedFile(self.root / f"{name}.tsv")

        topics = [TopicFormulaFiles(f"{year}:", None, file(str(year)), None) for year in (2020, 2021)]
        return FormulaFiles((), (file("1"), file("2")), (), tuple(topics))


@pytest.fixture
def corpus(tmp_path: Path) -> Published:
    """Two posts and a topic, their graphs, and published trees."""
    for name, column in (("1", "post_id"), ("2", "post_id"), ("2020", "topic_id"), ("2021", "topic_id")):
        rows = [["id", column, "formula"], [f"q_{name}", "1", "<math><mi>x</mi></math>"]]
        (tmp_path / f"{name}.tsv").write_text("".join("\t".join(row) + "\r\n" for row in rows))
    (tmp_path / "graphs.penman").write_text("".join(f"# ::id {i}\n(a / ask-01)\n\n" for i in ("1", "2", "query:T.1")))
    written = [{"post_id": i, "kind": "question", "body": "I ask.", "markup": "text"} for i in ("1", "2")]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in written))
    write_topic(tmp_path, "One")
    return Published(tmp_path)


def write_topic(folder: Path, title: str) -> None:
    topic = {"post_id": "T.1", "title": title, "body": "I ask.", "markup": "text"}
    (folder / "topics.jsonl").write_text(json.dumps(topic) + "\n")


def built(corpus: JsonLines, folder: Path, *kinds: str, formulas: Path | None = None) -> Path:
    parser = factory("penman_file", {"path": folder / "graphs.penman"})
    settings = CollectionSettings(parser, kinds, years=[2020] if formulas else [], formulas_db=formulas)
    build_collection(corpus, folder / "c.db", settings, GRAPH, Console())
    return folder / "c.db"


def test_changed_topics_are_not_searched_with_their_old_graphs(
    tmp_path: Path, corpus: Published, capsys: pytest.CaptureFixture[str]
) -> None:
    path = built(JsonLines(tmp_path), tmp_path, *POSTS, "topic")
    assert topics_of(path) == JsonLines(tmp_path).fingerprints().topics
    write_topic(tmp_path, "Two")
    with pytest.raises(StoreError, match="begun with topics_hash"):
        built(JsonLines(tmp_path), tmp_path, *POSTS, "topic")
    built(JsonLines(tmp_path), tmp_path, *POSTS)
    assert "does not record" not in capsys.readouterr().err
    forget_topics(path)
    built(JsonLines(tmp_path), tmp_path, *POSTS, "topic")
    assert "an earlier version, which does not record their texts" in capsys.readouterr().err


def test_trees_come_from_a_complete_formulas_db_of_this_collection(tmp_path: Path, corpus: Published) -> None:
    path, files = tmp_path / "formulas.db", corpus.formulas()
    store.build(path, replace(files, slt=files.slt[:1], topics=()))
    with pytest.raises(ConfigError, match=r"not made from 1 of 2 .*2\.tsv; run mathamr build formulas"):
        built(corpus, tmp_path, *POSTS, formulas=path)
    assert not (tmp_path / "c.db").exists()
    store.build(path, replace(files, topics=files.topics[1:]))
    with pytest.raises(ConfigError, match=r"not made from 1 of 3 .* slt 2020:\S*2020\.tsv of"):
        built(corpus, tmp_path, *POSTS, "topic", formulas=path)
    built(corpus, tmp_path, *POSTS, formulas=path)
    with pytest.raises(ConfigError, match=r"formulas\.db: the collection publishes no formulas"):
        built(JsonLines(tmp_path), tmp_path, *POSTS, formulas=path)
    store.build(path, files)
    built(corpus, tmp_path, *POSTS, "topic", formulas=path)


def test_a_collection_has_trees_of_one_formulas_db(tmp_path: Path, corpus: Published) -> None:
    plain, italic, files = tmp_path / "formulas.db", tmp_path / "italic.db", corpus.formulas()
    store.build(plain, replace(files, topics=()))
    store.build(italic, files, letters="italic")
    built(corpus, tmp_path, "question", formulas=plain)
    store.build(plain, files)  # topics are added
    built(corpus, tmp_path, *POSTS, "topic", formulas=plain)
    with pytest.raises(
        StoreError, match=r"begun with trees 'formulas\.db, plain letters, .*'formulas\.db, italic letters"
    ):
        built(corpus, tmp_path, *POSTS, formulas=italic)


def test_a_changed_formula_file_of_topics_is_read_again(tmp_path: Path, corpus: Published) -> None:
    path, files, topic = tmp_path / "formulas.db", corpus.formulas(), tmp_path / "2020.tsv"
    for letter in "xyx":  # of one size
        rows = ["id\ttopic_id\tformula", f"q_2020\t1\t<math><mi>{letter}</mi></math>"]
        rows += [f"q_{letter}\t1\t<math><mi>{letter}{letter}</mi></math>"]
        topic.write_text("".join(f"{row}\r\n" for row in rows))
        assert tsv.source_prints(files).keys() > tsv.source_prints(replace(files, topics=())).keys()
        store.build(path, files)
        with store.FormulaStore.open(path) as trees:
            assert tsv.source_prints(files).items() <= trees.sources().items()
            found = trees.get("2020:q_2020")
            assert [trees.get(f"2020:q_{other}") is not None for other in "xy"] == [letter == "x", letter == "y"]
            assert len(trees) == 5
        assert found is not None
        assert found.slt is not None
        assert found.slt.tangent_string() == f"[V!{letter}]"
    with database.connect_read_only(path, purpose=store.PURPOSE) as connection:
        assert connection.execute("SELECT count(*) FROM tree").fetchone() == (2,)


@pytest.mark.parametrize("statement", ["DELETE FROM formula", "DELETE FROM tree", "DELETE FROM source", "INSERT"])
def test_a_build_that_is_killed_while_it_forgets_topics_is_completed(
    tmp_path: Path, corpus: Published, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    path, files, topic = tmp_path / "formulas.db", corpus.formulas(), tmp_path / "2020.tsv"
    store.build(path, files)
    topic.write_text(topic.read_text().replace("q_2020", "q_2022").replace("x", "y"))

    class Killed(database.Connection):
        def execute(self, *arguments: Any) -> database.Cursor:
            self.refuse(arguments[0])
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> database.Cursor:
            self.refuse(arguments[0])
            return super().executemany(*arguments)

        def refuse(self, query: str) -> None:
            if query.startswith(statement) and "meta" not in query:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(database, "Connection", Killed)
        with pytest.raises(KeyboardInterrupt):
            store.build(path, files)
    store.build(path, files)
    with store.FormulaStore.open(path) as trees:
        assert trees.get("2020:q_2020") is None
        assert trees.get("2020:q_2022") is not None
        assert tsv.source_prints(files) == trees.sources()
