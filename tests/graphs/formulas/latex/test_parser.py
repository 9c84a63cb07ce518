r"""What a formula in LaTeX becomes: the trees that Tangent-S makes of LaTeXML's output for the same formula."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphs.formulas.latex import MAX_CHARACTERS, parse_latex, read_macros
from graphs.formulas.tree import ParsedFormula

SPECIFIED = {
    r"x^2+y": ("[V!x[+[V!y]],a[N!2]]", "[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]"),
    r"3x^2": ("[N!3[V!x,a[N!2]]]", "[U!times,0[N!3],1[O!SUP,0[V!x],1[N!2]]]"),
    r"f(x)=\frac{x^2+c}{2x}": (
        "[V!f[M!()1x1[=[O!divide,o[V!x[+[V!c]],a[N!2]],u[N!2[V!x]]]],w[V!x]]]",
        "[U!eq,0[U!times,0[V!f],1[V!x]],1[O!divide,0[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!c]],1[U!times,0[N!2],1[V!x]]]]",
    ),
    r"\sqrt{2}+\sqrt[3]{x_1^2}": (
        "[O!root[+[O!root,c[N!3],w[V!x,a[N!2],b[N!1]]]],w[N!2]]",
        "[U!plus,0[O!root,0[N!2],1[N!2]],1[O!root,0[O!SUP,0[O!SUB,0[V!x],1[N!1]],1[N!2]],1[N!3]]]",
    ),
    r"\sum_{k=0}^{n}\binom{n}{k}k": (
        "[∑[M!()1x1[V!k],w[O!divide,o[V!n],u[V!k]]],o[V!n],u[V!k[=[N!0]]]]",
        "[+!O!SUB,0[O!SUP,0[O!SUB,0[O!sum],1[U!eq,0[V!k],1[N!0]]],1[V!n]],1[U!times,0[O!binomial,0[V!n],1[V!k]],1[V!k]]]",
    ),
    r"\int_0^1 f(x)\,dx": (
        "[∫[V!f[M!()1x1[d[V!x]],w[V!x]]],o[N!1],u[N!0]]",
        "[+!O!SUB,0[O!SUP,0[O!SUB,0[O!int],1[N!0]],1[N!1]],1[U!times,0[V!f],1[V!x],2[O!differential-d,0[V!x]]]]",
    ),
    r"\lim_{n\to\infty}\frac1n=0": (
        "[lim[O!divide[=[N!0]],o[N!1],u[V!n]],u[V!n[→[V!∞]]]]",
        "[U!eq,0[+!O!limit,0[O!SUB,0[O!limit],1[F!→,0[V!n],1[C!infinity]]],1[O!divide,0[N!1],1[V!n]]],1[N!0]]",
    ),
    r"\begin{pmatrix}a&b\\c&d\end{pmatrix}": (
        "[M!()2x2,w[V!a,e[V!b,e[V!c,e[V!d]]]]]",
        "[M!M-2x2,0[M!R!,0[V!a],1[V!b]],1[M!R!,0[V!c],1[V!d]]]",
    ),
    r"\{r\in\mathbb{Q}\mid r^2>2, r>0\}": (
        "[M!{}1x1,w[V!r[∈[V!Q[∣[V!r[>[N!2[&comma;[V!r[>[N!0]]]]]],a[N!2]]]]]]]",
        "[O!conditional-set,0[O!in,0[V!r],1[V!Q]],1[O!form-seq,0[O!gt,0[O!SUP,0[V!r],1[N!2]],1[N!2]],"
        "1[O!gt,0[V!r],1[N!0]]]]",
    ),
    r"{}_2F_1(a,b)": (
        "[V!F[M!()1x2,w[V!a[&comma;],e[V!b]]],b[N!1],d[N!2]]",
        "[U!times,0[O!SUB,0[O!SUB,0[V!F],1[N!1]],1[N!2]],1[O!interval(O-O),0[V!a],1[V!b]]]",
    ),
    r"f(x)=\begin{cases}1&\text{if }x>0\\0\end{cases}": (
        "[V!f[M!()1x1[=[{[M!2x2,w[N!1,e[T!if[V!x[>[N!0]]],e[N!0,e[W!]]]]]]],w[V!x]]]",
        "[U!eq,0[U!times,0[V!f],1[V!x]],1[O!cases,0[N!1],1[O!gt,0[U!times,0[W!],1[V!x]],1[N!0]],2[N!0],3[W!]]]",
    ),
    r"(0,1]\cup[2,3)": (
        "[M!(&rsqb;1x2[∪[M!&lsqb;)1x2,w[N!2[&comma;],e[N!3]]]],w[N!0[&comma;],e[N!1]]]",
        "[U!union,0[O!interval(O-C),0[N!0],1[N!1]],1[O!interval(C-O),0[N!2],1[N!3]]]",
    ),
    r"a<b\le c": ("[V!a[<[V!b[≤[V!c]]]]]", "[U!and,0[O!lt,0[V!a],1[V!b]],1[O!leq,0[V!c]]]"),
    r"\{1,2,3\}": (
        "[M!{}1x3,w[N!1[&comma;],e[N!2[&comma;],e[N!3]]]]",
        "[M!S-3,0[N!1],1[N!2],2[N!3]]",
    ),
    r"\underbrace{a+b}_{n}": (
        "[M!1x1,u[V!n],w[M!1x1,u[⏟],w[V!a[+[V!b]]]]]",
        "[O!SUB,0[F!⏟,0[U!plus,0[V!a],1[V!b]]],1[V!n]]",
    ),
    r"\sin^2\theta+\cos\theta": (
        "[V!sin[V!θ[+[V!cos[V!θ]]]],a[N!2]]",
        "[U!plus,0[+!F!sin,0[O!SUP,0[F!sin],1[N!2]],1[V!θ]],1[F!cos,0[V!θ]]]",
    ),
    r"a)": ("[V!a[)]]", "[E!,0[O!fragments],1[-!a],2[V!)]]"),
}


def slt(latex: str) -> str:
    tree = parse_latex(latex).slt
    assert tree is not None
    return tree.tangent_string()


def opt(latex: str) -> str:
    tree = parse_latex(latex).opt
    assert tree is not None
    return tree.tangent_string()


@pytest.mark.parametrize("latex", SPECIFIED)
def test_the_examples_of_the_specification(latex: str) -> None:
    assert (slt(latex), opt(latex)) == SPECIFIED[latex]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"2\cdot3+4", "[U!plus,0[F!⋅,0[N!2],1[N!3]],1[N!4]]"),
        (r"a-b+c", "[U!plus,0[O!minus,0[V!a],1[V!b]],1[V!c]]"),
        (r"a/bc", "[U!times,0[O!divide,0[V!a],1[V!b]],1[V!c]]"),
        (r"-x", "[O!minus,0[V!x]]"),
        (r"n!", "[O!factorial,0[V!n]]"),
        (r"|x|", "[F!abs,0[V!x]]"),
        (r"\|x\|", "[O!norm,0[V!x]]"),
        (r"\lfloor x\rfloor", "[F!floor,0[V!x]]"),
        (r"4\frac{2}{3}", "[U!plus,0[N!4],1[O!divide,0[N!2],1[N!3]]]"),
        (r"\sin 2x\cos y", "[U!times,0[F!sin,0[U!times,0[N!2],1[V!x]]],1[F!cos,0[V!y]]]"),
        (r"\log\sin x", "[F!log,0[F!sin,0[V!x]]]"),
        (r"\max(a,b)", "[F!max,0[V!a],1[V!b]]"),
        (r"f:A\to B", "[F!:,0[V!f],1[F!→,0[V!A],1[V!B]]]"),
        (r"A\supset B", "[O!subset,0[V!B],1[V!A]]"),
        (r"a\mid b", "[O!conditional,0[V!a],1[V!b]]"),
        (r"a\equiv b\pmod n", "[U!equivalent,0[V!a],1[O!annotated,0[V!b],1[F!pmod,0[V!n]]]]"),
        (r"a,b", "[M!L-2,0[V!a],1[V!b]]"),
        (r"a\quad b", "[M!L-2,0[V!a],1[V!b]]"),
        (r"x=1,y=2", "[O!form-seq,0[U!eq,0[V!x],1[N!1]],1[U!eq,0[V!y],1[N!2]]]"),
        (r"= x", "[U!eq,0[W!],1[V!x]]"),
        (r"x:=1", "[O!assign,0[V!x],1[N!1]]"),
        (r"a \not= b", "[U!neq,0[V!a],1[V!b]]"),
        (r"\operatorname{ord}(a)", "[F!ord,0[V!a]]"),
        (r"\mathrm{ord}(a)", "[U!times,0[V!ord],1[V!a]]"),
        (r"x'", "[O!SUP,0[V!x],1[V!′]]"),
        (r"\hat x", "[F!^,0[V!x]]"),
        (r"\left.x\right|_0^1", "[O!evaluated-at,0[V!x],1[N!0],2[N!1]]"),
        (r"\left(a \over b\right)", "[O!divide,0[V!a],1[V!b]]"),
        (r"{n \choose k}", "[O!binomial,0[V!n],1[V!k]]"),
        (r"\begin{vmatrix}a&b\\c&d\end{vmatrix}", "[F!det,0[M!M-2x2,0[M!R!,0[V!a],1[V!b]],1[M!R!,0[V!c],1[V!d]]]]"),
        (r"\langle x,y\rangle", "[M!L-2,0[V!x],1[V!y]]"),
        (r"\genfrac{(}{)}{0pt}{}{n}{k}", "[O!binomial,0[V!n],1[V!k]]"),
        (r"{n\brace k}", "[M!S-1,0[F!,0[V!n],1[V!k]]]"),
        (r"\stackrel{\frown}{AB}=x", "[U!eq,0[F!⌢,0[U!times,0[V!A],1[V!B]]],1[V!x]]"),
        (r"a\stackrel{d}{\underset{n}{\to}}b", "[+!F!n,0[O!SUP,0[F!n,0[V!→]],1[V!d]],1[V!a],2[V!b]]"),
        (r"a\stackrel{!}{=}b", "[+!U!eq,0[O!SUP,0[U!eq],1[O!factorial]],1[V!a],2[V!b]]"),
        (r"a \vcentcolon= b", "[O!assign,0[V!a],1[V!b]]"),
        (r"x<1 \lor x>2", "[U!and,0[O!lt,0[V!x],1[U!or,0[N!1],1[V!x]]],1[O!gt,0[N!2]]]"),
        (r"\sum x<a+b>c", "[U!and,0[O!lt,0[O!sum,0[V!x]],1[U!plus,0[V!a],1[V!b]]],1[O!gt,0[V!c]]]"),
        (r"k<x,y>", "[U!times,0[V!k],1[M!L-2,0[V!x],1[V!y]]]"),
        (r"\forall x\exists y", "[O!forall,0[U!times,0[V!x],1[O!exists,0[V!y]]]]"),
    ],
)
def test_conventions_of_content(latex: str, expected: str) -> None:
    assert opt(latex) == expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\mathbf{AB}", "[V!AB]"),
        (r"\mathcal{AB}", "[V!A[V!B]]"),
        (r"1 000", "[N!1000]"),
        (r"x_1{}^2", "[V!x[W!,a[N!2]],b[N!1]]"),
        (r"{x_1}^2", "[V!x,a[W![N!2]],b[N!1]]"),
        (r"\dot{x}", "[V!x,o[ ̇]]"),
        (r"\max_x f", "[V!max[V!f],b[V!x]]"),
        (r"\displaystyle\max_x f", "[V!max[V!f],u[V!x]]"),
        (r"1+\dots+n", "[N!1[+[V!⋯[+[V!n]]]]]"),
        (r"1,\dots,n", "[N!1[&comma;[V!...[&comma;[V!n]]]]]"),
        (r"\text{if $x$ holds}", "[T!if[V!x[T!holds]]]"),
        (r"\boxed{x}", "[box,w[V!x]]"),
        (r"\begin{bmatrix}1&2\end{bmatrix}", "[M!&lsqb;&rsqb;1x2,w[N!1,e[N!2]]]"),
        (r"x \bmod n", "[V!x[mod[V!n]]]"),
    ],
)
def test_conventions_of_layout(latex: str, expected: str) -> None:
    assert slt(latex) == expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\begin{matrix} a \\ [b] \end{matrix}", "[M!2x1,w[V!a,e[M!&lsqb;&rsqb;1x1,w[V!b]]]]"),
        (r"\begin{matrix} a \\[b] \end{matrix}", "[M!2x1,w[V!a,e[M!&lsqb;&rsqb;1x1,w[V!b]]]]"),
        (r"\begin{matrix} a \\[2.5 pt] b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{matrix} a \\*[-.5\baselineskip] b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{matrix} a \\[\smallskipamount] b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{matrix} a \\[1em plus 2pt] b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{matrix} a \\[-1.5truept plus 1.5 truept minus 1fil] b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{matrix} a \\ * \end{matrix}", "[M!2x1,w[V!a,e[*]]]"),
        (r"\begin{matrix} a \\* b \end{matrix}", "[M!2x1,w[V!a,e[V!b]]]"),
        (r"\begin{split} [b] &= c\end{split}", "[M!1x2,w[M!&lsqb;&rsqb;1x1,w[V!b],e[=[V!c]]]]"),
        (r"\begin{aligned}[t] b &= c\end{aligned}", "[M!1x2,w[V!b,e[=[V!c]]]]"),
        (r"\begin{pmatrix*}[r] 1 & -1\end{pmatrix*}", "[M!()1x2,w[N!1,e[-[N!1]]]]"),
    ],
)
def test_a_bracket_or_a_star_is_an_option_or_a_cell(latex: str, expected: str) -> None:
    assert slt(latex) == expected


def test_a_comment_follows_a_line_end_but_not_a_backslash() -> None:
    assert slt("\\begin{matrix} a \\\\% comment & c\n b\\end{matrix}") == "[M!2x1,w[V!a,e[V!b]]]"
    assert slt("a\\%% comment\nb") == slt("a\\%b")


def test_macros_of_the_post() -> None:
    macros = read_macros(
        r"Let $\newcommand{\R}{\mathbb R}\newcommand{\set}[1]{\{#1\}}\def\pair#1#2{(#1,#2)}"
        r"\newcommand{\p}[2][k]{#2^{#1}}\DeclareMathOperator{\rank}{rank}\let\eps\varepsilon$"
    )
    assert opt(r"\mathbb R") == parse(r"\R", macros)
    assert parse(r"\set{1,2}", macros) == "[M!S-2,0[N!1],1[N!2]]"
    assert parse(r"\pair ab", macros) == "[O!interval(O-O),0[V!a],1[V!b]]"
    assert parse(r"\p{x}+\p[2]{x}", macros) == "[U!plus,0[O!SUP,0[V!x],1[V!k]],1[O!SUP,0[V!x],1[N!2]]]"
    assert parse(r"\rank A", macros) == "[F!rank,0[V!A]]"
    assert parse(r"\eps", macros) == "[V!ε]"


def parse(latex: str, macros: dict) -> str:
    tree = parse_latex(latex, macros).opt
    assert tree is not None
    return tree.tangent_string()


@pytest.mark.parametrize(
    "latex",
    ["% \\newcommand{\\R}{r} as above\n x\\in\\R", r"x\in\R\providecommand{\R}{r}"],
)
def test_a_formula_that_defines_nothing_keeps_the_macros_of_the_post(latex: str) -> None:
    assert parse(latex, read_macros(r"\newcommand{\R}{s}")) == opt(r"x\in s")


def test_macros_defined_in_the_formula_itself() -> None:
    assert opt(r"\newcommand{\half}{\frac12}\half x") == "[U!times,0[O!divide,0[N!1],1[N!2]],1[V!x]]"
    assert opt(r"\def\sq#1{#1^2}\sq{y}") == "[O!SUP,0[V!y],1[N!2]]"


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac\dy\dx", "[O!divide,0[U!times,0[V!d],1[V!y]],1[U!times,0[V!d],1[V!x]]]"),
        (r"\binom\dx2", "[O!binomial,0[U!times,0[V!d],1[V!x]],1[N!2]]"),
        (r"\frac\nothing2", "[O!divide,0[W!],1[N!2]]"),
        (r"\frac\square{y}2", "[O!divide,0[O!SUP,0[V!y],1[N!2]],1[N!2]]"),
        (r"\overrightarrow\dx", "[F!→,0[U!times,0[V!d],1[V!x]]]"),
        (r"\bar\dx", "[U!times,0[F! ̄,0[V!d]],1[V!x]]"),
        (r"\sqrt\dx", "[U!times,0[O!root,0[V!d],1[N!2]],1[V!x]]"),
        (r"y^\dx", "[U!times,0[O!SUP,0[V!y],1[V!d]],1[V!x]]"),
    ],
)
def test_a_macro_is_a_whole_argument_but_not_a_whole_field(latex: str, expected: str) -> None:
    definitions = r"\newcommand{\dx}{dx}\newcommand{\dy}{dy}\newcommand{\nothing}{}\newcommand{\square}[1]{#1^2}"
    assert opt(definitions + latex) == expected
    assert parse(latex, read_macros(definitions)) == expected


@pytest.mark.parametrize("latex", [r"\abs{x}", r"\abs*{x}", r"\abs[\big]{x}", r"\inner[b]{x}", r"\inner x"])
def test_paired_delimiters_and_document_commands_are_macros(latex: str) -> None:
    definitions = (
        r"\DeclarePairedDelimiter\abs{\lvert}{\rvert}\NewDocumentCommand{\inner}{O{a} m}{|#2|}"
        r"\RenewDocumentCommand\lost{s m}{#2}"
    )
    assert opt(definitions + latex) == parse(latex, read_macros(definitions)) == "[F!abs,0[V!x]]"


@pytest.mark.parametrize("space", [r"\phantom{2}", r"\hspace{1pt}", r"\kern 1pt "])
def test_a_space_as_a_script_is_no_script(space: str) -> None:
    assert opt(f"x^{space}y") == "[U!times,0[V!x],1[V!y]]"


@pytest.mark.parametrize(
    ("formulas", "expected"),
    [
        ((r"\renewcommand{\phi}{\phi_0} \phi+1", r"\phi"), ("[V!φ[+[N!1]]]", "[V!φ]")),
        (
            (r"\let\oldvec\vec\renewcommand{\vec}[1]{\oldvec{\mathbf{#1}}} \vec ab", r"\vec ab"),
            ("[V!a[V!b],o[→]]", "[V!a[V!b],o[→]]"),
        ),
        (
            (r"\let\old\alpha \let\alpha\beta \let\beta\old \alpha+1", r"\alpha+\beta"),
            ("[V!β[+[N!1]]]", "[V!β[+[V!α]]]"),
        ),
        (
            (r"\let\old\lfloor \def\lfloor{\mid} \left\old x\right\rfloor", r"x\lfloor y"),
            ("[⌊[V!x[⌋]]]", "[V!x[∣[V!y]]]"),
        ),
        ((r"\def\a{x}\let\b\a\def\a{y}\a\b", r"\a\b"), ("[V!y[V!x]]", "[V!y[V!x]]")),
    ],
)
def test_redefinitions_that_use_the_meaning_before_them(formulas: tuple[str, ...], expected: tuple[str, ...]) -> None:
    macros = read_macros("\n".join(formulas))
    trees = [parse_latex(latex, macros).slt for latex in formulas]
    assert tuple(tree and tree.tangent_string() for tree in trees) == expected


def test_a_command_nobody_knows_keeps_its_name_and_its_place() -> None:
    assert slt(r"\nosuchthing x") == "[E![V!x]]"
    assert opt(r"\nosuchthing x") == r"[U!times,0[T!\nosuchthing],1[V!x]]"


def test_what_cannot_be_parsed_keeps_its_symbols() -> None:
    labels = parse_latex(r"P(x=").opt.labels  # type: ignore[union-attr]
    assert labels[0] == "E!"
    assert {"-!p", "V!(", "-!x", "U!eq"} <= set(labels)
    inner = opt(r"\frac{a)}{2}")
    assert inner == "[O!divide,0[E!,0[O!fragments],1[-!a],2[V!)]],1[N!2]]"


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\operatorname{Tr}(A)^2", "[O!SUP,0[F!Tr,0[V!A]],1[N!2]]"),
        (r"\|\cdot\|", "[O!norm,0[V!⋅]]"),
        (r"x\colon=1", "[O!assign,0[V!x],1[N!1]]"),
        (r"2\cdot-3", "[F!⋅,0[N!2],1[O!minus,0[N!3]]]"),
        (r"[E:F]=2", "[U!eq,0[M!D-lsqb;&rsqb;,0[F!:,0[V!E],1[V!F]]],1[N!2]]"),
        (r"\{1,2,,n\}", "[M!S-3,0[N!1],1[N!2],2[V!n]]"),
        (r"x\in]0,1[", "[O!in,0[V!x],1[O!interval(O-O),0[N!0],1[N!1]]]"),
        (r"x**2", "[F!**,0[V!x],1[N!2]]"),
        (r"||.||_2", "[O!SUB,0[O!norm,0[V!.]],1[N!2]]"),
        (r"\iff a=1\iff b=2", "[U!iff,0[U!iff,0[W!],1[U!eq,0[V!a],1[N!1]]],1[U!eq,0[V!b],1[N!2]]]"),
        (r"f_{|A}", "[O!SUB,0[V!f],1[O!conditional,0[W!],1[V!A]]]"),
        (r"p||G|", "[O!divides,0[V!p],1[F!abs,0[V!G]]]"),
        (r"a||b", "[U!parallel-to,0[V!a],1[V!b]]"),
        (
            r"a\parallel b, c\parallel d",
            "[O!form-seq,0[U!parallel-to,0[V!a],1[V!b]],1[U!parallel-to,0[V!c],1[V!d]]]",
        ),
        (r"E(u\middle|X)", "[U!times,0[V!E],1[O!conditional,0[V!u],1[V!X]]]"),
        (r"\|\|_1", "[O!SUB,0[O!norm],1[N!1]]"),
        (r"x,,y=|z|", "[U!eq,0[M!L-2,0[V!x],1[V!y]],1[F!abs,0[V!z]]]"),
        (r"(\bmod n)", "[O!rem,0[W!],1[V!n]]"),
        (r"\log(n-1)!+1", "[U!plus,0[O!factorial,0[F!log,0[O!minus,0[V!n],1[N!1]]]],1[N!1]]"),
        (r"\bigcirc+x=3", "[U!eq,0[U!plus,0[V!○],1[V!x]],1[N!3]]"),
        (r"X/\sim\to Y", "[F!→,0[O!divide,0[V!X],1[U!similar-to]],1[V!Y]]"),
        (r"x^{.^{.}}", "[O!SUP,0[V!x],1[O!SUP,0[V!.],1[V!.]]]"),
        (r"2\equiv 7\quad\pmod{5}.", "[U!equivalent,0[N!2],1[O!annotated,0[N!7],1[F!pmod,0[N!5]]]]"),
        (r"\boxed{30^n.}", "[O!SUP,0[N!30],1[V!n]]"),
        (r"\left\{\begin{aligned}a&=b\end{aligned}\right.", "[O!cases,0[U!eq,0[V!a],1[V!b]]]"),
        (r"\left<a,b\right>", "[M!L-2,0[V!a],1[V!b]]"),
        (r"1\pmod{5}\ n", "[M!L-2,0[O!annotated,0[N!1],1[F!pmod,0[N!5]]],1[V!n]]"),
    ],
)
def test_what_latexml_leaves_unread_is_read_where_it_is_plain(latex: str, expected: str) -> None:
    assert opt(latex) == expected


def refusal(parsed: ParsedFormula) -> str:
    assert parsed.slt is None
    assert parsed.opt is None
    assert {kind for kind, _ in parsed.errors} == {"slt", "opt"}
    return parsed.errors[0][1]


def test_refusals_name_the_bound() -> None:
    assert "at most 20,000" in refusal(parse_latex("x" * (MAX_CHARACTERS + 1)))
    assert "60 deep" in refusal(parse_latex("{" * 10_000 + "}" * 10_000))
    assert "uses of macros" in refusal(parse_latex(r"\def\a{\b\b}\def\b{\a}\a"))
    assert "40,000 tokens" in refusal(parse_latex(r"\def\a{" + "x" * 9_000 + "}" + r"\a" * 5))
    assert "empty" in refusal(parse_latex("  "))


@pytest.mark.parametrize("latex", [r"\left\lvert b\right| = 1", r"\lvert b| = 1", r"|b\right\rvert = 1"])
def test_a_bar_closes_a_bar_of_another_command(latex: str) -> None:
    opt = parse_latex(latex).opt
    assert opt is not None
    assert opt.tangent_string() == "[U!eq,0[F!abs,0[V!b]],1[N!1]]"


def test_no_tree_depends_on_the_formulas_before_it() -> None:
    """What the parser keeps for the next formula must be the same whichever came first."""
    bars = ("|", r"\vert", r"\lvert", r"\rvert", r"\mid", r"\|", r"\Vert", r"\lVert", r"\rVert", r"\parallel")
    fences = (*bars, "(", ")", "[", "]", r"\{", r"\}", "<", ">", r"\langle", r"\rangle", "/", r"\uparrow")
    formulas = [rf"\{size}{fence} x \right{fence} y" for size in ("left", "bigl", "middle", "big") for fence in fences]
    formulas += [rf"\left{first} x \right{last} y" for first in bars for last in bars if first != last]
    command = "import sys; from graphs.formulas.latex import parse_latex as p; print(*map(p, sys.argv[1:]), sep=chr(0))"
    backwards = subprocess.run([sys.executable, "-c", command, *formulas[::-1]], capture_output=True, check=True)
    assert backwards.stdout.decode().rstrip("\n").split("\0")[::-1] == [str(parse_latex(one)) for one in formulas]


def test_a_struck_through_prime_is_not_taken_for_another_run_of_as_many_characters() -> None:
    assert parse_latex("x'''").slt.tangent_string() == "[V!x,a[′′′]]"
    assert parse_latex(r"x^{\not\prime\prime}").slt.tangent_string() == "[V!x,a[′\u0338′]]"
