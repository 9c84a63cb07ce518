"""Repeat a table: run its missing jobs, and compare each row with the expected value.

    mathamr reproduce docs                       # on the embedded collection, nothing to download
    ARQMATH_MINI=/data/arqmath-mini mathamr reproduce mini-4.11
    ARQMATH=/data/ARQMath mathamr reproduce 4.10 workers=16 train.workers=8
    mathamr reproduce all --list                 # every row: its command, its expected values, its data

TABLE is a table of the thesis (4.6 to 4.22), the same table on arqmath-mini (``mini-4.11``; ``mini`` for all of them),
the table on the embedded collection (``docs``), or ``all``. The rows and their expected values are in
``experiments/report/reproduction.yaml``. Results go to ``outputs/reproduction/DATA``; finished jobs are not run again.
Settings that change no result are allowed: workers, train.device, train.workers, index.location, wandb.

    4.10  none        ok     nDCG' 0.436 (0.431), MAP' 0.133 (0.131), ...
    4.10  sequential  drift  nDCG' 0.381 (0.423), ...

Expected values are in brackets. ``ok``: all values are within the row's tolerance; ``drift``: all are within three
times the tolerance; ``fail``: beyond that, or no result; ``measured``: there is no expected value, or it depends on the
machine; ``no data``: the data is missing, and instructions follow. With ``--json`` each row is one JSON object on a
line.

Exit codes: 0 no row drifted or failed; 1 a row drifted or failed; 2 an error, with a message, or no row could be run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.command import command
from experiments.options import PROGRAM, parser_of, setting
from graphs.errors import ConfigError

if TYPE_CHECKING:
    from experiments.report.reproduction import Data, Expectation, Verdict

ROOT = Path(__file__).resolve().parents[1]
FREE = re.compile(
    r"(workers|train\.device|train\.processes|train\.workers|train\.checkpoint_every|index\.location|wandb(\.\w+)?)=.*"
)


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    parser.add_argument("table", help="table, e.g. 4.10, mini-4.11, mini, docs or all")
    parser.add_argument("settings", nargs="*", help="settings KEY=VALUE that change no result")
    parser.add_argument("--list", action="store_true", help="print the rows, run nothing")
    parser.add_argument("--outputs", type=Path, default=Path("outputs/reproduction"), help="folder of the results")
    parser.add_argument("--json", action="store_true", help="one JSON object per row; messages go to standard error")
    given = parser.parse_intermixed_args(arguments)  # settings may follow options

    from experiments.report.reproduction import rows

    for word in given.settings:
        if not FREE.fullmatch(word):
            raise ConfigError(f"{word} would change what is reproduced; workers=8 or train.device=cuda would not")
    wanted = rows(given.table)
    if given.list and given.json:
        print("\n".join(json.dumps(content(row, given.outputs)) for row in wanted))
        return 0
    if given.list:
        print("\n".join(line for row in wanted for line in described(row, given.outputs)))
        return 0
    return reproduce(wanted, given.outputs, given.settings, as_json=given.json)


def reproduce(wanted: Sequence[Expectation], outputs: Path, settings: Sequence[str], *, as_json: bool = False) -> int:
    """Run and judge the rows; returns the exit code."""
    from experiments.report import results
    from experiments.report.reproduction import judge

    messages = sys.stderr if as_json else sys.stdout
    width = max(len(row.name) for row in wanted)
    lacking: dict[str, Data] = {}
    statuses = []
    ran: set[tuple[str, ...]] = set()
    for row in wanted:
        if row.data.missing(root_of(row.data)):
            lacking[row.data.name] = row.data
            print(json.dumps(content(row, outputs)) if as_json else f"{row.table}  {row.name:{width}}  no data")
            continue
        # One run for all rows of an experiment; its rows in other tables are then finished.
        run = (row.experiment, row.settings, row.data.name)
        together = [one for one in wanted if (one.experiment, one.settings, one.data.name) == run]
        only = ",".join(dict.fromkeys(one.name for one in together))
        command = [*command_of(row, outputs)[:-1], f"experiment.only=[{only}]", *settings]
        if (key := tuple(command)) not in ran:
            ran.add(key)
            print(f"$ {shlex.join(command)}", file=messages, flush=True)
            _run(command)
        verdict = judge(row, results.read(place_of(row, outputs) / row.experiment))
        statuses.append(verdict.status)
        shown = verdict.reason or ", ".join(str(cell) for cell in verdict.cells)
        line = f"{row.table}  {row.name:{width}}  {verdict.status:8}  {shown}"
        print(json.dumps(content(row, outputs, verdict)) if as_json else line, flush=True)
    for data in lacking.values():
        print(f"\n{how_to_get(data)}", file=messages)
    if not statuses:
        return 2
    return int(any(status in ("drift", "fail") for status in statuses))


def _run(command: Sequence[str]) -> None:
    """Run an experiment; its folder records failed jobs."""
    result = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if result.returncode not in (0, 1):
        raise ConfigError(f"ended with exit code {result.returncode}: {shlex.join(command)}")


def place_of(row: Expectation, outputs: Path) -> Path:
    """Return the folder of the experiments on the row's data."""
    return (outputs / row.data.name).absolute()


def root_of(data: Data) -> Path | None:
    """Return the folder of the data, by its variable."""
    named = os.environ.get(data.variable or "")
    return Path(named).absolute() if named else None


def command_of(row: Expectation, outputs: Path) -> list[str]:
    """Return the command of one row; its last argument chooses the row."""
    *arguments, only = row.arguments()
    root = root_of(row.data)
    if root is not None:
        arguments.append(setting("data.root", root))
    elif row.data.variable:
        arguments.append(f"data.root=${row.data.variable}")
    return [*PROGRAM, *arguments, setting("outputs", place_of(row, outputs)), only]


def content(row: Expectation, outputs: Path, verdict: Verdict | None = None) -> dict[str, Any]:
    """Return a row, and the verdict on it, as JSON values; the measured values are empty before a verdict."""
    missing = row.data.missing(root_of(row.data))
    status = verdict.status if verdict else "no data" if missing else "not run"
    return {
        "table": row.table,
        "row": row.name,
        "status": status,
        "reason": verdict.reason if verdict else "",
        "expected": {column: value.mean for column, value in row.expected.items()},
        "measured": {cell.column: cell.measured for cell in verdict.cells} if verdict else {},
        "tolerance": row.tolerance,
        "relative_tolerance": row.relative,
        "data": row.data.name,
        "missing": missing,
        "command": shlex.join(command_of(row, outputs)),
    }


def described(row: Expectation, outputs: Path) -> list[str]:
    """Return the lines about a row: expected values, tolerance, command."""
    values = ", ".join(f"{column} {value.printed}" for column, value in row.expected.items()) or "not seen yet"
    source = f", seen in {row.seen}" if row.seen else ""
    bounds = [f"± {row.tolerance:g}"] * bool(row.tolerance) + [f"ratio ± {row.relative:.0%}"] * bool(row.relative)
    # In double quotes a shell puts the value of the variable in.
    shown = re.sub(r"'(data\.root=\$\w+)'", r'"\1"', shlex.join(command_of(row, outputs)))
    lack = ", not there: " + ", ".join(gone) if (gone := row.data.missing(root_of(row.data))) else ""
    return [
        f"{row.table}  {row.name}: {row.statistic.replace('_', ' ')}, {values}{source} ({', '.join(bounds)})",
        f"    needs {row.data.name}{lack}",
        f"    {shown}",
    ]


def how_to_get(data: Data) -> str:
    """Return the missing files and the place for them."""
    root = root_of(data)
    place = f"{data.variable}={root} has no" if root else f"{data.variable} is not set; its folder needs"
    text = [
        f"{data.name}: {data.about}.",
        f"{place} {', '.join(data.missing(root))}",
        *(part for part in (data.get, data.graphs) if part),
        f"Then: export {data.variable}=FOLDER, and run this again.",
    ]
    return "\n".join(textwrap.fill(part, 110, subsequent_indent="  ", break_long_words=False) for part in text)


if __name__ == "__main__":
    sys.exit(main())
