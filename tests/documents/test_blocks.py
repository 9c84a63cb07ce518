"""Every code block of README and docs runs as it is written, or a mark above it says why not.

The blocks of a page run in order, in an empty folder with what :data:`FOLDERS` puts there. Commands run in this
process. A block without a language is what the command above it prints.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from experiments import cli
from mathamr import PostIndex
from tests.documents.blocks import PAGES, ROOT, Block, blocks_of, indented_blocks
from tests.documents.folders import FOLDERS

RUN = {page: [block for block in blocks_of(page) if not block.is_marked] for page in PAGES}
ALL = [block for page in PAGES for block in blocks_of(page)]


@pytest.mark.parametrize("page", [page for page in PAGES if RUN[page]], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FOLDERS.get(page.relative_to(ROOT).as_posix(), _empty)(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed, ran = "", []
    for block in RUN[page]:
        printed = run(block, names, printed)
        ran.append(block.place)
    assert ran == [block.place for block in RUN[page]]
    for value in names.values():
        if isinstance(value, PostIndex):
            value.close()  # a script leaves that to its end


def _empty(folder: Path) -> None: ...


def run(block: Block, names: dict[str, object], before: str) -> str:
    """Run a block in the current folder.

    Args:
        block: the block.
        names: variables that the Python blocks of a page share.
        before: output of the previous block.

    Returns:
        Printed text.
    """
    if block.file:
        assert PARSERS[block.language](block.text) is None
        path = Path("FOLDER") / block.file
        path.parent.mkdir(exist_ok=True)
        path.write_text(block.text + "\n", encoding="utf-8")
        return ""
    if block.language == "":
        missing = [line for line in block.text.splitlines() if line.strip() and line.strip() not in stripped(before)]
        assert not missing, f"{block.place} is not what the command prints:\n{before}"
        return before
    return RUNNERS[block.language](block, names) or ""


def stripped(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()}


def run_python(block: Block, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, block.place, "exec"), names)
    return printed.getvalue()


def run_session(block: Block, names: dict[str, object]) -> None:
    example = doctest.DocTestParser().get_doctest(block.text + "\n", names, block.place, str(block.page), block.line)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    assert not runner.run(example, out=said.append, clear_globs=False).failed, "".join(said)
    names.update(example.globs)


def run_commands(block: Block, names: dict[str, object]) -> str:
    printed = ""
    for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            printed += run_command(line, block.place)
    return printed


def run_command(line: str, place: str) -> str:
    """Run one command line; a word ``NAME=VALUE`` in front is its environment, ``<`` and ``>`` its files."""
    words = shlex.split(line, comments=True)
    changed = dict(os.environ)
    while re.match(r"^[A-Z_]+=", words[0]):
        name, _, value = words.pop(0).partition("=")
        changed[name] = value
    words = (
        words[1:] if words[0] == "mathamr" else ["run", *words[3:]] if words[1:3] == ["-m", "experiments.run"] else []
    )
    assert words, f"{place}: only commands of mathamr run in a test; mark the block: {line}"
    files = {sign: words[words.index(sign) + 1] for sign in "<>" if sign in words}
    words = words[: min((words.index(sign) for sign in files), default=len(words))]
    given = Path(files["<"]).read_text(encoding="utf-8") if "<" in files else ""
    out, error = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
        patch.object(sys, "stdin", io.StringIO(given)),
        patch.dict(os.environ, changed, clear=True),
    ):
        try:
            code = cli.main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert code == 0, f"{place}: {line}\n{error.getvalue()}"
    if ">" in files:
        Path(files[">"]).write_text(out.getvalue(), encoding="utf-8")
        return ""
    return out.getvalue()


def parse_json(text: str) -> None:
    for line in text.splitlines():
        json.loads(line)


def parse_yaml(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


def parse_toml(text: str) -> None:
    assert tomllib.loads(text)


PARSERS: dict[str, Callable[[str], None]] = {
    "json": parse_json,
    "yaml": parse_yaml,
    "toml": parse_toml,
    "text": lambda text: None,
}
RUNNERS: dict[str, Callable[[Block, dict[str, object]], str | None]] = {
    "bash": run_commands,
    "sh": run_commands,
    "python": run_python,
    "pycon": run_session,
    "json": lambda block, names: parse_json(block.text),
    "yaml": lambda block, names: parse_yaml(block.text),
    "toml": lambda block, names: parse_toml(block.text),
}


@pytest.mark.parametrize("block", [block for block in ALL if block.test], ids=lambda block: block.place)
def test_the_test_of_a_mark_exists_and_reads_the_page(block: Block) -> None:
    path = ROOT / block.test
    assert path.is_file(), f"{block.place}: {block.test} does not exist"
    assert block.page.name in path.read_text(encoding="utf-8"), f"{block.place}: {block.test} does not name the page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_block_has_fences_and_a_language_that_can_be_run(page: Path) -> None:
    lines = indented_blocks(page.read_text(encoding="utf-8"))
    assert not lines, f"{page}: indented blocks at lines {lines}; use fences"
    unknown = [
        block.place for block in RUN[page] if block.language and not block.file and block.language not in RUNNERS
    ]
    assert not unknown, f"no test can run these blocks; mark them: {unknown}"
    for block in blocks_of(page):
        if block.is_marked and block.language in ("json", "yaml", "toml"):
            PARSERS[block.language](block.text)


def test_a_command_that_fails_fails_the_page() -> None:
    with pytest.raises(AssertionError, match=r"README\.md:1: mathamr rum"):
        run(Block(ROOT / "README.md", 1, "bash", "mathamr rum"), {}, "")
    with pytest.raises(AssertionError, match="only commands of mathamr run in a test"):
        run(Block(ROOT / "README.md", 1, "bash", "rm -r folder"), {}, "")
    with pytest.raises(AssertionError, match="is not what the command prints"):
        run(Block(ROOT / "README.md", 1, "", "two"), {}, "one\n")
    with pytest.raises(ZeroDivisionError):
        run(Block(ROOT / "README.md", 1, "python", "1 / 0"), {}, "")
