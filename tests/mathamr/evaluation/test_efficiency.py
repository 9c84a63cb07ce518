"""Costs: what a results row holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mathamr.evaluation.efficiency import (
    Stopwatch,
    bytes_on_disk,
    peak_gpu_memory,
    peak_memory,
    reset_peak_memory,
)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets the peak of a process")
def test_a_new_measurement_forgets_what_was_let_go_of() -> None:
    reset_peak_memory()
    before = peak_memory()
    block = bytearray(200_000_000)
    assert peak_memory() - before > 150_000_000
    del block
    reset_peak_memory()
    assert peak_memory() - before < 100_000_000


def test_no_gpu_memory_is_counted_for_the_cpu() -> None:
    assert peak_gpu_memory("cpu") == 0


def test_stopwatch_stands_still_after_its_block() -> None:
    with Stopwatch() as watch:
        inside = watch.seconds
    assert watch.seconds >= inside >= 0
    assert watch.seconds == watch.seconds


def test_bytes_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123")
    (tmp_path / "y").write_bytes(b"45")
    assert bytes_on_disk(tmp_path) == 5
    assert bytes_on_disk(tmp_path / "y") == 2
    with pytest.raises(FileNotFoundError):
        bytes_on_disk(tmp_path / "z")
