"""scripts/evaluate.py: one JSON object, or one message and exit code 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.in_process import run_script

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / ".." / "shared" / "data"


def evaluate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_script("evaluate.py", *arguments)


def test_task_1_and_task_2_print_one_object(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("A.1\t0\ta\t2\nA.1\t0\tb\t0\nB.1\t0\tv\t3\n")
    (tmp_path / "one").write_text("A.1\tb\t1\t2.0\tme\nA.1\ta\t2\t1.0\tme\n")
    done = evaluate("--task", "1", "--qrels", tmp_path / "q", "--run", tmp_path / "one")
    assert (done.returncode, done.stderr) == (0, "")
    # Topic B.1 is missing from the run: the means are half of A.1's MAP' 1/2 and P'@10 1/10; b stands above a: Bpref 0.
    printed = json.loads(done.stdout)
    assert list(printed) == ["ndcg_prime", "map_prime", "p_prime_10", "bpref", "topics"]
    assert (printed["map_prime"], printed["p_prime_10"], printed["bpref"], printed["topics"]) == (0.25, 0.05, 0.0, 2)
    (tmp_path / "two").write_text("B.1\t7\t255\t1\t2.0\tme\n")
    (tmp_path / "ids.tsv").write_text("id\tvisual_id\n7\tv\n")
    done = evaluate(
        "--task", "2", "--qrels", tmp_path / "q", "--run", tmp_path / "two", "--visual-ids", tmp_path / "ids.tsv"
    )
    assert json.loads(done.stdout)["ndcg_prime"] == 0.5
    (tmp_path / "q").write_text("B.1\t0\tother\t3\n")
    done = evaluate(
        "--task", "2", "--qrels", tmp_path / "q", "--run", tmp_path / "two", "--visual-ids", tmp_path / "ids.tsv"
    )
    assert "no result of 2020 is judged: the judgments may have other ids" in done.stderr


def test_judgments_by_formula_id_are_converted_year_by_year(tmp_path: Path) -> None:
    """ARQMath published those of 2020 so; formula 13 has another's visual id as its id."""
    (tmp_path / "2020").write_text("B.1\t0\t7\t3\nB.1\t0\t8\t2\nB.1\t0\t13\t0\nB.1\t0\t99\t2\n")
    (tmp_path / "2021").write_text("B.201\t0\t13\t3\n")
    rows = [("B.1", "9", 1), ("B.1", "13", 2), ("B.1", "10", 3), ("B.201", "8", 1)]
    lines = [f"{topic}\t{formula}\t255\t{rank}\t{5 - rank}\tme\n" for topic, formula, rank in rows]
    (tmp_path / "run").write_text("".join(lines))
    (tmp_path / "ids.tsv").write_text("id\tvisual_id\n7\t20\n9\t20\n8\t13\n10\t13\n13\t30\n")
    command = ["--task", "2", "--run", tmp_path / "run", "--visual-ids", tmp_path / "ids.tsv", "--qrels"]
    done = evaluate(*command, tmp_path / "2020", tmp_path / "2021")
    note = "judgments of 2020 by formula id are converted to visual ids: 4; 1 of unknown formulas left out\n"
    assert done.stderr == note
    printed = json.loads(done.stdout)
    # B.1 is 20 (relevant), 30 (irrelevant), 13 (relevant): MAP' is (1/1 + 2/3) / 2, and 1 for B.201.
    assert (printed["map_prime"], printed["topics"]) == (pytest.approx((5 / 6 + 1) / 2), 2)
    (tmp_path / "both").write_text((tmp_path / "2020").read_text() + (tmp_path / "2021").read_text())
    assert evaluate(*command, tmp_path / "both").stdout == done.stdout


def test_a_grade_above_all_judgments_is_noted(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("A.1\t0\ta\t3\nA.1\t0\tb\t0\n")
    (tmp_path / "one").write_text("A.1\ta\t1\t2.0\tme\n")
    done = evaluate("--task", "1", "--qrels", tmp_path / "q", "--run", tmp_path / "one", "--relevant-grade", "5")
    assert (done.returncode, json.loads(done.stdout)["map_prime"]) == (0, 0.0)
    assert done.stderr == "no document is relevant: the highest grade is 3; --relevant-grade N sets another grade\n"


def test_a_repeated_document_is_noted(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("A.1\t0\ta\t2\nA.1\t0\tb\t0\n")
    (tmp_path / "one").write_text("A.1\tb\t1\t2.0\tme\nA.1\ta\t2\t1.0\tme\nA.1\ta\t3\t0.5\tme\n")
    done = evaluate("--task", "1", "--qrels", tmp_path / "q", "--run", tmp_path / "one")
    assert (done.returncode, json.loads(done.stdout)["map_prime"]) == (0, 0.5)
    note = "1 of 3 results repeat a document of their topic, e.g. a in topic A.1; the first line of each counts"
    assert note in done.stderr


@pytest.mark.parametrize(
    ("qrels", "run", "message"),
    [
        ("A.1\t0\ta\t2\n", "A.1\ta\t1\t2.0\tme\nA.1\tb\t2\n", "run:2: 3 columns"),
        ("A.1\t0\ta\n", "A.1\ta\t1\t2.0\tme\n", "qrels:1: 3 columns"),
        ("A.2\t0\ta\t1\n", "A.1\ta\t1\t2.0\tme\n", "no topic in common"),
    ],
)
def test_a_bad_file_is_a_message_and_code_2(tmp_path: Path, qrels: str, run: str, message: str) -> None:
    (tmp_path / "qrels").write_text(qrels)
    (tmp_path / "run").write_text(run)
    done = evaluate("--task", "1", "--qrels", tmp_path / "qrels", "--run", tmp_path / "run")
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_task_2_without_visual_ids_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "evaluate.py", "--task", "2"]  # as a user starts it
    command += ["--qrels", tmp_path / "q", "--run", tmp_path / "r"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert "--visual-ids" in done.stderr


@pytest.mark.shared
def test_published_scores_through_the_command() -> None:
    if not (DATA / "arqmath-runs").is_dir():
        pytest.skip(f"no participants' runs at {DATA}")
    row = json.loads((DATA / "arqmath-runs" / "expected.json").read_text())[0]
    done = evaluate(
        "--task",
        "1",
        "--qrels",
        DATA / "arqmath-mini/qrels" / row["qrels"],
        "--run",
        DATA / "arqmath-runs" / row["run"],
    )
    printed = json.loads(done.stdout)
    for name, value in printed.items():
        assert value == pytest.approx(row[name], abs=5e-5)


def test_regime_mini_restricts_the_qrels_to_the_collection(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("A.1\t0\ta\t2\nA.1\t0\tb\t3\nA.2\t0\tb\t2\n")
    (tmp_path / "run").write_text("A.1\ta\t1\t2.0\tme\n")
    (tmp_path / "ids").write_text("a\nc\n")
    command = ["--task", "1", "--qrels", tmp_path / "q", "--run", tmp_path / "run", "--regime", "mini"]
    done = evaluate(*command, "--collection", tmp_path / "ids")
    # Of A.1 only a is there, and A.2 has no relevant post left.
    assert json.loads(done.stdout) | {"bpref": 1.0} == {
        "ndcg_prime": 1.0,
        "map_prime": 1.0,
        "p_prime_10": 0.1,
        "bpref": 1.0,
        "topics": 1,
    }
    folder = tmp_path / "collection"
    folder.mkdir()
    (folder / "posts.jsonl").write_text('{"id": "b", "kind": "answer", "body": "x"}\n')
    (folder / "topics.jsonl").write_text("")
    done = evaluate(*command, "--searched", folder)
    assert (json.loads(done.stdout)["topics"], done.stderr) == (2, "")
    assert "add --searched FOLDER" in evaluate(*command).stderr
    assert "--searched is an option of --regime mini" in evaluate(*command[:-2], "--searched", tmp_path / "ids").stderr
    missing = evaluate(*command, "--searched", tmp_path / "none")
    assert (missing.returncode, "cannot be read as a list of ids" in missing.stderr) == (2, True)
    (tmp_path / "posts.jsonl").write_text('{"post_id": 7, "body": "By 8 of the text"}\n')
    posts = evaluate(*command, "--searched", tmp_path / "posts.jsonl")
    assert (posts.returncode, "posts.jsonl:1: has more than one word; list one id" in posts.stderr) == (2, True)


def test_regime_mini_of_task_2_is_about_the_formulas_of_the_collection(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("B.1\t0\tv\t3\nB.1\t0\tw\t2\nB.2\t0\tx\t3\n")
    (tmp_path / "run").write_text("B.1\t7\t255\t1\t2.0\tme\n")
    (tmp_path / "ids.tsv").write_text("id\tvisual_id\n7\tv\n8\tu\n9\tx\n")
    command = ["--task", "2", "--qrels", tmp_path / "q", "--run", tmp_path / "run", "--regime", "mini"]
    done = evaluate(*command, "--visual-ids", tmp_path / "ids.tsv")
    printed = json.loads(done.stdout)
    assert (printed["topics"], printed["map_prime"]) == (2, 0.5)  # B.2 is missing from the run
    (tmp_path / "some").write_text("v\n")
    done = evaluate(*command, "--visual-ids", tmp_path / "ids.tsv", "--searched", tmp_path / "some")
    assert (json.loads(done.stdout)["topics"], json.loads(done.stdout)["map_prime"]) == (1, 1.0)
    refused = evaluate(*command, "--visual-ids", tmp_path / "ids.tsv", "--searched", tmp_path)
    assert (refused.returncode, "takes a file of visual ids" in refused.stderr) == (2, True)
