"""Command lines: options that several scripts share, and one way to end.

    @command
    def main(arguments: Sequence[str] | None = None) -> str:
        given = argparse.ArgumentParser().parse_args(arguments)
        return "what is printed"

``main()`` then returns an exit code: 0, or the number that the function returns; 2 after a message on standard error
that says what is wrong; 75 where training was told to stop and has saved; 130 after Ctrl-C. Of several ranks the first
prints.

>>> @command
... def main(arguments: Sequence[str] | None = None) -> str:
...     return " ".join(arguments or [])
>>> main(["3", "graphs"])
3 graphs
0
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Protocol

from graphs.errors import MathAMRError

STOPPED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""


class Main(Protocol):
    """A command: arguments, those of the process where none are given, to an exit code."""

    def __call__(self, arguments: Sequence[str] | None = None) -> int: ...


def command(function: Callable[[Sequence[str] | None], str | int | None]) -> Main:
    """Print what ``function`` returns, if it is text, and make exit codes of numbers and errors."""

    @wraps(function)
    def main(arguments: Sequence[str] | None = None) -> int:
        try:
            result = function(arguments)
        except (MathAMRError, OSError) as error:
            print(error, file=sys.stderr)
            return error.exit_code if isinstance(error, MathAMRError) else MathAMRError.exit_code
        except KeyboardInterrupt:
            print("stopped; the same command resumes from what is saved", file=sys.stderr)
            return STOPPED
        if isinstance(result, int):
            return result
        if result and int(os.environ.get("RANK", "0")) == 0:
            print(result)
        return 0

    return main


def add_corpus(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--corpus NAME``, also called ``--data``, and ``--root DIR``."""
    parser.add_argument(
        "--corpus",
        "--data",
        dest="corpus",
        required=required,
        metavar="NAME",
        help="collection: arqmath, beir, jsonl, mathdocs, pairs, problems or titles",
    )
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of the collection, where it has one")


def parser_of(text: str) -> argparse.ArgumentParser:
    """Return a parser that is described by the first line of a script's docstring."""
    return argparse.ArgumentParser(
        description=text.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
