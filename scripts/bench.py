"""Run a benchmark: ``python scripts/bench.py NAME [OPTIONS]``. Its last line of output is one JSON object.

    python scripts/bench.py relational_conv
    python scripts/bench.py train_step --store both-full.db train.workers=2

Machines are noisy, so compare ratios of two programs timed in one run. ``NAME --help`` lists the options. The extra
``bench`` installs the other programs (``pip install -e '.[bench]'``); a message names a missing one.
"""

from __future__ import annotations

import ast
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
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["-h"], ["--help"]):
        print(_usage())
        return 0
    if not words or words[0] not in BENCHMARKS:
        print(_usage(), file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks import one another
    sys.argv = [f"bench.py {words[0]}", *words[1:]]
    ended = import_module(f"scripts.benchmarks.{BENCHMARKS[words[0]]}").main()
    result, code = ended if isinstance(ended, tuple) else (ended, 0)
    print(json.dumps(_rounded(result), ensure_ascii=False))
    return int(code)


def _usage() -> str:
    """Return the help: the docstring above, and the first line of each benchmark's docstring."""
    lines = []
    for name, module in BENCHMARKS.items():
        path = Path(__file__).parent / "benchmarks" / f"{module.replace('.', '/')}.py"
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        lines.append(f"  {name:20}{about.partition(chr(10))[0]}")
    return "\n".join([__doc__, *lines])


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
