r"""A paper's LaTeX files as one text: the main file with all files that it includes.

>>> files = {"main.tex": r"\documentclass{article}\title{On $p$-groups}% a draft" "\n" r"\input{intro}",
...          "intro.tex": "Let $G$ be a $p$-group.\n"}
>>> source = assemble(files)
>>> source.main, source.title
('main.tex', 'On $p$-groups')
>>> print(source.text)
\documentclass{article}\title{On $p$-groups}Let $G$ be a $p$-group.
<BLANKLINE>

The main file is the one with ``\documentclass``; of several, the largest with all its includes; without any, the
largest file (ModernBERT thesis, section 3). A preamble in a separate file is not a main file. ``\input``,
``\include``, ``\subfile``, ``\import`` and a paper's own commands with such names (``\olimport``) are followed only
among the paper's files. Text that TeX skips is removed: comments, text in ``\iffalse``, and text after
``\end{document}``. So are verbatim environments, whose LaTeX is only shown. Commands that the paper defines are
replaced (:mod:`graphs.papers.macros`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphs.errors import CorpusError
from graphs.papers.macros import Expander

STYLES = (".sty", ".cls", ".def")
"""Endings of files that contain only declarations."""

MAX_CHARACTERS = 50_000_000  # of the whole text: files that include each other can be a bomb
MAX_DEPTH = 50
MAX_INCLUDED = 10_000  # files that are included, each as often as it is

MAX_UNPRINTED = 20_000  # of an unprinted environment; a longer one is probably unclosed

# Possible starts of comments: an environment opens, something stays as it is (\verb, \%), or a line ends early.
_COMMENT = re.compile(
    r"\\begin\{(?P<name>comment|verbatim\*?|Verbatim|lstlisting|minted)\}"
    r"|(?P<keep>\\verb\*?(?P<mark>[^\w\s*])[^\n]{0,500}?(?P=mark)|\\.)"
    r"|%[^\n]*(?:\n[ \t]*|\Z)",
    re.DOTALL,
)
_TAKEN_IN = re.compile(
    r"\\(?:input|include|subfile|subfileinclude)\s*\{(?P<name>[^{}\n]+)\}"
    r"|\\(?:sub)?(?:import|includefrom|inputfrom)\*?\s*\{(?P<folder>[^{}\n]*)\}\s*\{(?P<file>[^{}\n]+)\}"
    r"|\\(?!re)[a-zA-Z]+(?:import|input|include)\*?\s*(?:\[(?P<below>[^\[\]{}\n\\]*)\]\s*)?\{(?P<own>[^{}\n\\#]+)\}"
    r"|\\input\s+(?P<bare>[^\s{}\\%]+)"
    r"|(?P<end>\\endinput\b|\\end\s*\{document\})"
)
# Macros of ifthen and etoolbox without \fi: their branches are arguments.
_BRANCHES = (
    r"thenelse|bool(?:expr|expe)?|toggle|blank|rmnum|(?:cs)?(?:un)?def|str(?:equal|empty)|ltxcounter|inlist(?:cs)?|numodd"
    r"|(?:def|cs)(?:macro|param|prefix|protected|ltxprotect|empty|void|equal|string|strequal|counter|length|dimen)"
    r"|(?:num|dim)(?:comp|equal|greater|less)"
)
# Conditionals; `\newif\ifdraft`, `\let\ifdraft\iffalse`, `\def\draft{\iffalse}`, `\iff`, `\ifthenelse{...}` open none.
_CONDITIONAL = re.compile(
    r"\\\\|\\(?:newif|let\s*+\\[a-zA-Z@]++\s*+=?)\s*+\\if[a-zA-Z@]*"
    r"|\\(?P<false>iffalse(?![a-zA-Z@]|\s*\})|if\s*0(?=\s))"
    rf"|\\(?P<open>if(?!(?:f|{_BRANCHES})(?![a-zA-Z@]))[a-zA-Z@]*+)"
    r"|\\(?P<edge>else|fi)(?![a-zA-Z@])"
)
# Environments that are not printed: \newenvironment{slogan}{\comment}{\endcomment}, \excludecomment{slogan}.
_UNPRINTED = re.compile(
    r"\\newenvironment\*?\s*\{(?P<name>[a-zA-Z]+\*?)\}\s*\{\s*\\comment\s*\}|\\excludecomment\s*\{(?P<other>[a-zA-Z]+)\}"
)
_BEGIN = re.compile(r"\\begin\{(?P<name>[a-zA-Z]+\*?)\}")
_LINE_REST = re.compile(r"[ \t]*\n?")
_CLASS = re.compile(r"\\document(?:class|style)")
_PART = re.compile(r"\\documentclass\s*(?:\[[^\]]{0,500}\]\s*)?\{(?:subfiles|standalone)\}")
_TITLE = re.compile(r"\\title\s*(?:\[[^\]]{0,1000}\])?\s*\{")


@dataclass(frozen=True)
class LatexSource:
    """Paper as one text, without comments, and with the commands that it defines replaced.

    ``declarations`` are its style files, which declare environments; ``files`` are those of ``text``, the main file
    first.
    """

    main: str
    text: str
    declarations: str
    files: tuple[str, ...]

    @property
    def body(self) -> str:
        r"""Text after ``\begin{document}``, without the preamble; the whole text if that is missing."""
        before, begin, after = self.text.partition(r"\begin{document}")
        return after if begin else before

    @property
    def title(self) -> str:
        r"""Content of ``\title{...}``, without line ends; empty without a title."""
        found = _TITLE.search(self.text)
        return "" if found is None else " ".join(group(self.text, found.end() - 1).split())


def assemble(files: Mapping[str, str]) -> LatexSource:
    """Join the files of a paper (:func:`graphs.papers.archives.read_files`).

    Raises:
        CorpusError: no LaTeX file, or files that include each other without end.
    """
    styles = {name: strip_comments(text) for name, text in files.items() if name.endswith(STYLES)}
    papers = {
        name: without_false(strip_comments(text, verbatim=False)) for name, text in files.items() if name not in styles
    }
    if not papers:
        raise CorpusError("holds no LaTeX file (.tex, .ltx, .texx)")
    main = _main_file(papers)
    taken, pieces, size = list[str](), list[str](), 0
    for piece in _pieces(papers, posixpath.dirname(main), main, taken):
        pieces.append(piece)
        if (size := size + len(piece)) > MAX_CHARACTERS:
            raise CorpusError(f"its files include each other up to more than {MAX_CHARACTERS:,} characters")
    declarations = "\n".join(styles.values())
    text = Expander(declarations)(_printed("".join(pieces), declarations))
    return LatexSource(main, text, declarations, tuple(dict.fromkeys(taken)))


def strip_comments(text: str, *, verbatim: bool = True) -> str:
    r"""Remove ``%`` comments and ``comment`` environments from ``text``; ``\%`` stays.

    >>> strip_comments("100\\% sure% or so\n  of it")
    '100\\% sureof it'

    Args:
        verbatim: keep verbatim environments, and commands and dollar signs in ``\verb``.
    """
    pieces: list[str] = []
    kept = position = 0  # ends of the text that is in `pieces` or removed, and that is read
    closes: dict[str, int] = {}  # environment -> next closing place, or -1; the text is searched once for each
    while match := _COMMENT.search(text, position):
        position, name = match.end(), match["name"]
        if name:
            end = rf"\end{{{name}}}"
            if -1 < closes.get(name, 0) < position:
                closes[name] = text.find(end, position)
            if closes[name] > -1:
                position = closes[name] + len(end)
        if match["keep"]:
            if verbatim or not match["mark"] or not {"\\", "$"} & set(match["keep"][1:]):
                continue
        elif name and (closes[name] < 0 or (verbatim and name != "comment")):
            continue
        pieces.append(text[kept : match.start()])
        kept = position
    return "".join([*pieces, text[kept:]])


def without_false(text: str) -> str:
    r"""Remove the text that ``\iffalse`` or ``\if0`` skips, up to its ``\else`` or ``\fi``; unended text stays.

    >>> without_false(r"a \iffalse b \ifx\c\d e \fi f\fi g\iff h")
    'a  g\\iff h'
    """
    pieces: list[str] = []
    kept = start = depth = 0  # depth: open conditionals from the false one on, which begins at `start`
    for match in _CONDITIONAL.finditer(text):
        if match["false"] or (match["open"] and depth):
            start, depth = start if depth else match.start(), depth + 1
        elif match["edge"] and depth:
            depth -= match["edge"] == "fi" or depth == 1
            if not depth:
                pieces.append(text[kept:start])
                kept = match.end()
    return "".join([*pieces, text[kept:]])


def _printed(text: str, declarations: str) -> str:
    """Remove the environments that it or ``declarations`` turn into comments from ``text``."""
    names = {match["name"] or match["other"] for match in _UNPRINTED.finditer(declarations + text)}
    if not names:
        return text
    pieces: list[str] = []
    kept = 0
    for match in _BEGIN.finditer(text):
        if match["name"] not in names or match.start() < kept:
            continue
        end = rf"\end{{{match['name']}}}"
        close = text.find(end, match.end(), match.end() + MAX_UNPRINTED)
        if close > -1:
            pieces.append(text[kept : match.start()])
            kept = _LINE_REST.match(text, close + len(end)).end()  # type: ignore[union-attr]  # it may be empty
    return "".join([*pieces, text[kept:]])


def group(text: str, start: int) -> str:
    r"""Return the content of the braces that open at ``start``; unclosed braces extend to the end of the text.

    >>> group(r"\title{A {B} C} D", 6)
    'A {B} C'
    """
    depth = 0
    for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        if match.group() in "{}":
            depth += 1 if match.group() == "{" else -1
            if depth == 0:
                return text[start + 1 : match.start()]
    return text[start + 1 :]


def _main_file(papers: Mapping[str, str]) -> str:
    """Return the main file: with a document class if any has, the largest with its includes."""
    weights: dict[str, int] = {}

    def weight(name: str, root: str, depth: int = 0) -> int:
        if name not in weights:
            weights[name] = len(papers[name])  # its weight if it includes itself
            for included in included_names(papers[name]) if depth < MAX_DEPTH else ():
                found = find_included(papers, included, root, posixpath.dirname(name))
                weights[name] += weight(found, root, depth + 1) if found is not None else 0
        return weights[name]

    return max(sorted(papers), key=lambda name: (_rank(papers, name), weight(name, posixpath.dirname(name))))


def _rank(papers: Mapping[str, str], name: str) -> int:
    """Return 2 for a file with a document class, or that includes a preamble with one."""
    text, here = papers[name], posixpath.dirname(name)
    if _PART.search(text):  # the class, not the package, which the main file loads
        return 1
    if _CLASS.search(text):
        return 2
    if r"\begin{document}" not in text:
        return 0
    found = (find_included(papers, included, here, here) for included in included_names(text))
    return 2 * any(other is not None and _CLASS.search(papers[other]) for other in found)


def included_names(text: str) -> Iterator[str]:
    """Yield the names of the files that a text includes."""
    for match in _TAKEN_IN.finditer(text):
        if match["end"]:
            return
        yield _name(match)


def _name(match: re.Match[str]) -> str:
    name = match["name"] or match["bare"]
    if not name:
        name = posixpath.join(match["folder"] or match["below"] or "", match["file"] or match["own"])
    return name.strip().strip('"')


def find_included(files: Mapping[str, str], file: str, root: str, here: str) -> str | None:
    """Find a named file, first from the main file's folder, then from the including file's."""
    for folder in dict.fromkeys((root, here)):
        path = posixpath.normpath(posixpath.join(folder, file))
        for name in (path, f"{path}.tex", f"{path}.ltx"):
            if name in files:
                return name
    return None


def _pieces(
    files: Mapping[str, str], root: str, name: str, taken: list[str], above: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the text of the file ``name``, which the files ``above`` include, and of those that it includes.

    Args:
        root: folder of the main file.
        taken: names of the files read so far.
    """
    if len(above) >= MAX_DEPTH or name in above:
        return
    taken.append(name)
    if len(taken) > MAX_INCLUDED:
        raise CorpusError(f"its files include each other more than {MAX_INCLUDED:,} times")
    text, position = files[name], 0
    for match in _TAKEN_IN.finditer(text):
        yield text[position : match.start()]
        position = match.end()
        if match["end"]:
            return
        found = find_included(files, _name(match), root, posixpath.dirname(name))
        if found is not None:
            yield from _pieces(files, root, found, taken, (*above, name))
    yield text[position:]
