"""Make a sweep of Weights & Biases; one with a trial that cannot run is refused.

mathamr sweep conf/sweeps/optimizer.yaml               # checks, registers, and prints the command of an agent
mathamr sweep conf/sweeps/optimizer.yaml --check       # only checks; no account is needed
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command; returns what is printed."""
    parser = parser_of(__doc__)
    parser.add_argument("sweep", type=Path, help="file of the sweep, e.g. conf/sweeps/optimizer.yaml")
    parser.add_argument("--check", action="store_true", help="only check the trials")
    parser.add_argument("--project", help="project of W&B; default: the one in the file")
    parser.add_argument("--entity", help="user or team of W&B; default: yours")
    given = parser.parse_args(arguments)

    from experiments.tracking.sweeps import check, make, read

    sweep = read(given.sweep)
    number = check(sweep)
    if given.check:
        return f"{number} trials can run"
    name = make(sweep, project=given.project, entity=given.entity)
    return f"{number} trials can run\nwandb agent {name}      # as many as there are GPUs"


if __name__ == "__main__":
    sys.exit(main())
