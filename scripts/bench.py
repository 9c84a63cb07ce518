"""Run a benchmark: ``python scripts/bench.py NAME [OPTIONS]``. Its last line of output is one JSON object.

    python scripts/bench.py relational_conv     # our relational convolution against PyTorch Geometric's
    python scripts/bench.py loader              # loading and collating against PyTorch Geometric's on-disk stores
    python scripts/bench.py collate             # collating from memory, against PyTorch Geometric's Batch
    python scripts/bench.py train_step          # a training step, and the time that it waits for data
    python scripts/bench.py train_epoch         # pairs a second by batch size, projected to the thesis's epochs
    python scripts/bench.py text_training       # memory of fine-tuning on up to 100,000 pairs
    python scripts/bench.py search              # all strategies and backends against brute force, up to ARQMath's size
    python scripts/bench.py approximate_search --index DIR      # approximate and exact search at full ARQMath size
    python scripts/bench.py token_index --encoded DIR --qrels FILE  # token vectors: our indexes, and PyLate's
    python scripts/bench.py embedding_geometry  # the measures of mathamr/analysis on 100,000 x 768 embeddings
    python scripts/bench.py smatch --gold FILE  # the embedded AMR parser against gold graphs
    python scripts/bench.py embedded_parser --data mathdocs     # valid graphs, and sentences a second
    python scripts/bench.py collection --data mathdocs --out FILE   # posts a second and memory of a build
    python scripts/bench.py formula_agreement --oracle FILE     # trees from LaTeX against the official ones
    python scripts/bench.py formula_trees       # formulas a second, from MathML and from LaTeX
    python scripts/bench.py formula_vocabulary --root DIR       # labels and edges from LaTeX against those from MathML
    python scripts/bench.py formula_corpora PATH ...            # share of a collection's formulas that can be read
    python scripts/bench.py published_scale     # memory of checking a collection of ten times the size
    python scripts/bench.py full_scale --out DIR                # an experiment at 10,000 to 1,000,000 posts, by stage
    python scripts/bench.py serve_load --index DIR              # load of 50 clients on the server of the search page
    python scripts/bench.py structure           # structure search against BM25 over pairs; three checks

Machines are noisy, so compare ratios of two programs timed in one run. ``NAME --help`` lists the options. The extra
``bench`` installs the other programs (``pip install -e '.[bench]'``); a message names a missing one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.command import command

BENCHMARKS = {
    "relational_conv": "relational_conv",
    "loader": "loader",
    "collate": "collate",
    "train_step": "train_step",
    "train_epoch": "train_epoch",
    "text_training": "text_training",
    "search": "search",
    "approximate_search": "scale.approximate_search",
    "token_index": "late_interaction.token_index",
    "embedding_geometry": "embedding_geometry",
    "smatch": "smatch_score",
    "collection": "collection",
    "embedded_parser": "embedded_parser",
    "formula_agreement": "formulas.agreement",
    "formula_trees": "formulas.trees",
    "formula_vocabulary": "formulas.vocabulary",
    "formula_corpora": "formulas.corpora",
    "published_scale": "published_scale",
    "full_scale": "scale.experiment",
    "serve_load": "scale.serve_load",
    "structure": "formulas.structure",
}
"""Name -> module below ``scripts.benchmarks``; its ``main`` returns the result, or the result and an exit code."""


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the first argument names, with the arguments after it."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if not words or words[0] not in BENCHMARKS:
        print(__doc__, file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks import one another
    sys.argv = [f"bench.py {words[0]}", *words[1:]]
    ended = import_module(f"scripts.benchmarks.{BENCHMARKS[words[0]]}").main()
    result, code = ended if isinstance(ended, tuple) else (ended, 0)
    print(json.dumps(_rounded(result), ensure_ascii=False))
    return int(code)


def _rounded(value: Any) -> Any:
    """Return a result with five decimals, or five digits below 1."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    if not isinstance(value, float):
        return value
    return round(value, 5) if abs(value) >= 1 else float(f"{value:.5g}")


if __name__ == "__main__":
    sys.exit(main())
