"""Build collection.db, the MathAMR+ graphs of a collection's posts, and count what is in it.

    python scripts/build_collection.py --data mathdocs --out work/collection.db --workers 2
    python scripts/build_formulas.py   --root arqmath --out formulas.db --workers 16
    python scripts/build_collection.py --data arqmath --root arqmath --formulas formulas.db --out collection.db \\
        --kinds question answer topic --years 2020 2021 2022 --workers 16
    python scripts/build_collection.py --data arqmath --root arqmath --formulas formulas.db --out shard-3.db \\
        --shard 3/16 --parser transition --option python=envs/transition/bin/python

Posts are streamed, parsed in ``--workers`` processes and written by one: memory does not grow with the collection. The
same command goes on where a build was stopped, however it was stopped; a post that failed stays a record of its
failure until ``--retry-failures`` deletes these records and tries their posts again. ``--shard K/N`` takes the posts
whose ids hash to K of N: build the shards as an array job (slurm/build_collection.sbatch) and merge them with
scripts/collection.py merge. docs/amr.md has the parsers, conf/parsers/default.yaml the defaults of their ``--option``s.

At the end the counts of the thesis's Table 4.2 are printed, and written as JSON to ``OUT`` with the ending
``.stats.json``. Exit codes: 0 built; 2 a message says what is wrong; 130 stopped by Ctrl-C: run it again to go on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import get_args

from graphs.amr import parsers
from graphs.corpus.corpus import NAMES, Corpus, open_corpus
from graphs.corpus.post import Post, PostKind
from graphs.errors import ConfigError, Failure, MathAMRError
from graphs.stores import census, collection
from graphs.stores.shards import Shard
from graphs.whole_file import write_whole
from mathamr.stages.census import count
from mathamr.stages.console import Console
from mathamr.stages.parsers import factory, options_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--data", choices=sorted(NAMES), required=True, help="form of the collection")
    parser.add_argument("--root", type=Path, help="folder of the collection, where it has one")
    parser.add_argument("--out", type=Path, required=True, help="the database; begun, or gone on with")
    parser.add_argument("--formulas", type=Path, metavar="DB", help="formulas.db; without it trees come from the LaTeX")
    parser.add_argument(
        "--kinds", nargs="+", choices=get_args(PostKind), default=["question", "answer"], help="posts to take"
    )
    parser.add_argument("--tasks", nargs="+", type=int, choices=(1, 2), default=[1], help="of the topics")
    parser.add_argument("--years", nargs="+", type=int, default=[], help="of the topics of arqmath")
    parser.add_argument("--parser", default="embedded", help=f"one of {', '.join(parsers.PARSERS)}")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the parser; repeatable")
    parser.add_argument("--workers", type=int, default=1, help="processes that parse")
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="part K, from 1, of N")
    parser.add_argument("--limit", type=int, help="for a trial: the first posts only; leave it out to go on with all")
    parser.add_argument("--retry-failures", action="store_true", help="try the posts again that failed before")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        counted = run(given, console)
    except (MathAMRError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        console.say(f"stopped; what is done is kept in {given.out}, the same command goes on from there")
        return 130
    print(census.table(counted))
    return 0


def run(given: argparse.Namespace, console: Console) -> census.Census:
    """Check the arguments, build, and count. Raises MathAMRError."""
    if given.workers < 1:
        raise ConfigError(f"--workers {given.workers}: at least 1 process is needed")
    shard = Shard.parse(given.shard)
    if given.limit is not None and shard.count > 1:
        raise ConfigError(f"--limit {given.limit} with --shard {shard}: a trial needs no shards, leave one out")
    options = options_of(given.parser, given.option)
    corpus = open_corpus(given.data, given.root)
    if given.formulas is not None and not given.formulas.is_file():
        raise ConfigError(f"--formulas {given.formulas}: no such file; scripts/build_formulas.py makes it")
    if given.formulas is None and corpus.formulas() is not None:
        console.say("trees come from the LaTeX; with --formulas they would be those that the collection publishes")
    if given.retry_failures and given.out.exists():
        console.say(f"trying {collection.forget_failures(given.out):,} posts again")
    posts = shard.of(posts_of(corpus, given.kinds, given.tasks, given.years))
    with console.stage("posts to graphs", total=given.limit, unit="posts") as advance:
        collection.build(
            given.out,
            islice(posts, given.limit),
            factory(given.parser, options),
            source=corpus.fingerprints().graphs,
            shard=str(shard),
            formulas_db=given.formulas,
            workers=given.workers,
            progress=advance,
        )
    counted = count(given.out, console, workers=given.workers)
    if counted.failures:
        console.say(f"  each failure with its reason: python scripts/collection.py failures {given.out}")
    write_whole(given.out.with_suffix(".stats.json"), counted.to_json() + "\n")
    return counted


def posts_of(
    corpus: Corpus, kinds: Sequence[str], tasks: Sequence[int], years: Sequence[int]
) -> Iterator[Post | Failure]:
    """The posts of these kinds, streamed, then the topics if they are among the kinds; failures are of any kind."""
    topics = (topic.post for task in tasks for topic in corpus.topics(task, years)) if "topic" in kinds else ()
    posts = corpus.posts() if {"question", "answer"} & set(kinds) else ()
    return chain((post for post in posts if isinstance(post, Failure) or post.kind in kinds), topics)


if __name__ == "__main__":
    sys.exit(main())
