"""scripts/make_run.py bm25 and fuse: run files that are valid, of both tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mathamr.evaluation.runs import read_run
from scripts import make_run


@pytest.fixture
def corpus(tmp_path: Path) -> list[str]:
    posts = {
        "11": "Suppose $\\sqrt2 = p/q$.",
        "12": "The integral $\\int_0^1 x\\,dx$.",
        "13": "$\\sqrt2$ is not rational.",
    }
    records = [{"post_id": name, "kind": "answer", "body": body, "markup": "text"} for name, body in posts.items()]
    (tmp_path / "posts.jsonl").write_text("\n".join(map(json.dumps, records)) + "\n")
    topic = {"post_id": "A.1", "body": "Why is $\\sqrt2$ not rational?", "markup": "text"}
    (tmp_path / "topics.jsonl").write_text(json.dumps(topic) + "\n")
    topic |= {"post_id": "B.1", "formula_id": "B.1:0"}
    (tmp_path / "topics2.jsonl").write_text(json.dumps(topic) + "\n")
    (tmp_path / "qrels.tsv").write_text("A.1\t0\t13\t3\nA.1\t0\t12\t0\n")
    return ["--corpus", "jsonl", "--root", str(tmp_path)]


def ranking(path: Path, topic: str, task: int = 1) -> list[str]:
    return [hit.doc_id for hit in read_run(path, task=task).rankings[topic]]  # type: ignore[arg-type]


def test_runs_of_task_1_by_text_and_by_formulas(corpus: list[str], tmp_path: Path) -> None:
    text, formulas = tmp_path / "text.tsv", tmp_path / "formulas.tsv"
    assert make_run.main(["bm25", *corpus, "--out", str(text)]) == 0
    assert make_run.main(["bm25", *corpus, "--by", "formulas", "--out", str(formulas)]) == 0
    assert ranking(text, "A.1")[0] == "13"
    assert set(ranking(formulas, "A.1")) == {"11", "13"}  # those with a root of 2
    out = tmp_path / "fused.tsv"
    both = ["--task", "1", str(text), str(formulas), "--out", str(out)]
    assert make_run.main(["fuse", *both]) == 0
    assert ranking(out, "A.1")[0] == "13"
    assert make_run.main(["fuse", *both, "--weights", "1", "0"]) == 0
    assert ranking(out, "A.1")[: len(ranking(text, "A.1"))] == ranking(text, "A.1")
    assert make_run.main(["fuse", *both, "--tune", str(tmp_path / "qrels.tsv")]) == 0
    assert ranking(out, "A.1")[0] == "13"


def test_runs_of_task_2_have_a_formula_of_each_look(corpus: list[str], tmp_path: Path) -> None:
    runs = [tmp_path / f"{by}.tsv" for by in ("text", "formulas")]
    for run in runs:
        assert make_run.main(["bm25", *corpus, "--task", "2", "--by", run.stem, "--out", str(run)]) == 0
        assert read_run(run, task=2).rankings["B.1"][0].post_id == "13"
    looks = tmp_path / "looks.tsv"
    looks.write_text("id\tvisual_id\n13:0\troot\n11:0\troot\n12:0\tintegral\n")
    out = tmp_path / "fused.tsv"
    command = ["--task", "2", *map(str, runs), "--out", str(out)]
    assert make_run.main(["fuse", *command, "--visual-ids", str(looks)]) == 0
    assert len([name for name in ranking(out, "B.1", 2) if name in ("11:0", "13:0")]) == 1
    assert make_run.main(["fuse", *command]) == 2


def test_what_cannot_be_fused_is_said(corpus: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make_run.main(["bm25", *corpus, "--k", "0", "--out", str(tmp_path / "x")]) == 2
    assert "k=0" in capsys.readouterr().err
    run = tmp_path / "run.tsv"
    run.write_text("A.1\t13\t1\t1.0\tme\n")
    out = ["--task", "1", "--out", str(tmp_path / "x")]
    assert make_run.main(["fuse", str(run), *out]) == 2
    assert "takes two or more" in capsys.readouterr().err
    assert make_run.main(["fuse", str(run), str(run), *out, "--weights", "1"]) == 2
    assert "one from 0 is needed for each" in capsys.readouterr().err
    assert make_run.main(["fuse", str(run), str(tmp_path / "none"), *out]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["fuse", "one.tsv", "two.tsv", "--task", "1", "--visual-ids", "looks.tsv"],
            "--visual-ids is an option of Task",
        ),
        (["index", "--index", "index", "--corpus", "mathdocs", "--context", "0.2"], "--context is an option of Task 2"),
    ],
)
def test_options_of_another_task_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        make_run.main([*arguments, "--out", "run.tsv"])
    assert message in capsys.readouterr().err


def test_a_file_that_is_fused_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, qrels = (tmp_path / name for name in ("first.tsv", "second.tsv", "qrels.tsv"))
    for run in (first, second):
        run.write_text("A.1\t13\t1\t1.0\tme\n")
    qrels.write_text("A.1\t0\t13\t3\n")
    fuse = ["fuse", "--task", "1", str(first), str(second), "--tune", str(qrels)]
    for out in (second, tmp_path / "nothing" / ".." / "first.tsv", qrels):
        assert make_run.main([*fuse, "--out", str(out)]) == 2
        assert f"--out {out} is a file that is read" in " ".join(capsys.readouterr().err.split())
    assert first.read_text() == second.read_text() == "A.1\t13\t1\t1.0\tme\n"


def test_tables_of_visual_ids_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, folder = tmp_path / "run.tsv", tmp_path / "formulas"
    run.write_text("B.1\t13:0\t13\t1\t1.0\tme\n")
    folder.mkdir()
    looks = folder / "looks.tsv"
    looks.write_text("id\tvisual_id\n13:0\troot\n")
    fuse = ["fuse", "--task", "2", str(run), str(run)]
    for tables, out, problem in (
        (looks, looks, "is a file that is read"),
        (folder, looks, "lies in the folder of --visual-ids"),
        (folder, folder / "fused.tsv", "lies in the folder of --visual-ids"),
    ):
        assert make_run.main([*fuse, "--visual-ids", str(tables), "--out", str(out)]) == 2
        assert f"--out {out} {problem}" in " ".join(capsys.readouterr().err.split())
    assert [path.read_text() for path in folder.iterdir()] == ["id\tvisual_id\n13:0\troot\n"]
