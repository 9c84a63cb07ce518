"""The batch scripts of docs/slurm.md on a Slurm of one node: arrays, exit codes, dependencies, ranks, signals."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mathamr.training import checkpoint
from tests.mathamr.tiny_collection import make_store
from tests.warm_process import SECONDS, is_running

ROOT = Path(__file__).resolve().parents[2]
SANDBOX = ROOT / "scripts" / "slurm_sandbox.sh"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
MISSING = [program for program in PROGRAMS if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None]
SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.batch_size=8", "train.device=cpu"]

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"Slurm is not installed: no {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons start as root only"),
]


class Slurm:
    """The sandbox: jobs are submitted with their output in one folder."""

    def __init__(self, environment: dict[str, str], logs: Path) -> None:
        self.environment, self.logs = environment, logs

    def command(self, *words: str, **variables: str) -> str:
        """What a command of Slurm prints."""
        environment = {**self.environment, **variables}
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def submit(self, *words: str, **variables: str) -> str:
        """Submit a job; returns its number."""
        output = f"--output={self.logs}/%A_%a.log" if any("--array" in word for word in words) else "--output="
        output = output if output.endswith(".log") else f"--output={self.logs}/%j.log"
        return self.command("sbatch", "--parsable", output, *words, **variables)

    def facts(self, job: str) -> dict[str, str]:
        """What Slurm knows of a job or of the element of an array (``7_2``)."""
        words = self.command("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait(self, job: str, *states: str) -> dict[str, str]:
        """Until the job is in one of these states."""
        self.until(lambda: self.facts(job)["JobState"] in states, lambda: f"{self.facts(job)}\n{self.log(job)}")
        return self.facts(job)

    def until(self, ready: Callable[[], bool], tell: Callable[[], str], pause: float = 0.5) -> None:
        """Wait until ``ready``; ``tell`` describes the state otherwise."""
        deadline = time.monotonic() + SECONDS
        while not ready():
            assert time.monotonic() < deadline, tell()
            time.sleep(pause)  # a question to Slurm takes processor time that its jobs need

    def log(self, job: str) -> str:
        """What a job has printed so far."""
        path = self.logs / f"{job}.log"
        return path.read_text() if path.exists() else ""

    def start_again(self, job: str) -> None:
        """A job that is queued again waits two minutes, by Slurm's rule: not here.

        But some seconds: a start within the second of the stop is refused by the node, whose clock has whole seconds.
        """
        self.until(lambda: self.facts(job).get("Restarts") == "1", lambda: f"{self.facts(job)}\n{self.log(job)}")
        self.wait(job, "PENDING")
        self.command("scontrol", "update", f"JobId={job}", "StartTime=now+3")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    logs = tmp_path_factory.mktemp("logs")
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
    up = subprocess.run([SANDBOX, "up"], env=environment, capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stderr
    variables = dict(re.findall(r"(\w+)=(\S+)", up.stdout))
    environment |= variables | {"PYTHON": sys.executable, "WANDB_MODE": "disabled"}
    yield Slurm(environment, logs)
    folder = Path(variables["SLURM_SANDBOX"])
    daemons = [int((folder / f"{name}.pid").read_text()) for name in ("munged", "slurmctld", "slurmd")]
    subprocess.run([SANDBOX, "down"], env=environment, check=True)
    assert not folder.exists()
    assert not [pid for pid in daemons if is_running(pid)]


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty questions with their answers, four topics with judgments."""
    root = tmp_path_factory.mktemp("collection")
    subjects = ("ring", "group", "field", "lattice")
    posts = []
    for i in range(40):
        subject = subjects[i % 4]
        question = {"post_id": f"q{i}", "kind": "question", "markup": "text", "title": f"When is a {subject} finite?"}
        answer = {"post_id": f"a{i}", "kind": "answer", "markup": "text", "parent_id": f"q{i}"}
        posts += [question | {"body": f"Let $x^{i}=1$."}, answer | {"body": f"The {subject} is finite if $x^{i}=1$."}]
    topics = [
        {"post_id": f"T.{i}", "markup": "text", "title": f"Finite {s}", "body": s} for i, s in enumerate(subjects)
    ]
    for name, rows in (("posts", posts), ("topics", topics)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [f"T.{t}\t0\ta{i}\t{3 * (i % 4 == t)}\n" for t in range(4) for i in range(40)]
    (root / "qrels.tsv").write_text("".join(judged))
    return root


def test_exit_codes_and_dependencies(slurm: Slurm) -> None:
    script = "slurm/seeds_array.sbatch"
    partial = slurm.submit("--array=2-3", "--gpus=0", script, "+exp=vn_connectivity")
    after = slurm.submit(f"--dependency=afterok:{partial}", script, "+exp=vn_connectivity")
    anyway = slurm.submit(f"--dependency=afterany:{partial}", "--wrap", "exit 7")
    assert slurm.wait(f"{partial}_2", "FAILED")["ExitCode"] == "2:0"
    assert "use --array=1-N, or set JOBS=N" in slurm.log(f"{partial}_2")
    assert slurm.wait(anyway, "FAILED")["ExitCode"] == "7:0"
    slurm.wait(f"{after}_1", "CANCELLED")  # else it would wait forever


def test_an_experiment_as_an_array_of_jobs_with_two_ranks(slurm: Slurm, collection: Path, tmp_path: Path) -> None:
    question = ["+exp=trial", "experiment.name=demo", "experiment.seeds=[1,2]", "data=jsonl", f"data.root={collection}"]
    settings = [f"outputs={tmp_path}", "workers=1", *SMALL, "train.epochs=12", "train.patience=12", "train.processes=2"]
    element = ["--cpus-per-task=2", "--gpus=0", "slurm/seeds_array.sbatch", *question, *settings]
    # The graphs, then the first of two jobs, stopped while it trains ...
    graphs = slurm.submit("--cpus-per-task=1", "slurm/prepare.sbatch", *question, *settings)
    array = slurm.submit("--array=1", f"--dependency=afterok:{graphs}", *element, JOBS="2")
    first = f"{array}_1"
    # Wherever models lie below the outputs: a checkpoint is a folder with this file.
    saved = "last/checkpoint.json"
    slurm.until(lambda: any(tmp_path.rglob(saved)), lambda: f"{slurm.facts(first)}\n{slurm.log(first)}", pause=0.02)
    slurm.command("scancel", "--signal=USR1", first)
    slurm.start_again(first)
    # ... goes on when it is queued again, and what waits for its end begins then.
    alone = [*element, "train.processes=1"]  # keys do not depend on it, so the job of two ranks is done
    rest = slurm.submit("--array=2", f"--dependency=afterok:{array}", *alone, JOBS="2")
    assert slurm.wait(first, "COMPLETED", "FAILED")["ExitCode"] == "0:0", slurm.log(first)
    assert "the graphs of 2 jobs are in" in slurm.log(graphs)
    assert "graphs to tensors" not in slurm.log(first)
    assert re.search(r"stopped by SIGUSR1 after step \d+, saved", slurm.log(first))
    assert slurm.log(first).count("epoch 1:") == 1
    second = f"{rest}_2"
    assert slurm.wait(second, "COMPLETED", "FAILED")["ExitCode"] == "0:0", slurm.log(second)
    with (tmp_path / "demo" / "results.csv").open(newline="") as file:
        assert [(row["seed"], row["status"]) for row in csv.DictReader(file)] == [("1", "done"), ("2", "done")]


@pytest.mark.skipif(importlib.util.find_spec("submitit") is None, reason="the extra slurm is not installed")
def test_the_launcher_of_hydra_sends_parts_and_waits_for_them(slurm: Slurm, collection: Path, tmp_path: Path) -> None:
    question = ["+exp=trial", "experiment.seeds=[1,2]", "data=jsonl", f"data.root={collection}", f"outputs={tmp_path}"]
    launcher = ["--multirun", "launcher=slurm", "job=1/2,2/2", "hydra.launcher.cpus_per_task=1"]
    command = [sys.executable, "-m", "experiments.run", *launcher, *question, *SMALL, "train.epochs=1", "workers=1"]
    slurm.command(*command, PYTHONPATH=f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
    with (tmp_path / "trial-alone" / "results.csv").open(newline="") as file:
        assert [(row["seed"], row["status"]) for row in csv.DictReader(file)] == [("1", "done"), ("2", "done")]
    assert "+exp=trial" in (tmp_path / "trial-alone" / "report.md").read_text()
    (script,) = (tmp_path / "slurm").rglob("*_submission.sh")
    assert "\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n" in script.read_text()
    environment = {**slurm.environment, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    wrong = [*(word.replace("1/2,2/2", "1/2") for word in command), "train.batch_size=4000"]
    done = subprocess.run(
        wrong, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )  # without an answer from its jobs, it would wait
    assert done.returncode == 2
    message = "train.batch_size=4000 is larger than the training set"
    assert message in done.stderr
    logs = {path.name: path.read_text() for path in (tmp_path / "slurm").rglob("*_log.err")}
    failed = [name.removesuffix("_0_log.err") for name, log in logs.items() if message in log]
    assert [slurm.wait(job, "FAILED")["ExitCode"] for job in failed] == ["2:0"]

    later = [*command, "+hydra.launcher.additional_parameters={begin: 'now+1hour'}"]
    with subprocess.Popen(later, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as waiting:
        slurm.until(lambda: "PENDING" in slurm.command("squeue", "--format=%T"), lambda: "no job")
        slurm.command("scancel", "--user=root")
        _, printed = waiting.communicate(timeout=SECONDS)
    assert waiting.returncode == 1
    assert "if it was cancelled or killed, run the command again" in printed


def test_without_the_extra_only_the_launcher_is_missing() -> None:
    hidden = (
        "import runpy, sys; sys.modules['submitit'] = None; runpy.run_module('experiments.run', run_name='__main__')"
    )
    command = [sys.executable, "-c", hidden, "--multirun", "launcher=slurm", "+exp=trial"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'mathamr-plus[slurm]'" in done.stderr


TRAINING = (
    "import signal; signal.signal(signal.SIGUSR1, lambda *_: exit(print('saved'))); print('trains'); signal.pause()"
)
AGENT = f"""
import subprocess, sys
print(*sys.argv[1:], flush=True)
subprocess.run([sys.executable, "-uc", {TRAINING!r}], check=True)
print("the next trial", flush=True)
"""


def test_agents_of_a_sweep_as_an_array_outlive_the_signal_to_their_trainings(slurm: Slurm, tmp_path: Path) -> None:
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb" / "__init__.py").touch()
    (tmp_path / "wandb" / "__main__.py").write_text(AGENT)  # a stand-in: W&B's agent needs its server
    script = ["--array=1-2", "--cpus-per-task=1", "--gpus=0", "slurm/agents_array.sbatch", "me/plus/x1"]
    array = slurm.submit(*script, PYTHONPATH=str(tmp_path), TRIALS="5")
    for element in (f"{array}_1", f"{array}_2"):
        slurm.until(lambda e=element: "trains" in slurm.log(e), lambda e=element: f"{slurm.facts(e)}\n{slurm.log(e)}")
        slurm.command("scancel", "--signal=USR1", element)
        assert slurm.wait(element, "COMPLETED", "FAILED")["ExitCode"] == "0:0", slurm.log(element)
        assert slurm.log(element).split("\n")[:4] == ["agent --count 5 me/plus/x1", "trains", "saved", "the next trial"]


def test_two_ranks_stop_at_a_signal_go_on_when_queued_again_and_stay_away_when_cancelled(
    slurm: Slurm, tmp_path: Path
) -> None:
    make_store(tmp_path / "preprocessed.db").close()
    (tmp_path / "pairs.tsv").write_text("".join(f"q{i}\ta{i}\n" for i in range(48)))
    files = ["--tensors", tmp_path / "preprocessed.db", "--pairs", tmp_path / "pairs.tsv", "--out", tmp_path / "model"]
    long = ["train.epochs=5000", "train.patience=5000", "train.learning_rate=1e-4"]
    tasks = ["--nodes=1", "--ntasks-per-node=2", "--gpus-per-node=0", "--cpus-per-task=1"]
    job = slurm.submit(*tasks, "slurm/train_multi_gpu.sbatch", *map(str, files), *SMALL, *long)

    def records() -> list[dict[str, int]]:
        log = tmp_path / "model" / "log.jsonl"
        lines = log.read_text().splitlines()[:-1] if log.exists() else []
        return [json.loads(line) for line in lines]

    slurm.until(lambda: len(records()) > 8, lambda: f"{slurm.facts(job)}\n{slurm.log(job)}")
    slurm.command("scancel", "--signal=USR1", job)
    slurm.start_again(job)
    stopped = checkpoint.load(tmp_path / "model" / "last").info.step
    assert stopped > 3
    assert f"after step {stopped}, saved" in slurm.log(job)
    slurm.until(lambda: records()[-1].get("step", 0) > stopped + 3, lambda: f"{slurm.facts(job)}\n{slurm.log(job)}")
    starts = [record for record in records() if record["kind"] == "start"]
    assert [(record["step"], record["ranks"]) for record in starts] == [(0, 2), (stopped, 2)]
    steps = [record["step"] for record in records() if record["kind"] == "step"]
    assert steps == list(range(1, len(steps) + 1))

    slurm.command("scancel", job)
    slurm.wait(job, "CANCELLED")
    assert slurm.facts(job)["Restarts"] == "1"
