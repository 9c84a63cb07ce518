"""Unicode signs of formulas in plain text give the trees of their commands."""

from __future__ import annotations

import pytest

from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.corpus.text.unicode_signs import COMMANDS, as_commands
from graphs.formulas.latex import parse_latex
from graphs.formulas.latex.symbols import SYMBOLS


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("x ≤ y²", r"x \le y^2"),
        ("∑ᵢ₌₁ⁿ xᵢ²", r"\sum_{i=1}^n x_i^2"),
        ("√(x+1) ≠ √2·√10", r"\sqrt{x+1} \ne \sqrt2 \cdot \sqrt{10}"),
        ("√((a+b)(c+d))", r"\sqrt{(a+b)(c+d)}"),
        ("f′(x) − ½ ∈ ℝ", r"f'(x) - \frac12 \in \mathbb{R}"),
        ("A ⊄ B, A ≰ B", r"A \not\subset B, A \not\le B"),
        ("e^{−α₁₂x}", r"e^{-\alpha_{12} x}"),
        ("90^° = 90^{°}, x^² = x_₁^{′}", r"90^\circ = 90^\circ, x^2 = x_1'"),
        ("√2.5 + 1⁄2", r"\sqrt{2.5} + 1/2"),
        ("ℎ(𝛼) ∈ 𝚪", r"h(\alpha) \in \mathbf{\Gamma}"),
        ("𝑥 ∈ 𝔽ₚ", r"x \in \mathbb{F}_p"),
    ],
)
def test_a_typed_formula_has_the_tree_of_the_written_one(typed: str, written: str) -> None:
    def tree(latex: str) -> object:
        (formula,) = extract(Post("1", "topic", body=f"Is ${latex}$ so?", markup="text")).formulas
        parsed = parse_latex(formula.latex)
        assert parsed.errors == ()
        return parsed

    assert tree(typed) == tree(written)


def test_every_sign_is_that_of_its_command() -> None:
    """But for signs that resemble it, such as ``·`` for ``⋅``."""
    own = {sign: SYMBOLS[command].value for sign, command in COMMANDS.items() if command in SYMBOLS}
    assert {sign for sign, value in own.items() if value != sign} <= set("−–·•‖∆µ∶∕⁄≔")
    assert {sign for sign in COMMANDS if sign not in own} <= set("′’″°")


def test_posts_with_formulas_that_a_collection_marks_stay() -> None:
    marked, typed = "<span class='math-container' id='1'>x ≤ 1</span>", "<p>and $y ≤ 1$</p>"
    for body, latex in ((marked + typed, ["x ≤ 1", "y ≤ 1"]), (typed, [r"y \le 1"])):
        assert [formula.latex for formula in extract(Post("1", "answer", body=body)).formulas] == latex


def test_words_in_a_formula_and_long_ones_stay() -> None:
    assert as_commands(r"x \text{für α} ≥ 1") == r"x \text{für α} \ge 1"
    assert as_commands("√(" * 5000).count(r"\sqrt") == 5000
