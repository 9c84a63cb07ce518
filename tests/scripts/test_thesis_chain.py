"""slurm/thesis.sh (docs/slurm.md): the plan of the whole thesis, and its jobs, on a stand-in for sbatch."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.plan import plan
from graphs.corpus.files import Fingerprints

pytestmark = pytest.mark.usefixtures("quick_composition")

ROOT = Path(__file__).resolve().parents[2]
SBATCH = """#!/usr/bin/env bash
echo "$@${JOBS:+ with JOBS=$JOBS}" >> "$CALLS"
echo $((100 + $(wc -l < "$CALLS")))
"""


def chain(tmp_path: Path, *words: str, outputs: str | None = None, **variables: str) -> tuple[str, list[str]]:
    """Return what the script prints, and the calls of sbatch; ``outputs`` is a value as Hydra reads it."""
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
    command = [str(ROOT / "slurm" / "thesis.sh"), *words, f"outputs={outputs or tmp_path / 'outputs'}"]
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
    assert re.search(r"^JOB5: report: sbatch .*--dependency=afterany:JOB4", printed, re.MULTILINE)
    assert not (tmp_path / "outputs").exists()


def test_the_page_tells_the_jobs_and_models_of_each_table() -> None:
    page = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (4\.[\d., to]+) \| `(\w+)` \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    (default,) = re.findall(r"EXPERIMENTS:-([\w\s\\]+)\}", (ROOT / "slurm" / "thesis.sh").read_text(encoding="utf-8"))
    assert [name for _, name, *_ in rows] == default.replace("\\", "").split()
    tables: list[int] = []
    known: set[str] = set()
    register()
    for numbers, name, jobs, models in rows:
        first, *last = (int(number) for number in re.findall(r"4\.(\d+)", numbers))
        tables += range(first, (last or [first])[0] + 1)
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            overrides = [f"+exp={name}", "data=arqmath", "data.root=/data", "data.years=[2022]"]
            training = [] if name == "arqmath3_benchmark" else ["train=thesis"]
            regime = "full" if name == "arqmath3_benchmark" else "judged"
            config = validated(compose("config", [*overrides, *training, f"data.regime={regime}"]))
        planned = plan(config, Fingerprints("fingerprint"))
        keys = {job.model_key for job in planned} - known
        assert (len(planned), len(keys)) == (int(jobs), int(models)), name
        known |= keys
    assert tables == list(range(6, 23))


def test_finished_jobs_and_trained_models_are_left_out(tmp_path: Path) -> None:
    """Of eight jobs two are done, one runs elsewhere, and one of the others has its model."""
    python = tmp_path / "python"
    change = "2,3s/missing  missing/done     trained/; 4s/missing  missing/running elsewhere  training elsewhere/"
    change += "; 5s/missing  missing/missing  trained/"
    python.write_text(f"#!/usr/bin/env bash\n{sys.executable} \"$@\" | sed '{change}'\n", encoding="utf-8")
    python.chmod(0o755)
    options = {"EXPERIMENTS": "vn_connectivity", "SEEDS": "1,2", "SECONDS_A_MODEL": "3600", "PYTHON": str(python)}
    printed, calls = chain(tmp_path, **options)
    assert re.search(r"^vn_connectivity +6 +5 +5\.0$", printed, re.MULTILINE)
    assert "slurm/prepare.sbatch +exp=vn_connectivity" in calls[0]
    assert "--dependency=afterok:101 --array=1-6%4" in calls[1]
    python.write_text(f"#!/usr/bin/env bash\n{sys.executable} \"$@\" | sed 's/missing  missing/done     trained/'\n")
    printed, calls = chain(tmp_path, **options)
    assert re.search(r"^vn_connectivity +0 +0 +0\.0$", printed, re.MULTILINE)
    assert "All jobs are finished; only the report is written again." in printed
    assert len(calls) == 1
    assert "experiments.report" in calls[0]


def test_parsing_merging_experiments_and_the_report_wait_for_each_other(tmp_path: Path) -> None:
    parse = "--corpus arqmath --root /data --parser transition --option python=envs/bin/python"
    variables = {"PYTHON": stand_in(tmp_path), "LISTED": os.devnull, "EXPERIMENTS": "vn_connectivity"}
    printed, calls = chain(tmp_path, PARSE=parse, SHARDS="3", SEEDS="1,2", JOBS="8", **variables)
    # The list says that one job is done and one model trained: with graphs of the embedded parser.
    assert re.search(r"^vn_connectivity +3 +3 ", printed, re.MULTILINE)
    array, merge, prepare, experiment, report = calls
    assert "--array=1-3" in array
    assert "SHARDS=3" in array
    assert array.endswith(parse)
    assert "--dependency=afterok:101" in merge
    assert "shard-3.db" in merge
    assert "--job-name=prepare-vn_connectivity " in prepare
    assert "--dependency=afterok:102 slurm/prepare.sbatch" in prepare
    assert "--job-name=vn_connectivity " in experiment
    assert "--dependency=afterok:103 --array=1-3%4 slurm/seeds_array.sbatch" in experiment
    for call in (prepare, experiment):
        assert "parsed/collection.db experiment.seeds=[1,2]" in call
    assert "--dependency=afterany:104" in report
    assert "-m experiments.report" in report
    for call in calls:
        assert "--kill-on-invalid-dep=yes" in call  # or a failed job would leave those after it pending
        assert "JOBS=" not in call  # an exported JOBS, e.g. for make, would be the number of the array's elements
    logs = tmp_path / "outputs" / "logs"
    assert logs.is_dir()
    assert f"--output={logs}/%x-%j.log" in prepare
    assert f"--output={logs}/%x-%A_%a.log" in experiment


def test_merged_graphs_are_not_parsed_again_and_jobs_are_known_by_them(tmp_path: Path) -> None:
    """A merge refuses to write a collection that exists; the experiments would wait for it forever."""
    listed, parsed = tmp_path / "listed", tmp_path / "outputs" / "parsed" / "collection.db"
    parsed.parent.mkdir(parents=True)
    parsed.touch()
    variables = {"PYTHON": stand_in(tmp_path), "LISTED": str(listed), "EXPERIMENTS": "vn_connectivity"}
    _, calls = chain(tmp_path, PARSE="--corpus jsonl --root /data", **variables)
    prepare, experiment, report = calls
    assert f"data.collection={parsed}" in listed.read_text(encoding="utf-8")
    assert f"data.collection={parsed}" in experiment
    assert "--array=1-2%4" in experiment
    assert "--dependency" not in prepare
    assert "--dependency=afterany:102" in report


def test_quotation_marks_of_hydra_are_no_part_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "thü out"
    parsed = folder / "parsed" / "collection.db"
    parsed.parent.mkdir(parents=True)
    parsed.touch()
    variables = {"PYTHON": stand_in(tmp_path), "LISTED": os.devnull, "EXPERIMENTS": "vn_connectivity"}
    _, (prepare, *_, report) = chain(tmp_path, PARSE="--corpus jsonl", outputs=f'"{folder}"', **variables)
    assert f"--output={folder}/logs/%x-%j.log" in prepare
    assert f'outputs="{folder}" data.collection="{parsed}"' in prepare
    assert '"' not in report
    assert (folder / "logs").is_dir()


def stand_in(tmp_path: Path) -> str:
    """Return an interpreter that lists three jobs: one done, one with a trained model, one missing."""
    python = tmp_path / "python"
    python.write_text(
        """#!/usr/bin/env bash
echo "$@" >> "$LISTED"
echo 'Job                 State    Model    Key  Model key'
echo 'none-seed1          done     trained  a1   b1'
echo 'circular-seed1      missing  trained  a2   b2'
echo 'sequential-seed1    missing  missing  a3   b3'
""",
        encoding="utf-8",
    )
    python.chmod(0o755)
    return str(python)


def test_arqmath_gets_the_settings_of_the_thesis(tmp_path: Path) -> None:
    listed, names = str(tmp_path / "listed"), "vn_structure arqmath3_benchmark"
    variables = {"PYTHON": stand_in(tmp_path), "LISTED": listed, "EXPERIMENTS": names}
    _, (_, structure, _, benchmark, _) = chain(tmp_path, "data=arqmath", "data.root=/data", **variables)
    assert "data.regime=judged data.years=[2022] train=thesis" in structure
    assert "data.regime=full data.years=[2022]" in benchmark
    own = ("data.regime=mini", "data.years=[2020]", "train=laptop")
    _, calls = chain(tmp_path, "data=arqmath", "data.root=/data", *own, **variables)
    for call in calls[:-1]:
        assert "data.regime=mini data.years=[2020] train=laptop" in call
        assert "[2022]" not in call
        assert "train=thesis" not in call
    assert "data.regime=judged data.years=[2022] train=thesis" in Path(listed).read_text(encoding="utf-8")


def test_a_missing_interpreter_is_named() -> None:
    command = [str(ROOT / "slurm" / "thesis.sh"), "--dry-run"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHON": "nowhere/python"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Interpreter nowhere/python not found; install the project" in done.stderr


@pytest.mark.parametrize("words", [[], ["optimizer.yaml"], ["a/b/c", "d"]])
def test_an_agent_without_a_sweep_is_refused(words: list[str]) -> None:
    script = ROOT / "slurm" / "agents_array.sbatch"
    done = subprocess.run(["bash", str(script), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "as mathamr sweep prints it" in done.stderr


WANDB = """
import os, signal, subprocess, sys
os.kill(os.getpid(), signal.SIGUSR1)
print(*sys.argv[1:], flush=True)
subprocess.run([sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGUSR1).name)"], check=True)
"""


def test_an_agent_gets_its_sweep_and_its_trials_and_outlives_the_signal(tmp_path: Path) -> None:
    """A training below it does not ignore the signal."""
    (tmp_path / "srun").write_text('#!/usr/bin/env bash\nshift\nexec "$@"\n', encoding="utf-8")
    (tmp_path / "srun").chmod(0o755)
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "__init__.py").touch()
    (tmp_path / "wandb" / "__main__.py").write_text(WANDB, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TRIALS": "5", "PYTHON": sys.executable}
    script = ROOT / "slurm" / "agents_array.sbatch"
    done = subprocess.run(
        ["bash", str(script), "me/plus/x1"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["agent --count 5 me/plus/x1", "SIG_DFL"]
