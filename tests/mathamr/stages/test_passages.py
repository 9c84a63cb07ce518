"""Passages of papers: which are written, which are left out, and that pretraining reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.errors import CorpusError
from mathamr.stages.console import Console
from mathamr.stages.learning.passages import text_lines, write_passages
from scripts.text import write_passages as script

PAPER = r"""\documentclass{article}\newcommand{\N}{\mathbb{N}}\begin{document}
\section{Introduction} Which numbers are primes? % a draft
We count them below every bound.

\section{Main results}
\begin{theorem}[Euclid] There are infinitely many primes $p\in\N$. \end{theorem}
\begin{lemma} $a + b = c$ \end{lemma}
\begin{proof} Multiply all of them and add one. \end{proof}
Lagrange found more of them.
\section{Acknowledgements} The authors thank all of their friends.
Figure 7.
\end{document}"""
THEOREM = r"There are infinitely many primes $p\in\mathbb{N}$."
PROOF = "Multiply all of them and add one."
INTRODUCTION = "Which numbers are primes? We count them below every bound."


@pytest.fixture
def papers(tmp_path: Path) -> list[Path]:
    (tmp_path / "2501.00001v1.tex").write_text("An older version of the same paper, which is not read.")
    (tmp_path / "2501.00001v2.tex").write_text(PAPER)
    (tmp_path / "copy.tex").write_text(PAPER)
    (tmp_path / "bad.tar.gz").write_bytes(b"nothing")
    return sorted(tmp_path.iterdir())


def test_passages_of_some_parts_are_written_once(papers: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "passages.txt"
    found = write_passages(papers, out, Console(quiet=True))
    assert (found.papers, found.failed, found.passages, found.left_out) == (2, 1, 5, 0)
    lines = list(text_lines(out))
    assert {THEOREM, PROOF, INTRODUCTION} < set(lines)
    assert found.characters == sum(map(len, lines))
    write_passages(papers, out, Console(quiet=True), parts=("introduction", "proof", "theorem"), workers=2)
    assert list(text_lines(out)) == [INTRODUCTION, THEOREM, PROOF]
    write_passages(papers, out, Console(quiet=True), parts=["result"])  # the heading above
    assert list(text_lines(out)) == [THEOREM, PROOF, "Lagrange found more of them."]
    with pytest.raises(CorpusError, match="no passage is found"):
        write_passages(papers, out, Console(quiet=True), parts=["appendix"])
    assert len(list(text_lines(out))) == 3  # the earlier file stays


def test_passages_with_a_query_of_a_test_are_left_out(
    papers: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = tmp_path / "collection"
    collection.mkdir()
    (collection / "answers.jsonl").write_text(json.dumps({"post_id": "1", "body": "Groups."}) + "\n")
    queries = ["We count them  below every bound", "primes"]  # a name is in many texts
    topics = "".join(json.dumps({"post_id": f"q{i}", "body": body}) + "\n" for i, body in enumerate(queries))
    (collection / "topics-unseen.jsonl").write_text(topics)
    (collection / "qrels-unseen.tsv").write_text("q0 0 1 2\nq1 0 1 2\n")
    given = ["--papers", *map(str, papers), "--out", str(tmp_path / "passages.txt")]
    assert script.main([*given, "--apart-from", str(collection)]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == 1
    assert INTRODUCTION not in (tmp_path / "passages.txt").read_text()
    assert THEOREM in (tmp_path / "passages.txt").read_text()
