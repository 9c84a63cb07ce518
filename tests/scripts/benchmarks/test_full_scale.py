"""The benchmark of an experiment at growing sizes: its graphs, and how it counts stages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.stores.collection import Collection
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from scripts.benchmarks.published_tree import Tree
from scripts.benchmarks.scale import experiment
from tests.scripts.small_collection import make


def test_every_post_gets_a_graph_and_a_stopped_command_adds_the_rest(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    make(tmp_path / "small")
    (parsed,) = (tmp_path / "small").glob("collection.db")
    Tree(tmp_path / "tree", 60, 0).write()
    corpus = open_corpus("arqmath", tmp_path / "tree")
    files = PostFiles(corpus, tmp_path / "shared", Console(quiet=True))
    out = tmp_path / "collection.db"
    for _ in range(2):
        experiment.repeat(parsed, files, out, corpus.fingerprints().graphs, Console(quiet=True))
    with Collection(out) as graphs, Collection(parsed) as originals:
        assert graphs.meta["finished"]
        assert (graphs.meta["source"], graphs.meta["parser"]) == (
            corpus.fingerprints().graphs,
            originals.meta["parser"],
        )
        assert len(graphs) == 60
        kinds = {graph.post_id: graph.kind for graph in graphs}
        texts = {graph.penman for graph in originals}
        assert {graph.penman for graph in graphs} <= texts
    assert kinds == {post.post_id: post.kind for post in corpus.posts()}


def test_stages_are_rows_and_the_parts_of_a_stopped_one_are_added(tmp_path: Path) -> None:
    for items in (3, 4):
        console = experiment.MeasuringConsole(tmp_path / "stages.jsonl")
        with console.stage("encoding", unit="posts") as advance:
            advance(items)
        console.end()
    rows = {row.stage: row for row in experiment.rows(tmp_path)}
    assert list(rows) == ["start", "encoding", "after encoding"]
    assert (rows["encoding"].items, rows["encoding"].unit) == (7, "posts")
    assert rows["encoding"].peak >= rows["encoding"].before > 10
    assert "| encoding | 60 | 7 posts |" in experiment.table({60: list(rows.values())}, least=0)


def test_an_unknown_option_is_refused_before_posts_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scale"
    monkeypatch.setattr(sys, "argv", ["full_scale", "--data", "arqmath", "--out", str(out), "train.epochs=1"])
    with pytest.raises(SystemExit):
        experiment.main()
    assert "unrecognized arguments: --data" in capsys.readouterr().err
    assert not out.exists()
