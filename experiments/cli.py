"""``mathamr``: every command of the project under one name.

    mathamr run +exp=trial                                  # python -m experiments.run +exp=trial
    mathamr data check --root /data/ARQMath
    mathamr index --from outputs/vn_connectivity circular --out index
    mathamr search index=index 'Why is $\\sqrt 2$ irrational?'
    mathamr completion bash >> ~/.bashrc

A command is a file of ``scripts/``, which a wheel has inside this package. It is read when it is called, so that
``--help`` imports nothing slow. Exit codes are those of :mod:`experiments.command`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from experiments.command import HELP, command, run_usage
from graphs.errors import ConfigError, suggestion

_PACKAGE = Path(__file__).resolve().parent
SCRIPTS = next(
    (folder for folder in (_PACKAGE / "commands", _PACKAGE.parent / "scripts") if (folder / "evaluate.py").is_file()),
    _PACKAGE / "commands",
)
"""Folder of the commands: ``scripts/`` of a checkout, ``experiments/commands`` of a wheel."""


@dataclass(frozen=True)
class Command:
    """A command: its help in one phrase, and its file below :data:`SCRIPTS`, or its own commands by name."""

    phrase: str
    file: str = ""
    parts: tuple[tuple[str, str, str], ...] = ()  # name, phrase, file


COMMANDS = {
    "run": Command("run an experiment, and write tables of its results"),
    "report": Command("write one report of several experiments"),
    "data": Command("download, check or export a collection", "data.py"),
    "build": Command(
        "build formula trees, graphs and tensors of a collection",
        parts=(
            ("formulas", "trees of published formulas: formulas.db", "build_formulas.py"),
            ("graphs", "graphs of posts: collection.db", "build_collection.py"),
            ("tensors", "tensors of graphs, and pairs: preprocessed.db, pairs.tsv", "preprocess.py"),
        ),
    ),
    "collection": Command("show, count, merge, export and import graphs", "collection.py"),
    "sweep": Command("make a W&B sweep after checking its trials", "cluster/sweep.py"),
    "train": Command("train one graph model", "train.py"),
    "index": Command("encode posts and write an index", "index.py"),
    "search": Command("search an index, and show why each post was found", "search.py"),
    "serve": Command("search an index in a browser", "serve.py"),
    "rank": Command("write a run file from an index, BM25 or other runs", "make_run.py"),
    "evaluate": Command("score a run file against judgments", "evaluate.py"),
    "submit": Command("write submission files, or check them", "submit.py"),
    "reproduce": Command("repeat a table, row by row", "reproduce.py"),
    "trees": Command("show the two trees of a formula", "formula_trees.py"),
    "text": Command(
        "text encoders: papers, pairs, fine-tuning",
        parts=(
            ("statements", "statements of LaTeX papers", "text/extract_statements.py"),
            ("concepts", "knowledge graph of papers", "text/knowledge_graph.py"),
            ("pairs", "training pairs for text encoders", "text/text_pairs.py"),
            ("passages", "passages of papers, for pretraining", "text/write_passages.py"),
            ("statistics", "statistics of statements and tokens", "text/statement_statistics.py"),
            ("finetune", "fine-tune an encoder on pairs", "text/finetune_text.py"),
        ),
    ),
    "bench": Command("run a benchmark (in a checkout)", "bench.py"),
    "completion": Command("print the completion of a shell: bash, zsh or fish"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    before = sys.argv
    try:
        requested = _requested(words)
        if isinstance(requested, str):
            text = requested
            return command(lambda arguments: text)([])
        function, name, rest = requested
        sys.argv = [name, *rest]
        return function(rest)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    finally:
        sys.argv = before


def _requested(words: list[str]) -> str | tuple[Callable[[Sequence[str]], int], str, list[str]]:
    """Return the command with its name and its arguments, or a text to print."""
    if not words or words[0] in HELP:
        return _listed("mathamr", [(name, entry.phrase) for name, entry in COMMANDS.items()])
    if words[0] == "--version":
        return _version()
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        raise ConfigError(f"unknown command {name!r}{_choice(name, COMMANDS)}")
    if name == "run" and HELP & set(rest):
        return run_usage()
    if name == "run":
        from experiments.run import start

        return start, "mathamr run", rest
    if name == "report":
        from experiments.report.__main__ import main as report

        return report, "mathamr report", rest
    if name == "completion":
        return _completion, "mathamr completion", rest
    entry = COMMANDS[name]
    if not entry.parts:
        return _of_file(entry.file), f"mathamr {name}", rest
    if not rest or rest[0] in HELP:
        return _listed(f"mathamr {name}", [(part, phrase) for part, phrase, _ in entry.parts])
    files = {part: file for part, _, file in entry.parts}
    if rest[0] not in files:
        raise ConfigError(f"unknown command {name} {rest[0]!r}{_choice(rest[0], files)}")
    return _of_file(files[rest[0]]), f"mathamr {name} {rest[0]}", rest[1:]


def _of_file(name: str) -> Callable[[Sequence[str]], int]:
    """Return the function ``main`` of a command's file; raise for one that only a checkout has."""
    path = SCRIPTS / name
    spec = importlib.util.spec_from_file_location(f"mathamr_command_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(f"{name} is not part of the installed package; run it in a checkout of the repository")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.main


def _listed(name: str, entries: Sequence[tuple[str, str]]) -> str:
    width = max(len(entry) for entry, _ in entries)
    lines = [f"  {entry:{width}}  {phrase}" for entry, phrase in entries]
    return "\n".join(
        [f"usage: {name} COMMAND ...", "", *lines, "", f"{name} COMMAND --help shows a command's options."]
    )


def _choice(name: str, known: Sequence[str] | dict[str, str] | dict[str, Command]) -> str:
    return suggestion(name, list(known)) or f"; choose from: {', '.join(known)}"


def _version() -> str:
    try:
        return f"mathamr-plus {version('mathamr-plus')}"
    except PackageNotFoundError:
        return "mathamr-plus, not installed"


_SHELLS = ("bash", "zsh", "fish")
_BASH = """_mathamr() {{
    local words="{names}"
    {parts}
    if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[1]}}"));
    elif ((COMP_CWORD == 2)) && [[ -n ${{parts[${{COMP_WORDS[1]}}]-}} ]]; then
        COMPREPLY=($(compgen -W "${{parts[${{COMP_WORDS[1]}}]}}" -- "${{COMP_WORDS[2]}}"));
    else COMPREPLY=($(compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}")); fi
}}
complete -o filenames -F _mathamr mathamr"""


@command
def _completion(arguments: Sequence[str] | None = None) -> str:
    """Return the completion script of a shell."""
    shells = list(arguments or [])
    if HELP & set(shells):
        return f"usage: mathamr completion {'|'.join(_SHELLS)}\n\n  mathamr completion bash >> ~/.bashrc"
    if len(shells) != 1 or shells[0] not in _SHELLS:
        raise ConfigError(f"name one shell: {', '.join(_SHELLS)}")
    parts = {name: " ".join(part for part, _, _ in entry.parts) for name, entry in COMMANDS.items() if entry.parts}
    parts |= {
        "data": "get check export",
        "collection": "show stats failures merge export import",
        "rank": "index bm25 fuse",
        "completion": " ".join(_SHELLS),
    }
    if shells == ["fish"]:
        lines = [f"-n __fish_use_subcommand -a {name} -d '{entry.phrase}'" for name, entry in COMMANDS.items()]
        lines += [f"-n '__fish_seen_subcommand_from {name}' -a '{words}'" for name, words in parts.items()]
        return "\n".join(f"complete -c mathamr {line}" for line in lines)
    declared = "local -A parts=(" + " ".join(f'[{name}]="{words}"' for name, words in parts.items()) + ")"
    bash = _BASH.format(names=" ".join(COMMANDS), parts=declared)
    return bash if shells == ["bash"] else f"autoload -U bashcompinit && bashcompinit\n{bash}"


if __name__ == "__main__":
    sys.exit(main())
