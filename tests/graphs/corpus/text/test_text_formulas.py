"""Formulas between dollars and other delimiters, and other dollars."""

import pytest

from graphs.corpus.text.markup import FORMULA
from graphs.corpus.text.text_formulas import find


@pytest.mark.parametrize(
    "text",
    [
        "I have $5 and $10.",
        "It costs $5-$10 or US$3, A$4.",
        "I have $5. You have 5$.",
        "A single $ sign",
        r"escaped \$5 and \$6",
        r"open \( and open \[ and \begin{align}",
        r"\begin{document} x \end{document}",
        f"a $ b {FORMULA} c $ d",
        f"$$ x {FORMULA} y $$",
        "$$",
        "$ $",
    ],
)
def test_no_formula_here(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("Let $x$ be", ["x"]),
        (r"How do I find $\lim x\cot(6x) $ here", [r"\lim x\cot(6x)"]),
        ("$a$, $b$ and $c$", ["a", "b", "c"]),
        ("$a$ $b$", ["a", "b"]),
        (r"\(a\) and \[b\] and $$c$$", ["a", "b", "c"]),
        (r"so \begin{equation*} a=b \end{equation*} holds", ["a=b"]),
        (r"\begin{align} a &= b \end{align}", [r"\begin{align} a &= b \end{align}"]),
        (
            r"\begin{array}{c} \begin{array}{c} 1 \end{array} \end{array} and $y$",
            [r"\begin{array}{c} \begin{array}{c} 1 \end{array} \end{array}", "y"],
        ),
        ("It costs $5. Let $x<1$ and $y$ be", ["x<1", "y"]),
        (r"$f(x)=\text{the sum of all of the digits of } x$", [r"f(x)=\text{the sum of all of the digits of } x"]),
        (r"$x=\$5$", [r"x=\$5"]),
        ("$ x + y $", ["x + y"]),
        ("on $[a,b] $, $ [-1,1]$ and $ A', B $", ["[a,b]", "[-1,1]", "A', B"]),
        ("in $ ABDE $ and $ABC$ and $abc$", ["ABDE", "ABC", "abc"]),
        (
            r"$f=\begin{cases}1&\text{if $x>0$}\\0&\text{if $x\le\{0\}$}\end{cases}$, $y$",
            [r"f=\begin{cases}1&\text{if $x>0$}\\0&\text{if $x\le\{0\}$}\end{cases}", "y"],
        ),
        (r"$$S=\{x : \text{$x$$y$}\}$$ and $y$", [r"S=\{x : \text{$x$$y$}\}", "y"]),
        (r"\(S=\{x : \text{\(x\) is prime}\}\), $y$", [r"S=\{x : \text{\(x\) is prime}\}", "y"]),
        (r"$x_\text{a \$5 note$} and $y$", [r"x_\text{a \$5 note", "y"]),
        (r"$f(A$} and $b$, $c_{d$ and $e$", ["f(A", "b", "c_{d", "e"]),
        ("$a_{b$ and\n\n$c}$", ["a_{b", "c}"]),
        ("$x$$$y$$ and $$x$$$y$", ["x", "y", "x", "y"]),
    ],
)
def test_these_are_formulas(text: str, latex: list[str]) -> None:
    assert [found for _, _, found in find(text)] == latex


def test_spans_are_in_order_and_apart() -> None:
    text = r"$a$ \(b\) $$c$$ \begin{gather} d \end{gather} $e$"
    spans = find(text)
    ends = [0, *(end for _, end, _ in spans)]
    assert len(spans) == 5
    assert all(end <= start < stop for end, (start, stop, _) in zip(ends, spans, strict=False))


@pytest.mark.parametrize("piece", ["${", "{$", "$}", r"\({", r"\(", "$${", "$x_{$y", "$\n\n"])
def test_hostile_repetition_comes_to_an_end(piece: str) -> None:
    assert all(start < end for start, end, _ in find(piece * 3_000))
