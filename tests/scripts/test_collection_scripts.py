"""The commands of docs/building.md, from posts to a merged, exported and drawn collection."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.dom.minidom
from pathlib import Path

import pytest

from tests.scripts import in_process

ROOT = Path(__file__).resolve().parents[2]
POSTS = 12


def run_script(name: str, *arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = in_process.run_script(name, *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve posts and a topic, and graphs for all but post 3."""
    folder = tmp_path_factory.mktemp("corpus")
    lines, graphs = [], []
    for i in range(POSTS):
        kind = "answer" if i % 3 else "question"
        lines.append(json.dumps({"post_id": str(i), "kind": kind, "body": f"Solve $x^{i}<y$.", "markup": "text"}))
        if i != 3:
            graphs.append(f"# ::id {i}\n(s / solve-01 :ARG1 (f / FORMULA_0))\n")
    topic = {"post_id": "T.1", "body": "Which $x$?", "markup": "text"}
    graphs.append("# ::id query:T.1\n(a / amr-unknown)\n")  # ids of queries have a prefix
    (folder / "posts.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "topics.jsonl").write_text(json.dumps(topic) + "\n")
    (folder / "graphs.penman").write_text("\n".join(graphs))
    return folder


def build(corpus: Path, out: Path, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    given = ("--corpus", "jsonl", "--root", corpus, "--out", out, "--parser", "penman_file")
    return run_script("build_collection.py", *given, "--option", f"path={corpus / 'graphs.penman'}", *more, code=code)


def test_shards_are_built_merged_counted_shown_exported_and_imported(corpus: Path, tmp_path: Path) -> None:
    whole, merged = tmp_path / "whole.db", tmp_path / "merged.db"
    done = build(corpus, whole, "--kinds", "question", "answer", "topic")
    assert re.search(r"^posts +13$", done.stdout, re.MULTILINE)
    assert re.search(r"amr: unknown_id +1, 0 without a graph", done.stdout)  # its formula is kept, without its text
    counted = json.loads((tmp_path / "whole.stats.json").read_text())
    assert counted["graphs_by_kind"] == {"answer": 8, "question": 4, "topic": 1}
    assert counted["attachments"] == {"concept": 11, "root": 2}
    shards = [tmp_path / "1.db", tmp_path / "2.db"]
    for number, path in enumerate(shards, 1):
        build(corpus, path, "--shard", f"{number}/2", "--kinds", "question", "answer", "topic")
    assert "1 of 2 shards are missing" in run_script("collection.py", "merge", merged, shards[0], code=2).stderr
    fewer = tmp_path / "fewer.db"
    build(corpus, fewer, "--shard", "2/2")
    refused = run_script("collection.py", "merge", merged, shards[0], fewer, code=2).stderr
    assert f"its selection is 'answer, question', that of {shards[0]} is 'answer, question, topic of task 1'" in refused
    assert "13 graphs, failures recorded: 1" in run_script("collection.py", "merge", merged, *shards).stdout
    stats = json.loads(run_script("collection.py", "stats", merged, "--json").stdout)
    assert stats == counted
    figure = tmp_path / "graph.svg"
    shown = run_script("collection.py", "show", merged, "7", "--figure", figure).stdout
    assert shown.startswith(
        "answer 7: 11 nodes, 10 edges, 1 sentence, 1 formula\nattached by FORMULA_0 (7:0): concept\n"
    )
    assert "\nsolve-01\n  :ARG1 FORMULA_0 (7:0)\n    :opt\n" in shown
    assert shown.endswith("    :slt\n      V!x\n        a  N!7\n      n  <\n      n  V!y\n")
    xml.dom.minidom.parse(str(figure))
    exported = tmp_path / "c.penman"
    assert run_script("collection.py", "export", merged, exported).stdout.strip() == f"{exported}: 13 graphs"
    run_script("collection.py", "import", exported, tmp_path / "again.db")
    again = json.loads(run_script("collection.py", "stats", tmp_path / "again.db", "--json").stdout)
    assert again == counted | {"failures": [], "incomplete": 0}


def test_an_import_lists_the_roles_that_it_does_not_know(tmp_path: Path) -> None:
    text = '# ::id a\n# ::formula_map {"FORMULA_0": "7"}\n(F0 / FORMULA_0 :opt (o / plus :op0 (x / x) :leg (y / y)))\n'
    (tmp_path / "c.penman").write_text(text)
    printed = run_script("collection.py", "import", tmp_path / "c.penman", tmp_path / "c.db").stdout.splitlines()
    assert printed[1:] == [
        "1 edges of formula trees had roles of another project and were renamed",
        "unknown roles in formula trees, kept as they are:",
        "  below :opt  :leg  1",
    ]


def test_a_trial_goes_on_and_failures_are_tried_again(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.db"
    trial = build(corpus, out, "--limit", "5").stdout
    assert re.search(r"^posts +5$", trial, re.MULTILINE)
    assert re.search(r"^state +unfinished: not all posts went through yet$", trial, re.MULTILINE)
    assert "not finished" in run_script("collection.py", "merge", tmp_path / "merged.db", out, code=2).stderr
    whole = build(corpus, out, "--workers", "2").stdout
    assert re.search(r"^posts +12$", whole, re.MULTILINE)
    assert "unfinished" not in whole
    listed = run_script("collection.py", "failures", out).stdout.splitlines()
    assert listed[0] == "post_id\tstage\tkind\tmessage"
    assert len(listed) == 2
    done = build(corpus, out, "--retry-failures")
    assert "trying 1 post again" in done.stderr
    assert re.search(r"^posts +12$", done.stdout, re.MULTILINE)
    for other, message in (
        (("--kinds", "question"), "retry all of answer, question"),
        (("--limit", "5"), "leave limit out"),
    ):
        before = run_script("collection.py", "failures", out).stdout
        assert message in build(corpus, out, "--retry-failures", *other, code=2).stderr
        assert run_script("collection.py", "failures", out).stdout == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--shard", "0/4"), "shard '0/4': shards are numbered from 1"),
        (("--workers", "0"), "at least 1 process"),
        (("--limit", "3", "--shard", "1/2"), "a trial needs no shards"),
        (("--option", "speed=3"), "parser=penman_file has no option speed"),
        (("--option", "path"), "must have the form KEY=VALUE"),
        (("--formulas", "nowhere.db"), "nowhere.db: no such file"),
    ],
)
def test_a_wrong_argument_is_a_message_and_code_2(
    corpus: Path, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    done = build(corpus, tmp_path / "c.db", *more, code=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "c.db").exists()


def test_a_post_that_is_not_there_is_a_message_and_code_2(tmp_path: Path) -> None:
    assert "no such file" in run_script("collection.py", "show", tmp_path / "c.db", "7", code=2).stderr


def test_the_array_job_runs_each_shard_under_its_number(corpus: Path, tmp_path: Path) -> None:
    script = (ROOT / "slurm" / "build_collection.sbatch").read_text()
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    given = [
        "--corpus",
        "jsonl",
        "--root",
        corpus,
        "--parser",
        "penman_file",
        "--option",
        f"path={corpus}/graphs.penman",
    ]
    environment = {**os.environ, "PYTHON": sys.executable, "SHARDS": "2", "OUT": str(tmp_path / "work")}
    command = ["bash", str(ROOT / "slurm" / "build_collection.sbatch"), *map(str, given)]
    done = subprocess.run(
        command, cwd=ROOT, env={**environment, "SLURM_ARRAY_TASK_ID": "2"}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    run_script("build_collection.py", *given, "--out", tmp_path / "work" / "shard-1.db", "--shard", "1/2")
    merged = run_script("collection.py", "merge", tmp_path / "c.db", *sorted((tmp_path / "work").glob("shard-*.db")))
    assert "12 graphs" in merged.stdout
    beyond = subprocess.run(
        command, cwd=ROOT, env={**environment, "SLURM_ARRAY_TASK_ID": "3"}, capture_output=True, check=False
    )
    assert beyond.returncode == 2
    assert b"numbered from 1" in beyond.stderr
