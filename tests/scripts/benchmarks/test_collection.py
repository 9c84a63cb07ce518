"""The benchmarks of building a collection and of the embedded parser, on a few posts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphs.amr.embedded import EmbeddedParser
from scripts.benchmarks.collection import usage
from tests.scripts.in_process import run_script


def bench(name: str, *arguments: str | Path) -> tuple[list[str], dict[str, Any]]:
    done = run_script("bench.py", name, *arguments)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines, json.loads(lines[-1])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    lines = [json.dumps({"question_id": i, "title": f"Solve $x^{i}$.", "body": "Is it odd? Why?"}) for i in range(20)]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.usefixtures("warm_children")
def test_a_build_is_measured_and_the_collection_stays(corpus: Path, tmp_path: Path) -> None:
    out, samples = tmp_path / "c.db", tmp_path / "samples.tsv"
    given = ("--corpus", "jsonl", "--root", corpus, "--out", out, "--samples", samples, "--every", "0.2")
    around = usage(os.getpid()).memory / 2**20  # this process has what earlier tests imported, and perhaps a browser
    lines, result = bench("collection", *given)
    assert lines[0] == "20 posts"
    assert (result["posts"], result["graphs"], result["workers"]) == (20, 20, 2)
    assert result["posts_per_second"] > 0
    assert 50 < result["peak_mib"] < around + 5000
    assert max(result["peak_mib_by_tenth"]) == result["peak_mib"]
    seconds, _, processes, memory = samples.read_text().splitlines()[0].split("\t")
    assert (float(seconds) > 0, int(processes) >= 1, float(memory) > 10) == (True, True, True)
    assert out.is_file()


def test_the_memory_of_a_process_counts_with_that_of_those_it_started() -> None:
    program = "x = bytearray(100 << 20); print(1, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    alone, family = usage(child.pid), usage(os.getpid())
    assert alone.processes == 1
    assert alone.memory > 100 << 20
    assert family.processes >= 2
    assert family.memory > alone.memory + (10 << 20)
    child.communicate(b"\n")
    begin = usage(os.getpid()).cpu
    while time.process_time() < 0.1 or usage(os.getpid()).cpu <= begin:
        sum(range(100_000))


def test_every_sentence_is_looked_at(corpus: Path) -> None:
    lines, result = bench("embedded_parser", "--corpus", "jsonl", "--root", corpus, "--limit", "10")
    assert lines[-2] == "30 sentences: 0 invalid graphs, 0 placeholders lost"
    assert (result["posts"], result["placeholders"], result["invalid"], result["lost"]) == (10, 10, 0, 0)
    assert result["sentences_per_cpu_second"] > 0


def test_invalid_graphs_are_exit_code_1(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedParser, "parse", lambda self, chunks: ["(("] * len(chunks))
    done = run_script("bench.py", "embedded_parser", "--corpus", "jsonl", "--root", corpus, "--limit", "1")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["invalid"]) == (1, 3)
