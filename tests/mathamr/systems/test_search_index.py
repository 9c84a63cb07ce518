"""Index folders that others may send: a manifest names no file outside the index."""

from pathlib import Path
from typing import Any

import pytest

from graphs.errors import StoreError
from mathamr.retrieval.folder import new_data, switch
from mathamr.systems.index_folder.search_index import FORMAT, SYSTEM, VERSION, open_index

WORDS = {"system": "bm25", "record": {}, "depth": None, "limit": 10, "threads": False, "parts": {}}


def write(path: Path, manifest: Any, posts: Any = 1) -> Path:
    """Write an index without files, as somebody could write it by hand."""
    data = new_data(path)
    (data / SYSTEM).mkdir()
    (data / "elsewhere").mkdir()
    header = {"format": FORMAT, "version": VERSION, "model_hash": "1", "condition": "c", "experiment": "e"}
    switch(path, data, {**header, "posts": posts, "manifest": manifest})
    return path


@pytest.mark.parametrize("name", ["..", ".", "", "../../elsewhere", "/", "a/b"])
def test_a_part_cannot_lie_outside_the_index(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a part cannot have the name"):
        open_index(write(tmp_path, {**WORDS, "parts": {name: WORDS}}))


@pytest.mark.parametrize(
    ("manifest", "posts", "message"),
    [([], 1, "the index lacks 'system'"), (WORDS, "\x1b[2J", "it has '.x1b.2J' posts"), (WORDS, -1, "it has -1 posts")],
)
def test_a_header_written_by_hand_is_refused(manifest: Any, posts: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=message):
        open_index(write(tmp_path, manifest, posts))
