"""Passages of Markdown and of notebooks: formulas survive the markup, code and outputs are left out."""

from __future__ import annotations

import json

import pytest

from graphs.errors import CorpusError
from mathamr.folder.markdown import read_markdown
from mathamr.folder.notebook import read_notebook

NOTES = r"""---
title: Notes
---
# Rings and $R$-modules

Let *a* be in [a ring](http://x.org) with $a_1 * b_1 * c_1$ and \\(x_1\\),
see `the code` &amp; <b>more</b>.

```python
# not a heading
print("no text")
```
```math
x_1^2 = 1
```

- An item with $y$.
- Another item of the list.

## Ideals
> **Lemma 2.** Every ideal is
> $$
> I = (x)
> $$
> principal.

**Bold words** begin no statement. It costs \$5.
"""


def test_markdown_is_read_below_its_headings() -> None:
    found = [(passage.place, passage.title, passage.text) for passage in read_markdown("a.md", NOTES)]
    assert found == [
        (
            "6",
            "Notes: Rings and $R$-modules",
            r"Let a be in a ring with $a_1 * b_1 * c_1$ and \(x_1\), see the code & more. $$ x_1^2 = 1 $$ "
            "An item with $y$. Another item of the list.",
        ),
        ("21", "Lemma 2. Notes: Rings and $R$-modules: Ideals", "Every ideal is $$ I = (x) $$ principal."),
        ("27", "Notes: Rings and $R$-modules: Ideals", r"Bold words begin no statement. It costs \$5."),
    ]


UNCLOSED = "\n> ".join("`" * (number % 60 + 1) + "a" for number in range(32_000))


def test_the_stop_of_a_sentence_is_no_part_of_its_formula() -> None:
    text = "Let $$\nx = 1.\n$$ and $y,$ so \\[z; \\] and $\\left( t \\right.$ end."
    (passage,) = read_markdown("a.md", text)
    assert passage.text == r"Let $$ x = 1$$. and $y$, so \[z\]; and $\left( t \right.$ end."


def test_statements_of_myst_and_obsidian_are_recognised() -> None:
    text = """> [!theorem] Euclid
> There are many.

:::{prf:theorem} Pythagoras
:label: pythagoras
Then {math}`a^2+b^2=c^2`.
:::

```{prf:lemma}
Every chain is bounded.
```

```{math}
:label: one
w = 1
```

::: {#a-line}
A line is straight.
:::"""
    assert [(passage.place, passage.title, passage.text) for passage in read_markdown("a.md", text)] == [
        ("1", "Theorem (Euclid). a", "There are many."),
        ("4", "Theorem (Pythagoras). a", "Then $a^2+b^2=c^2$."),
        ("9", "Lemma. a", "Every chain is bounded."),
        ("14", "a", "$$ w = 1 $$ A line is straight."),
    ]


def test_a_statement_of_myst_has_its_name_if_an_empty_line_follows() -> None:
    text = "```{prf:theorem} Euclid\n:label: euclid\n\nThere are many primes.\n```\n\nText after the theorem."
    found = [(passage.place, passage.title, passage.text) for passage in read_markdown("a.md", text)]
    assert found == [("1", "Theorem (Euclid). a", "There are many primes."), ("7", "a", "Text after the theorem.")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```{note}\nLet $a+1$ be.\n```", [("2", "a", "Let $a+1$ be.")]),
        ("```{tip}\n:class: wide\n\nTake $x$.\n```\nThen.", [("4", "a", "Take $x$. Then.")]),
        ("```{exercise}\n:label: one\nFind $x$.\n```", [("1", "Exercise. a", "Find $x$.")]),
        (
            "```{code-cell} r\nx\n```\n```{r, echo=F}\nx\n```\n```{figure} a.png\nA plot\n```\nEnd.",
            [("10", "a", "End.")],
        ),
        ("```{exercise}\n---\nlabel: one\n---\nFind $x$.\n```", [("1", "Exercise. a", "Find $x$.")]),
        ("```{math}\n---\nlabel: one\n---\nx\n```", [("4", "a", "$$ x $$")]),
        ("````{note}\nA word.\n```python\nx\n```\n````\nEnd.", [("2", "a", "A word. End.")]),
        ('A.\n\n<div class="rule">Let $h_1^3$ <b>b</b>e.</div>', [("1", "a", "A. Let $h_1^3$ be.")]),
        ("<details>\n<summary>Why</summary>We use $x_1$.\n</details>", [("1", "a", "Why We use $x_1$.")]),
        ("<div>\n**Lemma.** Let $x$.\n</div>", [("1", "Lemma. a", "Let $x$.")]),
        ("**Lemma.**\n\n<!-- $x$\n\n-->\n\n<script>\n$y$\n</script>\n\nIt is.", [("1", "Lemma. a", "It is.")]),
    ],
)
def test_words_in_blocks_of_myst_and_html_are_read_unless_they_are_code(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert [(passage.place, passage.title, passage.text) for passage in read_markdown("a.md", text)] == expected


@pytest.mark.parametrize(
    ("text", "title", "words"),
    [
        (":::{admonition} Satz von $x$\n:class: tip\nEs gilt.\n:::", "a", "Satz von $x$ Es gilt."),
        ("```{dropdown} A hint\n\nTake it.\n```", "a", "A hint Take it."),
        (":::{figure} a.png\nA long caption.\n:::", "a", "A long caption."),
        ("> [!NOTE]\n> It holds.", "a", "It holds."),
        ("> [!lemma] **Lemma:** Zorn\n> It holds.\n\n^lem", "Lemma (Zorn). a", "It holds."),
        ("[ ] See [[b/Rings#^c|the rings]], [[b/Sets]] ==now==.\n\n![[d.png]] ^e", "a", "See the rings, Sets now."),
        ("# Rings {#sec:a .b}\n$$\nx\n$$ {#eq:x}\n", "Rings", "$$ x $$"),
        ("(thm-one)=\n**Lemma.** Let\n$$\nx\n$$ (eq:x)\nbe.", "Lemma. a", "Let $$ x $$ be."),
        (
            "A [space](https://x.org/Space_(mathematics)) here[^1].\n\n+++\n\n[^1]: A note.",
            "a",
            "A space here. A note.",
        ),
        (
            "See {ref}`there <a>`, {eq}`b` and {cite:t}`C`, for {term}`rings`.",
            "a",
            "See there, (⋯) and [C], for rings.",
        ),
        (
            r"`\frac{x}{2x}`, `parse([[a, b]])` and `a==b or c==d` are code.",
            "a",
            r"\frac{x}{2x}, parse([[a, b]]) and a==b or c==d are code.",
        ),
        (":::{prf:axiom} Peano\nIt holds.\n:::", "Axiom (Peano). a", "It holds."),
        ('::: {#one .lemma name="Zorn"}\nIt holds.\n:::', "Lemma (Zorn). a", "It holds."),
        ("**Claim.** It holds.", "Claim. a", "It holds."),
        ("**Übung 2.** It holds.", "Übung 2. a", "It holds."),
        ("**Theorem 5** (Zermelo). It holds.", "Theorem 5 (Zermelo). a", "It holds."),
        ("**Lemma 2** (a) holds and (b) holds.", "Lemma 2. a", "(a) holds and (b) holds."),
    ],
)
def test_titles_of_blocks_and_names_of_statements_in_bold_are_read(text: str, title: str, words: str) -> None:
    assert [(passage.title, passage.text) for passage in read_markdown("a.md", text)] == [(title, words)]


@pytest.mark.parametrize(
    "text",
    [
        "```{prf:lemma} Zorn\n:label: a\n\nOne $x$.\n\n- Two.\n```",
        "::::{prf:lemma} Zorn\nOne $x$.\n:::{tip}\nTwo.\n:::\n::::",
        ':::: {#a .lemma name="Zorn"}\nOne $x$.\n\nTwo.\n:::',
        "::: lemma Zorn\nOne $x$.\n\nTwo.\n:::",
        "```{lemma-start} Zorn\n:label: a\n```\nOne $x$.\n\n```\ncode\n```\n\nTwo.\n```{lemma-end}\n```",
        "> [!lemma] Zorn\n> One $x$.\n>\n> Two.\n",
    ],
)
def test_a_block_is_a_statement_up_to_its_end(text: str) -> None:
    found = [
        (passage.title, passage.text) for passage in read_markdown("a.md", f"Words before\n{text}\nWords after it.")
    ]
    assert found == [("a", "Words before"), ("Lemma (Zorn). a", "One $x$. Two."), ("a", "Words after it.")]


def test_a_text_without_a_heading_of_the_first_level_has_the_title_of_its_file() -> None:
    for text, title in (("## Proof\nIt holds.", "Rings vs. sets: Proof"), ("It holds.\n====\nIt holds.", "It holds.")):
        assert read_markdown("notes/Rings vs. sets.md", text)[-1].title == title


def test_a_block_without_an_end_ends_at_the_next_heading_or_statement() -> None:
    found = read_markdown("a.md", ":::{lemma}\nOne.\n:::{lemma}\nTwo.\n# More\nWords after it.")
    assert [(one.title, one.text) for one in found] == [
        ("Lemma. a", "One."),
        ("Lemma. a", "Two."),
        ("More", "Words after it."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "````{prf:lemma}\nLet\n```{math}\nx_1^2\n```\nbe.\n````",
        ":::{prf:lemma}\nLet\n```{math}\n:label: one\nx_1^2\n```\nbe.\n:::",
        "::::{prf:lemma}\nLet\n:::{math}\nx_1^2\n:::\nbe.\n::::",
        "> [!lemma]-\n> Let\n> ```math\n> x_1^2\n> ```\n> be.",
    ],
)
def test_a_block_of_math_is_part_of_its_statement(text: str) -> None:
    found = [(passage.place, passage.title, passage.text) for passage in read_markdown("a.md", f"{text}\n\nAfter it.")]
    assert found == [("1", "Lemma. a", "Let $$ x_1^2 $$ be."), (str(text.count("\n") + 3), "a", "After it.")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":warning: This holds for rings.", ":warning: This holds for rings."),
        ("Below is one.\n\n```math\nx^2 = 1", "Below is one. $$ x^2 = 1"),
        ("```math\nf\n:A: y\n```", "$$ f :A: y $$"),
        (r"Let $\Bigl( x \Bigr.$ be.", r"Let $\Bigl( x \Bigr.$ be."),
        ("---\n\ntitle: no header", "title: no header"),
        (r"Call my\_function(\*a) of \_this.", "Call my_function(*a) of _this."),
        ("Call `f(*a, __x__)` in `<div>` of `[[1, 2]]`.", "Call f(*a, __x__) in <div> of [[1, 2]]."),
        ("Use %%time or %%timeit, at 50%% to 60%%.", "Use %%time or %%timeit, at 50%% to 60%%."),
        ("Call a[[1]] and b=[[0]] of it.", "Call a[[1]] and b=[[0]] of it."),
        ("The set f(x){=y} of [x]{...}, and f(a){b=c}.", "The set f(x){=y} of [x]{...}, and f(a){b=c}."),
        ("Write `a\n::: {.b}\nc` of $$a\n:::\nc$$.", "Write a c of $$a c$$."),
        ("See @user and a@b.org.", "See @user and a@b.org."),
        ("By [@user](https://a.b) [and @other], [a @b](c).", "By @user [and @other], a @b."),
        ("---\ntitle: >\n  Folded\n---\nA line of text.", "A line of text."),
    ],
)
def test_words_that_resemble_markup_stay(text: str, expected: str) -> None:
    (passage,) = read_markdown("a.md", text)
    assert (passage.title, passage.text) == ("a", expected)


def test_spaces_in_a_formula_are_no_code() -> None:
    (passage,) = read_markdown("a.md", "Let\n$$\nM = 1,\n~~~~\nA = 2\n$$ Show that it holds.")
    assert passage.text == "Let $$ M = 1, ~~~~ A = 2 $$ Show that it holds."


def test_statements_in_german_and_french_are_recognised() -> None:
    text = "**Satz (Euklid).** Es gibt viele.\n\n**Beweis.** Klar.\n\n**Théorème 2.** Toute suite converge."
    titles = [passage.title for passage in read_markdown("a.md", text)]
    assert titles == ["Satz (Euklid). a", "Beweis. a", "Théorème 2. a"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "x" + "\t" * 50_000 + "x",
        "> " * 5_000,
        "*" * 50_000,
        "$$ " * 20_001,
        "```\n" * 20_000,
        "\\(" * 9_999,
        "`a ``b " * 9_999,
        "> ```math\n" * 20_000,
        "> > > ```math\nx\n" * 20_000,
        "````{note}\n" * 20_000,
        "<div><!-<script" * 20_000,
        "::: {.lemma" * 20_000,
        UNCLOSED,
    ],
)
def test_words_after_hostile_markdown_are_read(text: str) -> None:
    last = read_markdown("a.md", text + "\n\nSome words after it.")[-1]
    assert last.text.endswith("Some words after it.")


def test_dollars_between_backticks_begin_no_formula() -> None:
    text = r"Set `$HOME/bin` before `$PATH`, ``\$5`` and `$no$`; $`a+b`$ and $x+1$ are formulas."
    (passage,) = read_markdown("a.md", text)
    assert passage.text == r"Set \$HOME/bin before \$PATH, \$5 and \$no\$; $a+b$ and $x+1$ are formulas."


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Call `make\nall` for $x+1$ and `ls`.", r"Call make all for $x+1$ and ls."),  # code over the end of a line
        ("Set `$HOME\n$x` and $y+1$.", r"Set \$HOME \$x and $y+1$."),
        ("A key `\n\n$x+1$\n\n- and `", r"A key $x+1$ and"),  # no code from one block to another
        ("$$\na`b\n$$\nand `c`", r"$$ a`b $$ and c"),
        ("``Even'' if $n+1$ is ``odd''.", r"Even'' if $n+1$ is odd''."),  # quotes of TeX
        ("The `$x$-axis' is not the `$y$-axis' of $z$.", "The $x$-axis' is not the $y$-axis' of $z$."),
        ("Say `echo '$A' and '$B'` for $z$.", r"Say echo '\$A' and '\$B' for $z$."),
        ("```ab``` is a word.\n\nLet $x$ be.\n\n```\nc\n```\n\nEnd.", "ab is a word. Let $x$ be. End."),  # no block
        (r"`\\$5` or `$6` and $x+1$", r"\\\$5 or \$6 and $x+1$"),
    ],
)
def test_formulas_beside_backticks_are_read(text: str, read: str) -> None:
    assert " ".join(passage.text for passage in read_markdown("a.md", text)) == read


def test_places_in_a_notebook_are_cells_and_lines() -> None:
    cells = [
        {"cell_type": "code", "source": "print('no text')", "outputs": [{"data": {"text/plain": "no output"}}]},
        {"cell_type": "markdown", "source": "## Limits\n\nThe limit of $1/n$ is zero."},
        {"cell_type": "raw", "source": "no raw cell"},
        {"cell_type": "markdown", "source": ["It is unique \ud800.\n", "$x_n$"]},
        {"cell_type": "markdown", "source": 7},
        "no cell",
    ]
    found = read_notebook("a b.ipynb", json.dumps({"nbformat": 4, "cells": cells}))
    assert [(passage.place, passage.title) for passage in found] == [("cell-2:3", "Limits")]
    assert found[0].text == "The limit of $1/n$ is zero. It is unique \ud800. $x_n$"
    assert found[0].post_id.startswith("a%20b.ipynb:cell-2:3~")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", "{}", '{"cells": 3}', "null"])
def test_what_is_no_notebook_is_refused(text: str) -> None:
    with pytest.raises(CorpusError, match="is not a notebook"):
        read_notebook("a.ipynb", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("By Zorn ([[Lemmas/Zorn|his lemma]]), 由[[Zorn]]得.", "By Zorn (his lemma), 由Zorn得."),
        ("The %%not $x$ shown%% words **F**irst.", "The words First."),
        ("{doc}`In these\nlectures <a_b>` a line\\\nends.", "In these lectures a line ends."),
        (
            "It [@euler, p. 3; @gauss] [see also @zorn] is [small]{.smallcaps} by @thm-line.",
            "It [euler, p. 3; gauss] [see also zorn] is small by @thm-line.",
        ),
        ('A [link](a.html){target="_blank"} to [it](b){.c} is `x`{.r}.', "A link to it is x."),
        ('![A map](map.png){#fig-map width="5cm"}{{< include _a.qmd >}}A word or two.', "A word or two."),
    ],
)
def test_markup_of_dialects_is_left_out(text: str, expected: str) -> None:
    assert " ".join(read_markdown("a.md", text)[0].text.split()) == expected


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("::: {#thm-line}\n\n## Line\n\nLet $x$ be.\n:::", "Theorem (Line)"),
        ("::: {#def-line .special}\nLet $x$ be.\n:::", "Definition"),
        ("```{solution} exercise_1\nLet $x$ be.\n```", "Solution"),
        ("> [!theorem]+ Theorem (Line)\n> Let $x$ be.", "Theorem (Line)"),
        ("Words before it.\n**Satz 2.** Let $x$ be.", "Satz 2"),
        ("*Proof.* Let $x$ be.", "Proof"),
        (r"\begin{theorem*}[Line]\label{line}" "\nLet $x$ be.\n" r"\end{theorem*}", "Theorem (Line)"),
        ("**Theorem**: Let $x$ be.", "Theorem"),
    ],
)
def test_statements_of_quarto_and_after_a_line_have_their_title(text: str, title: str) -> None:
    *_, passage, after = read_markdown("a.qmd", f"# A\n\n{text}\n\nWords after it.")
    assert (passage.title, passage.text) == (f"{title}. A", "Let $x$ be.")
    assert (after.title, after.text) == ("A", "Words after it.")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["**Theorem.** Then", "$$\nx = 1\n$$", "where $y$."], "Then $$ x = 1 $$ where $y$."),
        (["**Theorem.** These are equal:", "1. One.", "2. Two."], "These are equal: One. Two."),
        (["**Theorem:**", "- One.", "- Two."], "One. Two."),
        (["- **Theorem.** It has", "  $$x = 1.$$"], "It has $$x = 1$$."),
        (["**Theorem.** It is.", "- See others."], "It is."),
        (["**Proof.** Clear $\\square$", "$$x = 1$$"], r"Clear $\square$"),
    ],
)
def test_a_statement_in_bold_continues_up_to_a_stop(parts: list[str], text: str) -> None:
    passages = read_markdown("a.md", "\n\n".join([*parts, "Words after it."]))
    assert passages[0].text == text
    assert not passages[1].is_statement
    assert passages[1].text.endswith("Words after it.")


def test_a_formula_between_escaped_brackets_is_read() -> None:
    (passage,) = read_markdown("a.md", r"Let \\[ x = 1 \\] be, and \\(y\\).")
    assert passage.text == r"Let \[ x = 1 \] be, and \(y\)."


def test_titles_of_blocks_without_a_kind_are_read() -> None:
    (passage,) = read_markdown("a.md", '::: {.callout-note title="Remember"}\nLet $x$ be.\n:::')
    assert passage.text == "Remember Let $x$ be."


@pytest.mark.parametrize("line", ["**Example** section of it.", "**Theorem 2**, and", "**Theorem 2**"])
def test_bold_words_in_a_wrapped_sentence_begin_no_statement(line: str) -> None:
    (passage,) = read_markdown("a.md", f"This is shown in the\n{line}\nwith more words.")
    assert passage.text == f"This is shown in the {line} with more words.".replace("**", "")


@pytest.mark.parametrize("edge", [r"\begin{theorem}", r"\end{theorem}"])
def test_an_environment_without_an_end_or_a_begin_is_no_statement(edge: str) -> None:
    passages = read_markdown("a.md", f"Write\n\n{edge}\n\nbefore it.\n\n# B\n\nWords.")
    assert [passage.is_statement for passage in passages] == [False, False]
    assert passages[0].text == f"Write {edge} before it."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**Example** usage of the package.", ("a", "Example usage of the package.")),
        ("**Problem** statements, and **Theorem 2** in bold.", ("a", "Problem statements, and Theorem 2 in bold.")),
        ("**Theorem 2** Let it hold.", ("Theorem 2. a", "Let it hold.")),
        ("**Theorem 2.** let it hold.", ("Theorem 2. a", "let it hold.")),
        ("**Theorem** (Zorn). there is one.", ("Theorem (Zorn). a", "there is one.")),
        ("**Proof** by induction.", ("Proof. a", "by induction.")),
        (r"By \eqref{a}, Lemma \ref{b} and \cite{c}.", ("a", "By (⋯), Lemma ⋯ and [c].")),
        (
            r"Use `\ref{a}` and `\cite{b}`, \href{http://a.b}{link}.",
            ("a", r"Use \ref{a} and \cite{b}, \href{http://a.b}{link}."),
        ),
        ("By {numref}`a` and {eq}`b` of {cite:p}`c,d`.", ("a", "By ⋯ and (⋯) of [c,d].")),
        ("By @sec-team of [@sec-team].", ("a", "By @sec-team of [sec-team].")),
    ],
)
def test_bold_words_and_references_in_a_sentence(text: str, expected: tuple[str, str]) -> None:
    assert [(passage.title, passage.text) for passage in read_markdown("a.md", text)] == [expected]


def test_references_of_quarto_are_the_printed_kinds() -> None:
    text = r"By @thm-line, [-@thm-line], [@sec-rings], @eq-x and Theorem \@ref(thm:x) of [@euler]."
    [passage] = read_markdown("a.qmd", text)
    assert passage.text == "By Theorem, ⋯, Section, Equation and Theorem ⋯ of [euler]."
    [passage] = read_markdown("a.qmd", r"Code `x @thm-a y`, $x_{@eq-a}$, [@fig-a](u.html) and the address \@thm-a.")
    assert passage.text == "Code x @thm-a y, $x_{@eq-a}$, Figure and the address @thm-a."


@pytest.mark.parametrize("end", ["∎", r"$\square$", r"$$x = y \tag*{$\blacksquare$}$$", "Q.E.D.", r"\qed"])
def test_a_proof_in_bold_extends_to_its_sign(end: str) -> None:
    text = f"**Proof.** Let $x$ be.\n\nThen it holds.\n\n- An item.\n\nAnd so on. {end}\n\nThe next words."
    first, second = read_markdown("a.md", text)
    assert (first.title, second.title, second.text) == ("Proof. a", "a", "The next words.")
    assert first.text.startswith("Let $x$ be. Then it holds. An item. And so on. ")


def test_a_proof_in_bold_without_a_sign_is_one_paragraph() -> None:
    text = "**Proof.** Let.\n\nWords after it.\n\n**Lemma.** It is.\n\n*Proof.* Clear.\n\nIt is. ∎"
    assert [(one.title, one.text) for one in read_markdown("a.md", text)] == [
        ("Proof. a", "Let."),
        ("a", "Words after it."),
        ("Lemma. a", "It is."),
        ("Proof. a", "Clear. It is. ∎"),
    ]
