"""Opening collections by name, and reading XML that is not to be trusted."""

from pathlib import Path

import pytest

from graphs.corpus.arqmath.xml_rows import read_elements, read_rows
from graphs.corpus.corpus import open_corpus
from graphs.corpus.files import hash_contents, hash_files
from graphs.corpus.packed import PackedFile
from graphs.errors import ConfigError, CorpusError


def test_unknown_names_and_roots(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match="unknown collection 'arxiv'; known are arqmath, beir, ir_datasets, jsonl, mathdocs, pairs",
    ):
        open_corpus("arxiv", tmp_path)
    with pytest.raises(ConfigError, match=r"data\.root is missing"):
        open_corpus("jsonl")
    with pytest.raises(ConfigError, match="is not a folder"):
        open_corpus("arqmath", tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"leave data\.root out"):
        open_corpus("mathdocs", tmp_path)


def test_a_hash_of_large_files_sees_their_size_and_samples(tmp_path: Path) -> None:
    path = tmp_path / "large.tsv"
    path.write_bytes(b"a" * (65 << 20))
    before = hash_files(tmp_path, [path])
    path.write_bytes(b"a" * ((65 << 20) - 1) + b"b")
    changed = hash_files(tmp_path, [path])
    path.write_bytes(b"a" * ((65 << 20) + 1))
    assert len({before, changed, hash_files(tmp_path, [path])}) == 3


def test_one_changed_grade_of_a_file_of_judgments_changes_the_hash(tmp_path: Path) -> None:
    """A corrected grade leaves the size; samples of the file would often miss it."""
    path = tmp_path / "qrels.tsv"
    lines = [f"A.{number % 100}\t0\t{number}\t0\n" for number in range(90_000)]
    hashes = set()
    for changed in (None, 7_000, 31_000, 55_000, 86_000):
        given = [line[:-2] + "1\n" if number == changed else line for number, line in enumerate(lines)]
        path.write_text("".join(given))
        hashes |= {hash_files(tmp_path, [path]), hash_contents({"": PackedFile(path)})}
    assert len(hashes) == 10


def test_broken_xml_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text('<posts>\n<row Id="1"/>\n<row Id=>\n</posts>')
    with pytest.raises(CorpusError, match=r"p\.xml:3: broken XML"):
        list(read_rows(path))
    with pytest.raises(CorpusError, match=r"absent\.xml: cannot be read"):
        list(read_rows(tmp_path / "absent.xml"))


def test_an_entity_without_declaration_is_broken_xml(tmp_path: Path) -> None:
    path = tmp_path / "p.xml"
    path.write_text('<posts><row Id="&x;"/></posts>')
    with pytest.raises(CorpusError, match="broken XML"):
        list(read_rows(path))


def test_elements_give_their_children_s_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text('<Topics>\n<Topic number="A.1"><Title>a &lt;b&gt;<!-- c --> d</Title><Tags/></Topic></Topics>')
    assert list(read_elements(path, "Topic", "number")) == [(2, "A.1", {"Title": "a <b> d", "Tags": ""})]
