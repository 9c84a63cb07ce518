"""Run files: what is accepted, what is refused with file and line, and what is written."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from graphs.errors import CorpusError, EvaluationError
from mathamr.evaluation.runs import Hit, Run, read_qrels, read_run, read_visual_ids, strictly_decreasing, write_run


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_the_three_forms_of_task_1_and_2(tmp_path: Path) -> None:
    official = write(tmp_path / "a.tsv", "A.1\t255\t1\t2.5\tme\nA.1\t154\t2\t1.5\tme\n")
    trec = write(tmp_path / "b.tsv", "A.1 Q0 255 1 2.5 me\r\n\r\nA.1 Q0 154 2 1.5 me")  # CRLF, no last newline
    assert read_run(official, task=1) == read_run(trec, task=1)
    formulas = write(tmp_path / "c.tsv", "B.1\t77\t255\t1\t2.5\tme")
    assert read_run(formulas, task=2).rankings == {"B.1": [Hit("77", 2.5, "255")]}
    formulas_trec = write(tmp_path / "d.tsv", "B.1 Q0 77 1 2.5 me")
    assert read_run(formulas_trec, task=2).rankings == {"B.1": [Hit("77", 2.5, None)]}


@pytest.mark.parametrize(
    ("line", "task", "message"),
    [
        ("A.1\t255\t2\t1.0", 1, "4 columns"),
        ("B.1\t77\t255\t1\t2.5\tme", 1, "Task 1 run has 'topic post rank score run'"),
        ("A.1\t255\t1\t2.5\tme", 2, "5 columns"),
        ("A.1\t255\t1\thigh\tme", 1, "'high' is not a number"),
        ("A.1\t255\t1\tnan\tme", 1, "not a finite number"),
        ("A.1\t\t1\t2.5\tme", 1, "column 2 is empty"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, line: str, task: int, message: str) -> None:
    good = "A.1\tQ0\t9\t1\t3.0\tme\n"
    path = write(tmp_path / "bad.tsv", good + line)
    with pytest.raises(EvaluationError) as caught:
        read_run(path, task=1 if task == 1 else 2)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


def test_missing_empty_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_run(tmp_path / "none.tsv", task=1)
    with pytest.raises(EvaluationError, match="the file is empty"):
        read_run(write(tmp_path / "empty.tsv", "\n"), task=1)
    (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvaluationError, match="is not UTF-8"):
        read_run(tmp_path / "binary.tsv", task=1)
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(b"A.1\t255\t1\t2.5\tme\n"))
    with pytest.raises(EvaluationError, match=r"packed\.tsv\.gz: is compressed with gzip; unpack it"):
        read_run(tmp_path / "packed.tsv.gz", task=1)


def test_written_scores_decrease_strictly_in_float32(tmp_path: Path) -> None:
    close = [("a", 0.1), ("b", 0.1 - 1e-12), ("c", 0.1 - 2e-12), ("d", -5.0), ("a", 0.05)]  # a, b and c are ties
    run = Run.from_results("me", {"A.1": close})
    write_run(run, tmp_path / "run.tsv")
    read = read_run(tmp_path / "run.tsv", task=1)
    assert read == run
    assert [hit.doc_id for hit in read.rankings["A.1"]] == ["c", "b", "a", "d"]
    scores = np.array([hit.score for hit in read.rankings["A.1"]], dtype=np.float32)
    assert (np.diff(scores) < 0).all()


def test_equal_scores_of_every_size_are_split() -> None:
    for value in (0.0, -1.0, 1e-45, 1e30):
        scores = np.array(strictly_decreasing([value] * 50), dtype=np.float32)
        assert (np.diff(scores) < 0).all()


def test_at_most_a_thousand_a_topic_and_ranks_from_1(tmp_path: Path) -> None:
    run = Run.from_results("me", {"A.1": [(str(i), float(i)) for i in range(1200)]})
    write_run(run, tmp_path / "run.tsv")
    rows = [line.split("\t") for line in (tmp_path / "run.tsv").read_text().splitlines()]
    assert len(rows) == 1000
    assert rows[0] == ["A.1", "1199", "1", "1199.0", "me"]
    assert [int(row[2]) for row in rows] == list(range(1, 1001))


def test_task_2_is_written_with_formula_and_post(tmp_path: Path) -> None:
    run = Run.from_results("me", {"B.1": [Hit("77", 0.5, "255")]}, task=2)
    write_run(run, tmp_path / "run.tsv")
    assert (tmp_path / "run.tsv").read_text() == "B.1\t77\t255\t1\t0.5\tme\n"
    with pytest.raises(EvaluationError, match="no post id"):
        Run.from_results("me", {"B.1": [("77", 0.5)]}, task=2)


def test_an_invalid_result_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "run.tsv", "old")
    with pytest.raises(EvaluationError, match="score nan"):
        write_run(Run("me", {"A.1": [Hit("a", float("nan"))]}), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["run.tsv"]
    with pytest.raises(EvaluationError, match="white space"):
        Run.from_results("my run", {})


def test_qrels_with_float_grades_and_crlf(tmp_path: Path) -> None:
    path = write(tmp_path / "q.tsv", "A.1\t0\t255\t2.0\r\nA.1\t0\t154\t0")
    assert read_qrels(path) == {"A.1": {"255": 2, "154": 0}}
    other = write(tmp_path / "r.tsv", "A.2\t0\t255\t1")
    assert read_qrels(path, other).keys() == {"A.1", "A.2"}


@pytest.mark.parametrize("row", ["A.1\t0\t255", "A.1\t0\t255\t2.5", "A.1\t0\t255\tx", "A.1\t0\t9\t3"])
def test_a_bad_judgment_is_named_by_line(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "q.tsv", f"A.1\t0\t9\t1\n{row}\n")
    with pytest.raises(CorpusError, match=r"q\.tsv:2: "):
        read_qrels(path)


def test_two_files_with_two_grades_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{grade}.tsv", f"A.1\t0\t9\t{grade}\n") for grade in (1, 3)]
    with pytest.raises(EvaluationError, match=r"3\.tsv: document 9 of topic A\.1 has grade 3 here and 1 in another"):
        read_qrels(*files)


def test_visual_ids_come_from_the_column_of_that_name(tmp_path: Path) -> None:
    header = "id\tpost_id\told_visual_id\tvisual_id\tformula\n"
    folder = tmp_path / "latex"
    folder.mkdir()
    write(folder / "1.tsv", header + '1\t255\tv_old\tv1\t"a ""quoted""\nformula"\n2\t255\t9\t\tx\n')
    write(folder / "2.tsv", header + "3\t255\tv_old\tv1\ty\n")
    assert read_visual_ids(folder) == {"1": "v1", "3": "v1"}
    assert read_visual_ids(folder, {"3"}) == {"3": "v1"}
    with zipfile.ZipFile(tmp_path / "latex.zip", "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"latex_representation_v3/{file.name}")
    assert read_visual_ids(tmp_path / "latex.zip") == {"1": "v1", "3": "v1"}
    with pytest.raises(EvaluationError, match=r"no \*\.tsv file; name the folder or the zip"):
        read_visual_ids(tmp_path)
    (folder / "2.tsv.gz").write_bytes(gzip.compress((folder / "2.tsv").read_bytes()))
    assert read_visual_ids(folder / "2.tsv.gz") == {"3": "v1"}
    (tmp_path / "latex.zip").write_bytes(b"PK")
    with pytest.raises(EvaluationError, match=r"latex\.zip: truncated or damaged zip"):
        read_visual_ids(tmp_path / "latex.zip")
    only_old = write(tmp_path / "v2.tsv", "id\told_visual_id\tformula\n1\tv\tx\n")
    with pytest.raises(EvaluationError, match=r"v2\.tsv:1: has no column 'visual_id'"):
        read_visual_ids(only_old)
    short = write(tmp_path / "short.tsv", header + "1\t255\n")
    with pytest.raises(EvaluationError, match=r"short\.tsv:2: 2 columns, 4 are needed"):
        read_visual_ids(short)
