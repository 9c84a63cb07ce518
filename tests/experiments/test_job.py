"""What a job finds in its folder, and what it leaves there: results are kept by configuration, and never mixed."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from experiments.job import run_job
from experiments.plan import Job, finished
from experiments.progress import Console
from experiments.tracks.track import Indexed, Question, Trained
from graphs.corpus.post import Judgment
from graphs.errors import StoreError

QUESTION = Question(1, (), [Judgment("A.1", "a", 3), Judgment("A.1", "b", 0)], "judged")


class OneAnswer:
    """A track that trains nothing and finds ``a``; counts how often it was asked to train, and what lay there then."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []

    def check(self, config: Any) -> None: ...

    def prepare(self, config: Any, question: Question) -> None: ...

    def train(self, config: Any, folder: Path, log: object) -> Trained:
        self.found.append(sorted(path.name for path in folder.iterdir()) if folder.exists() else [])
        folder.mkdir(exist_ok=True)
        (folder / f"epochs-{config.epochs}").touch()
        return Trained(folder, {"time_per_epoch_s": 1.0})

    def index(self, config: Any, trained: Trained, question: Question) -> Indexed:
        return Indexed(None, {})

    def retrieve(self, config: Any, trained: Trained, indexed: Indexed, question: Question) -> Any:
        return {"A.1": [("a", 1.0), ("b", 0.5)]}


def job(epochs: int) -> Job:
    config = {"epochs": epochs, "experiment": {"name": "demo"}, "wandb": {"mode": "disabled", "artifacts": False}}
    return Job("none", 1, OmegaConf.create(config), f"key{epochs}")


def test_a_finished_job_of_another_configuration_is_kept_and_comes_back(tmp_path: Path) -> None:
    track = OneAnswer()
    for epochs in (1, 2):
        run_job(job(epochs), tmp_path, track, QUESTION, Console())
    assert track.found == [[], []]  # nothing of the first is in the way of the second
    assert finished(job(1), tmp_path) is None
    first = (tmp_path / "earlier" / "none-seed1-key1" / "result.json").read_text()

    run_job(job(1), tmp_path, track, QUESTION, Console())
    assert len(track.found) == 2  # it was not run again
    assert (tmp_path / "jobs" / "none-seed1" / "result.json").read_text() == first
    assert [path.name for path in (tmp_path / "jobs" / "none-seed1" / "model").iterdir()] == ["epochs-1"]
    assert [path.name for path in (tmp_path / "earlier").iterdir()] == ["none-seed1-key2"]


def test_an_unfinished_job_goes_on_and_that_of_another_configuration_is_removed(tmp_path: Path) -> None:
    track = OneAnswer()
    run_job(job(1), tmp_path, track, QUESTION, Console())
    (tmp_path / "jobs" / "none-seed1" / "result.json").unlink()
    run_job(job(1), tmp_path, track, QUESTION, Console())
    (tmp_path / "jobs" / "none-seed1" / "result.json").unlink()
    run_job(job(2), tmp_path, track, QUESTION, Console())
    assert track.found == [[], ["epochs-1"], []]
    assert not (tmp_path / "earlier").exists()


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_kill_while_results_move_loses_and_mixes_nothing(tmp_path: Path, moved: int) -> None:
    """The first ``moved`` of per_topic.csv, run.tsv, model and result.json were back when it was killed."""
    track = OneAnswer()
    for epochs in (1, 2):
        run_job(job(epochs), tmp_path, track, QUESTION, Console())
    place, kept = tmp_path / "jobs" / "none-seed1", tmp_path / "earlier" / "none-seed1-key1"
    for name in ("result.json", "run.tsv", "per_topic.csv"):
        (place / name).unlink()
    (place / "model" / "epochs-2").unlink()
    (place / "model").rmdir()
    (place / "key").write_text("key1")
    for name in ("per_topic.csv", "run.tsv", "model")[:moved]:
        (kept / name).replace(place / name)
    run_job(job(1), tmp_path, track, QUESTION, Console())
    assert len(track.found) == 2
    assert json.loads((place / "result.json").read_text())["key"] == "key1"
    assert (place / "model" / "epochs-1").exists()
    assert (place / "run.tsv").exists()
    assert (place / "per_topic.csv").exists()


def test_a_job_that_another_process_is_at_is_left_to_it(tmp_path: Path) -> None:
    track = OneAnswer()
    place = tmp_path / "jobs" / "none-seed1"
    place.mkdir(parents=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_job(job(1), tmp_path, track, QUESTION, Console())
    assert track.found == []


def test_a_file_system_without_locks_is_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="gives no lock"):
        run_job(job(1), tmp_path, OneAnswer(), QUESTION, Console())
