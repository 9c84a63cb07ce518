"""What a submission may not be: each fault is found in its line, however broken the file."""

import gzip
from pathlib import Path

import pytest

from graphs.errors import EvaluationError
from mathamr.evaluation.runs import Hit, Run, write_run
from mathamr.evaluation.submission import FILE_NAME, Known, read_submission, task_of

GOOD = ["A.1\t255\t1\t2.5\tme", "A.1\t154\t2\t1.5\tme", "A.2\t255\t1\t0.5\tme"]
POSTS = {"255": Known("answer"), "154": Known("answer")}


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def found(path: Path, **known: object) -> list[tuple[int, str]]:
    problems = read_submission(path, task=1).problems(**known)  # type: ignore[arg-type]
    return [(problem.line, problem.kind) for problem in problems]


def test_what_we_write_is_valid(tmp_path: Path) -> None:
    """Ties, repeated documents and more than 1,000 results in, a valid file of each task out."""
    hits = [(str(n), 1.0 - n // 3 / 1e9) for n in range(1200)]
    write_run(Run.from_results("me", {"A.1": [*hits, ("3", 0.0)], "A.2": hits[:5]}), tmp_path / "one.tsv")
    posts = {str(n): Known("answer") for n in range(1200)}
    submission = read_submission(tmp_path / "one.tsv", task=1)
    assert submission.problems(topics={"A.1", "A.2"}, posts=posts) == []
    assert len(submission.rows) == 1005
    assert submission.topic_ids == ["A.1", "A.2"]

    formulas = {"B.1": [Hit("77", 0.9, "255"), Hit("78", 0.9, "255"), Hit("9", 0.1, "154")]}
    write_run(Run.from_results("me", formulas, task=2), tmp_path / "two.tsv")
    known = {"255": Known("question", {"77", "78"}), "154": Known("answer", {"9"})}
    assert read_submission(tmp_path / "two.tsv", task=2).problems(topics={"B.1"}, posts=known) == []
    assert (task_of(tmp_path / "one.tsv"), task_of(tmp_path / "two.tsv")) == (1, 2)


@pytest.mark.parametrize(
    ("line", "row", "kind"),
    [
        (2, "A.1\t154\t2\t1.5", "form"),
        (2, "A.1 154 2 1.5 me", "form"),
        (1, "topic\tpost\trank\tscore\trun", "form"),
        (2, "A.1\t\t2\t1.5\tme", "form"),
        (2, "A.1\t1 54\t2\t1.5\tme", "form"),
        (2, "A.1\t154\x00\t2\t1.5\tme", "form"),
        (2, "A.1\t154\t2.0\t1.5\tme", "form"),
        (2, "A.1\t154\t-2\t1.5\tme", "form"),
        (2, "A.1\t154\t²\t1.5\tme", "form"),
        (2, "A.1\t154\t2\thigh\tme", "form"),
        (2, "A.1\t154\t2\tnan\tme", "form"),
        (2, "A.1\t154\t2\t1_5\tme", "form"),
        (2, "A.1\t154\t2\t0x1\tme", "form"),
        (2, "A.1\t154\t2\t-inf\tme", "form"),
        (2, "A.1\t154\t2\t-1e39\tme", "form"),
        (2, "", "form"),
        (2, "A.1\t154\t2\t1.5\tmé", "name"),
        (2, "A.1\t154\t2\t1.5\tyou", "name"),
        (2, "A.1\t154\t3\t1.5\tme", "rank"),
        (2, "A.1\t154\t0\t1.5\tme", "rank"),
        (2, "A.1\t154\t2\t2.5\tme", "score"),
        (2, "A.1\t154\t2\t2.4999999999\tme", "score"),  # the same in float32, which the evaluation compares in
        (2, "A.1\t255\t2\t1.5\tme", "repeated"),
        (2, "A.1\t999\t2\t1.5\tme", "post"),
        (3, "A.9\t255\t1\t0.5\tme", "topic"),
    ],
)
def test_a_fault_is_found_in_its_line(tmp_path: Path, line: int, row: str, kind: str) -> None:
    lines = [*GOOD]
    lines[line - 1] = row
    problems = found(write(tmp_path / "run.tsv", lines), topics={"A.1", "A.2"}, posts=POSTS)
    assert (line, kind) in problems
    assert {place for place, _ in problems} <= {line, 2 if line == 1 else line}


def test_faults_of_a_topic(tmp_path: Path) -> None:
    lines = [*GOOD, "A.1\t7\t1\t9\tme"]
    assert found(write(tmp_path / "split.tsv", lines)) == [(4, "topic")]
    repeated = [*GOOD, "A.1\t255\t3\t0.5\tme", "A.2\t154\t2\t0.4\tme"]
    assert found(write(tmp_path / "repeated.tsv", repeated)) == [(4, "repeated")]
    many = [f"A.1\t{n}\t{n}\t{-n}\tme" for n in range(1, 1004)]
    assert found(write(tmp_path / "many.tsv", many)) == [(1001, "count")]
    gap = [f"A.1\t{n}\t{n + 5 * (n > 3)}\t{-n}\tme" for n in range(1, 9)]
    assert found(write(tmp_path / "gap.tsv", gap)) == [(4, "rank")]
    unread = [*gap[:3], gap[3].replace("\t-4", "\tnan"), *gap[4:]]
    assert found(write(tmp_path / "unread.tsv", unread)) == [(4, "form"), (5, "rank")]
    good = [f"A.1\t{n}\t{n}\t{-n}\tme" for n in range(1, 9)]
    for line in (1, 4):  # the first one, which has the byte order mark, or another one
        one = [row.replace(f"\t{-line}\t", "\tnan\t") for row in good]
        assert found(write(tmp_path / "one.tsv", one)) == [(line, "form")]
    assert found(write(tmp_path / "blank.tsv", [*good[:4], "", *good[4:]])) == [(5, "form")]
    swapped = [*good[:3], good[4], good[3], *good[5:]]
    assert found(write(tmp_path / "swapped.tsv", swapped)) == [(4, "rank"), (5, "rank"), (5, "score")]
    assert found(write(tmp_path / "good.tsv", GOOD)) == []
    assert found(write(tmp_path / "windows.tsv", GOOD, "\r\n")) == []


def test_what_a_collection_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "run.tsv", GOOD)
    questions = {"255": Known("question"), "154": Known("answer")}
    assert found(path, posts=questions) == [(1, "post"), (3, "post")]
    two = write(tmp_path / "two.tsv", ["B.1\t77\t255\t1\t2.5\tme", "B.1\t8\t154\t2\t1.5\tme"])
    known = {"255": Known("question", {"77"}), "154": Known("answer", {"9"})}
    (problem,) = read_submission(two, task=2).problems(posts=known)
    assert (problem.line, problem.message) == (2, "post 154 has no formula 8")


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00A", b"\x00" * 50_000, b"A" * 200_000, "\ufeffA.1\t255\t1\t2.5\tme\n".encode(), b"\n\n\n"],
)
def test_a_file_that_is_none_is_answered_line_by_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "hostile.tsv"
    path.write_bytes(content)
    submission = read_submission(path, task=1)
    assert submission.rows == []
    assert {problem.kind for problem in submission.problems()} == {"form"}


def test_a_long_line_does_not_hide_the_next(tmp_path: Path) -> None:
    path = write(tmp_path / "run.tsv", ["A" * 30_000, *GOOD])
    assert found(path) == [(1, "form")]


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    for path, message in ((tmp_path / "empty.tsv", "is empty"), (tmp_path, "cannot be read"), (Path("no"), "no")):
        for read in (lambda p: read_submission(p, task=1), task_of):
            with pytest.raises(EvaluationError, match=message):
                read(path)
    (tmp_path / "run.tsv.gz").write_bytes(gzip.compress(GOOD[0].encode()))
    with pytest.raises(EvaluationError, match="is compressed with gzip; unpack it"):
        task_of(tmp_path / "run.tsv.gz")
    trec = write(tmp_path / "trec.tsv", ["A.1\tQ0\t255\t1\t2.5\tme"])
    with pytest.raises(EvaluationError, match=r"trec.tsv:1: this is TREC's form"):
        task_of(trec)
    with pytest.raises(EvaluationError, match="3 columns between tabs"):
        task_of(write(tmp_path / "three.tsv", ["A.1\t255\t1"]))


def test_a_file_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mathamr.evaluation.submission.MAX_LINES", 2)
    with pytest.raises(EvaluationError, match="more than 2 lines"):
        read_submission(write(tmp_path / "run.tsv", GOOD), task=1)


def test_names_of_files() -> None:
    assert FILE_NAME.fullmatch("MIRMU-task1-SCM-auto-both-P.tsv")
    assert not FILE_NAME.fullmatch("MIRMU-task3-SCM-auto-both-P.tsv")
    assert not FILE_NAME.fullmatch("run.tsv")
