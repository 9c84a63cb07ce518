"""The commands and the Python of README and docs: the program takes each command, and each import works.

Running them all would take days and the whole of ARQMath. :mod:`tests.documents.test_blocks` runs the others.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from experiments import cli
from experiments.configuration.registration import register
from mathamr.default_settings import CONF

pytestmark = pytest.mark.usefixtures("quick_composition")

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RUN = ["python", "-m", "experiments.run"]


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page's code blocks, fenced or indented, each on one line."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(?:bash|sh)\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"(?:^ {4,}(?:mathamr|python) .*\n(?:^ {4,}.*\n)*)", text, re.MULTILINE)
    for block in [*blocks, *indented]:
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            line = re.sub(r"^(?:[A-Z_]+=\S+ +)+", "", line.strip())
            if line.startswith(("mathamr ", "python -m experiments.run")):
                yield line


def words_of(line: str) -> list[str]:
    """Return the words of a command up to a pipe, a redirection or another command, without its comment."""
    words = shlex.split(line, comments=True)
    ends = [place for place, word in enumerate(words) if word in ("|", ">", "<", "&", "&&", ";", "2>")]
    return words[: min(ends, default=len(words))]


@cache
def help_of(*words: str) -> str:
    """Return the help of ``mathamr WORDS``; empty for an unknown command."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = cli.main([*words, "--help"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return printed.getvalue() if code == 0 else ""


ALL = [(page, line) for page in PAGES for line in commands(page)]
OF_EXAMPLES = ("vn_aggregation", "track=random", "=star", "track: random")
"""Words of commands for the experiment, system and connectivity that a reader adds in docs/experiments.md."""
RUNS = [
    (page, line)
    for page, line in ALL
    if line.startswith((" ".join(RUN), "mathamr run")) and not any(word in line for word in OF_EXAMPLES)
]
OTHERS = [(page, line) for page, line in ALL if not line.startswith((" ".join(RUN), "mathamr run"))]


def named(one: tuple[Path, str]) -> str:
    return f"{one[0].relative_to(ROOT)}: {one[1][:60]}"


@pytest.mark.parametrize(("page", "line"), OTHERS, ids=map(named, OTHERS))
def test_a_command_of_the_documents_exists_with_its_options(page: Path, line: str) -> None:
    words = words_of(line)[1:]
    place = 2 if words[0] in cli.COMMANDS and cli.COMMANDS[words[0]].parts else 1
    text = help_of(*words[:place])
    assert text, f"{page}: no command {words[:place]}"
    if len(words) > place and not words[place].startswith("-"):
        text += help_of(*words[: place + 1])  # of merge, export, bm25 ...
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    unknown = sorted(option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text))
    assert not unknown, f"{page}: {line}"


@pytest.mark.parametrize(("page", "line"), RUNS, ids=map(named, RUNS))
def test_an_experiment_of_the_documents_composes(page: Path, line: str) -> None:
    words = [
        word
        for word in words_of(line.replace("=$E", "=trial"))
        if word not in (*RUN, "mathamr", "run", "--multirun", "-m", "...")
    ]
    overrides = [
        word.replace("=NAME", "=trial")
        for word in (word.replace("+exp=$E", "+exp=NAME") for word in words)  # in a loop over experiments
        if "=" in word and "$" not in word and not word.startswith("job=")
    ]
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        composed = compose("config", overrides)
    settings = [word.lstrip("+").partition("=")[0] for word in overrides if "." in word.partition("=")[0]]
    assert all(OmegaConf.select(composed, setting) is not None for setting in settings), line


def test_every_experiment_has_a_line_in_the_documents() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {path.stem for path in (CONF / "exp").glob("*.yaml")} <= set(listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_the_documents_imports_what_exists(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        tree = ast.parse(block)
        imports = [one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
        names: dict[str, object] = {}
        exec(compile(ast.Module(list(imports), []), str(page), "exec"), names)
        assert names.keys() >= {alias.asname or alias.name.split(".")[0] for one in imports for alias in one.names}
