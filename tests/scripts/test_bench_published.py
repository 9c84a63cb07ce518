"""The benchmark of a check at full size, on 1,000 generated posts: every count is right, and the tree stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scripts.benchmarks.published_tree import Tree

ROOT = Path(__file__).resolve().parents[2]


def test_the_check_counts_what_was_written(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "bench.py"), "published_scale", "--posts", "1000"]
    command += ["--keep", str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert (result["posts"], result["wrong"]) == (1000, [])
    assert 0.5 < result["memory_ratio"] < 2
    assert len(result["memory_mib"]) == len(result["ms_per_post"]) == 2
    assert (tmp_path / "kept" / "Collection" / "Posts.V1.3.zip").is_file()


def test_the_same_seed_writes_the_same_tree(tmp_path: Path) -> None:
    written = [Tree(tmp_path / str(run), 150, seed=run // 2).write() for run in range(3)]
    assert written[0] == written[1] != written[2]
    files = [
        {path.relative_to(tmp_path / str(run)): path.read_bytes() for path in (tmp_path / str(run)).rglob("*.*")
         if path.is_file()}
        for run in range(2)
    ]  # fmt: skip
    assert files[0] == files[1]
    assert len(files[0]) > 20
