"""Of several processes of an experiment, the one that ends last writes the report; no report waits for a killed one."""

import os
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


@pytest.fixture
def bm25(collection: Path, tmp_path: Path) -> Callable[[], str]:
    """Run an experiment that trains nothing; returns what it prints."""
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "experiment.name=demo"]
    config = trial("track=bm25", *places)
    return lambda: run(config, "the command").table


def test_a_report_waits_for_the_end_of_another_process_but_not_for_long(
    bm25: Callable[[], str], tmp_path: Path
) -> None:
    folder = tmp_path / "demo"
    report = folder / "report.html"
    folder.mkdir()

    def rewritten() -> bool:
        before = report.stat().st_ino  # a file is replaced whole
        table = bm25()
        assert table.startswith("Condition")
        assert ("the process that ends last writes them" in table) == (report.stat().st_ino == before)
        return report.stat().st_ino != before

    with locked(folder / ".present", shared=True):
        bm25()
        assert report.exists()  # if the other one is killed, there is a report
        assert not rewritten()
        os.utime(report, times=(report.stat().st_atime, report.stat().st_mtime - 61))
        assert rewritten()
    assert rewritten()


def test_of_processes_that_end_together_the_last_one_writes(
    bm25: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bm25()
    together, written = Barrier(3), Mock(wraps=writing.write)
    original = experiments.run._write_report

    def all_at_once(*arguments: Any) -> Any:
        together.wait(SECONDS)
        return original(*arguments)

    monkeypatch.setattr(writing, "write", written)
    monkeypatch.setattr(experiments.run, "_write_report", all_at_once)
    with ThreadPoolExecutor(3) as threads:  # each opens the files of locks, as a process does
        tables = [ended.result() for ended in [threads.submit(bm25) for _ in range(3)]]
    assert written.call_count == 1
    assert sum("the process that ends last writes them" in table for table in tables) == 2
