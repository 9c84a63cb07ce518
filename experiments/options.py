"""Options that commands share, and settings as words of a command line.

>>> parser = parser_of("Count the posts of a collection.")
>>> add_corpus(parser)
>>> corpus_of(parser.parse_args(["--corpus", "mathdocs"])).name
'mathdocs'
>>> print(setting("data.root", "/data/ARQMath"))
data.root=/data/ARQMath
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs.errors import ConfigError

if TYPE_CHECKING:
    from graphs.corpus.corpus import Corpus
    from mathamr.text.asking.models import LanguageModel

PROGRAM = ["python", "-m", "experiments.run"]
"""First words of the commands in ``experiment.json``."""

CONFIG_DIR = "--config-dir="
"""Option of ``mathamr run`` with a further folder like ``conf/``, as commands in ``experiment.json`` have it."""


class _Parser(argparse.ArgumentParser):
    """Parser of options that are written in full: ``--graphs`` is no other name of ``--graphs-db``."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given, allow_abbrev=False)


def parser_of(text: str) -> argparse.ArgumentParser:
    """Return a parser whose description is the first line of a docstring; the rest follows the options."""
    first, _, rest = text.partition("\n\n")
    return _Parser(description=first, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_corpus(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--corpus NAME``, ``--root DIR`` and ``--id NAME``, which :func:`corpus_of` reads."""
    parser.add_argument(
        "--corpus",
        required=required,
        metavar="NAME",
        help="collection: arqmath, beir, ir_datasets, jsonl, mathdocs, pairs, problems, titles, or that of a package",
    )
    parser.add_argument("--root", type=Path, metavar="DIR", help="folder of the collection, if it has one")
    parser.add_argument("--id", metavar="NAME", help="data set of ir_datasets")


def corpus_of(given: argparse.Namespace) -> Corpus:
    """Return the collection that the options of :func:`add_corpus` name.

    Raises:
        ConfigError: an unknown collection, or a folder that is missing or superfluous.
        CorpusError: the folder does not hold such a collection.
    """
    from graphs.corpus.corpus import open_corpus  # a command's --help imports nothing slow

    return open_corpus(given.corpus, given.root, dataset_id=given.id)


_MODEL_NEEDS = {
    "server": "model",
    "answers": "model",
    "estimate": "model",
    "per_minute": "server",
    "prices": "estimate",
}


def add_model(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add ``--model NAME`` and the options of asking it, which :func:`model_of` reads."""
    parser.add_argument("--model", help=f"language model that {purpose}; default: the papers' words")
    parser.add_argument("--server", metavar="URL", help="address of the model's server, up to /v1")
    parser.add_argument("--answers", type=Path, help="file of the model's answers; default: beside the input")
    parser.add_argument("--per-minute", type=float, help="largest number of requests to the server a minute")
    parser.add_argument("--estimate", action="store_true", help="print an estimate of the requests, and stop")
    parser.add_argument(
        "--prices", type=float, nargs=2, metavar=("IN", "OUT"), help="prices of a million tokens, for the estimate"
    )


def model_of(given: argparse.Namespace, *, max_tokens: int = 300) -> LanguageModel | None:
    """Return the language model that the options of :func:`add_model` name; None without ``--model``.

    Args:
        max_tokens: largest length of an answer.

    Raises:
        ConfigError: an option without the one that it belongs to, or an invalid address.
    """
    check_needs(given, _MODEL_NEEDS)
    if given.model is None:
        return None
    from mathamr.stages.console import Console
    from mathamr.text.asking.models import LocalModel, ServerModel

    if given.server is None:
        return LocalModel(given.model, max_tokens=max_tokens)
    return ServerModel(given.model, given.server, per_minute=given.per_minute, max_tokens=max_tokens, say=Console().say)


def check_needs(given: argparse.Namespace, needs: Mapping[str, str]) -> None:
    """Raise a ``ConfigError`` for an option without the other one that it needs."""
    used = {name for name, value in vars(given).items() if value is not None and value is not False}
    for option, other in needs.items():
        if option in used and other not in used:
            raise ConfigError(f"--{option.replace('_', '-')} has no effect without --{other}; add it")


def setting(key: str, value: str | Path) -> str:
    r"""Return ``KEY=VALUE`` for Hydra, with a value in quotation marks unless it is a plain path.

    >>> print(setting("data.root", "/data/ARQMath"), setting("data.root", '/tmp/mäth, "new\\" \\'))
    data.root=/data/ARQMath data.root="/tmp/mäth, \"new\\\" \\"
    """
    text = str(value)
    if re.fullmatch(r"[\w.-]*/[\w./-]*", text, re.ASCII):
        return f"{key}={text}"
    return f"{key}={quoted(text)}"


def quoted(text: str) -> str:
    r"""Return a text in quotation marks for Hydra, which reads a backslash as itself, except before one and at the end.

    >>> print(quoted('C:\\"new" \\'))
    "C:\\\"new\" \\"
    """
    escaped = re.sub(r'(\\*)("|\Z)', lambda match: match[1] * 2 + match[2].replace('"', r"\""), text)
    return f'"{escaped}"'


def search_hint(index: Path) -> str:
    """Return a line with the command that searches an index, to be pasted into a shell.

    >>> search_hint(Path("an index"))
    "search:    mathamr search 'index=an index' 'QUERY'"
    """
    return f"search:    mathamr search {shlex.quote(f'index={index}')} 'QUERY'"
