"""Archives of papers: read what is a paper, refuse what reaches outside or is a bomb."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from graphs.errors import CorpusError
from graphs.papers.archives import Limits, read_files


def pack(path: Path, members: list[tuple[str, bytes]], change: Callable[[tarfile.TarInfo], None] | None = None) -> Path:
    with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if change is not None:
                change(member)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["2501.00001.tar.gz", "2501.00001.gz", "2501.00001.tgz", "2501.00001.tar"])
def test_packed_folders_are_read_in_order(name: str, tmp_path: Path) -> None:
    path = pack(tmp_path / name, [("./main.tex", b"a"), ("sections/b.ltx", b"b\r\nc"), ("figure.eps", b"no")])
    assert read_files(path) == {"main.tex": "a", "sections/b.ltx": "b\nc"}


def test_a_gz_may_hold_one_file(tmp_path: Path) -> None:
    path = tmp_path / "math0301001.gz"
    path.write_bytes(gzip.compress(b"\\documentclass{article} " * 100))
    assert read_files(path) == {"math0301001.tex": "\\documentclass{article} " * 100}
    (tmp_path / "short.gz").write_bytes(gzip.compress(b"x"))
    assert read_files(tmp_path / "short.gz") == {"short.tex": "x"}


def test_a_folder_is_read_without_what_its_links_point_to(tmp_path: Path) -> None:
    paper = tmp_path / "paper"
    (paper / "sub").mkdir(parents=True)
    (paper / "sub" / "a.tex").write_text("a")
    (tmp_path / "secret.tex").write_text("secret")
    (paper / "link.tex").symlink_to(tmp_path / "secret.tex")
    assert read_files(paper) == {"sub/a.tex": "a"}


def test_files_are_utf8_or_latin1_and_no_data(tmp_path: Path) -> None:
    members = [("a.tex", "é".encode("latin-1")), ("b.tex", b"\0\1"), ("c.tex", b"\xef\xbb\xbfx")]
    members.append(("d.tex", bytes(range(1, 256))))
    path = pack(tmp_path / "p.tar.gz", members)
    assert read_files(path) == {"a.tex": "é", "c.tex": "x"}


@pytest.mark.parametrize("name", ["/etc/passwd.tex", "../outside.tex", "a/../../b.tex", "C:\\x.tex", "a\\..\\b.tex"])
def test_names_that_reach_outside_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"p\.tar\.gz: member .*(absolute path|reaches outside)"):
        read_files(pack(tmp_path / "p.tar.gz", [("good.tex", b"x"), (name, b"x")]))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_devices_are_refused(kind: bytes, tmp_path: Path) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname, member.size = kind, "/etc/passwd", 0

    with pytest.raises(CorpusError, match="neither a file nor a folder"):
        read_files(pack(tmp_path / "p.tar.gz", [("a.tex", b"")], change))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["/etc/passwd", "../secret.tex", "sub/../../secret.tex", "link.tex", "gone.tex"])
def test_links_that_lead_elsewhere_are_skipped(kind: bytes, target: str, tmp_path: Path) -> None:
    (tmp_path / "secret.tex").write_text("secret")

    def change(member: tarfile.TarInfo) -> None:
        if member.name == "link.tex":
            member.type, member.linkname, member.size = kind, target, 0

    path = pack(tmp_path / "p.tar.gz", [("main.tex", b"a"), ("link.tex", b"")], change)
    assert read_files(path) == {"main.tex": "a"}


def test_links_within_an_archive_are_other_names_of_files(tmp_path: Path) -> None:
    def change(member: tarfile.TarInfo) -> None:
        links = {"sub/soft.tex": (tarfile.SYMTYPE, "../a.tex"), "hard.tex": (tarfile.LNKTYPE, "sub/b.tex")}
        if member.name in links:
            member.type, member.linkname = links[member.name]
            member.size = 0

    members = [("sub/soft.tex", b""), ("a.tex", b"a"), ("sub/b.tex", b"b"), ("hard.tex", b"")]
    path = pack(tmp_path / "p.tar.gz", members, change)
    assert read_files(path) == {"a.tex": "a", "sub/b.tex": "b", "sub/soft.tex": "a", "hard.tex": "b"}


def test_links_are_bounded_and_only_to_latex(tmp_path: Path) -> None:
    def change(member: tarfile.TarInfo) -> None:
        if member.name != "main.tex":
            member.type, member.linkname, member.size = tarfile.SYMTYPE, "main.tex", 0

    members = [("a.png", b""), *((f"{i}.tex", b"") for i in range(9)), ("main.tex", b"x" * 10_000)]
    path = pack(tmp_path / "p.tar.gz", members, change)
    assert read_files(path).keys() == {"main.tex", *(f"{i}.tex" for i in range(9))}
    with pytest.raises(CorpusError, match="links to LaTeX files of more than 90,000 bytes"):
        read_files(path, Limits(total_bytes=90_000))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    limits = Limits(total_bytes=1_000_000, file_bytes=500_000)
    big = pack(tmp_path / "one.tar.gz", [("a.tex", b" " * 600_000)])
    with pytest.raises(CorpusError, match=r"'a\.tex' has more than 500,000 bytes"):
        read_files(big, limits)
    many = pack(tmp_path / "many.tar.gz", [(f"{i}.png", b" " * 400_000) for i in range(10)])
    with pytest.raises(CorpusError, match="unpacks to more than 1,000,000 bytes"):
        read_files(many, limits)
    single = tmp_path / "single.gz"
    single.write_bytes(gzip.compress(b"\\x " * 1_000_000))
    with pytest.raises(CorpusError, match="more than 500,000 bytes"):
        read_files(single, limits)


def test_a_million_tiny_files_are_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "p.tar.gz", [(f"{i}.txt", b"") for i in range(60)])
    with pytest.raises(CorpusError, match="more than 50 members"):
        read_files(path, Limits(files=50))
    folder = tmp_path / "folder"
    folder.mkdir()
    for i in range(60):
        (folder / f"{i}.txt").touch()
    with pytest.raises(CorpusError, match="more than 50 files"):
        read_files(folder, Limits(files=50))


def test_bounds_hold_for_files_and_folders_too(tmp_path: Path) -> None:
    for name in ("a.tex", "b.tex"):
        (tmp_path / name).write_text("x" * 100)
    with pytest.raises(CorpusError, match=r"a\.tex: is a file of more than 99 bytes"):
        read_files(tmp_path / "a.tex", Limits(file_bytes=99))
    with pytest.raises(CorpusError, match="has LaTeX files of more than 199 bytes"):
        read_files(tmp_path, Limits(total_bytes=199))
    assert read_files(tmp_path, Limits(file_bytes=100, total_bytes=200)).keys() == {"a.tex", "b.tex"}


def test_a_header_that_promises_more_than_there_is_is_an_error(tmp_path: Path) -> None:
    header = tarfile.TarInfo("a.tex")
    header.size = 10_000
    path = tmp_path / "p.tar"
    path.write_bytes(header.tobuf() + b"x" * 600)
    with pytest.raises(CorpusError, match=r"p\.tar: cannot be read"):
        read_files(path)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_that_are_a_bomb_are_an_error(kind: bytes, tmp_path: Path) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type = kind

    huge = pack(tmp_path / "huge.tar.gz", [("a.tex", b" " * 1_000_001)], change)
    with pytest.raises(CorpusError, match="cannot be read: a header of 1,000,001 bytes"):
        read_files(huge)
    endless = pack(tmp_path / "endless.tar.gz", [("a.tex", b"12 path=abc\n")] * 5_000, change)
    with pytest.raises(CorpusError, match="cannot be read"):
        read_files(endless)


@pytest.mark.parametrize("name", ["gone.tar.gz", "gone.tex", "gone.gz"])
def test_no_such_paper(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=f"{name}: cannot be read"):
        read_files(tmp_path / name)


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    whole = pack(tmp_path / "p.tar.gz", [(f"{i}.tex", bytes(range(256)) * 40) for i in range(40)]).read_bytes()
    for cut in (5, 200, len(whole) // 2):
        (tmp_path / "cut.tar.gz").write_bytes(whole[:cut])
        with pytest.raises(CorpusError, match="cannot be read"):
            read_files(tmp_path / "cut.tar.gz")
    (tmp_path / "no.tar.gz").write_bytes(b"no archive at all")
    with pytest.raises(CorpusError, match="cannot be read"):
        read_files(tmp_path / "no.tar.gz")
