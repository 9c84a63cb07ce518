"""The search benchmark at a size that takes a second: every part, and the numbers of its last line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scripts.in_process import run_script


def test_every_part_runs_and_the_last_line_is_json(tmp_path: Path) -> None:
    sizes = "--documents 300 --posts 400 --full-posts 500 --queries 3 --full-queries 2 --repeats 2 --pool 150 --m-all 4"
    run = run_script("bench.py", "search", *sizes.split(), "--folder", tmp_path)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["exact_speedup_vs_numpy"] > 0
    assert {"exact_speedup_vs_maxsim_cpu", "full_scale_queries_per_second", "full_scale_memory_gib"} <= set(result)
    exact = [value for name, value in result.items() if "_exact_" in name and name.endswith("recall_100")]
    assert len(exact) == 12  # three strategies of exact in two precisions, of qdrant, and at full scale
    assert min(exact) > 0.97  # half precision may move a rank
    assert result["qdrant_embedded_approximate_maxsim_recall_100"] > 0.5
    assert not list(tmp_path.iterdir())
