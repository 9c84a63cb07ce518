"""Processes that share a folder of outputs: no job and no model is made twice, and a kill loses little."""

import csv
import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.experiments.tiny_settings import TINY
from tests.warm_process import Process, start_experiment

pytestmark = pytest.mark.slow
DIES = """
import os, signal
from mathamr.training import checkpoint
save = checkpoint.save

def save_once(path, *content):
    if path.name == "last" and checkpoint.exists(path):
        os.kill(os.getpid(), signal.SIGKILL)  # after steps that the first checkpoint does not have
    save(path, *content)

checkpoint.save = save_once
"""


def start(collection: Path, outputs: Path, *overrides: str, before: str = "") -> Process:
    places = [f"data.root={collection}", f"outputs={outputs}"]
    return start_experiment(collection, "+exp=trial", *TINY, *places, *overrides, before=before)


@pytest.mark.parametrize("parts", [("null", "null"), ("1/2", "2/2")])
def test_two_processes_share_jobs_and_models(collection: Path, tmp_path: Path, parts: tuple[str, str]) -> None:
    seeds = ("experiment.seeds=[1,2]", "train.epochs=2")
    conditions = (
        "+experiment.conditions.single={retrieval: {strategy: single_vector}}",
        "+experiment.conditions.reranked={retrieval: {strategy: doc_vn_maxsim}}",
    )
    both = [start(collection, tmp_path / "out", *seeds, *conditions, f"job={part}") for part in parts]
    ends = [process.ended() for process in both]
    assert [end.returncode for end in ends] == [0, 0], ends
    said = "".join(end.stderr for end in ends)
    assert said.count("epoch 1:") == 2  # a model a seed
    done = Counter(line.split(":")[0] for line in said.splitlines() if "nDCG'" in line)
    assert done == {f"{name}-seed{seed}": 1 for name in ("configured", "single", "reranked") for seed in (1, 2)}
    folder = tmp_path / "out" / "trial-alone"
    with (folder / "results.csv").open(newline="") as file:
        statuses = Counter(row["status"] for row in csv.DictReader(file))
    assert statuses == {"done": 6}
    assert len(list((tmp_path / "out").glob("shared/*/preprocessed-*.db"))) == 1
    assert not list(folder.glob("jobs/*/index"))


def test_a_killed_experiment_goes_on(collection: Path, tmp_path: Path) -> None:
    three = ("experiment.seeds=[1]", "train.epochs=3", "train.patience=3")
    killed = start(collection, tmp_path / "out", *three, before=DIES).ended()
    assert killed.returncode == -signal.SIGKILL, killed
    listed = start(collection, tmp_path / "out", *three, "job=list").ended()
    assert listed.stdout.splitlines()[1].split()[:3] == ["configured-seed1", "missing", "begun"]

    again = start(collection, tmp_path / "out", *three).ended()
    said = again.stderr
    assert again.returncode == 0, said
    assert "posts to graphs" not in said
    assert "epoch 1:" not in said
    assert "epoch 3:" in said
    (log,) = (tmp_path / "out").glob("trial-alone/jobs/configured-seed1/log.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [record["step"] for record in records if record["kind"] == "step"]
    assert steps == list(range(1, len(steps) + 1))
    assert [record["epoch"] for record in records if record["kind"] == "epoch"] == [0, 1, 2]
    (model,) = (tmp_path / "out").glob("shared/*/models/*")
    assert not (model / "last").exists()
