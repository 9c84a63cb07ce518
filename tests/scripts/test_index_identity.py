"""scripts/index.py: an index is made of files that belong together, and damage of any of them is noticed."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

import scripts.index
import scripts.make_run
import scripts.preprocess
import scripts.search
from graphs import database
from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.jsonl import JsonLines
from graphs.errors import MathAMRError
from graphs.stores import collection, exchange
from graphs.stores.collection import Collection
from mathamr.search import catalog
from mathamr.search.catalog import Catalog
from mathamr.search.engine import Engine
from tests.scripts.small_collection import index_arguments


@pytest.fixture(scope="module")
def other_root(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same ids with other texts, as a collection of another year has them."""
    folder = tmp_path_factory.mktemp("other")
    for name in ("posts.jsonl", "topics.jsonl", "topics2.jsonl", "qrels.tsv"):
        shutil.copyfile(work / name, folder / name)
    text = (folder / "posts.jsonl").read_text()
    (folder / "posts.jsonl").write_text(text.replace("lowest terms", "other terms"))
    return folder


def test_graphs_of_other_posts_are_refused(
    work: Path, other_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = index_arguments(work, tmp_path / "index")
    arguments[arguments.index("--root") + 1] = str(other_root)
    assert scripts.index.main(arguments) == 2
    error = capsys.readouterr().err
    assert "collection.db: made from the posts" in error
    assert "give the --root that the graphs were made from" in error
    assert not (tmp_path / "index" / "index.json").exists()


@pytest.mark.parametrize("place", [[], ["--location", "embedded"]])
@pytest.mark.parametrize("option", [["--shards", "2"], ["--on-disk"]])
def test_settings_of_a_server_need_a_server(
    place: list[str], option: list[str], work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*index_arguments(work, tmp_path / "index"), "--backend", "qdrant", *place, *option]
    with pytest.raises(SystemExit):
        scripts.index.main(arguments)
    assert f"{option[0]} needs a Qdrant server; give its URL by --location" in capsys.readouterr().err


OTHER_PARSER = "amrlib 1 bart-large"


def of_other_parser(graphs: Path, path: Path) -> Path:
    """Copy graphs as if another parser had made them."""
    write_meta(graphs, path, parser=OTHER_PARSER)
    return path


def write_meta(graphs: Path, path: Path, **values: object) -> None:
    """Copy graphs, with other values in the meta table."""
    shutil.copyfile(graphs, path)
    with collection.writer(path) as connection:
        database.write_meta(connection, **values)
        connection.commit()


def test_vectors_of_another_parser_are_not_kept(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither those of the index before, nor those that a build left when it was stopped."""
    own = index_arguments(work, tmp_path / "index")
    other = list(own)
    other[own.index("--graphs-db") + 1] = str(of_other_parser(work / "collection.db", tmp_path / "other.db"))
    assert scripts.index.main(own) == 0
    capsys.readouterr()
    assert scripts.index.main([*other, "--update"]) == 2
    error = capsys.readouterr().err
    assert "the index was made of graphs of the parser embedded 3 " in error
    assert f"these are of {OTHER_PARSER}; build without --update" in error
    with monkeypatch.context() as patched:
        patched.setattr(catalog, "build", Mock(side_effect=KeyboardInterrupt))
        assert scripts.index.main(own) == 130
    assert scripts.index.main(other) == 0
    assert "encoded:   4 posts" in capsys.readouterr().out
    with closing(Catalog.open(tmp_path / "index")) as index:
        assert index.parser == OTHER_PARSER


def test_a_run_says_that_topics_have_another_parser_than_the_posts(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = index_arguments(work, tmp_path / "index")
    arguments[arguments.index("--graphs-db") + 1] = str(of_other_parser(work / "collection.db", tmp_path / "other.db"))
    assert scripts.index.main(arguments) == 0
    note = f"the posts of the index were parsed by {OTHER_PARSER}, but topics by embedded 3 "
    build_topics(work, tmp_path / "topics.db")
    of_other_parser(tmp_path / "topics.db", tmp_path / "other-topics.db")
    said = {}
    for name in ("", "topics.db", "other-topics.db"):
        graphs = ["--graphs-db", str(tmp_path / name)] if name else []
        words = ["index", "--index", str(tmp_path / "index"), "--corpus", "jsonl", "--root", str(work), "--task", "2"]
        capsys.readouterr()
        assert scripts.make_run.main([*words, *graphs, "--out", str(tmp_path / "run.tsv")]) == 0
        said[name] = " ".join(capsys.readouterr().err.split()).count(note)
    assert said == {"": 1, "topics.db": 1, "other-topics.db": 0}


def test_graphs_of_an_earlier_text_of_a_topic_are_refused(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripts.index.main(index_arguments(work, tmp_path / "index")) == 0
    build_topics(work, tmp_path / "topics.db", body="Why is it irrational?")
    words = ["index", "--index", str(tmp_path / "index"), "--corpus", "jsonl", "--root", str(work), "--task", "2"]
    words += ["--graphs-db", str(tmp_path / "topics.db"), "--out", str(tmp_path / "run.tsv")]
    assert scripts.make_run.main(words) == 2
    error = capsys.readouterr().err
    assert "topics.db: the graph of topic B.1 was made from another text: formula query:B.1:0 is in" in error
    assert not (tmp_path / "run.tsv").exists()


def test_graphs_of_an_earlier_state_of_the_topics_are_refused(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_meta(work / "collection.db", tmp_path / "topics.db", topics_hash="1f")
    words = ["index", "--index", str(tmp_path / "index"), "--corpus", "jsonl", "--root", str(work)]
    words += ["--graphs-db", str(tmp_path / "topics.db"), "--out", str(tmp_path / "run.tsv")]
    assert scripts.make_run.main(words) == 2
    assert "topics.db: its graphs of topics were made from other topics; build" in capsys.readouterr().err


def test_a_collection_in_part_is_noticed(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both by ``mathamr index`` and by ``mathamr build tensors``."""
    part, trial = tmp_path / "part.db", tmp_path / "trial.db"
    write_meta(work / "collection.db", part, shard="2/8")
    write_meta(work / "collection.db", trial, finished=False)
    data = ["--corpus", "jsonl", "--root", str(work), "--out", str(tmp_path / "work"), "train.positives=answers"]
    for graphs, code, said in (
        (part, 2, "part.db: this collection is shard 2/8; merge all shards"),
        (trial, 0, "trial.db is unfinished: 5 posts, which an experiment needed, or a build"),
    ):
        arguments = index_arguments(work, tmp_path / "index")
        arguments[arguments.index("--graphs-db") + 1] = str(graphs)
        for main, words in (
            (scripts.index.main, arguments),
            (scripts.preprocess.main, [*data, f"--graphs-db={graphs}"]),
        ):
            assert main(words) == code
            assert said in " ".join(capsys.readouterr().err.split())


def build_topics(work: Path, path: Path, **changes: str) -> None:
    """Make graphs of the topics of Task 2, or of such topics with other texts."""
    posts = [replace(topic.post, **changes) for topic in JsonLines(work).topics(2, [])]
    collection.build(path, posts, EmbeddedParser, source="topics")


def test_pairs_of_other_posts_are_refused(
    work: Path, other_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (other_root / "posts.jsonl").read_text()
    records = [json.loads(line) for line in text.splitlines()]
    records[0]["accepted_answer_id"] = "11"
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ["--corpus", "jsonl", "--root", str(tmp_path), "--graphs-db", str(work / "collection.db")]
    assert scripts.preprocess.main([*words, "--out", str(tmp_path / "work")]) == 2
    assert "collection.db: made from the posts" in capsys.readouterr().err


def test_imported_graphs_need_a_text_for_each_post(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Penman file of another program names no posts by a hash: there the ids have to do."""
    with Collection(work / "collection.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "graphs.txt")
    header, _, rest = (tmp_path / "graphs.txt").read_text().partition("\n")
    assert header.startswith("# ::collection")
    (tmp_path / "graphs.txt").write_text(rest)
    exchange.import_penman(tmp_path / "graphs.txt", tmp_path / "collection.db")
    lines = (work / "posts.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "posts.jsonl").write_text("".join(line for line in lines if '"post_id": "12"' not in line))
    arguments = index_arguments(work, tmp_path / "index")
    arguments[arguments.index("--root") + 1] = str(tmp_path)
    arguments[arguments.index("--graphs-db") + 1] = str(tmp_path / "collection.db")
    assert scripts.index.main(arguments) == 2
    assert "1 of 4 posts have a graph and no text, e.g. 12" in capsys.readouterr().err


def flip(path: Path, offset: int) -> None:
    """Change one bit of a file; offsets below 0 count from the end."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 4
    path.write_bytes(content)


FILES = ("model/model.safetensors", "vectors/data-*/vectors.npy", "vocabulary.json", "posts.db")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.6, 0.9])
def test_one_bit_of_an_index_is_noticed(work: Path, tmp_path: Path, name: str, place: float) -> None:
    assert scripts.index.main(index_arguments(work, tmp_path / "index")) == 0
    Catalog.open(tmp_path / "index").close()
    (path,) = (tmp_path / "index").glob(f"data-*/{name}")
    flip(path, int(path.stat().st_size * place))
    with pytest.raises(MathAMRError, match=f"{path.parent.name}.*damaged"):
        Engine.open(tmp_path / "index")
