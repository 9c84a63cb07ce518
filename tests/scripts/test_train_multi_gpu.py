"""slurm/train_multi_gpu.sbatch, with stand-ins for Slurm's commands: two tasks become two ranks, code 75 a requeue."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mathamr.training import checkpoint
from tests.mathamr.tiny_collection import make_store
from tests.warm_process import SECONDS, free_port

ROOT = Path(__file__).resolve().parents[2]
SRUN = """#!/usr/bin/env bash
# Starts every task here, tells the test their process ids, and ends with the largest exit code.
while [[ $1 == --* ]]; do shift; done
for ((i = 0; i < SLURM_NTASKS; i++)); do
    SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
    pids[i]=$!
done
echo "${pids[@]}" > "$TASKS"
code=0
for pid in "${pids[@]}"; do wait "$pid"; c=$?; ((c > code)) && code=$c; done
exit "$code"
"""
SCONTROL = """#!/usr/bin/env bash
if [[ $1 == show ]]; then echo 127.0.0.1; else echo "$@" >> "$CALLS"; fi
"""
AT_EXIT = """
import atexit, os
from pathlib import Path

def write():
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    Path(os.environ["THREADS"], os.environ["RANK"]).write_text("\\n".join(names))

if "RANK" in os.environ:
    atexit.register(write)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sitecustomize.py").write_text(AT_EXIT)
    (tmp_path / "threads").mkdir()
    return {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(tmp_path),
        "THREADS": str(tmp_path / "threads"),
        "SLURM_JOB_NODELIST": "here",
        "SLURM_JOB_ID": str(free_port() - 20_000),  # the script's port is 20000 + job id
        "SLURM_NTASKS": "2",
        "SLURM_CPUS_PER_TASK": "1",
        "TASKS": str(tmp_path / "tasks"),
        "CALLS": str(tmp_path / "calls"),
    }


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = ["bash", str(ROOT / "slurm" / "train_multi_gpu.sbatch"), *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_two_tasks_train_and_are_queued_again_when_stopped(environment: dict[str, str], tmp_path: Path) -> None:
    make_store(tmp_path / "preprocessed.db").close()
    (tmp_path / "pairs.tsv").write_text("".join(f"q{i}\ta{i}\n" for i in range(48)))
    small = ["train.batch_size=8", "model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2"]
    files = ["--tensors", str(tmp_path / "preprocessed.db"), "--pairs", str(tmp_path / "pairs.tsv")]
    arguments = [*files, "--out", str(tmp_path / "model"), *small, "train.device=cpu", "train.patience=9999"]

    job = start(environment, *arguments, "train.epochs=5000", "train.learning_rate=1e-4")
    log = tmp_path / "model" / "log.jsonl"
    deadline = time.monotonic() + SECONDS
    while not (log.exists() and '"step": 3,' in log.read_text()):
        assert job.poll() is None, job.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.1)
    for pid in (tmp_path / "tasks").read_text().split():
        os.kill(int(pid), signal.SIGUSR1)
    out, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 75, out
    assert "stopped by SIGUSR1 after step" in out
    assert (tmp_path / "calls").read_text() == f"requeue {environment['SLURM_JOB_ID']}\n"
    stopped = checkpoint.load(tmp_path / "model" / "last").info.step
    assert stopped >= 3
    # A thread that outlives its process group can abort the process at its end; then it is not queued again.
    assert ["gloo" in file.read_text() for file in (tmp_path / "threads").iterdir()] == [False, False]

    job = start(environment, *files, "--out", str(tmp_path / "whole"), *small, "train.device=cpu", "train.epochs=1")
    out, _ = job.communicate(timeout=SECONDS)
    assert job.returncode == 0, out
    assert out.count("validation loss") == 2  # an epoch and the summary, of rank 0 alone
    assert (tmp_path / "calls").read_text().count("requeue") == 1
