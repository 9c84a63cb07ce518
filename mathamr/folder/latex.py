r"""Passages of LaTeX: statements, proofs, examples, and the paragraphs between them.

>>> text = r'''\section{Primes}
... % a draft
... There are many.
...
... \begin{thm}[Euclid]\label{e}
... There are \emph{infinitely many} primes $p\in\N$.
... \end{thm}'''
>>> for passage in read_latex("a.tex", text, r"\newcommand{\N}{\mathbb{N}}"):
...     print(passage.place, "|", passage.title, "|", passage.text)
3 | Primes | There are many.
5 | Theorem (Euclid). Primes | There are infinitely many primes $p\in\mathbb{N}$.

Statements are recognised as in :mod:`mathamr.text.statements`; remarks, examples, exercises and proofs are also
passages. A statement within another one is a part of it. Reading takes linear time, and nothing is executed.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from graphs.papers.latex_source import STYLES, group, strip_comments, without_false
from graphs.papers.macros import Expander
from graphs.papers.plain import plain
from mathamr.folder.markdown import STATEMENTS
from mathamr.folder.passages import Outline, Passage
from mathamr.folder.preambles import Preambles
from mathamr.folder.references import References, without_rests
from mathamr.text.statements import (
    Kind,
    boxes,
    environment_kinds,
    optional_title,
    printed_titles,
    restated,
    title_of_box,
)

SUFFIXES = (".tex", ".ltx", ".latex")

MAX_PARAGRAPH = 100_000  # characters of LaTeX; more without a blank line is a table of data
MAX_PROOF = 20_000  # characters from the first paragraph of a proof in bold to its sign
_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_OTHERS = {
    "remark": "remark rem rmk rk rems rmks",
    "example": "example ex exa exam exmp examp eg examples",
    "exercise": "exercise exer xca exc exercises",
    "problem": "problem prob problems",
    "question": "question quest qn",
    "solution": "solution sol answer",
    "conjecture": "conjecture conj",
    "claim": "claim",
    "fact": "fact",
    "axiom": "axiom ax",
    "notation": "notation nota",
    "observation": "observation obs",
    "situation": "situation",
    "proof": "proof pf prf",
}
_OTHER_NAMES = {name: kind for kind in STATEMENTS.split("|") for name in (kind, kind.lower())}
_OTHER_NAMES |= {name: kind for kind, names in _OTHERS.items() for name in names.split()}
_RESTATABLE = "restatable"  # \begin{restatable}[Euclid]{theorem}{euclid}: a statement that \euclid repeats
_LEFT_OUT = frozenset(
    """verbatim Verbatim lstlisting minted comment thebibliography biblist bibdiv filecontents tikzpicture
    picture pspicture tabbing""".split()  # noqa: SIM905
)
_INNER = r"[^{}]"
for _ in range(3):  # pairs of braces within each other, as in \texorpdfstring{$x_{1}$}{x1}
    _INNER = rf"(?:[^{{}}]|\{{{_INNER}{{0,500}}+\}})"
_ARGUMENT = rf"\s*\{{{_INNER}{{0,500}}+\}}"
# Titles that repeat those of headings, citations of biblatex, names of files, and commands of a preamble, a title page
# and a layout, by the number of their arguments
_WITHOUT_TEXT = {
    1: r"documentclass|usepackage|RequirePackage|declaretheorem|theoremstyle|newcounter|bibliography(?:style)?"
    r"|pagenumbering|hypersetup|captionsetup|tikzset|lstset|graphicspath|title|author|date|address|email|affiliation"
    r"|institute|subjclass|PMlinkescape(?:word|phrase)|markright|subfile|(?:foot|no)cite"
    r"|include(?:pdf|svg)|lstinputlisting|thispagestyle|selectlanguage|(?:ref)?stepcounter|linespread|setstretch"
    r"|scalebox|raisebox",
    2: r"(?:set|addto)length(?:\s*\\[a-zA-Z]+)?|newtheorem|setcounter|numberwithin|addtocontents|markboth|inputminted"
    r"|fontsize",
    3: r"addcontentsline|[cC]refname|(?:re)?newenvironment|definecolor",
}
_OPTIONAL = r"(?:\[[^\]]{0,500}\])*"
_NO_TEXT = re.compile(
    "|".join(
        rf"\\(?:{names})(?![a-zA-Z])\*?(?:{_OPTIONAL}{_ARGUMENT}){{0,{count}}}{_OPTIONAL}"
        for count, names in _WITHOUT_TEXT.items()
    )
    + r"|\\allowdisplaybreaks(?![a-zA-Z])(?:\[\d\])?"
    r"|(?<=\\\\)\*?\s*\[-?[\d.]+\s*(?:pt|cm|mm|em|ex|in)\]"  # after a line end
)
_ON_SLIDES = r"<-?[\d+.][\d,.+-]*>"
_OVERLAY = re.compile(  # \item<1->, but not $MO<8>$
    r"(\\(?:item|only|onslide|uncover|(?:in)?visible|alt|alert|structure|color|includegraphics|pause|emph"
    rf"|text(?:bf|it|rm|sf|sl|tt|color)|begin\s*\{{[a-zA-Z]{{1,60}}\*?\}})){_ON_SLIDES}"
)
_BODY_OVERLAY = re.compile(rf"\A{_ON_SLIDES}")  # \begin{lemma}<2->[Zorn]<3->
# Columns of tables, and other arguments of a layout; links of PlanetMath, whose second argument is their target
_LAYOUT = re.compile(
    rf"\\(?:begin\s*\{{(?:tabular|longtable|minipage|subfigure|multicols\*?|spacing|otherlanguage\*?)\}}|cline|cmidrule(?:\([lr]*\))?"
    rf"|parbox|foreignlanguage|mintinline)\s*{_OPTIONAL}{_ARGUMENT}"
    rf"|\\(?:begin\s*\{{(?:tabular[xy*]|adjustwidth)\}}|rule|multicolumn|resizebox|(?:sub)?import\*?)\s*"
    rf"{_OPTIONAL}{_ARGUMENT}{_OPTIONAL}{_ARGUMENT}"
    rf"|\\(?:make|frame)box(?![a-zA-Z])\s*{_OPTIONAL}"
)
_VERBATIM = re.compile(r"\\(?:verb\*?|lstinline)(?P<mark>[^\w\s*{\[\\])(?P<shown>[^\n]{0,500}?)(?P=mark)")
_LINK = re.compile(rf"\\PMlink(?:name|id|external)(?P<shown>{_ARGUMENT}){_ARGUMENT}")
_BOLD = re.compile(  # \noindent\textbf{Theorem 2 (Zorn).} Let, or \emph{Proof.} Let
    r"(?:\s|\\(?:noindent|par|pause|(?:small|med|big)skip)(?![a-zA-Z]))*"
    r"(?:\\textbf\s*\{|\{\s*\\bf(?:series)?(?![a-zA-Z])"
    r"|(?P<slanted>\\(?:emph|textit)\s*\{|\{\s*\\(?:em|it)(?![a-zA-Z])))"
    rf"\s*(?P<name>(?:{STATEMENTS})s?\b(?:[^{{}}]|\{{[^{{}}]{{0,50}}\}}){{0,200}}?)"
    r"(?P<stop>[.:])?\s*\}(?(stop)|(?(slanted)(?!)))\s*(?P<after>[.:])?(?=\s*\S)"
    r"(?(stop)|(?(after)|(?!\s*[a-zà-öø-ÿ,;])))"  # \textbf{Example} usage, and \textbf{Theorem 2}, which
)
_PROOF = re.compile("Proof|Beweis|Preuve|Démonstration")
_QED = re.compile(  # the sign at the end of a paragraph that ends a proof
    r"(?:[∎□◻■]|\\(?:black|filled)?square(?![a-zA-Z])|\\(?:Black)?[bB]ox(?![a-zA-Z])|\\qed[a-z]*|\bQ\. ?E\. ?D\b|\bQED)"
    r"(?=(?:[\s$}\]).]|\\[\])])*(?:\n[ \t]*\n|\\(?:end|pause|(?:small|med|big)skip)(?![a-zA-Z])|\Z))"
)
_NEXT = re.compile(rf"\n[ \t]*\n{_BOLD.pattern}")
_SIGN = re.compile(r"(?<!\\)((?:\\\\)*+)\\&")  # an escaped & is no edge of a cell; the end of a line escapes nothing
_EVENT = re.compile(
    r"\\(?P<frame>frametitle|begin\s*\{frame\}(?:<[^<>\n]{0,30}>)?)\s*(?:\[[^\]]{0,300}\]\s*)?(?=\{)"  # a slide
    r"|\\begin\s*\{(?P<begin>[a-zA-Z]{1,60}\*?)\}|\\end\s*\{(?P<end>[a-zA-Z]{1,60}\*?)\}|(?P<blank>\n[ \t]*\n)"
    rf"|\\(?:(?P<heading>{'|'.join(_LEVELS)})|[a-z]{{1,8}}(?P<own>chapter|section)"
    r"|(?P<lecture>lecture)\s*\{\d+\}\s*\{[^{}]{0,100}\})\*?\s*"  # \lecture{1}{Mon 1 May}{Primes} of notes
    r"(?:\[[^\]]{0,300}\]\s*)?(?=\{)"
)
# \newcommand{\bt}{\begin{theorem}}: the edge of an environment under another name
_EDGE = re.compile(
    r"\\(?:newcommand|renewcommand|def)\*?(?:\s*\{)?\s*\\(?P<name>[a-zA-Z]+)(?:\s*\})?\s*"
    r"\{\s*\\(?P<edge>begin|end)\s*\{(?P<environment>[a-zA-Z]{1,60}\*?)\}\s*\}"
)
# \newcommand{\sect}[2]{\section{#2}\label{sec:#1}}: a heading under another name
_SECTION = re.compile(
    r"\\(?:re)?newcommand\*?\s*\{?\s*\\(?P<name>[a-zA-Z]+)\s*\}?\s*\[\d\]\s*"
    r"(?:\[[^\]\n]{0,100}\]\s*)?\{[^\n]{0,200}?\\(?P<level>chapter|(?:sub){0,2}section)\*?\s*(?:\[[^\]\n]{0,100}\]\s*)?"
    r"\{\s*#\d\s*\}"
)
_DECLARING = re.compile(r"\\(?:new|renewenv|declare)")
_DECLARES = re.compile(r"\\(?:(?:re)?new|provide|[gex]?def(?![a-zA-Z])|let(?![a-zA-Z])|[dD]eclare|usepackage|Require)")
# Shorthands of babel in a German text: "a is ä
_GERMAN = re.compile(
    r"\\(?:usepackage\s*(?:\[[^\]]{0,500}german\s*\]\s*\{babel\}|\{n?german\})|documentclass\s*\[[^\]]{0,500}german)"
)
_SHORTHAND = re.compile(r"""(?<!\\)"([aouAOUsz`'=~|"-])""")
_SIGNS = dict(zip("aouAOUsz`'=~|\"-", [*"äöüÄÖÜßß„“--", "", "", ""], strict=True))
_DEFINITION = re.compile("\\\\(?:newcommand|renewcommand|def)\\*?(?:\\s|\x1e\\d+\x1e)*\\{?(?:\\s|\x1e\\d+\x1e)*\\Z")
_COMMAND = re.compile(r"\\(?:(?P<name>[a-zA-Z]+)|.)", re.DOTALL)
_LABEL = re.compile(r"\A\s*\\label\s*\{[^{}]*\}")
_NAME = re.compile(r"[^A-Z\s]+")  # of a label
_TITLE = re.compile(r"\\(?:pm)?title\s*(?:\[[^\]]{0,1000}\]\s*)?(?=\{)")
_MARK = re.compile("\x1e(\\d+)\x1e")


def read_latex(file: str, text: str, declarations: str = "") -> list[Passage]:
    """Return the passages of a LaTeX file.

    Args:
        file: its path below the folder.
        declarations: its preamble, with those of other files (:class:`mathamr.folder.preambles.Preambles`).
    """
    clean, lines = _without_comments(text, {})
    edges = {
        match["name"]: rf"\{match['edge']}{{{match['environment']}}}"
        for latex in (declarations, clean)
        for match in _EDGE.finditer(latex)
    }
    edges |= {match["name"]: rf"\my{match['level']}" for match in _SECTION.finditer(f"{declarations}{clean}")}
    if edges:
        clean, lines = _without_comments(text, edges)
    begin = clean.find(r"\begin{document}")
    if file.endswith(STYLES) or (begin < 0 and (r"\documentclass" in clean or _is_of(declarations, text))):
        return []  # declarations alone
    reader = _Reader(file, declarations, clean, lines)
    start = begin + len(r"\begin{document}") if begin >= 0 else 0
    if (title := _TITLE.search(clean)) is not None:
        reader.heading(-1, group(clean, title.end()))
    end = clean.find(r"\end{document}", start)
    return reader.read(start, len(clean) if end < 0 else end)


def read_files(files: dict[str, str], prefix: str = "") -> Iterator[Passage]:
    """Yield the passages of all LaTeX files of an archive, whose path below the folder is ``prefix``."""
    preambles = Preambles(files)
    for name, text in files.items():
        yield from read_latex(f"{prefix}{name}", text, preambles.of(name))


class _Reader:
    """Reader of one file: ``text`` without comments, and the line of each position."""

    def __init__(self, file: str, declarations: str, text: str, lines: list[tuple[int, int]]) -> None:
        self._outline = Outline(file)
        self._text, self._lines = text, lines
        known, kinds, printed = _declared(declarations)
        self._expand = known.copy()
        own = kinds
        if _DECLARING.search(text):
            own, printed = environment_kinds(declarations, text), printed | _printed(text)
        self._boxes = boxes(declarations, text)
        self._is_german = _GERMAN.search(f"{declarations}{text}") is not None
        self._names = (
            _OTHER_NAMES
            | {_RESTATABLE: "statement"}
            | {name: kind or printed.get(name) or _OTHER_NAMES.get(name, name) for name, kind in own.items()}
        )
        self._references = References(self._names)
        self._last = ""  # name of the last statement, which a proof belongs to

    def heading(self, level: int, latex: str) -> None:
        self._outline.heading(level, self._plain(latex))

    def read(self, start: int, end: int) -> list[Passage]:
        """Return the passages between two positions."""
        text, position, proof = self._text, start, start  # `proof`: the place of the sign that ends a proof in bold
        spans = dict(self._spans(start, end))
        for event in _EVENT.finditer(text, start, end):
            if event.start() < position:
                continue
            # A book may have its own \olsection.
            other = "chapter" if event["lecture"] else "paragraph" if event["frame"] else ""
            if level := event["heading"] or event["own"] or other:
                self._paragraph(position, event.start())
                title = group(text, event.end())
                position = event.end() + len(title) + 2
                while event["own"] and text.startswith("{", position):  # \mysection{sec:primes}{Primes}
                    other = group(text, position)
                    position += len(other) + 2
                    title = other if _NAME.fullmatch(title) else title
                self.heading(_LEVELS.index(level), title)
            elif event["begin"] and event.start() in spans:
                self._paragraph(position, event.start())
                body, position = spans[event.start()]
                self._statement(event["begin"], event.start(), text[event.end() : body])
            elif event["blank"] and event.start() >= proof:
                proof = self._end_of_proof(position, event.start(), spans)
                if event.start() >= proof:
                    self._paragraph(position, event.start())
                    position = event.start()
        self._paragraph(position, end)
        return self._outline.close()

    def _end_of_proof(self, start: int, blank: int, spans: Mapping[int, tuple[int, int]]) -> int:
        """Return the place of the sign that ends a proof in bold, whose first paragraph is given; 0 without one."""
        text = self._text
        if _PROOF.search(text, start, blank) is None:  # before blanks are matched, which may be all that follows
            return 0
        bold = _BOLD.match(text, start)
        if bold is None or _PROOF.match(bold["name"]) is None or _QED.search(text, bold.end(), blank):
            return 0
        following = _NEXT.search(text, blank, blank + MAX_PROOF)
        end = blank + MAX_PROOF if following is None else following.start()
        for event in _EVENT.finditer(text, blank, end):
            if not event["blank"] and not event["end"] and (not event["begin"] or event.start() in spans):
                end = event.start()
                break
        sign = _QED.search(text, blank, end)
        return 0 if sign is None else sign.end()

    def _spans(self, start: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield the starts of known environments, with the ends of their bodies and their own ends."""
        open_: list[tuple[str, int]] = []
        for event in _EVENT.finditer(self._text, start, end):
            name = event["begin"] or event["end"] or ""
            if name.rstrip("*") not in self._names and name.rstrip("*") not in _LEFT_OUT:
                continue
            if event["begin"]:
                open_.append((name, event.start()))
            elif any(name == other for other, _ in open_[-20:]):  # those opened in it, and never ended, are dropped
                while open_[-1][0] != name:
                    open_.pop()
                yield open_.pop()[1], (event.start(), event.end())

    def _statement(self, name: str, start: int, body: str) -> None:
        if name.rstrip("*") in _LEFT_OUT:
            return
        body = _BODY_OVERLAY.sub("", body)
        again = restated(body) if name.rstrip("*") == _RESTATABLE else None
        is_box = name.rstrip("*") in self._boxes
        name, title, body = again or (name, *(title_of_box(body, name) if is_box else optional_title(body)))
        name, body = name.rstrip("*"), _BODY_OVERLAY.sub("", body)
        kind, title = self._names.get(name, name).capitalize(), self._plain(title).replace("(⋯)", "").strip(".,; ⋯")
        if kind == "Proof":
            title = f"{'Proof ' * title.startswith('of ')}{title.removesuffix(' of')}"
            shown = title or " of ".join(filter(None, ("Proof", self._last)))
        else:
            shown = f"{kind} ({title})" if title else kind
            self._last = self._last if kind in ("Beweis", "Preuve", "Démonstration") else shown
        self._outline.statement(self._place(start), shown, self._plain(_LABEL.sub("", body), in_group=True))

    def _paragraph(self, start: int, end: int) -> None:
        latex = self._text[start:end]
        if not latex.isspace() and latex:
            place = self._place(start + len(latex) - len(latex.lstrip()))
            if (bold := _BOLD.match(latex)) is not None:
                name = self._plain(bold["name"]).rstrip(" -–")
                self._outline.statement(place, name, self._plain(latex[bold.end() :]))
            else:
                self._outline.paragraph(place, self._plain(latex))

    def _plain(self, latex: str, *, in_group: bool = False) -> str:
        """Return LaTeX as plain text; ``in_group``: its definitions end with it."""
        latex = _NO_TEXT.sub("", _VERBATIM.sub(lambda code: code["shown"].replace("&", r"\&"), latex[:MAX_PARAGRAPH]))
        latex = _OVERLAY.sub(r"\1", latex)
        if self._is_german:
            latex = _SHORTHAND.sub(lambda match: _SIGNS[match[1]], latex)
        if in_group:
            latex = self._expand(f"{{{latex}}}").removeprefix("{").removesuffix("}")
        elif latex:
            latex = self._expand(latex)
        latex = self._references.marked(_LINK.sub(lambda link: link["shown"], latex))
        return without_rests(plain(_SIGN.sub("\\1\x01", _LAYOUT.sub(" ", latex))))

    def _place(self, position: int) -> str:
        """Return the line of a position."""
        start, line = self._lines[bisect.bisect_right(self._lines, (position, 1 << 62)) - 1]
        return str(line + self._text.count("\n", start, position))


@lru_cache(8)
def _declared(declarations: str) -> tuple[Expander, dict[str, Kind | None], dict[str, str]]:
    """Return the commands, environments and printed titles of a preamble, which the files of a book share."""
    return Expander(declarations), dict(environment_kinds(declarations)), _printed(declarations)


def _printed(latex: str) -> dict[str, str]:
    """Return the titles that a text declares for environments; one with a formula is empty."""
    return {name: "" if "$" in title else plain(title).strip(".:; ") for name, title in printed_titles(latex).items()}


def _is_of(declarations: str, text: str) -> bool:
    """Return whether a file declares macros in a preamble; one that a preamble includes may be an abstract."""
    return _DECLARES.search(text) is not None and strip_comments(text) in declarations


def _without_comments(text: str, edges: Mapping[str, str]) -> tuple[str, list[tuple[int, int]]]:
    r"""Return a text without what TeX skips, and (start, line) of each line that follows a removed line.

    Args:
        edges: edges of environments, and headings, by the commands that abbreviate them, such as ``\bt``.
    """

    def edge(command: re.Match[str]) -> str:
        name, start = command["name"], command.start()
        if name not in edges or _DEFINITION.search(command.string, max(0, start - 40), start):
            return command.group()
        return edges[name]

    text = re.sub("[\x01-\x03\x1e]", " ", text)
    marked = "\n".join(f"\x1e{number}\x1e{line}" for number, line in enumerate(text.split("\n"), 1))
    printed = without_false(strip_comments(marked, verbatim=False))
    first, *rest = _MARK.split(_COMMAND.sub(edge, printed) if edges else printed)
    pieces, lines, size = [first], list[tuple[int, int]](), len(first)
    for number, piece in zip(rest[::2], rest[1::2], strict=True):
        lines.append((size, int(number)))
        pieces.append(piece)
        size += len(piece)
    return "".join(pieces), lines or [(0, 1)]
