"""The estimate of a long build: what it is made from, and what it leaves out."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from graphs.stores import collection
from mathamr.stages.console import Console, Stage
from mathamr.stages.data import graphs
from mathamr.stages.learning.reporting import training_stage


@pytest.mark.parametrize("workers", [1, 4])
def test_the_estimate_leaves_the_start_of_processes_out(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes take 500 s to start; then all of them together parse a post in half a second."""
    batch, path = collection.BATCH_SIZE, tmp_path / "collection.db"
    path.write_bytes(b"")
    now = 0.0
    monkeypatch.setattr(graphs, "monotonic", lambda: now)
    stage = Stage("posts", 10_000, "posts", lambda stage: None)
    estimate = graphs._Estimate(stage, path, workers, Console())
    stage.skip(1_000)
    now = 500.0
    for number in count():
        estimate(batch)
        if "estimate" in (said := capsys.readouterr().err):
            break
        assert number < 20
        if number + 1 >= workers:  # the first batch of each is there
            now += batch / 2
            path.write_bytes(path.read_bytes() + bytes(batch * 1_000))
    measured = max(128, workers * batch)
    left = 10_000 - 1_000 - workers * batch - measured
    assert f"estimate from {measured} posts: {left:,} posts take {graphs.duration(left / 2)};" in said
    assert f"{left * 1_000 / 1e6:.1f} MB of graphs" in said


def test_the_rate_leaves_out_what_an_earlier_run_has_made(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stage = Stage("posts", None, "posts", lambda stage: None)
    stage.skip(500)
    stage(30)
    now = 10.0
    assert (stage.done, stage.rate) == (530, 3.0)


def test_the_rate_of_a_resumed_training_leaves_out_the_steps_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with training_stage("training", Console()) as report:
        report({"kind": "start", "step": 500, "total_steps": 900})
        report.progress(30)
        now = 10.0
        assert (report.progress.done, report.progress.total, report.progress.rate) == (530, 900, 3.0)
    assert "training ended after 530 of 900 steps, because the validation loss no longer" in capsys.readouterr().err
