"""The benchmark of the instruments at a size that takes a second: every part, and the numbers of its last line."""

from __future__ import annotations

import json

import pytest

from scripts.benchmarks import embedding_geometry
from tests.scripts.in_process import run_script


def test_every_part_runs_and_the_last_line_is_json() -> None:
    sizes = "--documents 320 --queries 20 --dimension 12 --domain 40 --samples 50"
    run = run_script("bench.py", "embedding_geometry", *sizes.split())
    assert "nearest distances of 40 documents, drawn at random, to the other 280" in run.stdout  # sampled, and said
    result = json.loads(run.stdout.splitlines()[-1])
    for part in ("survey", "overlap", "thresholds", "isoscore", "whitening_apply", "collapse", "mean_discrepancy"):
        assert {f"{part}_seconds", f"{part}_cpu_seconds", f"{part}_memory_gb"} <= result.keys()
    assert result["memory_gb"] > 0


def test_sizes_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        embedding_geometry.main(["--documents", "10", "--domain", "10"])
    assert "--domain must be less" in capsys.readouterr().err
