"""slurm/thesis.sh (docs/slurm.md): the plan of the whole thesis, and its jobs, on a stand-in for sbatch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SBATCH = """#!/usr/bin/env bash
echo "$@" >> "$CALLS"
echo $((100 + $(wc -l < "$CALLS")))
"""


def chain(tmp_path: Path, *words: str, **variables: str) -> tuple[str, list[str]]:
    """Return what the script prints, and the calls of sbatch."""
    sbatch, calls = tmp_path / "bin" / "sbatch", tmp_path / "calls"
    sbatch.parent.mkdir(exist_ok=True)
    sbatch.write_text(SBATCH, encoding="utf-8")
    sbatch.chmod(0o755)
    calls.write_text("", encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{sbatch.parent}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "CALLS": str(calls),
        "EXPERIMENTS": "vn_structure vn_connectivity",
        **variables,
    }
    command = [str(ROOT / "slurm" / "thesis.sh"), *words, f"outputs={tmp_path / 'outputs'}"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, calls.read_text(encoding="utf-8").splitlines()


def test_the_plan_says_jobs_models_and_hours_and_submits_nothing(tmp_path: Path) -> None:
    printed, calls = chain(tmp_path, "--dry-run", SECONDS_A_MODEL="360", GPUS="2")
    assert not calls
    structure, connectivity = (
        [int(number) for number in re.findall(rf"^{name} +(\d+) +(\d+) ", printed, re.MULTILINE)[0]]
        for name in ("vn_structure", "vn_connectivity")
    )
    assert connectivity[0] == 20  # four conditions, five seeds
    assert connectivity[1] < 20  # some models are those of vn_structure
    models = structure[1] + connectivity[1]
    assert f"training: {models / 10:.1f} GPU hours, {models / 20:.1f} hours on 2 GPUs" in printed
    assert "JOB3: one report of all: sbatch --dependency=afterany:JOB2" in printed


def test_parsing_merging_experiments_and_the_report_wait_for_each_other(tmp_path: Path) -> None:
    parse = "--corpus arqmath --root /data --parser transition --option python=envs/bin/python"
    _, calls = chain(tmp_path, PARSE=parse, SHARDS="3", SEEDS="1,2", EXPERIMENTS="vn_connectivity")
    array, merge, experiment, report = calls
    assert "--array=1-3" in array
    assert "SHARDS=3" in array
    assert array.endswith(parse)
    assert "--dependency=afterok:101" in merge
    assert "shard-3.db" in merge
    assert "--dependency=afterok:102 --array=1-8%4 --job-name=vn_connectivity" in experiment
    assert "parsed/collection.db experiment.seeds=[1,2]" in experiment
    assert "--dependency=afterany:103" in report
    assert "-m experiments.report" in report


@pytest.mark.parametrize("words", [[], ["optimizer.yaml"], ["a/b/c", "d"]])
def test_an_agent_without_a_sweep_is_refused(words: list[str]) -> None:
    script = ROOT / "slurm" / "agents_array.sbatch"
    done = subprocess.run(["bash", str(script), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "as mathamr sweep prints it" in done.stderr


def test_an_agent_gets_its_sweep_and_its_trials(tmp_path: Path) -> None:
    srun = tmp_path / "srun"
    srun.write_text('#!/usr/bin/env bash\necho "$@"\n', encoding="utf-8")
    srun.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TRIALS": "5", "PYTHON": sys.executable}
    script = ROOT / "slurm" / "agents_array.sbatch"
    done = subprocess.run(
        ["bash", str(script), "me/plus/x1"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"--ntasks=1 {sys.executable} -m wandb agent --count 5 me/plus/x1"
