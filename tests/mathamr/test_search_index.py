"""Index folders that others may send: a manifest names no file outside the index."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.corpus.post import Post
from graphs.errors import StoreError
from graphs.stores import posts
from mathamr import search_index
from mathamr.retrieval.bm25 import BM25Index
from mathamr.retrieval.folder import HEADER, building, switch
from mathamr.search.settings import read
from mathamr.search_index import (
    FORMAT,
    SYSTEM,
    VERSION,
    IndexedJob,
    open_engine,
    open_index,
    write_index,
)
from mathamr.systems.searchable.graph import encode_query

WORDS = {"system": "bm25", "record": {}, "depth": None, "limit": 10, "threads": False, "parts": {}}


def write(path: Path, manifest: Any, count: Any = 1) -> Path:
    """Write an index without files, as somebody could write it by hand."""
    header = {"format": FORMAT, "version": VERSION, "model_hash": "1", "condition": "c", "experiment": "e"}
    with building(path) as data:
        (data / SYSTEM).mkdir()
        (data / "elsewhere").mkdir()
        switch(path, data, {**header, "posts": count, "manifest": manifest})
    return path


@pytest.fixture
def built(tmp_path: Path) -> Callable[[str, str], None]:
    """Function that writes a small index to the folder ``index``, by a job's key and condition."""
    posts.build(tmp_path / "posts.db", [Post("7", "answer", body="Yes.", markup="text")], [])
    words = BM25Index.build(["7"], [["yes"]])

    def build(key: str, condition: str) -> None:
        job = IndexedJob("e", condition, 1, "jsonl-1", key, posts=1)
        write_index(tmp_path / "index", tmp_path / "posts.db", lambda folder: _words(words, folder), job)

    return build


def test_an_index_that_is_updated_while_it_is_opened_is_opened_again(
    built: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("first", "c")
    opened = search_index._open_part

    def slow(*given: Any) -> Any:
        monkeypatch.undo()
        built("second", "d")
        return opened(*given)

    monkeypatch.setattr(search_index, "_open_part", slow)
    engine, header = open_index(tmp_path / "index")
    engine.close()
    assert header["key"] == "second"


def test_an_index_is_whole_when_its_build_is_stopped_after_the_switch(
    built: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built("first", "c")
    rmtree, removed = shutil.rmtree, list[Path]()

    def stopped(path: Path, **options: Any) -> None:
        removed.append(path)
        if len(removed) == 1:
            raise KeyboardInterrupt
        rmtree(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", stopped)
        with pytest.raises(KeyboardInterrupt):
            built("second", "\x1b[2J")
    engine, message = open_engine(read([f"index={tmp_path / 'index'}"])[0])
    engine.close()
    assert "ranked by  [2J of e" in message
    assert "no effect" not in message
    engine, message = open_engine(read([f"index={tmp_path / 'index'}", "strategy=maxsim"])[0])
    engine.close()
    assert "(strategy= has no effect: only graph models have strategies)" in message


def _words(index: BM25Index, folder: Path) -> dict[str, Any]:
    index.write(folder)
    return {**WORDS, "record": {"by": "text", "published": False, "results": 10}}


@pytest.mark.parametrize("name", ["..", ".", "", "../../elsewhere", "/", "a/b"])
def test_a_part_cannot_lie_outside_the_index(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a part cannot have the name"):
        open_index(write(tmp_path, {**WORDS, "parts": {name: WORDS}}))


@pytest.mark.parametrize(
    ("manifest", "count", "message"),
    [([], 1, "the index lacks 'system'"), (WORDS, "\x1b[2J", "it has '.x1b.2J' posts"), (WORDS, -1, "it has -1 posts")],
)
def test_a_header_written_by_hand_is_refused(manifest: Any, count: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=message):
        open_index(write(tmp_path, manifest, count))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("transition", {"python": "/bin/sh", "worker": "evil.py"}),
        ("amrlib", {"model_dir": "evil", "batch_size": 1}),
        ("embedded", {"model": "index.evil"}),
    ],
)
def test_an_index_runs_no_program(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="names another program than the embedded parser"):
        encode_query({"parser": {"name": name, "options": options}}, tmp_path, "cpu")


def test_a_header_of_any_depth_is_refused(tmp_path: Path) -> None:
    (tmp_path / HEADER).write_text("[" * 100_000)
    with pytest.raises(StoreError, match="cannot be read as the header of an index"):
        open_engine(read([f"index={tmp_path}"])[0])
