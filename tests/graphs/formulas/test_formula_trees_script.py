"""scripts/formula_trees.py: what a user sees for a formula, a file, and a stream of formulas."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphs.formulas.latex import parse_latex
from scripts import formula_trees
from tests.scripts.in_process import run_script

ROOT = Path(__file__).resolve().parents[3]
PRESENTATION = "<mrow><mi>x</mi><mo>+</mo><mi>y</mi></mrow>"
CONTENT = "<apply><plus/><ci>x</ci><ci>y</ci></apply>"
PARALLEL = f'<semantics>{PRESENTATION}<annotation-xml encoding="MathML-Content">{CONTENT}</annotation-xml></semantics>'


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_script("formula_trees.py", *arguments)


def run_process(*arguments: str | Path, stdin: str) -> subprocess.CompletedProcess[str]:
    """Run the script in another process, as a user starts it: its input and output are bytes."""
    command = [sys.executable, str(ROOT / "scripts" / "formula_trees.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, input=stdin, capture_output=True, encoding="utf-8", check=False, env=environment, timeout=120
    )


def test_latex_prints_both_trees_and_draws_them(tmp_path: Path) -> None:
    done = run("--latex", "x^2+y", "--figure", tmp_path / "out.svg")
    assert (done.returncode, done.stderr) == (0, "")
    assert "SLT [V!x[+[V!y]],a[N!2]]\nV!x\n  a  N!2\nn  +\nn  V!y\n" in done.stdout
    assert "OPT [U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]\nU!plus\n  0  O!SUP\n" in done.stdout
    drawing = (tmp_path / "out.svg").read_text(encoding="utf-8")
    assert drawing.startswith("<svg ")
    assert "<title>x^2+y</title>" in drawing


def test_a_mathml_file_may_hold_one_markup_or_both(tmp_path: Path) -> None:
    file = tmp_path / "formula.xml"
    file.write_text(f"<math>{PARALLEL}</math>", encoding="utf-8")
    both = run("--mathml", file)
    assert (both.returncode, both.stderr) == (0, "")
    assert "SLT [V!x[+[V!y]]]" in both.stdout
    assert "OPT [U!plus,0[V!x],1[V!y]]" in both.stdout
    file.write_text(f"<math>{PRESENTATION}</math>", encoding="utf-8")
    one = run("--mathml", file)
    assert one.returncode == 0
    assert "OPT none: no rule for the element <mi>" in one.stdout


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "iso-8859-1"])
def test_a_mathml_file_is_read_in_its_encoding(tmp_path: Path, encoding: str) -> None:
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?><math><mi>\u00e4</mi></math>'
    (tmp_path / "formula.xml").write_bytes(text.encode(encoding))
    assert "SLT [V!\u00e4]" in run("--mathml", tmp_path / "formula.xml").stdout


@pytest.mark.parametrize("encoding", ["none", "idna", "UTF-16"])
def test_a_wrong_encoding_is_read_as_utf_8(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "formula.xml").write_text(f'<?xml version="1.0" encoding="{encoding}"?><math><mi>x</mi></math>')
    assert "SLT [V!x]" in run("--mathml", tmp_path / "formula.xml").stdout


def test_what_cannot_be_read_ends_with_code_2(tmp_path: Path) -> None:
    missing = run("--mathml", tmp_path / "none.xml")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == f"{tmp_path / 'none.xml'}: No such file or directory; give another path\n"
    (tmp_path / "text.xml").write_text("no formula")
    assert run("--mathml", tmp_path / "text.xml", "--figure", tmp_path / "out.svg").returncode == 2
    assert not (tmp_path / "out.svg").exists()
    assert "ends in .svg" in run("--latex", "x", "--figure", tmp_path / "out.png").stderr
    assert (
        "out.svg: No such file or directory; give another path"
        in run("--latex", "x", "--figure", tmp_path / "no" / "out.svg").stderr
    )
    assert "--figure draws one formula" in run("--stdin", "--figure", tmp_path / "out.svg").stderr


def test_a_stream_gives_one_object_a_line() -> None:
    formulas = ["x^2", "", r"\frac{1}{2", r"\sum_{i} \mathbb{R}"]
    done = run_process("--stdin", stdin="\n".join(formulas) + "\n")
    assert (done.returncode, done.stderr) == (0, "")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["latex"] for each in objects] == formulas
    for each in objects:
        assert list(each) == ["latex", "slt", "opt"]
        parsed = parse_latex(each["latex"])
        assert each["slt"] == (None if parsed.slt is None else parsed.slt.tangent_string())
        assert each["opt"] == (None if parsed.opt is None else parsed.opt.tangent_string())
    assert objects[0]["opt"] == "[O!SUP,0[V!x],1[N!2]]"


def test_a_line_of_another_encoding_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("x\n\\text{f\u00fcr}\ny\n".encode("latin-1"))))
    assert formula_trees.main(["--stdin"]) == 2
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert printed.err == "line 2 is not UTF-8; save the formulas as UTF-8\n"
