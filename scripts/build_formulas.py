"""Build formulas.db, the trees of all formulas that a collection publishes as MathML; the command to run at scale.

    mathamr build formulas --corpus arqmath --root /data/ARQMath --out formulas.db --workers 16

``--corpus`` is a collection that publishes its formulas, by default ARQMath: its ``slt_representation_v3`` and
``opt_representation_v3`` are read, packed or not, and the formula files of the topics. Progress goes to standard error,
and at the end a table of the formulas without a tree, by kind; the last line of standard output is one JSON object.
``--failures FILE`` writes those formulas, one JSON object a line.

The same command resumes an interrupted run, however it was stopped. Exit codes: 0 built; 2 a message says
what is wrong; 130 stopped by Ctrl-C: run it again to resume.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import add_corpus, command, corpus_of, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command; returns the exit code."""
    parser = parser_of(__doc__)
    add_corpus(parser, required=False)
    parser.set_defaults(corpus="arqmath")
    parser.add_argument("--out", type=Path, required=True, help="output database (resumed if it exists)")
    parser.add_argument("--workers", type=int, default=1, help="processes that read MathML")
    parser.add_argument("--letters", choices=("plain", "italic"), default="plain", help="letters of the trees' labels")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the formulas without a tree as JSON lines")
    given = parser.parse_args(arguments)

    from graphs.errors import ConfigError
    from mathamr.stages.console import Console
    from mathamr.stages.data.formulas import FormulaSettings, build_formula_trees, write_failures

    settings = FormulaSettings(given.letters, given.workers)
    files = corpus_of(given).formulas()
    if files is None:
        raise ConfigError(
            f"--corpus {given.corpus} publishes no formulas: mathamr build graphs makes their trees from the LaTeX"
        )
    if not (files.slt or files.opt):
        raise ConfigError(
            f"--root {given.root}: there is no slt_representation* or opt_representation* folder with TSV files"
        )
    summary = build_formula_trees(files, given.out, settings, Console())
    if given.failures is not None:
        write_failures(given.out, given.failures)
    failures = {" ".join(kind): number for kind, number in summary.failures.items()}
    size = given.out.stat().st_size
    return json.dumps({"formulas": summary.formulas, "trees": summary.trees, "failures": failures, "bytes": size})


if __name__ == "__main__":
    sys.exit(main())
