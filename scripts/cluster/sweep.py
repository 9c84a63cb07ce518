"""Make a sweep of Weights & Biases; a sweep with an invalid trial is refused.

mathamr sweep optimizer                 # checks, registers, and prints the command of an agent
mathamr sweep optimizer --check         # only checks; no account is needed
mathamr sweep optimizer --dashboard     # and saves a view with its plots
mathamr sweep mine.yaml                 # a file of your own
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of
from mathamr.default_settings import CONF


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(f"{__doc__}\nSweeps of the package: {CONF / 'sweeps'}")
    parser.add_argument("sweep", type=Path, help="file of the sweep, or the name of one of the package")
    parser.add_argument("--check", action="store_true", help="only check the trials")
    parser.add_argument("--project", help="project of W&B; default: the one in the file")
    parser.add_argument("--entity", help="user or team of W&B; default: yours")
    parser.add_argument("--dashboard", action="store_true", help="save a view of its trials")
    given = parser.parse_args(arguments)

    from experiments.tracking.sweeps import check, check_installed, dashboard, find, make, read

    if given.dashboard:
        check_installed()
    sweep = read(find(given.sweep))
    number = check(sweep)
    if given.check:
        return f"{number} trials can run"
    name = make(sweep, project=given.project, entity=given.entity)
    lines = [f"{number} trials can run", f"wandb agent {name}      # as many as there are GPUs"]
    if given.dashboard:
        import wandb

        project, sweep_id = name.split("/")[-2:]
        entity = given.entity or str(wandb.Api().default_entity)
        lines.append(dashboard(sweep, sweep_id, entity=entity, project=project).save().url)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
