"""Build formulas.db, the trees of all formulas that a collection publishes as MathML.

    mathamr build formulas --corpus arqmath --root /data/ARQMath --out formulas.db --workers 16

``--corpus`` names a collection that publishes its formulas, by default ARQMath. The command reads its
``slt_representation_v3`` and ``opt_representation_v3``, packed or unpacked, and the formula files of the topics. It
prints progress to standard error, with tables that it cannot read and a final table of missing trees (a formula may
lack two); the last line of standard output is one JSON object. ``--failures FILE`` lists them, one JSON object per
line, except those of formulas that no row of a representation lists.

The same command resumes after any stop. Exit codes: 0 built; 2 an error, with a message; 130 stopped by Ctrl-C: run it
again to resume.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    add_corpus(parser, required=False)
    parser.set_defaults(corpus="arqmath")
    parser.add_argument("--out", type=Path, required=True, help="output database (resumed if it exists)")
    parser.add_argument("--workers", type=int, default=1, help="number of reading processes")
    parser.add_argument("--letters", choices=("plain", "italic"), default="plain", help="letters of the trees' labels")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the formulas without a tree as JSON lines")
    given = parser.parse_args(arguments)

    from graphs.errors import ConfigError
    from mathamr.stages.console import Console
    from mathamr.stages.data.formulas import build_formula_trees, check_workers, write_failures

    check_workers(given.workers)
    files = corpus_of(given).formulas()
    if files is None:
        raise ConfigError(
            f"--corpus {given.corpus} publishes no formulas: mathamr build graphs makes their trees from the LaTeX"
        )
    if not (files.slt or files.opt):
        raise ConfigError(
            f"--root {given.root}: there is no slt_representation* or opt_representation* folder with TSV files"
        )
    summary = build_formula_trees(files, given.out, Console(), letters=given.letters, workers=given.workers)
    if given.failures is not None:
        write_failures(given.out, given.failures)
    failures = {" ".join(kind): number for kind, number in summary.failures.items()}
    size = given.out.stat().st_size
    return json.dumps({"formulas": summary.formulas, "trees": summary.trees, "failures": failures, "bytes": size})


if __name__ == "__main__":
    sys.exit(main())
