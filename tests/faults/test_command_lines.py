"""Wrong command lines: each ends with code 2 and a message of one or two lines, and never with a traceback.

The lines are made by seed from the options that the commands have: unknown ones, values of another type or out of
range, files that are missing, empty, binary or folders. More of them: ``COMMAND_LINES=20000 pytest tests/faults``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest

from experiments.run import start
from tests.scripts.in_process import run_script

pytestmark = pytest.mark.usefixtures("quick_composition")

LINES = int(os.environ.get("COMMAND_LINES", "200"))
SCRIPTS = (
    "build_collection.py",
    "build_formulas.py",
    "collection.py",
    "data.py",
    "evaluate.py",
    "formula_trees.py",
    "index.py",
    "make_run.py",
    "preprocess.py",
    "reproduce.py",
    "submit.py",
    "text/extract_statements.py",
    "text/finetune_text.py",
    "text/knowledge_graph.py",
    "text/statement_statistics.py",
    "text/text_pairs.py",
    "train.py",
)
NUMBERS = ("many", "1.5", "-1", "0", "9" * 30, "", "nan", "1e3")
NAMES = ("", "nowhere", "arqmath", "jsonl", "../..", "é\u202e", "a b", "-")
KEYS = ("train.epochs", "train.epcohs", "model.hidden_dim", "graph.structure", "data.root", "workers", "text.epochs")
VALUES = ("many", "-1", "null", "[", "${nope}", "", "1e99", "{a: 1}", "'", "../x")


Leaf = tuple[tuple[str, ...], list[argparse.Action]]


class _Captured(Exception):
    """Carries the parser of a command."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(script: str) -> argparse.ArgumentParser:
    def capture(self: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Captured(self)

    with patch.object(argparse.ArgumentParser, "parse_known_args", capture), pytest.raises(_Captured) as found:
        run_script(script, "--debug")
    return found.value.parser


def leaves(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[argparse.Action]]]:
    """Each subcommand with its options."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for name, sub in action.choices.items():
            yield from leaves(sub, (*words, name))
    if not below:
        yield words, [action for action in parser._actions if action.dest != "help"]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Paths of all sorts, none of which holds what any command needs."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "empty").touch()
    (folder / "text").write_text("no such thing\n" * 9)
    (folder / "binary").write_bytes(random.Random(1).randbytes(9000))
    (folder / "json").write_text(json.dumps([{"post_id": 3}]))
    (folder / "folder").mkdir()
    (folder / "folder" / "posts.jsonl").write_text('{"post_id": "1", "kind": "question"}\n')
    names = ("empty", "text", "binary", "json", "folder", "missing", "text/below", "x" * 300)
    return (*(str(folder / name) for name in names), "", "\udcff", "/proc/none/x")


def value_of(action: argparse.Action, draw: random.Random, places: tuple[str, ...]) -> str:
    if action.choices:
        return draw.choice([*map(str, action.choices), "nope"])
    if action.type in (int, float):
        return draw.choice(NUMBERS)
    if action.type is Path:
        return draw.choice(places)
    if action.dest == "settings":
        return f"{draw.choice(KEYS)}={draw.choice(VALUES)}"
    return draw.choice(NAMES)


def words_of(actions: list[argparse.Action], draw: random.Random, places: tuple[str, ...]) -> list[str]:
    """Options that are required, mostly, and some others; sometimes one that does not exist."""
    words = []
    for action in actions:
        if draw.random() > (0.95 if action.required else 0.15):
            continue
        counts = {None: 1, 0: 0, "*": draw.randint(0, 2), "+": draw.randint(1, 2), "?": 1}
        count = int(counts.get(action.nargs, action.nargs) or 0)
        words += [*action.option_strings[:1], *(value_of(action, draw, places) for _ in range(count))]
    return [*words, *(["--no-such-option"] if draw.random() < 0.1 else [])]


def check(code: int, error: str, line: list[str], allowed: Sequence[int] = (0, 2)) -> None:
    assert code in allowed, (line, code, error)
    assert "Traceback" not in error, line
    assert "a fault of the program" not in error, (line, error)
    if code == 2:
        message = error.strip().splitlines()
        assert message, line
        if not any(" error: " in text for text in message):  # argparse shows the usage before its message
            said = [text for text in message if not text.startswith(("  ", "note:"))]
            assert len(said) <= 3, (line, error)


def test_wrong_words_for_scripts(places: tuple[str, ...], tmp_path: Path) -> None:
    commands = [(script, *leaf) for script in SCRIPTS for leaf in leaves(parser_of(script))]
    commands = [command for command in commands if command[1] != ("get",)]  # asks servers
    refused = 0
    for number in range(LINES):
        draw = random.Random(number)
        script, words, actions = commands[number % len(commands)]
        line = [*words, *words_of(actions, draw, places)]
        done = run_script(script, *line, folder=tmp_path)
        partly = script == "text/extract_statements.py" or (script, words) == ("data.py", ("check",))
        allowed = (0, 1, 2) if partly else (0, 2)  # 1: something is missing, or no paper could be read
        check(done.returncode, done.stderr, [script, *line], allowed)
        refused += done.returncode != 0
    assert refused > 0.9 * LINES


@pytest.mark.parametrize(
    ("script", "line", "option"),
    [
        ("index.py", ["--tensors", "t", "--model", "m", "--corpus", "jsonl", "--graphs-db", "g"], "--graphs"),
        ("preprocess.py", ["--corpus", "jsonl", "--graphs-db", "g", "--out", "w"], "--graphs"),
        ("text/text_pairs.py", ["statements", "--papers", "p", "--out", "w"], "--paper"),
    ],
)
def test_an_abbreviation_is_no_option(script: str, line: list[str], option: str) -> None:
    done = run_script(script, *line, option, "other")
    assert done.returncode == 2
    assert f"unrecognized arguments: {option}" in done.stderr


def test_wrong_words_for_searches(places: tuple[str, ...], tmp_path: Path) -> None:
    for number in range(LINES // 8):
        draw = random.Random(number)
        key = draw.choice(("k", "task", "exact", "pool", "nope"))
        line = [f"index={draw.choice(places)}", f"{key}={draw.choice(NUMBERS)}"]
        line = [*line, *draw.choice([[], ["a query"], ["two", "queries"], ["port=x"]])]
        for script in ("search.py", "serve.py"):
            done = run_script(script, *line, folder=tmp_path)
            check(done.returncode, done.stderr, [script, *line])
            assert done.returncode == 2, line


def test_wrong_words_for_experiments(places: tuple[str, ...], tmp_path: Path) -> None:
    own = {
        "data": ("jsonl", "arqmath", "nope"),
        "data.root": places,
        "+exp": ("trial", "nope", ""),
        "outputs": places,
        "job": ("list", "3/2", "x"),
        "experiment.name": NAMES,
        "experiment.seeds": ("[1,1]", "[]", "x", "[1.5]"),
        "experiment.tasks": ("[2]", "[1,1]", "[3]", "x"),
        "experiment.only": ("[nope]", "x"),
        "track": ("nope", "run", "fusion"),
        "+nope": VALUES,
        "~train": ("",),
    }
    for number in range(LINES // 10):
        draw = random.Random(number)
        line = ["+exp=trial", "data=jsonl", f"data.root={places[5]}", f"outputs={tmp_path}"]
        for _ in range(draw.randint(1, 2)):
            key = draw.choice([*own, *KEYS])
            line.append(f"{key}={draw.choice(own.get(key, VALUES))}")
        with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(io.StringIO()):
            code = start(line)
        check(code, error.getvalue(), line)
        assert code == 2, line
