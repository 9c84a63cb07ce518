"""Build collection.db, the MathAMR+ graphs of a collection's posts, and count its contents.

    mathamr build graphs --corpus mathdocs --out work/collection.db --workers 2
    mathamr build formulas --corpus arqmath --root arqmath --out formulas.db --workers 16
    mathamr build graphs --corpus arqmath --root arqmath --formulas formulas.db --out collection.db \\
        --kinds question answer topic --years 2020 2021 2022 --workers 16
    mathamr build graphs --corpus arqmath --root arqmath --formulas formulas.db --out shard-3.db \\
        --shard 3/16 --parser transition --option python=envs/transition/bin/python

Posts are streamed, parsed in ``--workers`` processes and written by one, so memory does not grow with the collection.
The same command resumes a build after any stop. Failed posts stay recorded until ``--retry-failures`` tries them
again. ``--shard K/N`` takes the posts whose ids hash to K of N. Build the shards as an array job
(slurm/build_collection.sbatch), and merge them with mathamr collection merge. docs/amr.md lists the parsers,
conf/parsers/default.yaml the defaults of their options (``--option``).

At the end the command prints the counts of the thesis's Table 4.2, and writes them as JSON to a file named like
``OUT``, with the ending ``.stats.json``. Exit codes: 0 built; 2 an error, with a message; 130 stopped by Ctrl-C: run it
again to resume.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of

KINDS = ("question", "answer", "topic")


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    add_corpus(parser)
    parser.add_argument("--out", type=Path, required=True, help="output database (resumed if it exists)")
    parser.add_argument(
        "--formulas", type=Path, metavar="DB", help="formulas.db; without it, trees are made from LaTeX"
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["question", "answer"], help="kinds of posts")
    parser.add_argument("--tasks", nargs="+", type=int, choices=(1, 2), default=[1], help="tasks of the topics")
    parser.add_argument("--years", nargs="+", type=int, default=[], help="years of the topics of arqmath")
    parser.add_argument("--parser", default="embedded", help="AMR parser (docs/amr.md)")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="parser option; repeatable")
    parser.add_argument("--workers", type=int, default=1, help="number of parsing processes")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="part K, from 1, of N")
    parser.add_argument("--limit", type=int, help="number of posts for a trial; a run without it resumes the build")
    parser.add_argument("--retry-failures", action="store_true", help="try failed posts again")
    given = parser.parse_args(arguments)

    from experiments.configuration.composition import graph_config, parser_options
    from graphs.stores.census import table
    from graphs.stores.shards import Shard
    from mathamr.stages.console import Console
    from mathamr.stages.data.graphs import CollectionSettings, build_collection
    from mathamr.stages.parsers import factory

    settings = CollectionSettings(
        factory(given.parser, parser_options(given.parser, given.option)),
        given.kinds,
        given.tasks,
        given.years,
        given.formulas,
        Shard.parse(given.shard),
        given.limit,
        given.retry_failures,
        given.workers,
    )
    console = Console()
    counted = build_collection(corpus_of(given), given.out, settings, graph_config(), console)
    if counted.failures:
        console.say(f"  each failure with its reason: mathamr collection failures {shlex.quote(str(given.out))}")
    return table(counted)


if __name__ == "__main__":
    sys.exit(main())
