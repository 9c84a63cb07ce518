"""Folders as collections: all formats, updates of what changed, and files that are refused with a reason."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.text_formulas import find
from graphs.errors import CorpusError
from graphs.papers.archives import Limits
from mathamr.folder import collection
from mathamr.folder.collection import FolderPosts, read_folder, record_files
from mathamr.folder.scan import scan
from mathamr.stages.data.post_files import write_table
from tests.graphs.papers.test_archives import pack

NOTEBOOK = json.dumps({"cells": [{"cell_type": "markdown", "source": "A cell of a notebook."}]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a document of each form."""
    folder = tmp_path / "documents"
    (folder / "sub folder").mkdir(parents=True)
    (folder / "a.tex").write_text("A chapter with $\\R$ in it.", encoding="utf-8")
    (folder / "main.tex").write_text(
        "\\newcommand{\\R}{\\mathbb R}\n\\begin{document}\nThe words of the main file.\\input{a}", encoding="utf-8"
    )
    (folder / "sub folder/b.md").write_text("Some words in Markdown.", encoding="utf-8")
    (folder / "c.html").write_text("<p>A paragraph of a page.</p>", encoding="latin-1")
    (folder / "d.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    pack(folder / "2501.00001.tar.gz", [("x/e.tex", b"\\begin{document} The text of a paper.")])
    (folder / "data.csv").write_text("1,2", encoding="utf-8")
    (folder / ".git").mkdir()
    (folder / ".git/f.md").write_text("Words that nobody wants.", encoding="utf-8")
    return folder


def read_and_record(folder: Path, out: Path, *, update: bool = False) -> FolderPosts:
    found = read_folder(folder, out, update=update)
    record_files(found, out)
    return found


def posts_of(place: Path) -> dict[str, str]:
    posts = [post for post in open_corpus("jsonl", place).posts() if isinstance(post, Post)]
    return {post.post_id.partition("~")[0]: post.body for post in posts}


def test_every_form_becomes_posts_with_their_places(folder: Path, tmp_path: Path) -> None:
    found = read_folder(folder, tmp_path / "out")
    assert posts_of(tmp_path / "out") == {
        "2501.00001.tar.gz/x/e.tex:1": "The text of a paper.",
        "a.tex:1": "A chapter with $\\mathbb R$ in it.",
        "c.html:1": "A paragraph of a page.",
        "d.ipynb:cell-1:1": "A cell of a notebook.",
        "main.tex:3": "The words of the main file.",
        "sub%20folder/b.md:1": "Some words in Markdown.",
    }
    assert (found.files, found.read, found.kept, found.other, found.failures) == (6, 6, 0, 1, [])
    assert str(found).startswith("6 files, 6 passages (2 LaTeX, 1 ")
    assert {"1 notebook", "1 archive"} <= set(str(found).splitlines()[0].rstrip(")").split(", "))


def test_short_formulas_and_statements_are_kept_and_remnants_counted(tmp_path: Path) -> None:
    folder, out = tmp_path / "notes", tmp_path / "out"
    folder.mkdir()
    (folder / "a.md").write_text("# H\n\n$$x^2+y^2=z^2$$\n", encoding="utf-8")
    (folder / "b.tex").write_text(
        "\\begin{lemma} $2k+1=n$ \\end{lemma}\n\n\\begin{proof} Trivial. \\end{proof}\n\\begin{proof} . \\end{proof}\n"
        "\\begin{equation} e^{i\\pi}=-1 \\end{equation}\n",
        encoding="utf-8",
    )
    (folder / "c.html").write_text("<p>Page 7</p><h2>A</h2><div class='lemma'>\\(k=1\\)</div>", encoding="utf-8")
    (folder / "d.ipynb").write_text(NOTEBOOK.replace("A cell of a notebook.", "12 of $34"), encoding="utf-8")
    found = read_and_record(folder, out)
    assert list(posts_of(out).values()) == ["$$x^2+y^2=z^2$$", "$2k+1=n$", "Trivial.", "$e^{i\\pi}=-1$", "\\(k=1\\)"]
    assert str(found).splitlines()[-1] == "3 passages of fewer than 8 letters left out"
    assert str(read_folder(folder, out, update=True)).splitlines()[1:] == [
        "0 new or changed, 4 unchanged, 0 removed",
        "3 passages of fewer than 8 letters left out",
    ]


def test_an_update_reads_what_has_changed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = read_and_record(folder, out)
    same = read_and_record(folder, out, update=True)
    assert (same.read, same.kept, same.removed, same.identity) == (0, 6, 0, first.identity)
    (folder / "c.html").write_text("<p>Another paragraph.</p>", encoding="utf-8")
    (folder / "d.ipynb").unlink()
    (folder / "new.md").write_text("A new file of words.", encoding="utf-8")
    os.utime(folder / "a.tex")
    update = read_folder(folder, out, update=True)
    assert (update.read, update.kept, update.removed) == (2, 4, 1)
    posts = posts_of(out)
    assert posts["c.html:1"] == "Another paragraph."
    assert "d.ipynb:cell-1:1" not in posts
    assert set(update.post_ids) - set(first.post_ids) == {name for name in update.post_ids if name[:2] in ("c.", "ne")}


def test_a_state_that_was_not_recorded_is_not_compared_with(folder: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", folder / "c.html"
    before = read_and_record(folder, out)
    text = page.read_text(encoding="latin-1")
    page.write_text("<p>Another paragraph.</p>", encoding="utf-8")
    (folder / "d.ipynb").unlink()
    for _ in range(2):
        update = read_folder(folder, out, update=True)
        assert (update.read, update.kept, update.removed) == (1, 4, 1)
    page.write_text(text, encoding="utf-8")
    (folder / "d.ipynb").write_text(NOTEBOOK, encoding="utf-8")
    update = read_folder(folder, out, update=True)
    assert (update.read, update.kept, update.removed, update.identity) == (0, 6, 0, before.identity)
    assert posts_of(out)["c.html:1"] == "A paragraph of a page."


def test_files_of_a_stopped_run_are_not_split_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    read_and_record(folder, out)
    (folder / "c.html").write_text("<p>Another paragraph.</p>", encoding="utf-8")
    stopped = read_folder(folder, out, update=True)
    monkeypatch.setattr(collection, "_passages", lambda *_: pytest.fail("a file is split"))
    update = read_folder(folder, out, update=True)
    assert (update.read, update.kept) == (stopped.read, stopped.kept) == (1, 5)
    assert update.identity == stopped.identity
    (out / "read.json").write_text("{", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception, match="a file is split"):
        read_folder(folder, out, update=True)


def test_a_chapter_is_read_again_when_its_macros_change(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    read_and_record(folder, out)
    main = (folder / "main.tex").read_text(encoding="utf-8")
    (folder / "main.tex").write_text(main.replace("\\mathbb R", "\\mathbf R"), encoding="utf-8")
    assert read_folder(folder, out, update=True).read == 2
    assert posts_of(out)["a.tex:1"] == "A chapter with $\\mathbf R$ in it."


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 0}', '{"format": 1, "files": {}}'])
def test_a_damaged_state_is_read_anew(folder: Path, tmp_path: Path, damage: str) -> None:
    read_and_record(folder, tmp_path / "out")
    (tmp_path / "out/files.json").write_text(damage, encoding="utf-8")
    assert read_folder(folder, tmp_path / "out", update=True).read == 6


def test_files_that_cannot_be_read_are_listed_and_the_others_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("A secret of this machine.", encoding="utf-8")
    (tmp_path / "secrets").mkdir()
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "links").symlink_to(tmp_path / "secrets")
    (folder / "inside.md").symlink_to(folder / "sub folder/b.md")
    (folder / "gone.md").symlink_to(folder / "nothing.md")
    os.mkfifo(folder / "pipe.md")
    (folder / "paper.pdf").write_bytes(b"%PDF-1.7")
    (folder / "a.pdf").write_bytes(b"%PDF-1.7")  # beside its LaTeX
    (folder / "binary.tex").write_bytes(b"\0\1\2")
    (folder / "bad.ipynb").write_text("{", encoding="utf-8")
    pack(folder / "evil.tar.gz", [("../../e.tex", b"\\begin{document} Evil words.")])
    (folder / "2501.00002v1.gz").write_bytes(gzip.compress(b"1,2,3"))
    (folder / "table.csv.gz").write_bytes(gzip.compress(b"1,2,3"))
    (folder / "link.csv").symlink_to(tmp_path / "secret.md")
    (folder / "broken.tgz").write_bytes(b"\x1f\x8b\x08 broken")
    found = read_folder(folder, tmp_path / "out")
    failed = {failure.post_id: failure.kind for failure in found.failures}
    assert failed == {
        "link.md": "link",
        "links": "link",
        "pipe.md": "special",
        "paper.pdf": "pdf",
        "binary.tex": "binary",
        "bad.ipynb": "unreadable",
        "evil.tar.gz": "unreadable",
        "2501.00002v1.gz": "unreadable",
        "broken.tgz": "unreadable",
    }
    assert all(failure.message.startswith(f"{failure.post_id}: ") for failure in found.failures)
    assert (found.files, len(found.post_ids)) == (6, 6)
    assert "secret" not in (tmp_path / "out/posts.jsonl").read_text(encoding="utf-8")


def refusing(call: Callable[..., Any], closed: Collection[Path]) -> Callable[..., Any]:
    """Return a function of the operating system that refuses some paths."""

    def refuse(path: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(path, int) and Path(path) in closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return call(path, *args, **options)

    return refuse


def test_an_update_keeps_the_posts_of_what_does_not_open(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = read_and_record(folder, out)
    closed = {folder / "sub folder", folder / "c.html", folder / "2501.00001.tar.gz"}
    refusal = "Permission denied; its passages stay in the index"
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refusing(os.scandir, closed))
        patched.setattr(io, "open", refusing(io.open, closed))
        (folder / "d.ipynb").unlink()
        for _ in range(2):
            update = read_and_record(folder, out, update=True)
            assert {failure.message for failure in update.failures} == {
                f"{path.relative_to(folder)}: {refusal}" for path in closed
            }
            assert set(posts_of(out)) == {name.partition("~")[0] for name in first.post_ids if name[:2] != "d."}
        assert (update.kept, update.removed) == (5, 0)
        anew = read_folder(folder, tmp_path / "anew")
        assert (anew.files, len(anew.failures)) == (2, 3)
        assert not any("stay" in failure.message for failure in anew.failures)
    (folder / "sub folder/b.md").unlink()
    update = read_folder(folder, out, update=True)
    assert (update.kept, update.removed, update.failures) == (4, 1, [])


def test_chapters_keep_the_macros_of_a_file_that_does_not_open(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (folder / "own.sty").write_text("\\newcommand{\\Z}{\\mathbb Z}", encoding="utf-8")
    (folder / "z.tex").write_text("Another chapter with $\\R$ in it.", encoding="utf-8")
    first = read_and_record(folder, out)
    with monkeypatch.context() as patched:
        patched.setattr(io, "open", refusing(io.open, {folder / "main.tex", folder / "own.sty"}))
        update = read_and_record(folder, out, update=True)
        assert (update.read, update.kept, update.identity) == (0, 8, first.identity)
        assert [failure.message for failure in update.failures] == [
            "main.tex: Permission denied; its passages stay in the index",
            "own.sty: Permission denied",
        ]
        (folder / "a.tex").write_text("A new chapter with $\\R$ in it.", encoding="utf-8")
        for changed in (1, 0):
            update = read_and_record(folder, out, update=True)
            assert (update.read, update.kept) == (changed, 8 - changed)
        assert posts_of(out)["z.tex:1"] == "Another chapter with $\\mathbb R$ in it."
    update = read_folder(folder, out, update=True)
    assert (update.read, update.kept) == (1, 7)
    assert posts_of(out)["a.tex:1"] == "A new chapter with $\\mathbb R$ in it."


def test_a_file_without_macros_that_does_not_open_keeps_no_macros(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, main = tmp_path / "out", folder / "main.tex"
    read_and_record(folder, out)
    main.write_text(main.read_text(encoding="utf-8").replace("\\mathbb R", "\\mathbf R"), encoding="utf-8")
    monkeypatch.setattr(io, "open", refusing(io.open, {folder / "sub folder/b.md"}))
    assert read_folder(folder, out, update=True).read == 2
    posts = posts_of(out)
    assert posts["a.tex:1"] == "A chapter with $\\mathbf R$ in it."
    assert posts["sub%20folder/b.md:1"] == "Some words in Markdown."


def test_a_folder_that_is_listed_but_not_entered_is_closed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "sub folder/inner"
    inner.mkdir()
    (inner / "g.md").write_text("Other words in Markdown.", encoding="utf-8")
    first = read_and_record(folder, tmp_path / "out")
    for name in ("stat", "lstat", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name), {inner, folder / "sub folder/b.md"}))
    update = read_folder(folder, tmp_path / "out", update=True)
    assert update.identity == first.identity
    stay = "Permission denied; its passages stay in the index"
    assert {failure.message for failure in update.failures} == {
        f"sub folder/b.md: {stay}",
        f"sub folder/inner: {stay}",
    }


def test_an_archive_that_opens_but_cannot_be_read_is_closed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    first = read_and_record(folder, tmp_path / "out")
    monkeypatch.setattr(hashlib, "file_digest", lost)
    update = read_folder(folder, tmp_path / "out", update=True)
    assert update.identity == first.identity
    message = "2501.00001.tar.gz: Input/output error; its passages stay in the index"
    assert [failure.message for failure in update.failures] == [message]


def test_names_that_cannot_be_printed_stop_nothing(folder: Path, tmp_path: Path) -> None:
    for name in (b"caf\xe9.md", b"x\x1b[2J.md"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("Words without a heading.", encoding="utf-8")
    for name in (b"bad\xe9.ipynb", b"x\x1b[2J\n.ipynb"):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("{", encoding="utf-8")
    found = read_folder(folder, tmp_path / "out")
    assert {"caf%3F.md:1", "x%1B[2J.md:1"} <= posts_of(tmp_path / "out").keys()
    assert [failure.post_id for failure in found.failures] == ["bad?.ipynb", "x?[2J?.ipynb"]
    write_table(found.failures, tmp_path / "failures.tsv")
    assert all(failure.message.isprintable() for failure in found.failures)


def test_bounds_hold_and_empty_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    assert [one.kind for one in scan(folder, limits=Limits(file_bytes=30)).failures] == ["large"] * 2
    with pytest.raises(CorpusError, match="more than 3 files"):
        scan(folder, limits=Limits(files=3))
    with pytest.raises(CorpusError, match="documents of more than 60 bytes"):
        scan(folder, limits=Limits(total_bytes=60))
    with pytest.raises(CorpusError, match="is not a folder"):
        scan(folder / "a.tex")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="has no text that can be read"):
        read_folder(tmp_path / "empty", tmp_path / "out")
    for name, text in (("a.pdf", "%PDF"), ("b.txt", "Even."), ("c.ipynb", "{")):
        (tmp_path / "empty" / name).write_text(text)
    with pytest.raises(CorpusError, match=r"; 1 file of other kinds left out; a\.pdf: a PDF has .*; c\.ipynb: "):
        read_folder(tmp_path / "empty", tmp_path / "out")


def test_quotes_and_dashes_of_windows_are_read(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.tex").write_bytes("It’s “naïve” – „Größe“.".encode("cp1252"))
    read_folder(tmp_path / "notes", tmp_path / "out")
    (line,) = (tmp_path / "out/posts.jsonl").read_text().splitlines()
    assert json.loads(line)["body"] == "It’s “naïve” – „Größe“."


@pytest.mark.parametrize("name", ["a.md", "a.tex", "a.html", "a.ipynb"])
def test_formulas_between_letters_of_scripts_without_spaces_are_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes").mkdir()
    text = "设$x_i=1$是实数，则$f(x)=y$成立。정수$n+1$은「$甲$」，$x是$。"
    if name == "a.ipynb":  # JSON with escaped letters
        text = json.dumps({"cells": [{"cell_type": "markdown", "source": text}]})
    (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    read_folder(tmp_path / "notes", tmp_path / "out")
    (line,) = (tmp_path / "out/posts.jsonl").read_text().splitlines()
    assert [latex for _, _, latex in find(json.loads(line)["body"])] == ["x_i=1", "f(x)=y", "n+1", "甲", "x是"]


def _dies_of_one(file: collection._Unread) -> Any:
    if file.name == "a.tex":
        os._exit(1)
    return collection._read_file(file)


def test_processes_find_the_same_posts_and_failures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "broken.ipynb").write_text("{")
    one, two = (read_folder(folder, tmp_path / str(workers), workers=workers) for workers in (1, 2))
    assert one == two
    assert [failure.post_id for failure in two.failures] == ["broken.ipynb"]
    assert (tmp_path / "1/posts.jsonl").read_bytes() == (tmp_path / "2/posts.jsonl").read_bytes()
    monkeypatch.setattr(collection, "_read_file", _dies_of_one)
    left = read_folder(folder, tmp_path / "2", workers=2)
    assert [failure.post_id for failure in left.failures] == ["a.tex", "broken.ipynb"]
    assert left.post_ids == [name for name in one.post_ids if not name.startswith("a.tex")]
