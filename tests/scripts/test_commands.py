"""All scripts: their help is quick, they import no other script, and they end in one way."""

import ast
import io
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.command import command
from graphs.errors import ConfigError
from mathamr.training.interruption import Interrupted

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted([*(ROOT / "scripts").glob("*.py"), *(ROOT / "scripts" / "text").glob("*.py")])
HEAVY = ("torch", "numpy", "scipy", "lxml", "hydra", "omegaconf", "spacy")


def test_the_help_of_a_script_imports_nothing_heavy() -> None:
    """All scripts in one interpreter: modules that one of them imports would be named."""
    program = """
import contextlib, io, runpy, sys
for script in sys.argv[1:]:
    sys.argv = [script, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            assert not end.code, script
    assert len(shown.getvalue()) > 100, script
print(*sys.modules)
"""
    scripts = [str(path) for path in SCRIPTS]
    done = subprocess.run(
        [sys.executable, "-c", program, *scripts], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert not set(HEAVY) & set(done.stdout.split())


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_imports_no_other_script(path: Path) -> None:
    names = {other.stem for other in SCRIPTS} | {"scripts"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in names
        elif isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & names


@pytest.mark.parametrize(
    ("end", "code", "printed"),
    [
        ("graphs made", 0, "graphs made\n"),
        (None, 0, ""),
        (1, 1, ""),
        (ConfigError("workers=0"), 2, "workers=0\n"),
        (OSError("disk is full"), 2, "disk is full\n"),
        (Interrupted(None, 7, "model"), 75, "model: stopped by a signal to another rank after step 7, saved"),
        (KeyboardInterrupt(), 130, "stopped; the same command resumes"),
    ],
    ids=str,
)
def test_every_end_has_its_code_and_one_message(
    end: object, code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @command
    def main(arguments: Sequence[str] | None = None) -> str | int | None:
        if isinstance(end, BaseException):
            raise end
        assert end is None or isinstance(end, str | int)
        return end

    assert main([]) == code
    captured = capsys.readouterr()
    assert (captured.err if isinstance(end, BaseException) else captured.out).startswith(printed)
    assert (captured.out if isinstance(end, BaseException) else captured.err) == ""


def test_only_the_first_rank_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RANK", "1")
    assert command(lambda arguments: "trained")([]) == 0
    assert capsys.readouterr().out == ""


def test_characters_that_an_output_cannot_show_are_printed_as_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", output)
    assert command(lambda _: "Poincaré, π")() == 0
    assert output.buffer.getvalue() == "Poincaré, \\u03c0\n".encode("latin-1")
