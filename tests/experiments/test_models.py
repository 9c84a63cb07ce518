"""A trained model is made once, whoever asks for it, and on the graphs that are there."""

import fcntl
import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.job import Outcome
from experiments.models import LOCK, Models, TrainingLog, machine, model_of, read_log
from experiments.plan import finished, status
from experiments.tracking.logbook import measured
from graphs.errors import TrainingError


def test_conditions_of_one_model_train_once_and_each_has_its_costs_and_curves(bench: Any) -> None:
    for condition in ("exact", "hnsw", "reranked"):
        assert bench.run(bench.job(condition=condition)) is Outcome.ENDED
        result = finished(bench.job(condition=condition), bench.folder)
        assert result["time_per_epoch_s"] == 1.0
        assert (bench.place(bench.job(condition=condition)) / "log.jsonl").read_text().count("\n") == 2
    assert len(bench.track.found) == 1
    assert bench.track.encoded == 3  # it is the track that keeps what it has encoded
    assert bench.models.state(bench.job()) == "trained"


def test_another_experiment_uses_the_model(bench: Any) -> None:
    bench.run(bench.job())
    bench.folder = bench.folder.with_name("another")
    bench.run(bench.job())
    assert len(bench.track.found) == 1


def test_a_model_that_another_process_trains_is_left_to_it(bench: Any) -> None:
    folder = bench.models.folder(bench.job())
    folder.mkdir(parents=True)
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert bench.models.state(bench.job()) == "training elsewhere"
        assert bench.run(bench.job()) is Outcome.NEED_ELSEWHERE
        assert status(bench.job(), bench.folder) == "missing"  # and its place is free for the other process
        assert bench.run(bench.job(epochs=2)) is Outcome.ENDED
    assert bench.run(bench.job()) is Outcome.ENDED


def test_an_interrupted_training_goes_on_and_its_log_has_each_step_once(bench: Any) -> None:
    bench.track.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench.run(bench.job())
    assert bench.models.state(bench.job()) == "begun"
    bench.track.error = None
    bench.run(bench.job())
    assert bench.track.found == [[LOCK, "code", "source"], [LOCK, "code", "source"]]
    log = [json.loads(line) for line in (bench.models.folder(bench.job()) / "log.jsonl").read_text().splitlines()]
    assert [entry["kind"] for entry in log] == ["start", "start", "step"]


def test_a_record_of_training_needs_no_kind_and_may_have_numbers_of_numpy(tmp_path: Path) -> None:
    record = {"loss": np.float32(0.5)}
    with TrainingLog(tmp_path / "log.jsonl") as log:
        log(record)
    assert read_log(tmp_path / "log.jsonl") == [{"loss": 0.5}]
    assert measured(record) == {}


def test_a_failed_training_fails_each_of_its_jobs_and_is_not_tried_again_in_this_run(bench: Any) -> None:
    bench.track.error = TrainingError("loss is not a number")
    for condition in ("exact", "hnsw"):
        bench.run(bench.job(condition=condition))
    assert len(bench.track.found) == 1
    assert status(bench.job(condition="exact"), bench.folder) == "failed: loss is not a number"
    assert status(bench.job(condition="hnsw"), bench.folder) == (
        "failed: TrainingError: loss is not a number (model of job exact-seed1)"
    )


def test_a_model_of_other_graphs_is_trained_anew_finished_or_not(bench: Any) -> None:
    bench.run(bench.job())
    (bench.models.folder(bench.job()) / "encoded").mkdir()
    bench.track.graphs = "others"
    bench.run(bench.job(condition="again"))
    assert bench.track.found == [[LOCK, "code", "source"], [LOCK, "code", "source"]]
    assert "the graphs have changed since model model1 was trained; it moves to" in " ".join(bench.said)
    assert model_of(bench.shared / "models", "model1", "others") == bench.models.folder(bench.job())
    kept = model_of(bench.shared / "models", "model1", "graphs")
    assert kept is not None
    assert sorted(path.name for path in kept.iterdir()) == ["best", "log.jsonl", "trained.json"]
    bench.track.graphs = "graphs"
    bench.run(bench.job(condition="once_more"))
    assert len(bench.track.found) == 2  # the first model is back
    assert not kept.exists()
    assert model_of(bench.shared / "models", "model1", "graphs") == bench.models.folder(bench.job())
    assert model_of(bench.shared / "models", "model1", "yet others") is None

    kept.mkdir()
    (bench.models.folder(bench.job()) / "best").rename(kept / "best")  # as a kill leaves it, while the model moves
    bench.run(bench.job(condition="after_a_kill"))
    assert len(bench.track.found) == 2
    assert not kept.exists()

    bench.track.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench.run(bench.job(epochs=2))
    (bench.models.folder(bench.job(epochs=2)) / "last").mkdir()
    bench.track.error, bench.track.graphs = None, "yet others"
    bench.run(bench.job(epochs=2))
    assert bench.track.found[-1] == [LOCK, "code", "source"]
    assert any("was begun: it is trained anew" in line for line in bench.said)


def test_a_model_is_of_the_code_that_has_begun_it(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.track.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        bench.run(bench.job())
    bench.track.error = None
    monkeypatch.setattr("experiments.models.mathamr_version", lambda: "edited")
    bench.run(bench.job())
    assert bench.models.state(bench.job()) == "trained"
    assert bench.models.is_of_other_code(bench.job())


def test_a_kill_before_the_record_of_a_model_trains_on(bench: Any) -> None:
    bench.run(bench.job())
    (bench.models.folder(bench.job()) / "trained.json").unlink()
    (bench.models.folder(bench.job()) / "best" / "checkpoint.json").unlink()
    (bench.models.folder(bench.job()) / "best").rmdir()
    bench.models = Models(bench.shared, bench.said.append)
    bench.run(bench.job(condition="another"))
    assert len(bench.track.found) == 2


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux lists its processors there")
def test_the_machine_of_a_row_is_named_by_its_processor() -> None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    assert machine() == ", ".join([*names[:1], platform.machine(), f"{os.cpu_count()} cores"])
