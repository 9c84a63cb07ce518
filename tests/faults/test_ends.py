"""Ends of commands: each fault that once was a traceback, or a wrong exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import cli
from experiments.command import CLOSED
from experiments.run import start
from tests.scripts.in_process import run_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    (tmp_path / "posts.jsonl").write_text('{"post_id": "1", "kind": "answer", "body": "Let $x$ be."}\n')
    (tmp_path / "topics.jsonl").write_text('{"post_id": "T", "body": "What is $x$?"}\n')
    (tmp_path / "qrels.tsv").write_text("T\t0\t1\t3\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--limit", "-1", "--out", "a.db"], "limit=-1; at least 1 post is needed"),
        (["--out", "posts.jsonl/a.db"], "posts.jsonl/a.db: cannot be written"),
        (["--out", "."], ".: unable to open database file"),
    ],
)
def test_a_build_says_what_is_wrong(posts: Path, words: list[str], message: str) -> None:
    done = run_script("build_collection.py", "--corpus", "jsonl", "--root", ".", *words, folder=posts)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train.epcohs=3"], "unknown key train.epcohs; did you mean train.epochs?"),
        (["data.hidden_dims=8"], "unknown key data.hidden_dims; did you mean model.hidden_dim?"),
        (["seeds=[42]"], "unknown key seeds; did you mean experiment.seeds?"),
        (["experiment.seed=[42]"], "unknown key experiment.seed; did you mean experiment.seeds?"),
        (["+exp=trial", 'experiment.title="Keep track: results"', "train.epoch=3"], "did you mean train.epochs?"),
        (["train.device=cuda:99"], "cuda:99"),
        (["outputs=/proc/none/x", "track=bm25"], "/proc/none"),
        (["outputs=FOLDER/qrels.tsv"], "qrels.tsv"),
        (["hydra.searchpath=[file://FOLDER/conf]", "+exp=tabs"], "tabs.yaml:3: not YAML: found character '\\t'"),
        (["hydra.searchpath=[file://FOLDER/conf]", "+exp=bare"], "does not begin with the line '# @package _global_'"),
        (["++nope.key=3"], "unknown key nope"),
        (["run.paths={easy: e.tsv}"], "run.paths gets new entries; write a + before it: +run.paths={...}"),
    ],
)
def test_an_experiment_says_what_is_wrong_and_ends_with_2(
    posts: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = posts / "conf" / "exp"
    folder.mkdir(parents=True)
    (folder / "tabs.yaml").write_text("# @package _global_\nexperiment:\n\tname: x\n")
    (folder / "bare.yaml").write_text("experiment:\n  name: x\n")
    given = [word.replace("FOLDER", str(posts)) for word in words]
    own = [] if any(word.startswith("+exp") for word in given) else ["+exp=trial"]
    places = ["data=jsonl", f"data.root={posts}"]
    out = [] if any(word.startswith("outputs") for word in given) else [f"outputs={posts / 'out'}"]
    assert start([*own, *places, *out, *given]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(Exception, match="epcohs"):
        start(["--debug", "+exp=trial", "train.epcohs=3"])


def test_a_fault_is_no_wrong_setting_under_multirun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_: object) -> None:
        raise ValueError("two values")  # Hydra raises it for wrong settings

    monkeypatch.setattr("experiments.run.run", run)
    assert start(["--multirun", "+exp=trial", f"hydra.sweep.dir={tmp_path}"]) == 1
    error = capsys.readouterr().err
    log, _, told = error.partition("Error executing job")  # where a job fails, and where its result is read
    assert "a fault of the program: ValueError: two values" in log
    assert "a fault of the program: ValueError: two values" in told


def test_papers_that_all_failed_end_with_1(tmp_path: Path) -> None:
    (tmp_path / "paper.tar.gz").write_bytes(b"no archive")
    done = run_script("text/extract_statements.py", "--papers", "paper.tar.gz", "--out", "out.jsonl", folder=tmp_path)
    assert done.returncode == 1
    assert '"failed": 1' in done.stdout


def test_an_output_that_nobody_reads_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/formula_trees.py", "--latex", "x^2"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
        done = subprocess.run(command, cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("buffering", [1, -1])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], 0),
        (["data", "--help"], 0),
        (["data", "check", "--root", "."], 0),
        (["submit", "--check", "faulty.tsv"], 1),
    ],
)
def test_a_command_whose_reader_has_gone_ends_quietly_and_keeps_its_code(
    words: list[str],
    code: int,
    buffering: int,
    posts: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command that writes line by line ends at its first line, before its code is known."""
    monkeypatch.chdir(posts)
    Path("faulty.tsv").write_text("A.1\t255\t7\t2.5\tme\n")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", buffering=buffering) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        try:
            ended = cli.main(words)
        except SystemExit as end:
            ended = int(end.code or 0)
        assert ended == (CLOSED if buffering == 1 and "check" in " ".join(words) else code)
    assert "pipe" not in capsys.readouterr().err
