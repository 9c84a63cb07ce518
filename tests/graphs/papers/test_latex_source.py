"""The main file of a paper and what it takes in."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from graphs.errors import CorpusError
from graphs.papers import latex_source
from graphs.papers.latex_source import assemble, strip_comments


def test_the_main_file_has_a_document_class() -> None:
    files = {"appendix.tex": "x" * 100, "paper.tex": r"\documentclass{amsart}"}
    assert assemble(files).main == "paper.tex"


def test_of_several_the_one_that_takes_in_most_is_the_paper() -> None:
    cover = r"\documentclass{article}\begin{document}" + "cover " * 20
    files = {"cover.tex": cover, "main.tex": r"\documentclass{book}\input{a}", "a.tex": "text " * 100}
    assert assemble(files).main == "main.tex"
    assert assemble(files).text.split() == [r"\documentclass{book}text", *["text"] * 99]


@pytest.mark.parametrize("package", ["standalone", "subfiles"])
def test_a_paper_that_loads_a_package_of_parts_is_no_part(package: str) -> None:
    main = rf"\documentclass{{article}}\usepackage{{{package}}}\begin{{document}}Long.\input{{part}}\end{{document}}"
    part = rf"\documentclass[main]{{{package}}}\begin{{document}}A part.\end{{document}}"
    letter = r"\documentclass{letter}\begin{document}Dear.\end{document}"
    assert assemble({"main.tex": main, "part.tex": part, "letter.tex": letter}).main == "main.tex"


def test_a_preamble_of_its_own_is_no_paper() -> None:
    files = {"preamble.tex": r"\documentclass{book}", "chapter.tex": r"\input{preamble}\begin{document} text"}
    assert assemble(files).main == "chapter.tex"


def test_a_paper_may_take_files_in_by_its_own_command() -> None:
    files = {
        "main.tex": r"\documentclass{book} \olimport[sets]{sets} \newcommand{\olimport}[1]{\subfile{#1}}",
        "sets/sets.tex": r"\documentclass[../main]{subfiles} A \olimport*{subsets} \reinput{sets}",
        "sets/subsets.tex": "B",
    }
    assert assemble(files).text == r"\documentclass{book} \documentclass[../main]{subfiles} A B \reinput{sets} "


@pytest.mark.parametrize("declared", [r"\newenvironment{slogan}{\comment}{\endcomment}", r"\excludecomment{slogan}"])
def test_what_a_paper_does_not_print_is_gone(declared: str) -> None:
    text = r"\documentclass{a}\begin{lemma}\begin{slogan} Short. \end{slogan} Long. \end{lemma}"
    assert assemble({"main.tex": text, "own.sty": declared}).text == (
        r"\documentclass{a}\begin{lemma}Long. \end{lemma}"
    )


def test_a_commented_document_class_is_none_and_the_largest_file_is_taken() -> None:
    assert assemble({"a.tex": "% \\documentclass{article}\nx", "b.tex": "longer text"}).main == "b.tex"


def test_files_are_found_from_the_main_folder_and_from_their_own() -> None:
    files = {
        "src/main.tex": "\\documentclass{a}\\include{one} \\import{parts/}{two} \\input three\n"
        r"\subfile{parts/four.tex}",
        "src/one.tex": "1",
        "src/parts/two.tex": "2 \\input{deep}",
        "src/parts/deep.tex": "deep",
        "src/three.tex": "3",
        "src/parts/four.tex": "4",
    }
    assert assemble(files).text.split() == ["\\documentclass{a}1", "2", "deep", "3", "4"]


def test_what_is_not_in_the_paper_is_never_read() -> None:
    source = assemble({"main.tex": r"\documentclass{a}\input{/etc/passwd}\input{../../x}\input{|ls}"})
    assert source.text == r"\documentclass{a}"


def test_a_body_has_no_preamble() -> None:
    preamble = r"\documentclass{a}\usepackage{amsmath}\newtheorem{thm}{Theorem}"
    assert assemble({"main.tex": preamble + r"\begin{document}Let $x$ be."}).body == "Let $x$ be."
    assert assemble({"chapter.tex": "Let $x$ be."}).body == "Let $x$ be."


def test_files_that_take_themselves_in_end() -> None:
    source = assemble({"main.tex": r"\documentclass{a}\input{b}", "b.tex": r"B\input{main}\input{b}"})
    assert source.text == r"\documentclass{a}B"


def test_a_bomb_of_inputs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex_source, "MAX_CHARACTERS", 10_000)
    files = {f"{i}.tex": rf"\input{{{i + 1}}}" * 2 for i in range(20)} | {"20.tex": "x" * 50}
    with pytest.raises(CorpusError, match="more than 10,000 characters"):
        assemble(files | {"main.tex": r"\documentclass{a}\input{0}"})
    with pytest.raises(CorpusError, match="include each other more than 10,000 times"):
        assemble(files | {"main.tex": r"\documentclass{a}\input{0}", "20.tex": ""})  # without a character


def test_endinput_ends_a_file() -> None:
    source = assemble({"main.tex": r"\documentclass{a}\input{b} after", "b.tex": r"B\endinput not this"})
    assert source.text == r"\documentclass{a}B after"


def test_the_end_of_a_document_ends_its_file() -> None:
    files = {
        "main.tex": r"\documentclass{a} \verb|\end{document}| A \include{b} C \end{document} \begin{thm} D \end{thm}",
        "b.tex": r"\documentclass[main]{subfiles} B \end{document} not this",
    }
    assert assemble(files).text.split() == [r"\documentclass{a}", "A", r"\documentclass[main]{subfiles}", "B", "C"]


@pytest.mark.parametrize("name", ["verbatim", "lstlisting", "minted"])
def test_verbatim_environments_are_no_text(name: str) -> None:
    shown = rf"\begin{{{name}}} \begin{{thm}} A \end{{thm}} \end{{document}} \iffalse \end{{{name}}}"
    assert assemble({"main.tex": rf"\documentclass{{a}}{shown}B \begin{{{name}}} open"}).text == (
        rf"\documentclass{{a}}B \begin{{{name}}} open"
    )


@pytest.mark.parametrize(
    ("latex", "printed"),
    [
        (r"a\iffalse b \ifdraft c \else d \fi e \ifthenelse{f}{g}{h} $i\iff j$ \fi k", "a k"),
        (r"a\if0 b\fi c", "a c"),
        (r"a\iffalse b \ifdraft {text} \fi c \ifx{d}{e} \fi f \fi g", "a g"),
        (r"a\iffalse b \ifdef\c{d}{e} \iftoggle {f}{g}{h} \ifstrempty{i}{j}{k} \ifblank{l}{m}{n} \fi o", "a o"),
        (r"a\iffalse b \iffalse c\fi d\else e\ifx\g\h f\fi\fi", r"a e\ifx\g\h f\fi\fi"),
        (r"\let\ifdraft\iffalse \let \iflong = \iffalse \newif\ifshort \def\no{\iffalse} a\fi", None),
        (r"\iffalse a \ifx\b\c \fi d", None),
        (r"\iffalsehood a\\iffalse b\fi \if00 c\fi \if01 d\fi", None),
    ],
)
def test_false_conditionals_are_removed(latex: str, printed: str | None) -> None:
    assert assemble({"main.tex": latex}).text == (latex if printed is None else printed)


def test_style_files_declare_but_are_no_text() -> None:
    source = assemble({"main.tex": r"\documentclass{a}", "my.sty": r"\newtheorem{thm}{Theorem}"})
    assert source.declarations == r"\newtheorem{thm}{Theorem}"
    with pytest.raises(CorpusError, match="no LaTeX file"):
        assemble({"my.sty": ""})


@pytest.mark.parametrize(
    ("latex", "stripped"),
    [
        ("a % b\nc", "a c"),
        (r"50\% of" + "\n% x\ny", r"50\% of" + "\ny"),
        ("\\\\% new line\nx", "\\\\x"),
        ("\\begin{comment} a \\end{comment}b", "b"),
        ("\\verb|%|x % y", "\\verb|%|x "),
        ("\\begin{verbatim}\n% stays\n\\end{verbatim}% goes", "\\begin{verbatim}\n% stays\n\\end{verbatim}"),
    ],
)
def test_comments(latex: str, stripped: str) -> None:
    assert strip_comments(latex) == stripped


PIECES = [
    r"\begin{comment}", r"\end{comment}", r"\begin{verbatim}", r"\end{verbatim}",
    r"\begin{verbatim*}", r"\end{verbatim*}", r"\begin{minted}", r"\end{minted}",
    r"\verb|", r"\verb*+", "|", "+", "%", r"\%", "\\\\", "\\", "\n", "  ", "word",
]  # fmt: skip


def strip_comments_reference(text: str) -> str:
    """What :func:`strip_comments` gives, as one expression; its time grows with the square of what is not closed."""
    verbatim = (
        r"\\begin\{(?P<name>verbatim\*?|minted)\}.*?\\end\{(?P=name)\}|\\verb\*?(?P<mark>[^\w\s*])[^\n]*?(?P=mark)"
    )
    comment = rf"\\begin\{{comment\}}.*?\\end\{{comment\}}|(?P<keep>{verbatim}|\\.)|%[^\n]*(?:\n[ \t]*|\Z)"
    return re.sub(comment, lambda match: match["keep"] or "", text, flags=re.DOTALL)


def test_comments_are_those_of_the_reference() -> None:
    drawn = random.Random(0)
    for _ in range(3_000):
        text = "".join(drawn.choices(PIECES, k=drawn.randrange(12)))
        assert strip_comments(text) == strip_comments_reference(text), text


class Counted(str):
    """A text that counts the characters which searches pass over."""

    passed = 0

    def find(self, *given: Any) -> int:
        found, (part, start, *end) = super().find(*given), given
        self.passed += (found + len(part) if found > -1 else min([*end, len(self)])) - start
        return found


@pytest.mark.parametrize("name", ["comment", "verbatim"])
@pytest.mark.parametrize("closed", ["", r"\end{comment}\end{verbatim}"])
def test_what_is_opened_a_thousand_times_is_searched_once(name: str, closed: str) -> None:
    text = Counted(rf"\begin{{{name}}} " * 1_000 + closed)
    strip_comments(text)
    assert 0 < text.passed <= len(text)


def test_what_a_paper_does_not_print_is_searched_no_further_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latex_source, "MAX_UNPRINTED", 100)
    text = Counted(r"\begin{slogan} " * 1_000)
    assert latex_source._printed(text, r"\excludecomment{slogan}") == text
    assert text.passed <= 100 * 1_000
    long = r"\begin{slogan}" + "x" * 200 + r"\end{slogan}"
    assert latex_source._printed(long, r"\excludecomment{slogan}") == long
