r"""Forms of LaTeX whose trees are those that LaTeXML publishes, by the rule that makes them so."""

from __future__ import annotations

import pytest

from graphs.formulas.latex import parse_latex, read_macros


def trees(latex: str) -> tuple[str, str]:
    parsed = parse_latex(latex)
    assert parsed.slt is not None
    assert parsed.opt is not None
    return parsed.slt.tangent_string(), parsed.opt.tangent_string()


SHORT_ROWS = {
    r"\begin{array}{ccc} a & b \\ c \end{array}": (
        "[M!2x3,w[V!a,e[V!b,e[W!,e[V!c,e[W!,e[W!]]]]]]]",
        "[M!M-2x3,0[M!R!,0[V!a],1[V!b],2[E!,0[W!]]],1[M!R!,0[V!c],1[E!,0[W!]],2[E!,0[W!]]]]",
    ),
    r"\begin{array}[t]{c|@{\hspace{1em}}c>{x}r} a \\ c & 0 \\ \hline \end{array}": (
        "[M!2x3,w[V!a,e[W!,e[W!,e[V!c,e[N!0,e[W!]]]]]]]",
        "[M!M-2x3,0[M!R!,0[V!a],1[E!,0[W!]],2[E!,0[W!]]],1[M!R!,0[V!c],1[N!0],2[E!,0[W!]]]]",
    ),
    r"\begin{array}{*{2}{c}} a \\ \multicolumn{2}{c}{x} \end{array}": (
        "[M!2x2,w[V!a,e[W!,e[V!x]]]]",
        "[M!M-2x2,0[M!R!,0[V!a],1[E!,0[W!]]],1[M!R!,0[V!x],1[E!]]]",
    ),
    r"\begin{array}{cc} a & b & c \\ d & e & f \end{array}": (
        "[M!2x3,w[V!a,e[V!b,e[V!c,e[V!d,e[V!e,e[V!f]]]]]]]",
        "[M!M-2x3,0[M!R!,0[V!a],1[V!b],2[V!c]],1[M!R!,0[V!d],1[V!e],2[V!f]]]",
    ),
    r"\begin{matrix} a & b \\ c \end{matrix}": (
        "[M!2x2,w[V!a,e[V!b,e[V!c]]]]",
        "[M!M-2x2,0[M!R!,0[V!a],1[V!b]],1[M!R!,0[V!c],1[E!]]]",
    ),
}


@pytest.mark.parametrize("latex", SHORT_ROWS)
def test_rows_of_an_array_have_the_columns_that_are_declared(latex: str) -> None:
    assert trees(latex) == SHORT_ROWS[latex]


def test_rows_are_not_filled_without_end() -> None:
    refused = parse_latex(r"\begin{array}{" + "*{99}{c}" * 20 + "}" + r"\\" * 200 + r"\end{array}")
    assert refused.slt is None
    assert "more than 40,000 tokens" in refused.errors[0][1]


@pytest.mark.parametrize(
    ("latex", "slt", "opt"),
    [
        (r"\$5", "[$[N!5]]", "[O!currency-dollar,0[N!5]]"),
        (r"5\$", "[N!5[$]]", "[U!times,0[N!5],1[O!currency-dollar]]"),
        (r"\$x+\$y", "[$[V!x[+[$[V!y]]]]]", "[U!plus,0[O!currency-dollar,0[V!x]],1[O!currency-dollar,0[V!y]]]"),
    ],
)
def test_a_dollar_is_an_operator(latex: str, slt: str, opt: str) -> None:
    assert trees(latex) == (slt, opt)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"X\overset{p}{\to}X", "[V!X[→[V!X],o[p]]]"),
        (r"\underset{1}{y}", "[V!y,u[1]]"),
        (r"\overset{\mathrm{def}}{=}", "[=,o[def]]"),
        (r"\mathbb{R}\xrightarrow{\phi}S^1", "[V!R[→[V!S,a[N!1]],o[φ]]]"),
        (r"G\xrightarrow[j]{}H", "[V!G[→[V!H],o[W!],u[j]]]"),
        (r"G\xrightarrow{f_1}H", "[V!G[→[V!H],o[V!f,b[N!1]]]]"),
        (r"\overset{\text{def}}{=}", "[=,o[T!def]]"),
        (r"\stackrel{d}{=}", "[=,o[V!d]]"),
        (r"\stackrel{d}{x}", "[V!x,o[V!d]]"),
    ],
)
def test_a_symbol_over_another_is_an_operator_as_an_accent_is(latex: str, expected: str) -> None:
    assert trees(latex)[0] == expected


@pytest.mark.parametrize("rows", [r"\substack{i<j\\ k}", r"\begin{subarray}{l}i<j\\ k\end{subarray}"])
def test_lines_below_a_sum_are_a_list_of_a_matrix(rows: str) -> None:
    assert trees(rf"\sum_{{{rows}}} a") == (
        "[∑[V!a],u[M!2x1,w[V!i[<[V!j]],e[V!k]]]]",
        "[+!O!sum,0[O!SUB,0[O!sum],1[M!L-1,0[M!M-2x1,0[M!R!,0[O!lt,0[V!i],1[V!j]]],1[M!R!,0[V!k]]]]],1[V!a]]",
    )


@pytest.mark.parametrize(
    ("latex", "slt", "opt"),
    [
        (
            r"A\otimes_R B\otimes_S C",
            "[V!A[⊗[V!B[⊗[V!C],u[V!S]]],u[V!R]]]",
            "[+!U!tensor-product,0[O!SUB,0[U!tensor-product],1[V!S]],"
            "1[+!U!tensor-product,0[O!SUB,0[U!tensor-product],1[V!R]],1[V!A],2[V!B]],2[V!C]]",
        ),
        (
            r"x+_1 y+_1 z",
            "[V!x[+[V!y[+[V!z],u[N!1]]],u[N!1]]]",
            "[+!U!plus,0[O!SUB,0[U!plus],1[N!1]],1[+!U!plus,0[O!SUB,0[U!plus],1[N!1]],1[V!x],2[V!y]],2[V!z]]",
        ),
        (r"a\cdot b\cdot c", "[V!a[⋅[V!b[⋅[V!c]]]]]", "[F!⋅,0[V!a],1[V!b],2[V!c]]"),
    ],
)
def test_only_operators_without_scripts_share_their_operands(latex: str, slt: str, opt: str) -> None:
    assert trees(latex) == (slt, opt)


@pytest.mark.parametrize(
    ("latex", "slt", "opt"),
    [
        (r"\operatorname{\Gamma}(x)", "[V!Γ[M!()1x1,w[V!x]]]", "[F!Γ,0[V!x]]"),
        (r"\operatorname{C\ell}", "[V!C[V!l]]", "[U!times,0[V!C],1[V!l]]"),
        (
            r"\operatorname{sinh^{-1}}(3)",
            "[V!sinh[M!()1x1,w[N!3]],a[-[N!1]]]",
            "[+!V!sinh,0[O!SUP,0[V!sinh],1[O!minus,0[N!1]]],1[N!3]]",
        ),
        (r"\operatorname*{\Large\sum}_i a", "[∑[V!a],u[V!i]]", "[+!O!sum,0[O!SUB,0[O!sum],1[V!i]],1[V!a]]"),
        (r"\operatorname{ess\,sup}A", "[V!ess[V!sup[V!A]]]", "[+!,0[U!times,0[V!ess],1[V!sup]],1[V!A]]"),
        (r"\operatorname{\bf Tr }A", "[V!Tr[V!A]]", "[F!Tr,0[V!A]]"),
        (r"\operatorname{per cent}A", "[V!percent[V!A]]", "[F!percent,0[V!A]]"),
        (r"\mathrm{per cent}A", "[V!percent[V!A]]", "[U!times,0[V!percent],1[V!A]]"),
    ],
)
def test_the_name_of_an_operator_is_mathematics(latex: str, slt: str, opt: str) -> None:
    assert trees(latex) == (slt, opt)


def test_an_operator_may_be_declared_as_a_symbol() -> None:
    macros = read_macros(r"\DeclareMathOperator{\epsilon}{\varepsilon}")
    assert parse_latex(r"|x|<\epsilon", macros) == parse_latex(r"|x|<\varepsilon")


@pytest.mark.parametrize(
    ("latex", "slt", "opt"),
    [
        (r"a\mathbin{\triangle}b", "[V!a[△[V!b]]]", "[F!△,0[V!a],1[V!b]]"),
        (r"x\mathrel{R}y", "[V!x[R[V!y]]]", "[F!R,0[V!x],1[V!y]]"),
        (r"\mathop{\rm spec}R", "[spec[V!R]]", "[F!spec,0[V!R]]"),
        (r"\mathop{\rm Res}_0 f", "[Res[V!f],u[N!0]]", "[+!V!Res,0[O!SUB,0[V!Res],1[N!0]],1[V!f]]"),
        (r"a\mathord{R}b", "[V!a[V!R[V!b]]]", "[U!times,0[V!a],1[V!R],2[V!b]]"),
    ],
)
def test_a_symbol_that_a_command_makes_an_operator_is_one_in_both_trees(latex: str, slt: str, opt: str) -> None:
    assert trees(latex) == (slt, opt)


@pytest.mark.parametrize(
    ("latex", "slt", "opt"),
    [
        (
            r"a\equiv b\pmod{p}^2",
            "[V!a[≡[V!b[M!()1x1,a[N!2],w[mod[V!p]]]]]]",
            "[U!equivalent,0[V!a],1[O!annotated,0[V!b],1[O!SUP,0[F!pmod,0[V!p]],1[N!2]]]]",
        ),
        (
            r"a\equiv b\pmod{p}_2 c",
            "[V!a[≡[V!b[M!()1x1[V!c],b[N!2],w[mod[V!p]]]]]]",
            "[E!,0[O!fragments],1[-!a],2[U!equivalent],3[-!b],4[O!SUB,0[F!pmod,0[V!p]],1[N!2]],5[-!c]]",
        ),
    ],
)
def test_a_script_after_a_modulus_belongs_to_it(latex: str, slt: str, opt: str) -> None:
    assert trees(latex) == (slt, opt)


@pytest.mark.parametrize(
    ("definition", "shown"),
    [
        (r"\newcommand{\low}{\le}", "⋯"),
        (r"\let\low\le ", "⋯"),
        (r"\newcommand{\lower}{ \le}\newcommand{\low}{\lower}", "⋯"),
        (r"\newcommand{\low}{x}", "..."),
        (r"\newcommand{\low}{}", "..."),
    ],
)
def test_dots_are_raised_before_an_operator_of_a_macro(definition: str, shown: str) -> None:
    assert f"V!{shown}" in trees(rf"{definition}a\le\dots\low b")[0]


def test_dots_before_a_macro_that_never_ends_are_refused() -> None:
    assert "uses of macros" in parse_latex(r"\def\a{\b}\def\b{\a}1+\dots\a").errors[0][1]


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"10{2\over 35}", "[U!plus,0[N!10],1[O!divide,0[N!2],1[N!35]]]"),
        (r"29{{\frac57}}x", "[U!times,0[U!plus,0[N!29],1[O!divide,0[N!5],1[N!7]]],1[V!x]]"),
        (r"29\,{5\over 7}", "[U!times,0[N!29],1[O!divide,0[N!5],1[N!7]]]"),
        (r"29{5\over x}", "[U!times,0[N!29],1[O!divide,0[N!5],1[V!x]]]"),
        (r"2^3{4\over 5}", "[U!times,0[O!SUP,0[N!2],1[N!3]],1[O!divide,0[N!4],1[N!5]]]"),
    ],
)
def test_a_mixed_number_may_have_its_fraction_in_braces(latex: str, expected: str) -> None:
    assert trees(latex)[1] == expected


RARE = {
    r"\frac{dy}{dx}\bigg|_{x=0}>0": (
        "[M!1x1[>[N!0]],b[V!x[=[N!0]]],w[O!divide[|],o[V!d[V!y]],u[V!d[V!x]]]]",
        "[O!gt,0[O!evaluated-at,0[O!divide,0[U!times,0[V!d],1[V!y]],1[U!times,0[V!d],1[V!x]]],1[U!eq,0[V!x],1[N!0]]],1[N!0]]",
    ),
    r"U(\subseteq V)\to S": (
        "[V!U[M!()1x1[→[V!S]],w[⊆[V!V]]]]",
        "[F!→,0[O!annotated,0[V!U],1[O!subset,0[W!],1[V!V]]],1[V!S]]",
    ),
    "cov(": ("[V!c[V!o[V!v[(]]]]", "[E!,0[O!fragments],1[T!cov],2[V!(]]"),
    "y=-ax+h": (
        "[V!y[=[-[V!a[V!x[+[V!h]]]]]]]",
        "[U!eq,0[V!y],1[U!plus,0[O!minus,0[U!times,0[V!a],1[V!x]]],1[V!h]]]",
    ),
    "P''": ("[V!P,a[′′]]", "[O!SUP,0[V!P],1[V!′′]]"),
    "y'^2": ("[V!y,a[′[N!2]]]", "[O!SUP,0[V!y],1[M!L-2,0[V!′],1[N!2]]]"),
    r"\{i: x = 1\}": (
        "[M!{}1x1,w[V!i[:[V!x[=[N!1]]]]]]",
        "[O!conditional-set,0[V!i],1[U!eq,0[V!x],1[N!1]]]",
    ),
    r"p \quad \colon = \quad (n, 0).": (
        "[V!p[:[=[M!()1x2[.],w[V!n[&comma;],e[N!0]]]]]]",
        "[O!assign,0[V!p],1[O!interval(O-O),0[V!n],1[N!0]]]",
    ),
    r"\langle R, S_2 . . \rangle": (
        "[⟨[V!R[&comma;[V!S[.[.[⟩]]],b[N!2]]]]]",
        "[M!L-2,0[V!R],1[O!SUB,0[V!S],1[N!2]]]",
    ),
    r"\lVert{Y}\rVert": ("[M!∥∥1x1,w[V!Y]]", "[M!D-∥,0[V!Y]]"),
    r"p \curlywedge q": ("[V!p[⋏[V!q]]]", "[U!and,0[V!p],1[V!q]]"),
    r"f\upharpoonright A": ("[V!f[↾[V!A]]]", "[F!↾,0[V!f],1[V!A]]"),
    r"a \centerdot b": ("[V!a[∙[V!b]]]", "[F!∙,0[V!a],1[V!b]]"),
    "k >= 3": ("[V!k[>=[N!3]]]", "[O!geq,0[V!k],1[N!3]]"),
    r"2^k-x\bigm|y-1": (
        "[N!2[-[V!x[|[V!y[-[N!1]]]]]],a[V!k]]",
        "[E!,0[O!fragments],1[O!SUP,0[N!2],1[V!k]],2[O!minus],3[-!x],4[V!|],5[-!y],6[O!minus],7[N!1]]",
    ),
    r"\sum_n \vert 2n\rangle \langle n \vert": (
        "[∑[|[N!2[V!n[⟩[⟨[V!n[|]]]]]]],u[V!n]]",
        "[+!O!sum,0[O!SUB,0[O!sum],1[V!n]],1[U!times,0[O!ket,0[U!times,0[N!2],1[V!n]]],1[O!bra,0[V!n]]]]",
    ),
}


@pytest.mark.parametrize("latex", RARE)
def test_rare_forms_of_real_posts_have_their_trees(latex: str) -> None:
    assert trees(latex) == RARE[latex]
