"""Write one report of several experiments.

    mathamr report outputs/vn_connectivity                      # the report of one experiment
    mathamr report gpu1/outputs gpu2/outputs --out together     # several machines, several experiments

Jobs of experiments with the same name are joined. ``python -m experiments.report`` is the same command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="folder outputs/EXP, or outputs with several experiments"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("outputs/report"), help="folder of the report; default: outputs/report"
    )
    options = parser.parse_args(arguments)

    from experiments.report import results, writing

    writing.write([results.read(folder) for folder in results.find(options.folders)], options.out)
    return f"{options.out}/report.html, {options.out}/report.md, {options.out}/results.csv"


if __name__ == "__main__":
    sys.exit(main())
