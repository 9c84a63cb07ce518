"""Disks that fill up at points drawn by seed: a command ends with one message, and runs through when there is room.

A bound on the size of each file that a process writes stands for the disk (RLIMIT_FSIZE; databases notice it as a full
disk does). Commands run in forks of one process, so that modules are imported once.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts.small_collection import index_arguments, make

ROOT = Path(__file__).resolve().parents[2]
POINTS = int(os.environ.get("FULL_DISKS", "2"))  # of each command
# Arguments: a JSON list of [script, arguments, bytes or 0]. Prints, as JSON, for each its exit code and what it said.
DRIVER = """
import contextlib, importlib, io, json, os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import torch, mathamr.stages.retrieval.indexing, mathamr.stages.learning.graph_model, scripts.index
from graphs.amr.embedded import EmbeddedParser
EmbeddedParser()
def run(script, arguments, limit):
    report, done = os.pipe()
    child = os.fork()
    if child:
        os.close(done)
        with os.fdopen(report) as said:
            text = said.read()
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = importlib.import_module("scripts." + script).main(arguments)
        except BaseException as error:
            print(f"Traceback: {error!r}", file=said)
            code = 99
    os.write(done, said.getvalue().encode()[-9000:])
    os._exit(code)
print(json.dumps([run(*one) for one in json.loads(sys.argv[1])]))
"""


def drive(runs: list[tuple[str, list[str], int]]) -> list[tuple[int, str]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", DRIVER, json.dumps(runs)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(code, said) for code, said in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("work")
    make(work)
    (work / "pairs.tsv").write_text("1\t11\n12\t14\n13\t11\n14\t12\n")
    return work


def test_a_full_disk_is_a_message_and_then_the_same_command_runs_through(work: Path, tmp_path: Path) -> None:
    data = ["--corpus", "jsonl", "--root", str(work)]
    small = ["train.epochs=1", "train.batch_size=2", "model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2"]
    small += ["train.validation_fraction=0.25", "train.device=cpu"]
    trained = ["--tensors", str(work / "graphs.db"), "--pairs", str(work / "pairs.tsv"), *small]
    commands = {
        "build_collection": lambda out: [*data, "--out", str(out / "collection.db")],
        "index": lambda out: index_arguments(work, out),
        "train": lambda out: [*trained, "--out", str(out)],
    }
    runs: list[tuple[str, list[str], int]] = []
    for script, arguments in commands.items():
        out = tmp_path / script
        out.mkdir()
        for number in range(POINTS):
            limit = int(10 ** random.Random(f"{script} {number}").uniform(1, 4.5))
            runs.append((script, arguments(out), limit))
        runs.append((script, arguments(out), 0))
    ended = drive(runs)
    full = 0
    for (script, _, limit), (code, said) in zip(runs, ended, strict=True):
        assert code == 0 or (limit and code == 2), (script, limit, code, said)
        assert "Traceback" not in said, (script, limit, said)
        if code == 2:
            last = said.strip().splitlines()[-1]
            assert any(word in last for word in ("room", "space", "full", "larger files", "written")), last
            full += 1
    assert full >= POINTS
