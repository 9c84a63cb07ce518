"""scripts/bench.py train_epoch: a row for each batch size, and projections that follow from it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.scripts.in_process import run_script

SMALL = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.device=cpu"]


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return run_script("bench.py", "train_epoch", "--num-graphs", "60", *words, *SMALL)


@pytest.mark.slow
def test_an_epoch_is_projected_from_pairs_a_second() -> None:
    done = bench("--pairs", "16", "--batch-sizes", "4,16", "train.node_budget=800")
    assert done.returncode == 0, done.stderr
    small, large = json.loads(done.stdout.splitlines()[-1])["rows"]
    assert (small["batch_size"], small["pairs"], large["batch_size"], large["pairs"]) == (4, 16, 16, 16)
    assert large["chunks"] > 1
    for row in (small, large):
        for pairs in (45_000, 491_000):
            assert row[f"epoch_{pairs}_s"] == pytest.approx(pairs / row["pairs_per_s"], rel=1e-2)
            assert row[f"epoch_{pairs}_cpu_s"] == pytest.approx(pairs * row["cpu_s"], rel=0.05)


@pytest.mark.slow
def test_too_few_graphs_are_a_message() -> None:
    done = bench("--pairs", "4000")
    assert done.returncode == 2
    assert "give a larger --num-graphs or --store, or fewer --pairs" in done.stderr
