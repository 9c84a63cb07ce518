"""Statements of papers: every environment that is one, as text whose formulas are whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.papers.archives import read_files
from graphs.papers.latex_source import assemble
from graphs.papers.macros import Expander
from graphs.papers.plain import formula_spans, plain, sentences_of
from mathamr.folder.latex import read_latex
from mathamr.text.statements import find_statements

BOOKS = Path(__file__).resolve().parents[4] / "shared" / "data" / "latex-books"


def kinds(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in find_statements(text).statements]


@pytest.mark.parametrize(
    ("declaration", "environment", "kind"),
    [
        ("", "thm", "theorem"),
        ("", "Lemma*", None),
        ("", "lemma*", "lemma"),
        (r"\newtheorem{x}[thm]{Lemma}", "x", "lemma"),
        (r"\newtheorem{x}{Definition}[section]", "x", "definition"),
        (r"\newtheorem*{x*}{Main Theorem}", "x*", "theorem"),
        (r"\newtheorem{x}{\bf \sffamily Corollary}", "x*", "corollary"),
        (r"\newtheorem{x}{Proposition/Definition}", "x", "proposition"),
        (r"\newtheorem{thm}{Remark}", "thm", None),
        (r"\declaretheorem[style=plain,name=Theorem]{x}", "x", "theorem"),
        (r"\declaretheorem{lemma}", "lemma", "lemma"),
        (r"\spnewtheorem{x}{Lemma}{\bfseries}{\itshape}", "x", "lemma"),
        (r"\newtcbtheorem[number within=section]{x}{Definition}{colback=green}{th}", "x", "definition"),
        (r"\defthm{x}{Theorem}{Theorems}", "x", "theorem"),
        (r"\newtheorem{x}{Théorème}", "x", "theorem"),
        (r"\newtheorem{x}{\protect\lemmaname}", "x", "lemma"),
        (r"\declaretheorem[style=plain, name=\theoremname, sibling=thm]{x}", "x", "theorem"),
        (r"\newtheorem{thm}{\protect\remarkname}", "thm", None),
        (r"\newtheorem{thm}{Proof of the Main Theorem}", "thm", None),
        (r"\newtheorem{thm}{Bemerkung zum Satz}", "thm", None),
        (r"\newtheorem{thm}{Counterexample to Theorem}", "thm", None),
        (r"\newtheorem{x}{Fundamental Theorem of Algebra}", "x", "theorem"),
        (r"\newtheorem{x}{De Rham's Theorem}", "x", "theorem"),
        (r"\newtheorem{x}{Law of Sines Theorem}", "x", "theorem"),
        ("", "defish", None),
    ],
)
def test_environments_are_known_by_name_or_declaration(declaration: str, environment: str, kind: str | None) -> None:
    text = rf"{declaration} \begin{{{environment}}} Text. \end{{{environment}}}"
    assert [one.kind for one in find_statements(text).statements] == ([] if kind is None else [kind])


def test_titles_labels_and_nesting() -> None:
    text = r"""\begin{theorem}[see {[3]}, \S 2]\label{a} Outer. \begin{lemma}\label{b}[Zorn] Inner $]$. \end{lemma} End.
    \end{theorem} \begin{cor} \textbf{Last} \end{cor}"""
    found = find_statements(text).statements
    assert [(one.kind, one.title) for one in found] == [
        ("theorem", "see [3], §2"),
        ("lemma", "Zorn"),
        ("corollary", ""),
    ]
    assert found[0].text == "Outer. Inner $]$. End."


def test_a_statement_knows_its_heading_and_what_leads_to_it() -> None:
    text = r"""\section[Short]{On $p$-groups} Some words. The next lemma is due to Sylow. \begin{lemma} A. \end{lemma}
    \begin{proof} p \end{proof} \begin{cor} B. \end{cor}\subsection{Cauchy}\begin{thm} C. \end{thm}"""
    first, second, third = find_statements(text).statements
    assert (first.section, first.before) == ("On $p$-groups", "The next lemma is due to Sylow.")
    assert (second.section, second.before) == ("On $p$-groups", "")
    assert (third.section, third.before) == ("Cauchy", "")


def test_a_declaration_is_no_sentence() -> None:
    declared = r"\newtheorem{thm}{Theorem}[section] \newtheorem*{k}{Korollar}"
    text = declared + r"\begin{thm} It is. \end{thm} So:\begin{k} Ja. \end{k}"
    assert [one.before for one in find_statements(text).statements] == ["", "So:"]


def test_a_paper_may_name_its_own_headings() -> None:
    [statement] = find_statements(r"\section{A} \olsection{B} \sectionnotes{C} \begin{thm} D. \end{thm}").statements
    assert statement.section == "B"


def test_a_digit_after_a_formula_is_none_of_its_number() -> None:
    assert sentences_of("It is $x$2 and FORMULA_7 of $y$. Then $z$.") == [
        "It is $x$2 and FORMULA 7 of $y$.",
        "Then $z$.",
    ]


def test_what_is_dropped_is_counted() -> None:
    text = r"\begin{lemma} never ended \begin{thm} a \end{thm} \begin{cor}\label{x}\end{cor} "
    text += r"\begin{defn} long text \end{defn}"
    found = find_statements(text, max_characters=5)
    assert [one.text for one in found.statements] == ["a"]
    assert found.dropped == {"unended": 1, "empty": 1, "overlong": 1}


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\[ x = y. \] Then", "$x = y$. Then"),
        (r"$$x$$ and $y$", "$x$ and $y$"),
        (r"\pause $a \pause = b$", "$a = b$"),
        (r"\begin{equation}\label{e} x \tag{1} \end{equation}", "$x$"),
        (r"\begin{align}a&=b,\\c&=d.\end{align}", r"$\begin{aligned} a&=b,\\c&=d \end{aligned}$."),
        (r"\begin{gather*} a \end{gather*}", r"$\begin{gathered} a \end{gathered}$"),
        (r"$x \text{ if $y>0$, or } z$.", r"$x \text{ if $y>0$, or } z$."),
        (r"costs \$5 and $x$", r"costs \$5 and $x$"),
        (r"an odd $ alone", "an odd $ alone"),
        (r"\(x\) \[ open", r"$x$ [ open"),
        (r"{\em a} \emph{b \textit{c}} \section*{D}", "a b c D"),
        (r"\"Uber \v{C}ech \'{\i} \c{c}a \o{} \ss", "Über Čech í ça ø ß"),
        (r"\footnote{gone {too}}x\index{y}~z\\w", "x z w"),
        (r"\begin{enumerate}\item[(a)] one \item two\end{enumerate}", "(a) one two"),
        (r"\begin{figure}[h] caption \end{figure}rest", "rest"),
        (r"\reflection of \definitely", "of"),
        (r"\hyperref[sec:a]{the main theorem} of \hyperref[b] {it \cite{c}}", "the main theorem of it"),
        (r"\gls{group} \Gls{ring} \glspl[hyper=false]{field}\glsadd{no} \glslink{b}{c}", "group ring field c"),
        (r"\texorpdfstring{On $x^{2}$ by \'{E}lie \cite{a}}{x2 {by} Elie} a", r"On $x^{2}$ by Élie a"),
        (r"\begin{enumerate}[(a)] \item a \end{enumerate} [0,1] is compact", "a [0,1] is compact"),
    ],
)
def test_plain_text(latex: str, text: str) -> None:
    assert plain(latex) == text


@pytest.mark.parametrize(
    ("latex", "formula"),
    [
        (
            r"\begin{IEEEeqnarray*}{r?C'l@{\hspace{1em}}l} \IEEEeqnarraymulticol{3}{l}{x}\nonumber\\ &=& y"
            r"\IEEEyesnumber*\label{a} \end{IEEEeqnarray*}",
            r"\begin{aligned} {x}\\ &=& y \end{aligned}",
        ),
        (r"\begin{numcases}{|x|=} x & a \\ -x & b \end{numcases}", r"|x|= \begin{cases} x & a \\ -x & b \end{cases}"),
        (r"\begin{subnumcases}{} x & a \end{subnumcases}", r"\begin{cases} x & a \end{cases}"),
        (r"\begin{xalignat}{2} a &= b \end{xalignat}", r"\begin{aligned} a &= b \end{aligned}"),
        (r"\begin{xxalignat}{2} a &= b \end{xxalignat}", r"\begin{aligned} a &= b \end{aligned}"),
        (r"\begin{darray}{rcl} a &=& b \end{darray}", r"\begin{aligned} a &=& b \end{aligned}"),
        (r"\begin{IEEEeqnarray}[t]{rCl} a &=& b\end{IEEEeqnarray}", r"\begin{aligned} a &=& b \end{aligned}"),
        (r"\begin{IEEEeqnarray}[\a] [t]{rCl}[a] &=& b\end{IEEEeqnarray}", r"\begin{aligned} [a] &=& b \end{aligned}"),
        (r"\begin{mathpar} \frac{A}{B} \end{mathpar}", r"\begin{gathered} \frac{A}{B} \end{gathered}"),
        (
            r"\begin{dgroup*}\begin{dmath} \phi=b \end{dmath}\end{dgroup*}",
            r"\begin{gathered} \phi=b \end{gathered}",
        ),
    ],
)
def test_displays_of_packages_are_formulas(latex: str, formula: str) -> None:
    assert plain(f"So {latex} holds.") == f"So ${formula}$ holds."


def test_an_amount_of_money_opens_no_formula() -> None:
    text = plain(
        r"A player bets \$1 on each round. Let $X_n = a+b$ be the fortune, and let $Y_n = c+\$2$ be the number."
    )
    assert [text[start:end] for start, end in formula_spans(text)] == ["$X_n = a+b$", r"$Y_n = c+\$2$"]
    assert sentences_of(text)[0] == r"A player bets \$1 on each round."
    read = extract(Post("1", "answer", title=text, body=text, markup="text"))
    assert len(read.sentences) == 4
    assert read.sentences[0] == "A player bets $1 on each round."


@pytest.mark.parametrize(
    "latex",
    [
        r"Paths $p \mathbin{\raisebox{0.5ex}{$\centerdot$}} q$ and",
        r"Let $f=\begin{cases}1&\text{if $x>0$}\\0&\mathrm{if \(x\) is $0$}\end{cases}$ be",
        "Let $f=1\n\n\\text{if $x<0$}$ be",
    ],
)
def test_a_formula_within_the_braces_of_a_formula_stays(latex: str) -> None:
    text = plain(latex)
    assert text == " ".join(latex.split())
    assert formula_spans(text) == [(text.index("$"), text.rindex("$") + 1)]


def test_a_formula_without_a_closing_brace_ends_at_its_dollar() -> None:
    assert plain(r"\emph{Let $a_{b$ be} and $c$.") == r"Let $a_{b$ be and $c$."


@given(st.text(alphabet="\\${}[]()% \nab.begin{end}alignit", max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_string_is_read(latex: str) -> None:
    plain(latex)
    find_statements(rf"\begin{{thm}}{latex}\end{{thm}}")
    assert "".join("".join(sentences_of(latex)).split()) == "".join(latex.split())


@pytest.mark.parametrize(
    "piece",
    [
        *(r"\(", r"\[", "$", r"\begin{align}", r"\cite[", "{", r"\begin{figure}", r"\text{", r"\item["),
        *(r"\begin{restatable}[", r"\begin{restatable}[name={", "[name=,name={{a"),
        *(
            r"\newenvironment{a}{",
            r"\newenvironment{a}[1]{{{",
            r"\texorpdfstring{",
            r"\texorpdfstring{{",
            r"\begin{numcases}{",
        ),
    ],
)
def test_hostile_repetition_comes_to_an_end(piece: str) -> None:
    assert find_statements(rf"\begin{{thm}}{piece * 3_000}\end{{thm}}", max_characters=10**6).dropped["unended"] == 0


@pytest.mark.shared
@pytest.mark.skipif(not BOOKS.exists(), reason=f"the LaTeX books are not at {BOOKS}")
def test_real_books() -> None:
    source = assemble(read_files(BOOKS / "hott_book"))
    assert source.main == "main.tex"
    found = find_statements(source.text, source.declarations)
    assert len(found.statements) > 480
    univalence = next(one for one in found.statements if "idtoeqv" in one.text)
    assert univalence.text.count("$") % 2 == 0


def test_what_is_stated_again_counts_once_with_its_title() -> None:
    text = r"""\newtheorem{x}{Lemma} \begin{restatable}[Euclid {[3]}]{x}{euclid}\label{a} Primes. \end{restatable}
    \euclid* \begin{restatable}{defn}{again} A prime. \end{restatable}
    \begin{restatable}{remark}{r} No. \end{restatable}"""
    found = find_statements(text).statements
    assert [(one.kind, one.title, one.text) for one in found] == [
        ("lemma", "Euclid [3]", "Primes."),
        ("definition", "", "A prime."),
    ]


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ("name=Sylow,label=thm:sylow", "Sylow"),
        (r"label=a, note={Sylow, \'Elie \cite[2]{b}}", "Sylow, Élie"),
        ("label=a, restate=b", ""),
        ("n=2, title of $a$", "n=2, title of $a$"),
    ],
)
def test_options_are_no_title(options: str, title: str) -> None:
    [statement] = find_statements(rf"\begin{{thm}}[{options}] Let it be. \end{{thm}}").statements
    assert (statement.title, statement.text) == (title, "Let it be.")


def test_the_title_of_a_repeated_statement_may_contain_brackets() -> None:
    text = r"""\begin{restatable}[{\cite[Thm.~2]{a}}]{theorem}{foo} A. \end{restatable} \begin{restatable*}[label=b,
    name={See \emph{c [3]}}]{lemma}{bar} B \begin{cor} C. \end{cor} \end{restatable*} \begin{restatable}{cor}{x} D."""
    found = find_statements(text)
    assert [(one.kind, one.title, one.text) for one in found.statements] == [
        ("theorem", "", "A."),
        ("lemma", "See c [3]", "B C."),
        ("corollary", "", "C."),
    ]
    assert found.dropped == {"unended": 1}


def test_the_title_and_the_label_of_a_box_stand_in_braces() -> None:
    text = r"\begin{x}{Euclid}{primes} Let. \end{x} \begin{x*}{No label} {Let} it. \end{x*}"
    found = find_statements(text, r"\newtcbtheorem[auto counter]{x}{Theorem}{colback=red}{th}").statements
    assert [(one.title, one.text) for one in found] == [("Euclid", "Let."), ("No label", "Let it.")]


@pytest.mark.parametrize(
    ("definition", "title"),
    [
        (r"\newenvironment{mythm}{\begin{thm}}{\end{thm}}", "[Euclid]"),
        (r"\renewenvironment{mythm}[1][]{\begin{frame}\bf\begin{thm}[{\it #1}]}{\end{thm}\end{frame}}", "[Euclid]"),
        (r"\newenvironment*{mythm}[2]{\begin{thm}[#1]\label{#2}}{\end{thm}}", "{Euclid}{label}"),
    ],
)
def test_environments_of_newenvironment_have_the_kind_of_what_they_open(definition: str, title: str) -> None:
    declared = rf"\newtheorem{{thm}}{{Theorem}}{definition}\newenvironment{{note}}{{\begin{{rem}}}}{{\end{{rem}}}}"
    text = rf"\begin{{document}}\begin{{mythm}}{title} Let. \end{{mythm}} \begin{{note}} No. \end{{note}}"
    for found in (find_statements(declared + text), find_statements(text, declared)):
        assert [(one.kind, one.title, one.text) for one in found.statements] == [("theorem", "Euclid", "Let.")]
        assert not found.dropped
    assert read_latex("a.tex", declared + text)[0].title.startswith("Theorem")


def test_what_is_nested_without_end_is_counted() -> None:
    found = find_statements(r"\begin{thm}" * 30 + "x" + r"\end{thm}" * 30)
    assert (len(found.statements), found.dropped) == (20, {"nested": 10})


def test_statements_in_short_commands_are_found() -> None:
    latex = r"\def\bt{\begin{theorem}}\def\et{\end{theorem}}\newtheorem{theorem}{Satz} \bt A \CW\ complex. \et"
    declarations = r"\newcommand{\CW}{CW}"
    [statement] = find_statements(Expander(declarations)(latex)).statements
    assert (statement.kind, statement.text) == ("theorem", "A CW complex.")
