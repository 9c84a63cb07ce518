"""Score the embedded AMR parser by Smatch against gold graphs, and time it.

    python scripts/bench.py smatch --gold ../shared/data/amr/little-prince-dev.txt

Prints precision, recall and F1 over all sentences (micro-averaged, as usual for Smatch) and sentences per second. The
last line is one JSON object with ``precision``, ``recall``, ``f1``, ``sentences_per_second`` (wall time, in one
process) and ``sentences_per_cpu_second`` (more reliable on a shared machine). Smatch climbs hills from random starts;
the seed is fixed, and differences below 0.002 are noise.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from pathlib import Path

from rich.progress import track

from graphs.amr.embedded import EmbeddedParser
from graphs.amr.penman_text import blocks, decode, encode
from graphs.errors import ConfigError, Failure
from scripts.benchmarks.peers import peer


def score(gold: Path, *, restarts: int = 4) -> dict[str, float]:
    """Return Smatch precision, recall and F1 of the embedded parser on gold graphs, and sentences per second."""
    if (smatch := peer("smatch", "smatch")) is None:
        raise ConfigError("without the package smatch there is no score; install it")
    with gold.open(encoding="utf-8") as lines:
        found = [block for block in blocks(lines) if "snt" in block.metadata and block.text]
    sentences = [re.sub(r"<[^>]+>", "", block.metadata["snt"]) for block in found]
    parser = EmbeddedParser()
    parser.parse([sentences[:1]])  # load everything before timing
    begin, cpu = time.perf_counter(), time.process_time()
    parsed = parser.parse([[sentence] for sentence in sentences])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    random.seed(0)
    smatch.iteration_num = restarts + 1
    matched = tried = wanted = 0
    for block, text in track(list(zip(found, parsed, strict=True)), "scoring", disable=not sys.stderr.isatty()):
        assert not isinstance(text, Failure)
        smatch.match_triple_dict.clear()
        ours, theirs = (encode(decode(penman)) for penman in (text, block.text))
        best, test, reference = smatch.get_amr_match(ours, theirs)
        matched, tried, wanted = matched + best, tried + test, wanted + reference
    precision, recall = matched / tried, matched / wanted
    return {
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "f1": round(2 * precision * recall / (precision + recall), 4),
        "sentences_per_second": round(len(sentences) / seconds, 1),
        "sentences_per_cpu_second": round(len(sentences) / cpu, 1),
    }


def main() -> dict[str, float]:
    """Print the scores and the speed; return them."""
    arguments = argparse.ArgumentParser(description="Smatch of the embedded AMR parser against gold graphs")
    arguments.add_argument("--gold", type=Path, required=True, help="file of gold graphs with '# ::snt' lines")
    arguments.add_argument("--restarts", type=int, default=4, help="random restarts of the hill climbing (default 4)")
    options = arguments.parse_args()
    result = score(options.gold, restarts=options.restarts)
    for name in ("precision", "recall", "f1"):
        print(f"{name:<10} {result[name]:.4f}")
    print(f"{result['sentences_per_second']:.0f} sentences/s")
    return result
