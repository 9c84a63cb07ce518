"""A paper's own commands: replaced as TeX does, and never without end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.papers.macros import Expander
from graphs.papers.plain import plain


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\def\CW{CW}\newcommand{\good}{compact} A \CW\ complex is \good.", "A CW complex is compact."),
        (r"\def\R{\mathbb{R}} Let $x\in\R$.", r"Let $x\in\mathbb{R}$."),
        (
            r"\newcommand\R{\ensuremath{\mathbb{R}}} Over \R{} let $x\in\R$.",
            r"Over $\mathbb{R}$ let $x\in{\mathbb{R}}$.",
        ),
        (r"\newcommand{\norm}[2][x]{\|#2\|_{#1}} $\norm{a}+\norm[2]{b}$", r"$\|a\|_{x}+\|b\|_{2}$"),
        (r"\DeclareMathOperator{\rank}{rank} $\rank A$", r"$\operatorname{rank} A$"),
        (
            r"\DeclarePairedDelimiter{\abs}{\lvert}{\rvert}\DeclarePairedDelimiter\n\|\| $\abs{x}\abs*{y}\n[\big] x$",
            r"$\lvert x\rvert\lvert y\rvert\|x\|$",
        ),
        (
            r"\NewDocumentCommand{\inner}{m m}{(#1,#2)}\NewDocumentCommand\R{}{\mathbb{R}} $\inner{a}b\in\R$",
            r"$(a,b)\in\mathbb{R}$",
        ),
        (r"\RenewDocumentCommand\rt{O{2} m}{\sqrt[#1]{#2}} $\rt{x}\rt[3]{x}$", r"$\sqrt[2]{x}\sqrt[3]{x}$"),
        (r"\def\a{x}\ProvideDocumentCommand\a{}{y} $\a$", "$x$"),
        (r"\NewDocumentCommand\a{s m}{#2} $\a*{x}$", r"$\a*{x}$"),
        (r"\newcommand{\f}[1]{\alpha#1} $\f{x}$", r"$\alpha x$"),
        (r"\let\phiold\phi \let\phi\varphi $\phi+\phiold$", r"$\varphi+\phi$"),
        (r"\def\a{x} $\a$ \renewcommand\a{y} $\a$", "$x$ $y$"),
        (r"\providecommand\a{x}\providecommand\a{y} $\a$", "$x$"),
        (r"\def\kz{\iff}\def\doc#1.{#1!} \doc it. $\kz$", r"it. $\iff$"),
        (r"\newcommand{\tag}[1]{\def\next##1{#1}\ifx\x\y\fi} \tag{b}", "b"),
        (r"\renewcommand{\emph}[1]{no} \emph{yes}", "yes"),
        (r"\def\dx{\Delta x}\def\dt{\Delta t} $\frac\dx\dt$", r"$\frac{\Delta x}{\Delta t}$"),
        (
            r"\def\dt{\Delta t} $\frac{a_{1}} \dt\frac1\dt\frac12\dt$",
            r"$\frac{a_{1}} {\Delta t}\frac1{\Delta t}\frac12\Delta t$",
        ),
        (r"\def\ga{\gb+\beta}\def\gb{\alpha} $\mathbf\ga$", r"$\mathbf{\alpha+\beta}$"),
        (r"\def\a{x}\def\b{yz} $\frac{\b}{\b}\b\hat\a\b x^\b\sqrt\b$", r"$\frac{yz}{yz}yz\hat xyz x^yz\sqrt yz$"),
    ],
)
def test_commands_are_replaced(latex: str, expected: str) -> None:
    assert plain(Expander()(latex)).removeprefix("#1! ").endswith(expected)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\def\x{1} {\def\x{2} $\x$} $\x$", "$2$ $1$"),
        (r"\def\x{1} \begin{a} {\let\x\y $\x$} \def\x{3} \def\x{4} $\x$ \end{a} $\x$", r"$\y$ $4$ $1$"),
        (r"\def\x{1} {\def\x{2} {\global\def\x{3}} $\x$}", "$3$"),
        (r"\AtBegin{\newcommand{\x}{1}} \begin{document} $\x$ {\def\y{2}} $\y$", r"$1$ $\y$"),
        (r"} \end{a} \def\x{1} $\x$ {{{ $\x$", "$1$ $1$"),
        (r"\def\x{1} \begingroup\def\x{2} $\x$ \endgroup $\x$", "$2$ $1$"),
        (r"\def\x{1} \bgroup\def\x{2} $\x$ \egroup $\x$", "$2$ $1$"),
        (r"\def\x{1} \[\def\x{2} \x\] \(\def\x{3} \x\) $\x$", "$2$ $3$ $1$"),
        (r"\def\a{\begin{a}}\def\z{\end{a}} \def\x{1} \a\def\x{2}\z $\x$", "$1$"),
    ],
)
def test_a_definition_ends_with_its_group(latex: str, expected: str) -> None:
    assert plain(Expander()(latex)).endswith(expected)


def test_many_groups_and_definitions_are_read() -> None:
    assert Expander()("{" * 100_000 + r"\def\x{1}" * 30_000 + "}" * 100_000) == "{" * 100_000 + "}" * 100_000
    assert Expander()(r"{\def\x{1}" * 30_000 + r"\x}" * 30_000) == "{" * 30_000 + "1}" * 30_000


@pytest.mark.parametrize(
    "latex",
    [
        r"\def\a{\a} x \a y",
        r"\def\a{\b\b}\def\b{\a\a} x \a y",
        r"\newcommand{\a}[1]{\a{#1#1}} x \a{z} y",
        r"\newcommand{\a}[2]{} x \a{z y",
        r"\newcommand{\a}[1]{\b{#1} x} \newcommand{\b}[1]{\a{#1}} x \a{} y",
    ],
)
def test_commands_without_end_stay_as_typed(latex: str) -> None:
    result = Expander()(latex)
    assert result.rstrip().endswith("y")
    assert r"\a" in result


def test_a_bomb_is_no_bomb() -> None:
    letters = "abcdefghijklmnopqrst"
    bomb = "".join(rf"\def\{a}{{\{b}\{b}\{b}}}" for a, b in pairwise(letters))
    assert len(Expander()(bomb + r"\def\t{x} \a end")) < 10_000
    doubling = "".join(rf"\newcommand\{a}[1]{{\{b}{{#1#1#1}}}}" for a, b in pairwise(letters))
    assert len(Expander()(doubling + r"\a{x} end")) < 10_000
    assert len(Expander()(r"\def\a{xx}" + r"\a" * 10_000)) == 20_000


@pytest.mark.parametrize("definition", [r"\def\a#1{%s}", r"\newcommand\a[1]{%s}", r"\newcommand\a[1][yyyyy]{%s}"])
def test_a_use_that_repeats_its_argument_too_often_stays(definition: str) -> None:
    argument = "[" + "y" * 1_000 + "]" if "][" in definition else "{" + "y" * 1_000 + "}"
    assert Expander()(definition % ("#1" * 5) + rf"\a{argument} end") == "y" * 5_000 + " end"
    assert Expander()(definition % ("#1" * 11) + rf"\a{argument} end") == rf"\a{argument} end"
    long = r"\newcommand\a[1][" + "y" * 1_000 + "]{" + "#1" * 11 + "}"
    assert Expander()(long + r"\a end") == r"\a end"


def test_all_uses_and_definitions_of_a_paper_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.papers.macros.MAX_TOKENS_OF_A_PAPER", 2_000)
    uses = Expander()(r"\def\a{" + "x" * 100 + "}" + r"\a" * 50)
    assert uses == "x" * 1_900 + r"\a" * 31
    unended = r"\def" * 300
    assert Expander()(unended + r"\def\b{x}\b") == unended + r"\def\b{x}\b"


@given(st.text(alphabet="\\defnwcomatlbx{}[]#12 $\n", max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_string_is_read(latex: str) -> None:
    read = Expander()(r"\def\a{b}\newcommand\b[1]{#1\a}" + latex)
    assert len(read) <= 50 * (len(latex) + 50)


def test_texts_without_definitions_stay_as_they_are() -> None:
    text = r"\begin{thm} $\norm{x}$  \emph{y} \end{thm}"
    assert Expander()(text) == text
    assert Expander()(r"\def\unused{x}" + text) == text
