"""Build formulas.db, the trees of all formulas that a collection publishes as MathML; the command to run at scale.

    python scripts/build_formulas.py --root arqmath --out formulas.db --workers 16

``--root`` is a folder in the layout of ARQMath, with ``slt_representation_v3/*.tsv``, ``opt_representation_v3/*.tsv``
and the formula files of the topics. Progress goes to standard error, and at the end a table of the formulas without a
tree, by kind; the last line of standard output is one JSON object. ``--failures FILE`` writes those formulas, one JSON
object a line.

The same command goes on where an interrupted run stopped, however it was stopped. Exit codes: 0 built; 2 a message says
what is wrong; 130 stopped by Ctrl-C: run it again to go on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from graphs.corpus.corpus import open_corpus
from graphs.errors import ConfigError, MathAMRError
from graphs.formulas.mathml import Letters
from graphs.formulas.store import BuildSummary, FormulaStore, Progress, build
from mathamr.stages.console import Console, Stage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for what it reads and leaves."
    )
    parser.add_argument("--root", type=Path, required=True, help="folder of the collection, in the layout of ARQMath")
    parser.add_argument("--out", type=Path, required=True, help="the database; begun, or gone on with")
    parser.add_argument("--workers", type=int, default=1, help="processes that read MathML")
    parser.add_argument("--letters", choices=("plain", "italic"), default="plain", help="letters of the trees' labels")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the formulas without a tree as JSON lines")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        if given.workers < 1:
            raise ConfigError(f"--workers {given.workers}: at least 1 process is needed")
        summary = make(given.root, given.out, console, letters=given.letters, workers=given.workers)
        if given.failures is not None:
            write_failures(given.out, given.failures)
    except (MathAMRError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        console.say(f"stopped; what is done is kept in {given.out}, the same command goes on from there")
        return 130
    console.failures("formulas or rows without a tree", summary.failures)
    failures = {" ".join(kind): number for kind, number in summary.failures.items()}
    size = given.out.stat().st_size
    print(json.dumps({"formulas": summary.formulas, "trees": summary.trees, "failures": failures, "bytes": size}))
    return 0


def make(root: Path, out: Path, console: Console, *, letters: Letters, workers: int) -> BuildSummary:
    """Build the database of the collection in ``root``, or go on with it. Raises MathAMRError."""
    files = open_corpus("arqmath", root).formulas()
    if files is None or not (files.slt or files.opt):
        raise ConfigError(
            f"--root {root}: there is no slt_representation* or opt_representation* folder with TSV files"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with console.stage("formula trees", unit="rows") as stage:
        summary = build(out, files, letters=letters, workers=workers, progress=_Teller(stage))
    console.say(f"  {summary.formulas:,} formulas, {summary.trees:,} different trees")
    return summary


class _Teller:
    """Tells a stage how many rows are done, and about how many there will be, by the share of the bytes read."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._first: Progress | None = None
        self._rows = 0

    def __call__(self, state: Progress) -> None:
        if self._first is None:
            self._first = state  # an earlier run may have read a part of the bytes
        bytes_read = state.bytes_done - self._first.bytes_done
        if bytes_read > 0:
            left = (state.bytes_total - state.bytes_done) * (state.rows - self._first.rows) / bytes_read
            self._stage.expect(state.rows + round(left))
        self._stage(state.rows - self._rows)
        self._rows = state.rows


def write_failures(database: Path, out: Path) -> None:
    """Every formula or row of the database that has no tree, one JSON object a line."""
    with FormulaStore.open(database) as store, out.open("w", encoding="utf-8") as file:
        for record in store.failure_records():
            file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    sys.exit(main())
