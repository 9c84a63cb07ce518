"""Exit codes after which the batch scripts queue their job again, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: script: name of the job that it queues again
JOBS = {"prepare": "7", "seeds_array": "7_2", "train_multi_gpu": "7"}
USR1, TERM, SAVED = 138, 143, 75


def ended(script: str, tmp_path: Path, code: int, *words: str) -> str:
    """Run a script whose program ends with ``code``; return the calls of Slurm's commands."""
    calls = tmp_path / "calls"
    calls.write_text("", encoding="utf-8")
    for name, text in (("srun", 'echo "$@" >> "$CALLS"; exit "$CODE"'), ("scontrol", 'echo "$@" >> "$CALLS"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    slurm = {"JOB_ID": "7", "ARRAY_JOB_ID": "7", "ARRAY_TASK_ID": "2", "JOB_NODELIST": "here", "CPUS_PER_TASK": "3"}
    slurm |= {"ARRAY_TASK_MIN": "1", "ARRAY_TASK_MAX": "2", "ARRAY_TASK_COUNT": "2"}
    environment = {f"SLURM_{name}": value for name, value in slurm.items()}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "CODE": str(code)}
    command = ["bash", str(ROOT / "slurm" / f"{script}.sbatch"), *words]
    assert subprocess.run(command, env=environment, check=False).returncode == code
    return calls.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", JOBS)
def test_a_job_that_a_signal_has_ended_is_queued_again(script: str, tmp_path: Path) -> None:
    """A preemption sends SIGTERM, at any time: a job that has no handler yet must not be lost."""
    for code in (0, 1, 2, USR1, TERM, SAVED):
        saves = script != "prepare"  # which trains nothing
        queued = code in (USR1, TERM) or (code == SAVED and saves)
        assert (f"requeue {JOBS[script]}\n" in ended(script, tmp_path, code)) == queued, code


def test_each_processor_runs_a_parser_unless_the_command_says_otherwise(tmp_path: Path) -> None:
    assert re.search(r"workers=3 .*workers=1 ", ended("prepare", tmp_path, 0, "workers=1"))  # the last one counts
