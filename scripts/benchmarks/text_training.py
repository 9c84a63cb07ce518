"""Memory of text training: growth with the number of pairs, for a tiny encoder and one epoch.

    python scripts/bench.py text_training                      # 10,000 and 100,000 pairs
    python scripts/bench.py text_training --pairs 1000 20000

Each number of pairs runs in a separate process. ``memory`` is the increase of its peak memory since the pairs were
opened, in bytes; ``bytes_a_pair`` is the increase for each further pair, from the smallest to the largest number.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from experiments.configuration.composition import read_groups
from mathamr.evaluation.efficiency import peak_memory, reset_peak_memory
from mathamr.text.config import TextConfig
from mathamr.text.finetuning import finetune
from mathamr.text.pairs import PairFile, TextPair, write_pairs
from mathamr.text.training.tiny import make_tiny

WORDS, LENGTH = 2_000, 100  # different words, and words of a document
SETTINGS = ["text=tiny", "text.epochs=1", "text.batch_size=250", "text.max_length=16", "text.validation_fraction=0.01"]
WARM = 1_000  # pairs trained on first, so that fixed costs do not count


def main() -> dict[str, Any]:
    """Measure each number of pairs, print a line for each; return the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 100_000], help="numbers of pairs")
    given = parser.parse_args()
    found = {}
    for count in sorted(given.pairs):
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            own = found[count] = alone.submit(measure, count).result()
        print(f"{count:>8,} pairs: {own['memory'] / 2**20:6.1f} MiB, {own['cpu_seconds']:.1f} s of CPU")
    first, last = min(found), max(found)
    grown = (found[last]["memory"] - found[first]["memory"]) / max(last - first, 1)
    return {"sizes": found, "bytes_a_pair": round(grown, 1)}


def measure(count: int) -> dict[str, float]:
    """Train on ``count`` pairs; return the rise of memory in bytes, and seconds of CPU."""
    [settings] = read_groups(SETTINGS, "text")
    config = TextConfig(**settings)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in (WARM, count):
            write_pairs(folder / f"{number}.jsonl", random_pairs(number))
        encoder = make_tiny((pair.document for pair in random_pairs(WARM)), folder / "tiny")
        finetune(config, encoder, PairFile(folder / f"{WARM}.jsonl"), out=folder / "warm", seed=1)
        reset_peak_memory()
        before, start = peak_memory(), time.process_time()
        finetune(config, encoder, PairFile(folder / f"{count}.jsonl"), out=folder / "out", seed=1)
        return {"memory": peak_memory() - before, "cpu_seconds": round(time.process_time() - start, 1)}


def random_pairs(count: int) -> Iterator[TextPair]:
    """Yield pairs of random words."""
    rng = np.random.default_rng(0)
    for i in range(count):
        words = [f"w{k}" for k in rng.integers(WORDS, size=LENGTH)]
        yield TextPair(" ".join(words[:8]), " ".join(words), f"q{i}", f"a{i}", group=f"q{i}")
