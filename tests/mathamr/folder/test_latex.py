"""Passages of LaTeX: statements with names, sections and lines; macros of the right preamble; hostile files."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.corpus.text.text_formulas import find
from graphs.papers import archives
from mathamr.folder.latex import read_files, read_latex
from mathamr.folder.passages import MAX_CHARACTERS
from mathamr.folder.preambles import Preambles

PAPER = r"""\documentclass{article} % a draft
\newtheorem{satz}{Theorem}
\newcommand{\norm}[1]{\|#1\|}
\def\bt{\begin{satz}}\def\et{\end{satz}}
\title{On \emph{norms}}
\begin{document}
\section{Norms}
% nothing here
We define $\norm{x}$ %
now.

\bt[Hahn] Every functional extends to $\norm{f}$. \et
\begin{proof}
By \begin{lemma} an inner one \end{lemma} and a choice.
\end{proof}
\subsection{More}
\begin{verbatim}
\section{No section}
\end{verbatim}
The last words of a paper.
\end{document}
Nothing is read after the end of it."""


def shown(text: str, file: str = "a.tex") -> list[tuple[str, str, str]]:
    declarations = Preambles({file: text}).of(file)
    return [(passage.place, passage.title, passage.text) for passage in read_latex(file, text, declarations)]


def test_passages_have_their_kind_section_and_line() -> None:
    assert shown(PAPER) == [
        ("9", "On norms: Norms", "We define $\\|x\\|$ now."),
        ("12", "Theorem (Hahn). On norms: Norms", "Every functional extends to $\\|f\\|$."),
        ("13", "Proof of Theorem (Hahn). On norms: Norms", "By an inner one and a choice."),
        ("20", "On norms: Norms: More", "The last words of a paper."),
    ]


@pytest.mark.parametrize("title", [r"\texorpdfstring{$x_{1}$}{x1}", r"\textbf{The \emph{X}}", r"\a{\b{\c{X}}}"])
def test_repeated_titles_with_braces_in_braces_are_left_out(title: str) -> None:
    text = rf"\addcontentsline{{toc}}{{section}}{{{title}}} \markboth{{{title}}}{{{title}}} These are left."
    assert [body for _, _, body in shown(text)] == ["These are left."]


def test_bibliographies_and_repeated_titles_are_left_out() -> None:
    text = r"""\begin{document}
\section*{Further reading}
\addcontentsline{toc}{section}{Further \emph{reading}} \markboth{FURTHER \emph{READING}}{READING}
These books go on.
\begin{bibdiv}\begin{biblist}
\bib{BS}{book}{author={Bartle, Robert G.}, title={Analysis}}
\end{biblist}\end{bibdiv}
\end{document}"""
    assert shown(text) == [("3", "Further reading", "These books go on.")]


@pytest.mark.parametrize(
    ("begin", "end"), [(r"\[", r"\]"), ("$$", "$$"), (r"\begin{equation}", r"\end{equation}"), (r"\(", r"\)")]
)
def test_a_formula_with_a_formula_in_its_text_is_found_whole(begin: str, end: str) -> None:
    [(_, _, body)] = shown(rf"Then {begin} S=\{{x : \text{{$x$ is prime}}\}} {end} is infinite.")
    assert [latex for _, _, latex in find(body)] == [r"S=\{x : \text{$x$ is prime}\}"]


def test_a_definition_in_a_group_ends_with_it_across_paragraphs() -> None:
    text = r"\def\x{one} {\def\x{two} The words \x." + "\n\n" + r"The words \x.}" + "\n\n" + r"The words \x."
    assert [body for _, _, body in shown(text)] == ["The words two. The words two. The words one."]


def test_a_definition_in_a_statement_ends_with_it() -> None:
    text = r"\def\x{one}\begin{thm}\def\x{two} The words {\x}.\end{thm} The other words \x."
    assert [body for _, _, body in shown(text)] == ["The words two.", "The other words one."]


@pytest.mark.parametrize("show", [r"\verb|{}|", "\\begin{{verbatim}}\n{}\n\\end{{verbatim}}"])
def test_a_conditional_that_is_only_shown_skips_nothing(show: str) -> None:
    begin, end = show.format(r"\iffalse"), show.format(r"\fi")
    text = f"Write {begin} to hide text.\n\nAn important theorem.\n\nEnd it with {end} again."
    assert " ".join(body for _, _, body in shown(text)) == (
        "Write to hide text. An important theorem. End it with again."
    )


def test_dollar_signs_that_are_only_shown_begin_no_formula() -> None:
    text = r"Write \verb|$| or \verb*+$$+ around an important $x$ of \verb|text|."
    assert [body for _, _, body in shown(text)] == ["Write or around an important $x$ of text."]


def test_skipped_text_is_no_passage() -> None:
    text = "The first words here.\n\n\\iffalse\n\\begin{thm} Nothing of this. \\end{thm}\n\\fi\n\nThe last words here."
    assert shown(text) == [("1", "a", "The first words here. The last words here.")]
    assert shown(text + "\n\n\\begin{thm} A theorem here. \\end{thm}")[1][0] == "9"


@pytest.mark.parametrize(
    ("begin", "title"),
    [
        (r"\begin{restatable}[Foo]{theorem}{foo}", "Theorem (Foo). a"),
        (r"\begin{restatable}[{\cite[Thm.~2]{a} of \emph{b}}]{lem}{foo}\label{a}", "Lemma ([a, Thm. 2] of b). a"),
        (r"\begin{restatable}{own}{foo}", "Own. a"),
        (r"\begin{restatable}", "Statement. a"),
        (r"\begin{thm}[name={Sylow, first},label=thm:sylow]", "Theorem (Sylow, first). a"),
    ],
)
def test_titles_of_statements_that_are_repeated_or_have_options(begin: str, title: str) -> None:
    name = begin[7:17] if "restatable" in begin else "thm"
    assert shown(rf"{begin} Let $x$ be prime. \end{{{name}}}") == [("1", title, "Let $x$ be prime.")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            r"\pmtitle{proof that $\sqrt{2}$ is irrational}\begin{document}We prove it.",
            r"proof that $\sqrt{2}$ is irrational",
        ),
        (r"\mysection{sec:primes}{On primes} We count them.", "On primes"),
        (r"\mysection{On primes}{sec:primes} We count them.", "On primes"),
        (
            r"\newcommand{\sect}[2]{\section{#2}\label{sec:#1}}\begin{document}\sect{a}{On primes} We count them.",
            "On primes",
        ),
        (r"\newcommand\Sec[1]{\bigskip\section*{#1}}\begin{document}\Sec{On primes} We count them.", "On primes"),
        (r"\olchapter{sth}{story}{The Iterative Conception} We count them.", "The Iterative Conception"),
        (
            r"\newtheorem{wo}[thm]{Well-Ordering Principle}\begin{document}\begin{wo}We prove it.\end{wo}",
            "Well-ordering principle. a",
        ),
        (r"\title{Primes}\begin{document}\section{Primes} We count them.", "Primes"),
    ],
)
def test_titles_are_those_of_the_document(text: str, title: str) -> None:
    assert [one[1] for one in shown(text)] == [title]


@pytest.mark.parametrize(
    "heading", [r"\section{\protect\label{sec:a}Intro}", r"\hypertarget{sec:a}{%" "\n" r"\section{Intro}\label{sec:a}}"]
)
def test_labels_and_targets_are_no_text(heading: str) -> None:
    assert [one[1:] for one in shown(rf"{heading} \begin{{itemize}}\item\label{{a}}Let us see.\end{{itemize}}")] == [
        ("Intro", "Let us see.")
    ]


def test_declarations_and_title_pages_are_no_text() -> None:
    text = r"""\begin{document}\title{On \\ norms}\author[A. U.]{An \textbf{Author}}\date{May}\address{X}\maketitle
\newtheorem{prop}{Proposition}[section] \theoremstyle{definition} \usepackage[utf8]{inputenc} \setlength\parskip{0pt}
\newenvironment{mine}{\begin{theorem}}{\end{theorem}} \numberwithin{equation}{section} \bibliographystyle{plain}
\PMlinkescapeword{fix} Let $x\in X$. \\[-.5ex] Then $\begin{matrix} a\\[3pt] b \end{matrix}$ is large."""
    assert [body for _, _, body in shown(text)] == [r"Let $x\in X$. Then $\begin{matrix} a\\ b \end{matrix}$ is large."]


def test_a_file_that_a_preamble_includes_is_no_text() -> None:
    files = {
        "book.tex": r"\documentclass{book}\input{macros}\begin{document} The first words. \end{document}",
        "macros.tex": r"\def\x{\mathbf{x}} \Crefname{cor}{Corollary}{Corollaries} \mycommand{Some words of a macro}",
    }
    assert [passage.text for passage in read_files(files)] == ["The first words."]


def test_a_chapter_has_the_macros_of_the_book_that_includes_it() -> None:
    files = {
        "book/main.tex": r"\documentclass{book}\usepackage{own}\input{macros}\begin{document}\include{one}",
        "book/macros.tex": r"\newcommand{\R}{\mathbb{R}}",
        "book/style/own.sty": r"\newtheorem{beh}{Lemma}",
        "book/one.tex": r"\begin{beh} Let $x\in\R$ be a number. \end{beh}",
        "other/a.tex": r"\newcommand{\R}{REALS}\begin{document}Let $x\in\R$ be another number.\end{document}",
    }
    found = {passage.file: passage for passage in read_files(files)}
    assert list(found) == ["book/one.tex", "other/a.tex"]
    assert found["book/one.tex"].title == "Lemma. one"
    assert found["book/one.tex"].text == r"Let $x\in\mathbb{R}$ be a number."
    assert found["other/a.tex"].text == "Let $x\\in REALS$ be another number."


def test_a_long_passage_is_cut_between_sentences() -> None:
    text = r"\begin{thm}" + "This is a sentence with $x. y$ in it. " * 500 + r"\end{thm}"
    passages = shown(text)
    assert len(passages) == 2
    assert all(len(body) <= MAX_CHARACTERS and body.endswith("in it.") for _, _, body in passages)
    assert {title for _, title, _ in passages} == {"Theorem. a"}


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        (r"\begin{thm}" * 30_000, 1),
        (r"\begin{thm}\begin{lem}" * 10_000 + r"\end{thm}" * 10_000, 2),
        (r"\newcommand{\a}{\a\a}" + r"\a" * 5_000, 1),
        (r"\section{" * 20_000, 0),
        (r"\newcommand{\bt}{\begin{thm}}" * 5_000, 0),
        (r"\newcommand{\b}{\begin{" + "a" * 30_000 + "}}" + r"\b " * 30_000, 2),
        ("".join(rf"\def\a{'b' * number}{{\begin{{thm}}}}" for number in range(300)) + r"\ab " * 100_000, 1),
        (r"\def" + " " * 60_000, 1),
        (r"\newcommand{\bt}{\begin{thm}}" + "\n" + r"\def\bt " * 20_000, 0),
        (r"\new\def" + "thm" * 50_000, 0),
        ("a\n\n" * 100_000, 67),
        ("$" * 50_000, 1),
        (r"\input{a}" * 10_000, 1),
    ],
)
def test_hostile_files_are_read(text: str, passages: int) -> None:
    assert len(shown(text + " Enough words to be a passage.")) == passages


def test_the_end_of_a_line_is_no_short_name() -> None:
    text = r"\newcommand{\be}{\begin{lemma}}\newcommand{\ee}{\end{lemma}} First words here \\be second words here."
    assert shown(text) == [("1", "a", "First words here be second words here.")]


def test_a_comment_defines_nothing() -> None:
    names = r"\newcommand{\bt}{\begin{theorem}}\newcommand{\et}{\end{theorem}}"
    text = names + "\n\\\\% a macro by \\def\n\\bt Every prime is odd.\\et"
    assert shown(text) == [("3", "Theorem. a", "Every prime is odd.")]


def test_macros_that_include_each_other_end() -> None:
    files = {"a.tex": r"\input{b}\begin{document} The first file here.", "b.tex": r"\input{a} The second file here."}
    assert [passage.text for passage in read_files(files)] == ["The first file here.", "The second file here."]


@pytest.mark.shared
def test_places_in_a_real_book_are_the_lines_of_its_statements() -> None:
    book = Path(__file__).resolve().parents[3].parent / "shared/data/latex-books/planetmath_20"
    if not book.is_dir():
        pytest.skip("shared/data is not beside the repository")
    files = dict(list(archives.read_files(book).items())[:60])
    count = 0
    for passage in read_files(files):
        line = files[passage.file].split("\n")[int(passage.place) - 1]
        assert line.strip()
        if passage.title.startswith(("Theorem", "Lemma", "Proof of")):
            count += 1
            assert r"\begin" in line or r"\textbf{" in line or r"{\bf " in line
    assert count > 10


@pytest.mark.parametrize(
    "latex",
    [
        r"A space is \PMlinkescapetext{completely normal} if it is.",
        r"A space is \allowdisplaybreaks\emph{completely normal} if it is.",
    ],
)
def test_commands_that_print_their_argument_keep_it(latex: str) -> None:
    (passage,) = read_latex("a.tex", latex)
    assert passage.text == "A space is completely normal if it is."


def test_an_abstract_that_a_preamble_includes_is_read() -> None:
    abstract = "The abstract says that primes are many."
    (passage,) = read_latex("abstract.tex", abstract, f"{abstract}\n\\documentclass{{article}}")
    assert passage.text == abstract
    macros = r"\newcommand{\R}{\mathbb{R}} Words between macros."
    assert read_latex("macros.tex", macros, f"{macros}\n\\documentclass{{article}}") == []


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\lecture{3}{Mon 1 May}{Rings}\section{Ideals} Words of it.", ("Rings: Ideals", "Words of it.")),
        (r"Words of it.\subfile{lectures/one.tex}", ("a", "Words of it.")),
        (r"\setcounter{page}{1}{\large Words} of it. \title{T}{\bf Bold} words.", ("T", "Words of it. Bold words.")),
        (
            r"\newcommand{\sect}[2][]{\section[#1]{#2}}\begin{document}\sect[a]{Rings} Words of it.",
            ("Rings", "Words of it."),
        ),
        (
            r"\newtcbtheorem[style=a]{box}{Fact}{}{f}\begin{document}\begin{box}{Euclid}{f:a}Words of it.\end{box}",
            ("Fact (Euclid). a", "Words of it."),
        ),
        (
            r"\newtcbtheorem{box}{Satz}{}{f}\begin{document}\begin{box*}[colback=red]{Euclid}Words of it.\end{box*}",
            ("Theorem (Euclid). a", "Words of it."),
        ),
        (
            r"""\usepackage[english,ngerman]{babel}\section{\"Uber "Ubungen}Ein \"a und "a, "s und "`F"ur"'.""",
            ("Über Übungen", "Ein ä und ä, ß und „Für“."),
        ),
        (r'\usepackage[ngerman,english]{babel} Words in "quotes".', ("a", 'Words in "quotes".')),
        (
            r"\begin{tabular}[t]{|l|p{3cm}|}One&\multicolumn{2}{c}{Two}\\\cline{1-2}\end{tabular}"
            r"\begin{tabularx}{\textwidth}{lX}Three\end{tabularx}\begin{minipage}{0.5\textwidth}Four\rule{1cm}{2pt}\end{minipage}",
            ("a", "One Two Three Four"),
        ),
        (
            r"\begin{tabular}{ll} Ring & Unit\\ $\begin{pmatrix} a & b \end{pmatrix}$ & $1$ \end{tabular}",
            ("a", r"Ring Unit $\begin{pmatrix} a & b \end{pmatrix}$ $1$"),
        ),
        (
            r"Procter \& Gamble in \parbox{5cm}{a} \makebox[2cm][l]{box}, $x ,y\&$." + "\n\n" + r"One & Two \\& Three",
            ("a", r"Procter & Gamble in a box, $x ,y\&$. One Two Three"),
        ),
        (
            r"By Lemma~\ref{a}, (\ref{b}) and \cref{lem:c,lem:d}. See~\cref{sec:e}, [\cite{f}] and \autoref{other}.",
            ("a", "By Lemma, (⋯) and Lemma. See Section, [f] and ⋯."),
        ),
        (r"Words \verb|of_it| or \verb+x+, \lstinline!y!, \mintinline{c}{z}.", ("a", "Words of_it or x, y, z.")),
        (
            r"By \lemmaref{a}, \secref{b} and \ownref{c} on page~\pageref{d}.",
            ("a", "By Lemma, Section and ⋯ on page ⋯."),
        ),
        (
            r"Shown by \textcite{a} in \parencite[see][p.~5]{b}.\thispagestyle{empty}\lstinputlisting[language=C]{a.c}",
            ("a", "Shown by [a] in [see b, p. 5]."),
        ),
        (
            r"By \eqref{a}, Lemmas \ref{b} and~\ref{c}, Equation~\eqref{d}, \olref[x]{thm:e}\olref{f}, \cite[\S 3]{g}.",
            ("a", "By (⋯), Lemmas ⋯ and ⋯, Equation, Theorem, [g, §3]."),
        ),
        (
            r"Let $x \overset{\text{\cite{b}}}{=} y \text{ by \eqref{a}}$\footcite{c}.",
            ("a", r"Let $x \overset{\text{\cite{b}}}{=} y \text{ by \eqref{a}}$."),
        ),
        (r"\begin{theorem}[\cite{a}] Let.\end{theorem}", ("Theorem ([a]). a", "Let.")),
        (r"\begin{proof}[Proof of \eqref{a}] Let.\end{proof}", ("Proof. a", "Let.")),
        (r"Words \verb|a & {b|, $x$.", ("a", "Words a & b, $x$.")),
        (r"\[\begin{tikzcd}A \ar[r] & B\end{tikzcd}\] shows that it commutes.", ("a", "shows that it commutes.")),
        (r"\begin{proof}[Proof of \cref{thm:a}] Let.\end{proof}", ("Proof of Theorem. a", "Let.")),
        (r"\begin{proof}[Proof of \cref{euclid}] Let.\end{proof}", ("Proof. a", "Let.")),
        (r"\begin{proof}[of Lemma~\ref{a}] Let.\end{proof}", ("Proof of Lemma. a", "Let.")),
        (
            r"\begin{frame}[t]{Rings}\begin{itemize}\item<1-> Words \only<2>{of} \fontsize{9}{10}it.\end{itemize}",
            ("Rings", "Words of it."),
        ),
        (r"\frametitle{Rings}\begin{lemma}<2-> Let.\end{lemma}", ("Lemma. Rings", "Let.")),
        (r"\begin{lemma}<1->[Zorn]<2-> Let.\end{lemma}", ("Lemma (Zorn). a", "Let.")),
        (r"Words of $MO<8>$ and $a<-1>b$.", ("a", "Words of $MO<8>$ and $a<-1>b$.")),
        (r"\scalebox{0.9}{Words} of \subimport*{../figures/}{it.tex}it.", ("a", "Words of it.")),
        (r"\declaretheorem[name=Bemerkung]{bem}\begin{document}\begin{bem}Klar.\end{bem}", ("Bemerkung. a", "Klar.")),
        (r"\newtheorem{exo}{\bfseries Exercise}\begin{document}\begin{exo}Show.\end{exo}", ("Exercise. a", "Show.")),
        (r"\newtheorem{rem}{\bf Remark:}\begin{document}\begin{rem}Klar.\end{rem}", ("Remark. a", "Klar.")),
        (r"\begin{Beispiel}[Ring] Klar.\end{Beispiel}", ("Beispiel (Ring). a", "Klar.")),
        (r"\newtheorem{ex}{Exercise}\begin{document}\begin{ex}Show it.\end{ex}", ("Exercise. a", "Show it.")),
    ],
)
def test_arguments_of_commands_are_titles_words_or_layout(latex: str, expected: tuple[str, str]) -> None:
    assert [found[1:] for found in shown(latex)] == [expected]


@pytest.mark.parametrize(
    ("latex", "title"),
    [
        (r"\textbf{Theorem.} Let $x$ be prime.", "Theorem"),
        (r"\noindent\textbf{Lemma 2 (K\H{o}nig).} \textit{Let $x$ be prime.}", "Lemma 2 (Kőnig)"),
        (r"\medskip {\bf Definition -} Let $x$ be prime.", "Definition"),
        (r"{\bfseries Satz}: Let $x$ be prime.", "Satz"),
        (r"\emph{Proof.} Let $x$ be prime. \qed", "Proof"),
        (r"\pause\textbf{Claim:} Let $x$ be prime.", "Claim"),
    ],
)
def test_paragraphs_that_begin_with_a_name_in_bold_are_statements(latex: str, title: str) -> None:
    text = f"The words before it.\n\n{latex}\n\nThe words after it."
    assert shown(text) == [
        ("1", "a", "The words before it."),
        ("3", f"{title}. a", "Let $x$ be prime."),
        ("5", "a", "The words after it."),
    ]


@pytest.mark.parametrize(
    "latex",
    [
        r"\emph{Problems and theorems} is a book.",
        r"The \textbf{Theorem} is old.",
        r"\textbf{Example} usage of it.",
        r"{\bf Problem solving} is hard.",
        r"\textbf{Theorem 3}, which we need, holds.",
    ],
)
def test_other_words_in_bold_or_slanted_are_no_statements(latex: str) -> None:
    assert shown(latex)[0][1] == "a"


@pytest.mark.parametrize("end", [r"\qed", r"\hfill$\square$", r"\[ x = y. \quad\blacksquare \]", "∎", r"\qed \medskip"])
@pytest.mark.parametrize("begin", [r"\noindent\textbf{Proof.}", r"{\it Proof.}\,", "\\textbf{Proof:}\n\n"])
def test_a_proof_in_bold_extends_to_its_sign(begin: str, end: str) -> None:
    text = f"{begin} Let $x$ be.\n\nThen a $\\square$ holds.\n\nAnd so on. {end}\n\nThe next words."
    first, second = shown(text)
    assert (first[:2], second) == (("1", "Proof. a"), ("9" if ":" in begin else "7", "a", "The next words."))
    assert first[2].startswith(r"Let $x$ be. Then a $\square$ holds. And so on.")


@pytest.mark.parametrize(
    "after", ["", r"\section{Next} It is. \qed", r"\textbf{Lemma.} It is. \qed", r"\begin{thm}It is.\end{thm} \qed"]
)
def test_a_proof_in_bold_without_a_sign_is_one_paragraph(after: str) -> None:
    found = shown(f"\\textbf{{Proof.}} Let.\n\nWords after it.\n\n{after}")
    assert [(one[1], one[2]) for one in found[:2]] == [("Proof. a", "Let."), ("a", "Words after it.")]


def test_a_long_title_is_cut_between_words_and_before_a_formula() -> None:
    long, word = rf"{'Rings ' * 32}and fields $x {'+ x ' * 9}$", "w" * 250
    text = rf"\section{{{long}}} Words of it. \section{{{word}}} Other words."
    first, second = (title for _, title, _ in shown(text))
    assert first == f"{'Rings ' * 32}and …"
    assert second == f"{'w' * 200} …"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (r"\ref{" + " " * 200_000, 0),
        ("\\textbf{Proof.} Let it be.\n\n" * 20_000, 20_000),
        ("\n\n" * 50_000, 0),
        ("\n\n\\noindent\\par\\medskip " * 20_000, 0),
        ("&" * 200_000, 0),
    ],
    ids=["reference", "proofs", "blank lines", "skips", "cells"],
)
def test_references_and_proofs_without_an_end_are_read(text: str, count: int) -> None:
    """A reading that is quadratic takes minutes."""
    assert len(read_latex("a.tex", text)) == count
