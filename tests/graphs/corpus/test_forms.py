"""Forms of folders: each collection is recognised by its files, and a wrong ``data=`` is told the right one."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.forms import forms_of, hint
from graphs.errors import CorpusError
from tests.graphs.corpus.small_forms import FORMS, write_form


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_recognised_and_opens(name: str, tmp_path: Path) -> None:
    root = write_form(name, tmp_path)
    assert forms_of(root)[0] == name
    assert hint(root, name) == ""
    assert open_corpus(name, root).name == name


@pytest.mark.parametrize("name", FORMS)
def test_another_form_is_named_where_opening_fails(name: str, tmp_path: Path) -> None:
    root = write_form(name, tmp_path)
    told = []
    for other, needs_folder in NAMES.items():
        if not needs_folder or other in forms_of(root):
            continue
        try:
            open_corpus(other, root)
        except CorpusError as error:
            told.append(str(error))
    named = f"data.sources.NAME.name={name}" if name in ("problems", "titles") else f"data={name}"
    assert len(told) >= 2
    assert all(f"his looks like {named}" in message for message in told)


def test_packed_files_and_folders_in_the_root_are_recognised(tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "posts.jsonl.gz").write_bytes(gzip.compress(b'{"post_id": "1"}\n'))
    assert forms_of(packed) == ["jsonl"]
    write_form("beir", tmp_path)
    assert forms_of(tmp_path) == []
    assert hint(tmp_path, "jsonl") == "these folders in it look like collections: beir (data=beir), packed (data=jsonl)"
    nested = tmp_path / "nested" / "ARQMath-backup" / "Collection"
    nested.mkdir(parents=True)
    (nested / "Posts.V1.3.zip").write_bytes(b"")
    assert forms_of(nested.parent) == forms_of(nested.parent.parent) == ["arqmath"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 100_000, b'["a"]', b"{"])
def test_what_is_no_collection_gets_no_hint(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "threads.jsonl").write_bytes(content)
    (tmp_path / "more.jsonl.gz").write_bytes(content)
    assert (forms_of(tmp_path), hint(tmp_path, "jsonl")) == ([], "")
    assert hint(tmp_path / "nowhere", "jsonl") == ""


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "threads.jsonl")
    assert (forms_of(tmp_path), hint(tmp_path, "jsonl")) == ([], "")


def test_fields_of_unknown_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "threads.jsonl").write_text('{"question": 1, "answers": []}\n')
    with pytest.raises(CorpusError, match=r"has lines with answers, question; docs/your-collection\.md"):
        open_corpus("jsonl", tmp_path)
