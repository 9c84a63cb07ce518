"""Metadata of arXiv in its three forms, joined to papers whatever version and spelling their files have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from graphs.errors import CorpusError
from mathamr.text.sources import arxiv
from mathamr.text.sources.arxiv import Metadata, joined_id, read_metadata, without_version
from mathamr.text.sources.papers import newest, read_papers
from scripts.text import extract_statements, text_pairs

RAW = """<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header><identifier>oai:arXiv.org:math/0301001</identifier></header><metadata>
<arXivRaw xmlns="http://arxiv.org/OAI/arXivRaw/"><id>math/0301001</id><submitter>A. B.</submitter>
<version version="v1"><date>Wed, 1 Jan 2003 10:00:00 GMT</date><size>6kb</size></version>
<version version="v2"><date>Sat, 3 Jan 2004 10:00:00 GMT</date><size>7kb</size></version>
<title>On $p$-groups
  of rank &lt; 3</title><categories>math.GR math.CO</categories></arXivRaw></metadata></record>
<record><header status="deleted"><identifier>oai:arXiv.org:0804.0001</identifier></header></record>
<record><metadata><arXiv xmlns="http://arxiv.org/OAI/arXiv/"><id>2501.00002</id><created>2025-01-02</created>
<updated>2025-03-01</updated><authors><author><keyname>Noether</keyname></author></authors>
<title>Rings</title><categories>math.RA</categories></arXiv></metadata></record>
</ListRecords></OAI-PMH>"""
GROUPS = Metadata("On $p$-groups of rank < 3", ("math.GR", "math.CO"), "2003-01-01")
RINGS = Metadata("Rings", ("math.RA",), "2025-01-02")


def test_answers_of_the_server_are_read(tmp_path: Path) -> None:
    path = tmp_path / "page1.xml.gz"
    path.write_bytes(gzip.compress(RAW.encode()))
    assert read_metadata([path]) == {"math0301001": GROUPS, "2501.00002": RINGS}
    assert read_metadata([path], {"math.GR_0301001v2", "2501.7"}) == {"math0301001": GROUPS}


def test_lines_of_kaggle_are_read(tmp_path: Path) -> None:
    path = tmp_path / "arxiv-metadata-oai-snapshot.json"
    whole = {"id": "2501.00002", "title": "Rings", "categories": "math.RA", "versions": [{"created": "2025-01-02"}]}
    bare: dict[str, object] = {"id": "hep-th/9901001", "title": None, "versions": [], "categories": 7}
    path.write_text("".join(json.dumps(one) + "\n" for one in (bare, whole)))
    assert read_metadata([path]) == {"hep-th9901001": Metadata(), "2501.00002": RINGS}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>' + RAW.partition("?>")[2], "document type"),
        (RAW[: len(RAW) // 2], "broken XML"),
        (RAW.replace("<id>2501.00002</id>", ""), "is a record without an id"),
        ('{"id": "2501.00002"}\n{"id": 7}', r":2: is not a JSON object with the id of a paper"),
        ('{"id": ', r":1: is not a JSON object with the id of a paper"),
        ("2501.1 math.CO", r":1: has no tab; .* other forms are XML and JSON lines"),
    ],
)
def test_a_damaged_or_hostile_file_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "metadata"
    path.write_text(content)
    with pytest.raises(CorpusError, match=rf"metadata.*{message}"):
        read_metadata([path])
    with pytest.raises(CorpusError, match=r"gone.*cannot be read"):
        read_metadata([tmp_path / "gone"])


def test_long_lines_are_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arxiv, "MAX_LINE", 40)
    path = tmp_path / "metadata"
    path.write_text("2501.1\tmath.CO\n2501.2\t" + "math.CO " * 9)
    with pytest.raises(CorpusError, match=r"metadata:2: is a line of more than 40 bytes; is this a table"):
        read_metadata([path])


@pytest.mark.parametrize(
    "name",
    [
        "math.GT/0301001",
        "math/0301001v2",
        "math.GT_0301001v1",
        "math0301001",
        "math-0301001",
        "math.other-part/0301001",
        "arXiv:math.GT/0301001v2",
        "arXiv-math0301001v1",
    ],
)
def test_spellings_of_an_old_id_are_one(name: str) -> None:
    assert joined_id(name) == "math0301001"


def test_names_of_downloads_are_ids() -> None:
    paths = [Path("arXiv-2501.00001v1.tar.gz"), Path("arXiv-2501.00001v2.tar.gz"), Path("2501.00001.gz")]
    assert newest(paths) == {"2501.00001": paths[1]}
    assert joined_id("arXiv-2501.00001v2") == "2501.00001"
    assert joined_id("cond-mat.str-el/9901001") == "cond-mat9901001"


def test_a_number_without_an_archive_is_no_paper() -> None:
    assert without_version("arxiv-0301001") == "arxiv-0301001"


def test_metadata_of_other_papers_gives_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paper, metadata = tmp_path / "notes.tex", tmp_path / "metadata.tsv"
    paper.write_text(r"\begin{lemma} It is $x$. \end{lemma}")
    metadata.write_text("2501.00001\tmath.CO\n")
    given = ["--papers", str(paper), "--metadata", str(metadata), "--out", str(tmp_path / "papers.jsonl")]
    assert extract_statements.main(given) == 0
    assert "--metadata has no record of any paper; name the files by their ids" in capsys.readouterr().err


def test_new_papers_are_the_unseen_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From files of two versions and a page of the server to a collection whose unseen papers are the newest."""
    papers = tmp_path / "papers.jsonl"
    lines = []
    for number in range(12):
        text = "".join(
            rf"\begin{{lemma}}[Law {i} of ring {number}] Ring {number} has ${i}x$.\end{{lemma}}" for i in range(4)
        )
        (tmp_path / f"2501.{number:05}v2.tex").write_text(text)
        lines.append(
            {
                "id": f"2501.{number:05}",
                "title": f"Ring {number}",
                "versions": [{"created": f"2025-01-{number + 1:02}"}],
            }
        )
    (tmp_path / "2501.00000v1.tex").write_text("an older version")
    (tmp_path / "kaggle.json").write_text("".join(json.dumps(one) + "\n" for one in lines))
    given = ["--papers", *map(str, tmp_path.glob("*.tex")), "--metadata", str(tmp_path / "kaggle.json")]
    assert extract_statements.main([*given, "--out", str(papers)]) == 0
    assert "metadata of 12 papers" in capsys.readouterr().err
    assert {paper.paper_id: paper.date for paper in read_papers(papers)}["2501.00011"] == "2025-01-12"
    pairs = ["statements", "--papers", str(papers), "--test-share", "0.5"]
    made = [*pairs, "--benchmark", str(tmp_path / "made")]
    assert text_pairs.main([*made, "--unseen-since", "2025-01-11"]) == 0
    assert json.loads(capsys.readouterr().out)["tests"]["unseen"] == 8
    qrels = (tmp_path / "made" / "qrels-unseen.tsv").read_text().split()
    assert {document.partition("/")[0] for document in qrels[2::4]} == {"2501.00010", "2501.00011"}
    for options, message in (
        ([*made, "--unseen-since", "2026-01-01"], "no paper has a date from 2026-01-01 on; use an earlier day"),
        ([*made, "--unseen-since", "2025-01-02"], "use fewer (--unseen-papers), a later day (--unseen-since)"),
        ([*pairs, "--out", str(tmp_path / "x"), "--unseen-since", "2025-01-02"], "has no effect without --benchmark"),
    ):
        assert text_pairs.main(options) == 2
        assert message in capsys.readouterr().err
