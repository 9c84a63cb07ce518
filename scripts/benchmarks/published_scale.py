"""Scaling of the check of a collection: memory, and time for each post, at ten times the size.

    python scripts/bench.py published_scale                                    # 100,000 and 1,000,000 posts
    python scripts/bench.py published_scale --posts 1000000 --keep published   # and keep the larger tree in a folder

The benchmark writes two folders like the published ARQMath (benchmarks/published_tree.py), one with a tenth of the
posts and one with all. It runs ``scripts/data.py check`` on each in a separate process, and compares the printed counts
with the number of written items. ``memory_ratio`` and ``time_ratio`` are the peak memory and the time for each post of
the larger folder, divided by those of the smaller one; ``writer_memory_mib`` is the peak of the writing process. Exit
code 1: a wrong count.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mathamr.evaluation.efficiency import process_memory
from mathamr.stages.console import Console
from scripts.benchmarks.published_tree import Tree

SCRIPT = Path(__file__).resolve().parents[1] / "data.py"


def write(out: Path, posts: int, seed: int, console: Console) -> Counter[str]:
    """Write a tree, and its counts beside it; an existing one is reused."""
    counts = out / ".counts.json"
    if counts.is_file():
        kept = json.loads(counts.read_text(encoding="utf-8"))
        if kept["posts"] == posts and kept["seed"] == seed:
            return Counter(kept["counts"])
        raise SystemExit(f"{out} holds a tree of {kept['posts']:,} posts (seed {kept['seed']}): name another folder")
    with console.stage(f"writing {posts:,} posts", total=posts, unit="posts") as advance:
        written: Counter[str] = Tree(out, posts, seed).write(advance)
    counts.write_text(json.dumps({"posts": posts, "seed": seed, "counts": written}), encoding="utf-8")
    return written


def check(root: Path) -> tuple[dict[str, Any], float, float, float]:
    """Run the check; return its output, its peak memory in MiB, and its seconds of wall time and of CPU.

    ``ru_maxrss`` of a child is at least the memory of the process that started it, so it cannot be used here.
    """
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, str(SCRIPT), "check", "--root", str(root), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, process_memory("VmHWM", process=process.pid) / 2**20)
        time.sleep(0.02)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"the check ended with exit code {process.returncode}: {printed}")
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return json.loads(printed), peak, seconds, cpu


def differences(written: Counter[str], printed: dict[str, Any]) -> list[str]:
    """Return the wrong counts of the check."""
    expected = {
        "posts.question": written["posts.question"],
        "posts.answer": written["posts.answer"],
        "accepted": written["accepted"],
        "links": written["links"],
        **{f"formulas.{name}": written["formulas"] for name in ("latex", "opt", "slt")},
        **{key: count for key, count in written.items() if key.startswith("topics.")},
        **{key[: -len(".official")]: count for key, count in written.items() if key.endswith(".official")},
    }
    return [
        f"{key}: {printed.get(key)} and not {count}" for key, count in expected.items() if printed.get(key) != count
    ]


def main() -> tuple[dict[str, Any], int]:
    """Write, check, compare; return the result, and the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=1_000_000, metavar="N", help="posts of the larger tree")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the larger tree in this folder")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.posts < 1000:
        parser.error("--posts must be at least 1,000")
    console = Console()
    measured: list[tuple[float, float, float]] = []
    wrong: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="published-"))
    try:
        for posts, root in ((given.posts // 10, folder / "small"), (given.posts, given.keep or folder / "large")):
            root.mkdir(parents=True, exist_ok=True)
            written = write(root, posts, given.seed, console)
            printed, memory, seconds, cpu = check(root)
            wrong += differences(written, printed)
            measured.append((memory, seconds * 1000 / posts, cpu * 1000 / posts))
            print(
                f"{posts:>10,} posts, {written['formulas']:>11,} formulas: checked in {seconds:,.0f} s, "
                f"{measured[-1][1]:.3f} ms a post ({measured[-1][2]:.3f} of CPU), {memory:,.1f} MiB",
                flush=True,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for line in wrong:
        print(f"wrong: {line}")
    small, large = measured
    result = {
        "posts": given.posts,
        "memory_mib": [round(small[0], 1), round(large[0], 1)],
        "memory_ratio": round(large[0] / small[0], 3),
        "ms_per_post": [round(small[1], 4), round(large[1], 4)],
        "time_ratio": round(large[1] / small[1], 3),
        "cpu_ms_per_post": [round(small[2], 4), round(large[2], 4)],
        "cpu_ratio": round(large[2] / small[2], 3),
        "writer_memory_mib": round(process_memory("VmHWM") / 2**20, 1),
        "wrong": wrong,
    }
    return result, int(bool(wrong))
