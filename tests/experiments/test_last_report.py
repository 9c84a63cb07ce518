"""Of processes of an experiment that end together, the last one writes the report."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import pytest

import experiments.run
from experiments.report import writing
from experiments.run import run
from graphs.shared_files import locked
from tests.experiments.tiny_settings import trial
from tests.warm_process import SECONDS

pytestmark = pytest.mark.usefixtures("without_plots")
ELSEWHERE = "another process is writing them now"


@pytest.fixture
def bm25(collection: Path, tmp_path: Path) -> Callable[[], str]:
    """Run an experiment that trains nothing; returns what it prints."""
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "experiment.name=demo"]
    config = trial("track=bm25", *places)
    return lambda: run(config, "the command").table


def test_a_report_is_left_to_a_process_that_waits_to_write_it(bm25: Callable[[], str], tmp_path: Path) -> None:
    report = tmp_path / "demo" / "report.html"
    assert ELSEWHERE not in bm25()
    before = report.stat().st_ino  # a file is replaced whole
    with locked(tmp_path / "demo" / ".door.lock", shared=True):
        table = bm25()
    assert table.startswith("Condition")
    assert ELSEWHERE in table
    assert report.stat().st_ino == before
    assert ELSEWHERE not in bm25()
    assert report.stat().st_ino != before


def test_of_processes_that_end_together_the_last_one_writes(
    bm25: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bm25()
    together, written = Barrier(3), Mock(wraps=writing.write)

    def at_the_door(path: Path, **options: Any) -> Any:
        if path.name == ".lock":
            together.wait(SECONDS)
        return locked(path, **options)

    monkeypatch.setattr(writing, "write", written)
    monkeypatch.setattr(experiments.run, "locked", at_the_door)
    with ThreadPoolExecutor(3) as threads:  # each opens the files of locks, as a process does
        tables = [ended.result() for ended in [threads.submit(bm25) for _ in range(3)]]
    assert written.call_count == 1
    assert sum(ELSEWHERE in table for table in tables) == 2
