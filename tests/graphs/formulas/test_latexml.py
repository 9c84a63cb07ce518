"""graphs.formulas.latexml: batches, halving, time limits (with a stand-in program), and LaTeXML itself where it is."""

import shutil
import sys
from pathlib import Path

import pytest

from graphs.errors import ConfigError, Failure
from graphs.formulas import latexml
from graphs.formulas.content import parse_opt
from graphs.formulas.latexml import LaTeXML
from graphs.formulas.presentation import parse_slt

# Writes what LaTeXML would for formulas of one letter, notes every call, and dies of the letter Q.
STAND_IN = """#!{python}
import re, sys, time
from pathlib import Path
if "--VERSION" in sys.argv:
    sys.exit(print("stand-in 1.0"))
formulas = [part.strip() for part in re.findall(r"\\\\\\[(.*?)\\\\\\]", Path("in.tex").read_text(), re.S)]
with Path({calls!r}).open("a") as calls:
    print(*formulas, file=calls)
if "Q" in formulas:
    sys.exit(1)
if "S" in formulas:
    time.sleep(60)
math = '<m:math><m:semantics><m:mi>{{0}}</m:mi><m:annotation-xml encoding="MathML-Content"><m:ci>{{0}}</m:ci>'
math += "</m:annotation-xml></m:semantics></m:math>"
para = f"<para><equation><Math>{{math}}</Math></equation></para>"
paras = "".join(para.format(formula) if formula != "N" else "<para>text</para>" for formula in formulas)
namespaces = 'xmlns="http://dlmf.nist.gov/LaTeXML" xmlns:m="http://www.w3.org/1998/Math/MathML"'
Path("out.xml").write_text(f"<document {{namespaces}}>{{paras}}</document>")
"""


@pytest.fixture
def program(tmp_path: Path) -> tuple[str, Path]:
    """The stand-in and the file that it notes its calls in."""
    path, calls = tmp_path / "latexmlc", tmp_path / "calls"
    path.write_text(STAND_IN.format(python=sys.executable, calls=str(calls)))
    path.chmod(0o755)
    return str(path), calls


def test_formulas_go_in_batches_and_come_back_in_order(program: tuple[str, Path]) -> None:
    command, calls = program
    parsed = LaTeXML(command, batch_size=3).parse(list("abcdefg"))
    assert [formula.slt.tangent_string() for formula in parsed if formula.slt] == [f"[V!{x}]" for x in "abcdefg"]
    assert [formula.opt.tangent_string() for formula in parsed if formula.opt] == [f"[V!{x}]" for x in "abcdefg"]
    assert sorted(calls.read_text().splitlines()) == ["a b c", "d e f", "g"]
    assert LaTeXML(command).version() == "stand-in 1.0"


def test_a_failing_batch_is_halved_until_the_culprit_stands_alone(program: tuple[str, Path]) -> None:
    command, calls = program
    converted = LaTeXML(command, batch_size=8).convert(list("abcQefNh"))
    kinds = [result.kind if isinstance(result, Failure) else "" for result in converted]
    assert kinds == ["", "", "", "latexml", "", "", "latexml", ""]
    assert isinstance(converted[3], Failure)
    assert converted[3].message.endswith("'Q'")
    assert len(calls.read_text().splitlines()) == 1 + 2 + 4 + 4


def test_a_formula_that_takes_too_long_is_a_failure(program: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latexml, "_SECONDS_TO_START", 0.0)
    (slow,) = LaTeXML(program[0], seconds=0.3).convert(["S"])
    assert isinstance(slow, Failure)
    assert slow.kind == "timeout"


OPENS_A_FILE = [
    r"\input{/etc/passwd}",
    r"\end{document}",
    r"\csname input\endcsname",
    "^^5cinput",
    r"\InputIfFileExists{f}{}{}",
    r"\IfFileExists{f}{a}{b}",
    r"\begin{input}{f}\end{input}",
    r"\begin {input}{f}",
    r"\begin{ input }{f}",
    r"\begin{\x}{f}",
    "\\begin%\n{input}{f}",
    r"\let\b\begin\b{input}{f}",
    r"\expandafter\begin\x",
    r"\inp\begin{equation}ut{f}",
    r"\verb\a\\input{f}",
    r"\openin5=f \read5 to\x",
    r"\begin{filecontents*}{f}a\end{filecontents*}",
    r"\LoadClassWithOptions{f}",
    r"\RequirePackageWithOptions{f}",
    r"\documentstyle{f}",
    r"\bibliography{f}",
    r"\pdffilesize{f}",
    r"\special{psfile=f}",
    r"\DeclareFontEncoding{/f}{}{}",
    r"\makeatletter\@iinput{f}",
    r"\catcode`\|=0 |input{f}",
    r"\scantokens{\x}",
    r"\ExplSyntaxOn\use:c{x}",
    r"\let\b\begin{array}\b{input}{/tmp/f}",
    r"\let\b=\begin{array}\b{input}{/tmp/f}",
    r"\let\e\end{array}\e{input}",
    r"\newcommand{\s}[2]{#1}\s\begin{array}{input}{/tmp/f}",
    r"\def\s#1#2{#1}\s\begin{array}{input}{/tmp/f}",
    r"{\aftergroup\begin{array}}{input}{/tmp/f}",
    r"\afterassignment\begin{array}\count0=1{input}{/tmp/f}",
    r"\futurelet\b\relax\begin{array}\b{input}{/tmp/f}",
]


@pytest.mark.parametrize("latex", OPENS_A_FILE)
def test_commands_that_reach_for_files_are_refused(program: tuple[str, Path], latex: str) -> None:
    command, calls = program
    (result,) = LaTeXML(command).convert([latex])
    assert isinstance(result, Failure)
    assert result.kind == "refused"
    assert not calls.exists()


def test_commands_that_only_begin_like_those_are_not(program: tuple[str, Path]) -> None:
    command, _ = program
    assert LaTeXML(command).convert([r"\reals"])[0] == LaTeXML(command).convert([r" \reals"])[0]


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{pmatrix}a&b\\c&d\end{pmatrix}",
        r"\begin {align*}a&=b\\&=c\end{align*}",
        r"\begin{equation}\begin{cases}a\\b\end{cases}\end{equation}",
        r"\begin{Bmatrix}a\end{Bmatrix}\begingroup\readily\opening\evaluate\explicit\class\endgroup",
        r"\newcommand{\R}{\mathbb R}\def\x{y}\mathopen( \let\a\alpha",
    ],
)
def test_commands_of_mathematics_are_not_refused(latex: str) -> None:
    assert latexml._REFUSED.search(latexml._paragraph(latex)) is None
    assert not latexml._refused(latexml._paragraph(latex))


def test_without_the_program_the_message_names_the_way_out() -> None:
    with pytest.raises(ConfigError, match="apt install latexml"):
        LaTeXML("no-such-latexml").convert(["x"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("latexmlc") is None, reason="latexmlc is not installed")
def test_latexml_gives_the_trees_of_its_mathml() -> None:
    formulas = [r"3x^2+\frac{1}{2}", r"\begin{align*}a&=b\\&=c\end{align*}", r"\frac{1}{2", r"a<b\le c % chain"]
    fraction, aligned, broken, chain = LaTeXML().parse(formulas)
    assert fraction.slt is not None
    assert fraction.slt.tangent_string() == "[N!3[V!x[+[O!divide,o[N!1],u[N!2]]],a[N!2]]]"
    assert aligned.slt is not None
    assert aligned.slt.labels[0] == "M!2x2"
    assert broken.slt is None
    assert "formulas of one" in dict(broken.errors)["slt"]
    assert chain.opt is not None
    assert chain.opt.tangent_string() == "[U!and,0[O!lt,0[V!a],1[V!b]],1[O!leq,0[V!c]]]"
    (converted,) = LaTeXML().convert(["x"])
    assert isinstance(converted, str)
    assert parse_slt(converted).labels == parse_opt(converted).labels == ("V!x",)
