"""What a job finds in its folder, and what it leaves there: results are kept by configuration, and never mixed."""

import fcntl
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from experiments.job import Outcome
from experiments.models import Models
from experiments.plan import LOCK, finished, state, status
from graphs.corpus.jsonl import JsonLines
from graphs.errors import StoreError, TrainingError
from mathamr.evaluation.runs import read_run
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.topic_sets import Encoded, Retrieved
from mathamr.systems import registry


def test_what_a_job_leaves(bench: Any) -> None:
    assert bench.run(bench.job()) is Outcome.ENDED
    place = bench.place(bench.job())
    assert sorted(path.name for path in place.iterdir() if not path.name.startswith(".")) == [
        "examples.json",
        "heat_map.json",
        "key",
        "log.jsonl",
        "per_topic.csv",
        "rankings.json",
        "result.json",
        "run.tsv",
    ]
    result = finished(bench.job(), bench.folder)
    assert result is not None
    assert {"time_per_epoch_s", "encode_docs_per_second", "queries_per_second", "model_code", "code"} <= result.keys()
    assert [json.loads(line)["kind"] for line in (place / "log.jsonl").read_text().splitlines()] == ["start", "step"]
    heat_map = json.loads((place / "heat_map.json").read_text())
    assert heat_map == {
        "topic": "A.1",
        "post": "a",
        "grade": 3,
        "score": 1.0,
        "queries": [{"kind": "formula", "text": "x"}],
        "documents": [{"kind": "formula", "text": "x"}],
        "scores": [[1.0]],
    }
    (example,) = json.loads((place / "examples.json").read_text())
    assert (example["topic"], example["title"], example["body"]) == ("A.1", "What is $x$?", "I ask.")
    assert example["results"][1] == {
        "rank": 2,
        "post": "b",
        "score": 0.5,
        "grade": 0,
        "title": "T",
        "body": "Let it be.",
    }


def test_a_cost_with_the_name_of_a_measure_is_refused(bench: Any) -> None:
    bench.track.encode = lambda *_: Encoded(None, {"bpref": 10.0})
    bench.run(bench.job())
    assert status(bench.job(), bench.folder).startswith(
        "failed: the column bpref of the results would be of the costs and of the measures; rename one of them"
    )


def test_costs_may_be_numbers_of_numpy(bench: Any) -> None:
    bench.track.encode = lambda *_: Encoded(None, {"size": np.int64(7), "share": np.float32(0.5)})
    bench.run(bench.job())
    assert status(bench.job(), bench.folder) == "done"
    result = finished(bench.job(), bench.folder)
    assert result is not None
    assert (result["size"], result["share"]) == (7, 0.5)


def test_an_index_is_removed_unless_it_is_to_be_kept(bench: Any) -> None:
    bench.run(bench.job())
    assert not (bench.place(bench.job()) / "index").exists()
    bench.run(bench.job(keep=True, condition="kept"))
    assert (bench.place(bench.job(condition="kept")) / "index" / "vectors").exists()


def test_a_finished_job_of_another_configuration_is_kept_and_comes_back(bench: Any) -> None:
    for epochs in (1, 2):
        bench.run(bench.job(epochs))
    assert finished(bench.job(1), bench.folder) is None
    first = (bench.folder / "earlier" / "none-seed1-keynone1" / "result.json").read_text()

    bench.run(bench.job(1))
    assert len(bench.track.found) == 2  # it was not run again
    assert (bench.place(bench.job()) / "result.json").read_text() == first
    assert (bench.place(bench.job()) / "run.tsv").exists()
    assert [path.name for path in (bench.folder / "earlier").iterdir()] == ["none-seed1-keynone2"]


@pytest.mark.parametrize("damaged", [False, True])
def test_rankings_are_kept_only_if_their_file_is_undamaged(bench: Any, damaged: bool) -> None:
    """A changed scoring setting gives another key, and the same rankings."""
    before = replace(bench.job(), run_key="same")
    bench.run(before)
    run_file = bench.place(before) / "run.tsv"
    whole = run_file.read_text()
    if damaged:
        run_file.write_text(whole.splitlines(keepends=True)[1])
    with patch.object(bench.track, "retrieve", wraps=bench.track.retrieve) as retrieve:
        bench.run(replace(before, key="scored otherwise"))
    assert retrieve.called == damaged
    assert run_file.read_text() == whole


def test_an_unfinished_job_of_another_configuration_is_removed(bench: Any) -> None:
    bench.run(bench.job(1))
    (bench.place(bench.job()) / "result.json").unlink()
    bench.run(bench.job(2))
    assert not (bench.folder / "earlier").exists()


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_kill_while_results_move_loses_and_mixes_nothing(bench: Any, moved: int) -> None:
    """The first ``moved`` of per_topic.csv, run.tsv and result.json were back when it was killed."""
    for epochs in (1, 2):
        bench.run(bench.job(epochs))
    place, kept = bench.place(bench.job()), bench.folder / "earlier" / "none-seed1-keynone1"
    for name in ("result.json", "run.tsv", "per_topic.csv"):
        (place / name).unlink()
    (place / "key").write_text("keynone1")
    for name in ("per_topic.csv", "run.tsv")[:moved]:
        (kept / name).replace(place / name)
    bench.run(bench.job(1))
    assert len(bench.track.found) == 2
    assert json.loads((place / "result.json").read_text())["key"] == "keynone1"
    assert (place / "run.tsv").exists()
    assert (place / "per_topic.csv").exists()


def test_a_job_that_another_process_is_at_is_left_to_it(bench: Any) -> None:
    place = bench.place(bench.job())
    place.mkdir(parents=True)
    with (place / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert bench.run(bench.job()) is Outcome.ELSEWHERE
        assert state(bench.job(), bench.folder) == "running elsewhere"
    assert state(bench.job(), bench.folder) == "missing"
    assert bench.track.found == []


def test_a_file_system_without_locks_is_no_other_process(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreError, match="gives no lock"):
        bench.run(bench.job())


@pytest.mark.parametrize(
    ("error", "reason", "traced"),
    [
        (TrainingError("loss is not a number"), "loss is not a number", False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "OutOfMemoryError: CUDA out of", True),
        (ZeroDivisionError(), "ZeroDivisionError: ZeroDivisionError (see", True),
    ],
)
def test_whatever_a_job_dies_of_is_kept_and_goes_away_when_it_succeeds(
    bench: Any, error: Exception, reason: str, traced: bool
) -> None:
    bench.track.error = error
    assert bench.run(bench.job()) is Outcome.ENDED
    assert status(bench.job(), bench.folder).startswith(f"failed: {reason}")
    trace = bench.place(bench.job()) / "traceback.txt"
    assert trace.exists() == traced
    if traced:
        assert "raise self.error" in trace.read_text()

    bench.track.error = None
    bench.models = Models(bench.shared, bench.said.append)  # the next run
    bench.run(bench.job())
    assert status(bench.job(), bench.folder) == "done"
    assert not trace.exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_being_stopped_is_no_failure(bench: Any, error: type[BaseException]) -> None:
    bench.track.error = error()  # type: ignore[assignment]
    with pytest.raises(error):
        bench.run(bench.job())
    assert state(bench.job(), bench.folder) == "missing"


@pytest.mark.parametrize(
    ("step", "returned", "message"),
    [
        ("train", None, r"train\(\) returned NoneType; return mathamr\.stages\.topic_sets\.Trained"),
        ("encode", {}, r"encode\(\) returned dict; return mathamr\.stages\.topic_sets\.Encoded"),
        ("index", None, r"index\(\) returned NoneType; return mathamr\.stages\.topic_sets\.Indexed"),
        ("retrieve", {"A.1": []}, r"retrieve\(\) returned dict; return mathamr\.stages\.topic_sets\.Retrieved"),
        ("retrieve", Retrieved([("a", 1.0)]), "results are a list; map topic ids to lists"),  # type: ignore[arg-type]
        ("retrieve", Retrieved({"A.1": ["a1"]}), "returned 'a1' for the topic 'A.1'; return a list of"),  # type: ignore
        ("retrieve", Retrieved({"A.1": [(1.0, "a")]}), r"returned \(1\.0, 'a'\) for"),  # type: ignore[list-item]
        ("retrieve", Retrieved({"A.1": [("a", None)]}), r"returned \('a', None\) for"),  # type: ignore[list-item]
        ("retrieve", Retrieved({"A.1": {"a": 1.0}}), r"returned \{'a': 1\.0\} for"),  # type: ignore[dict-item]
    ],
)
def test_a_step_that_returns_another_type_is_named(bench: Any, step: str, returned: Any, message: str) -> None:
    with patch.object(bench.track, step, return_value=returned):
        bench.run(bench.job())
    assert re.match(rf"failed: track=test: .*{message}", status(bench.job(), bench.folder))


def test_results_outside_the_collection_are_refused_and_questions_counted(
    bench: Any, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "is_installed", lambda name: name == "test")
    bench.track.name, bench.track.post_files = "test", PostFiles(JsonLines(collection), tmp_path, Console())
    bench.track.console = Console()
    with patch.object(bench.track, "retrieve", return_value=Retrieved({"A.1": [("a1", 1.0), ("7", 0.5)]})):
        bench.run(bench.job())
    message = (
        "track=test: retrieve() returned 2 posts, of which 1 are not in the collection, e.g. '7' for the topic A.1"
    )
    assert message in status(bench.job(), bench.folder)
    with patch.object(bench.track, "retrieve", return_value=Retrieved({"A.1": [("a1", 0.5), ("q1", 1.0)]})):
        bench.run(bench.job())
    assert state(bench.job(), bench.folder) == "done"
    assert [line.split()[1] for line in (bench.place(bench.job()) / "run.tsv").read_text().splitlines()] == [
        "q1",
        "a1",
    ]  # by score
    note = "retrieve() returned questions, which count as unjudged: 1, e.g. 'q1' for the topic A.1; return answers"
    assert note in " ".join(capsys.readouterr().err.split())


def test_repeated_results_are_noted(
    bench: Any, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "is_installed", lambda name: name == "test")
    bench.track.name, bench.track.post_files = "test", PostFiles(JsonLines(collection), tmp_path, Console())
    bench.track.console = Console()
    found = Retrieved({"A.1": [("a1", 0.5), ("a1", 1.0), ("q1", 0.7)]})
    with patch.object(bench.track, "retrieve", return_value=found):
        bench.run(bench.job())
    assert (
        "track=test: retrieve(): 1 of 3 results repeat a document of their topic, e.g. a1 in topic A.1; the best score "
        "of each counts" in capsys.readouterr().err
    )
    run = read_run(bench.place(bench.job()) / "run.tsv", task=1)
    assert [(hit.doc_id, hit.score) for hit in run.rankings["A.1"]] == [("a1", 1.0), ("q1", 0.7)]


def test_a_result_that_is_copied_from_another_seed_is_named(bench: Any, capsys: pytest.CaptureFixture[str]) -> None:
    bench.run(bench.job(seed=1))
    bench.run(bench.job(seed=2))
    assert "none-seed2: the result of seed 1, since its key has no seed" in capsys.readouterr().err
