r"""Theorems, lemmas, definitions, propositions and corollaries of a paper.

>>> text = r'''
... \newtheorem{satz}{Theorem}[section]
... \begin{satz}[Euclid]\label{primes}
...   There are \emph{infinitely many} primes, by \cite{euclid}: \[ p_1 < p_2 < \dots \]
... \end{satz}
... \begin{proof} Multiply and add one. \end{proof}'''
>>> [statement] = find_statements(text).statements
>>> statement.kind, statement.title, statement.text
('theorem', 'Euclid', 'There are infinitely many primes, by : $p_1 < p_2 < \\dots$')

Environments are recognised by their name (``thm``, ``lemma*``, ...) or by the title that ``\newtheorem`` or one of its
relatives gives them ("Main Theorem" is a theorem, "Remark" is not); one of ``\newenvironment`` has the kind of the
environment that it opens. Statements repeated by ``restatable`` count once, at their first place. Source: the
ModernBERT thesis, section 3 (b).
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from graphs.papers.latex_source import group
from graphs.papers.plain import plain, sentences_of

Kind = Literal["theorem", "lemma", "definition", "proposition", "corollary"]
KINDS: tuple[Kind, ...] = get_args(Kind)

MAX_CHARACTERS = 8_000  # of a statement; a longer one is a section or an unclosed environment
MAX_NESTED = 20  # statements around a statement; papers have one or two, and each level is read again

_NAMES: dict[str, Kind] = {
    name: kind
    for kind, names in {
        KINDS[0]: "theorem theo thm theor thrm teo satz thmplain mainthm teorema teor",
        KINDS[1]: "lemma lem lemme lma lemm sublemma lema hilfssatz",
        KINDS[2]: "definition defn def defi defin dfn df dfinition definicion definizione",
        KINDS[3]: "proposition prop propn prp propo propos proposicion proposizione",
        KINDS[4]: "corollary cor coro corol coroll crl corr korollar folgerung corolario corollario 系",
    }.items()
    for name in names.split()
}
# Titles of environments by what they contain, in the languages of arXiv; of several the first in the title counts.
_STEMS: dict[Kind, str] = {
    "theorem": r"theorem|th[eé]or[eè]me|\bteorem|(?<!an)(?<!zu)(?<!ab)satz\b|\bsats\b|\bstelling\b"
    r"|\btwierdzeni|\bvěta\b|теорема|定理",
    "lemma": r"lemm|\blema\b|\blemat|hilfss[aä]tz|hjälpsats|лемма|引理|補題",
    "definition": r"\bd[eé]fini|определение|定义|定義",
    "proposition": r"propos[ií]|\bstwierdzeni|\btvrzení|предложение|命题|命題",
    "corollary": r"\b[ck]orol|corollar|\bfolgerung|följdsats|\bwniosek|\bdůsledek|\bgevolg\b|следствие|推论|推論",
}

_DECLARATION = re.compile(
    r"\\(?:(?P<amsthm>newtheorem|spnewtheorem|newmdtheoremenv|newshadetheorem|newframedtheorem)\*?"
    r"\s*(?:\[[^\]]{0,500}\]\s*)?\{(?P<name>[^{}\\]{1,200})\}\s*(?:\[[^\]]{0,500}\]\s*)?(?=\{)"
    r"|(?P<thmtools>declaretheorem)\*?\s*(?:\[(?P<before>[^\]]{0,2000})\]\s*)?\{(?P<names>[^{}\\]+)\}"
    r"\s*(?:\[(?P<after>[^\]]{0,2000})\])?"
    r"|(?P<tcb>newtcbtheorem)\s*(?:\[[^\]]{0,2000}\]\s*)?\{(?P<box>[^{}\\]+)\}\s*(?=\{)"
    r"|(?P<other>def\w{0,40}thm\w{0,40}|newthm\w{0,40})\s*\{(?P<short>[^{}\\]+)\}\s*(?=\{))"
)
_RESTATED = re.compile(r"\\(?P<edge>begin|end)\s*\{restatable\*?\}")
_RESTATED_AS = re.compile(r"\s*\{(?P<name>[^{}\\]{1,200})\}\s*\{[^{}]{0,200}\}")
_TITLED = 1_000  # characters in which the title of a restatable statement ends
# "Proof of the Main Theorem", "Bemerkung zum Satz": a title about a statement, up to the name of its kind.
_ABOUT = re.compile(r"\w\W+(?:of|to|for|on|about|zum|zur|des|von|du|de|del|della)\s+(?:the\s+|la\s+|l')?(?:main\s+)?\Z")
_DECLARED = re.compile(r"\\newtheorem[^\n]{0,300}?(?=\\|\n|\Z)")  # up to the next command: not a part of a sentence
_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]{0,500}+\}){0,500}+\}){0,1000}+)\}"
# Name, and what opens and ends it: \newenvironment{mythm}[1][]{\begin{thm}[#1]}{\end{thm}}
_ENVIRONMENT = re.compile(
    rf"\\(?:re)?newenvironment\*?\s*\{{([^{{}}\\]{{1,200}})\}}\s*(?:\[[^\]]{{0,500}}\]\s*){{0,2}}{_GROUP}\s*{_GROUP}"
)
# Environments with a title in braces: of tcolorbox, and \newenvironment{mythm}[1]{\begin{thm}[#1]}{\end{thm}}
_BOX = re.compile(
    r"\\(?:newtcbtheorem\s*(?:\[[^\]]{0,2000}\]\s*)?"
    r"|(?:re)?newenvironment\*?\s*(?=\{[^{}]{1,200}\}\s*\[\d\]\s*\{[^\n]{0,200}?\[#1\]))\{([^{}\\]+)\}"
)
_TITLE_KEY = re.compile(r"\b(?:name|title|heading)\s*=\s*(?:\{([^{}]*)\}|([^,]*))")
# Options of thmtools in place of a title: [name={Sylow}, label=thm:sylow]
_OPTIONS = re.compile(r"\s*(?:name|note|title|label|restate|continues|style|[rR]efname)\s*=")
_OPTION = re.compile(r"(?:\A|,)\s*(?:name|note|title)\s*=\s*(?P<title>(?:[^{},]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+)")
_HEADING = re.compile(r"\\(?:chapter|[a-z]{0,12}section)\*?\s*(?:\[[^\]]{0,300}\]\s*)?\{")
_BEFORE = 1_500  # characters read before a statement
_EMPHASIS = re.compile(
    r"\\(?P<command>emph|textit|textbf|textsl|define|defn|dfn|defterm)\s*(?=\{)|\{\s*\\(?:it|em|sl|bf|itshape|slshape)\b"
)
_EDGE = re.compile(r"\\(?P<edge>begin|end)\s*\{(?P<name>[^{}\\]+)\}")


@dataclass(frozen=True)
class Statement:
    """Statement as text with ``$...$`` formulas; ``environment`` is its name in the paper, ``title`` may be empty.

    ``section`` is the heading above it, and ``before`` the sentence before it; both may be empty. ``terms`` are its
    emphasised words, which a definition defines.
    """

    kind: Kind
    environment: str
    title: str
    text: str
    section: str = ""
    before: str = ""
    terms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """Statements of a paper in order; ``dropped`` counts the others by reason (overlong, empty, unended, nested)."""

    statements: tuple[Statement, ...]
    dropped: Counter[str]


def find_statements(text: str, declarations: str = "", *, max_characters: int = MAX_CHARACTERS) -> Found:
    r"""Find all statements in ``text`` (LaTeX without comments), nested ones included.

    Args:
        declarations: further LaTeX that declares environments, such as a paper's style files.
        max_characters: largest length; longer statements are dropped and counted as ``overlong``.
    """
    kinds = environment_kinds(declarations, text)
    in_braces = boxes(declarations, text)
    text = _first_stated(_ENVIRONMENT.sub("", text))
    context = _Context(text)
    statements: list[Statement] = []
    dropped: Counter[str] = Counter()
    around: list[int] = []  # ends of the statements around a place
    for start, end, name in sorted(_environments(text, kinds)):
        if end is None:
            dropped["unended"] += 1
            continue
        while around and around[-1] <= start:
            around.pop()
        around.append(end)
        if len(around) > MAX_NESTED:
            dropped["nested"] += 1
            continue
        body = text[start:end]
        title, body = title_of_box(body, name) if name.rstrip("*") in in_braces else optional_title(body)
        terms = emphasised(body)
        body = plain(body) if len(body) <= 4 * max_characters else body  # longer ones are dropped anyway
        if len(body) > max_characters:
            dropped["overlong"] += 1
        elif not body:
            dropped["empty"] += 1
        elif kind := _kind(name, kinds):
            section, before = context.of(start)
            statements.append(Statement(kind, name, plain(title), body, section, before, terms))
    return Found(tuple(statements), dropped)


def emphasised(latex: str) -> tuple[str, ...]:
    r"""Return the emphasised words of a text, each once.

    >>> emphasised(r"A {\it net} or \emph{\myindex{generalized sequence}} is, \textbf{by definition}, a \define{net}.")
    ('net', 'generalized sequence', 'by definition')
    """
    found: dict[str, None] = {}
    for match in _EMPHASIS.finditer(latex):
        start = match.end() if match["command"] else match.start()
        inner = group(latex[start : start + 500], 0)
        found[plain(inner if match["command"] else inner[match.end() - start - 1 :])] = None
    return tuple(term for term in found if term)


class _Context:
    """Headings of a paper, and the sentence before a place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._headings = [match.end() for match in _HEADING.finditer(text)]
        self._ends = sorted(match.end() for ends in (_EDGE, _DECLARED) for match in ends.finditer(text))

    def of(self, start: int) -> tuple[str, str]:
        """Return the heading above the body that starts at ``start``, and the last sentence of the prose before it."""
        above = bisect.bisect_left(self._headings, start) - 1
        heading, section = 0, ""
        if above >= 0:
            heading = self._headings[above]
            title = group(self._text[heading - 1 : heading + 500], 0)
            heading, section = heading + len(title) + 1, plain(title)
        edges = bisect.bisect_left(self._ends, start)  # the last edge before the body is its own start
        floor = max(heading, self._ends[edges - 1] if edges else 0, start - _BEFORE)
        sentences = sentences_of(plain(self._text[floor : self._text.rfind("\\begin", 0, start)]))
        return section, sentences[-1] if sentences else ""


def environment_kinds(*texts: str) -> dict[str, Kind | None]:
    r"""Return the kinds of environments: known ones, and those that ``texts`` declare; the last declaration wins.

    >>> kinds = environment_kinds(r"\newtheorem{satz}{Theorem}\newtheorem{obs}{Observation}")
    >>> kinds["lem"], kinds["satz"], kinds["obs"]
    ('lemma', 'theorem', None)
    """
    kinds = _NAMES | {name: kind_of_title(title) for name, title in printed_titles(*texts).items()}
    opening = {name.strip(): begin for text in texts for name, begin, _ in _ENVIRONMENT.findall(text)}
    for _ in opening:  # one may open another that is defined later
        before = dict(kinds)
        for name, begin in opening.items():
            names = (edge["name"].strip() for edge in _EDGE.finditer(begin))
            for one in islice((one for one in names if one in kinds or _kind(one, kinds)), 1):
                kinds[name] = _kind(one, kinds)
        if kinds == before:
            break
    return kinds


def printed_titles(*texts: str) -> dict[str, str]:
    r"""Return the titles, in LaTeX, that ``texts`` declare for environments; the last declaration wins.

    >>> printed_titles(r"\declaretheorem[name=Bemerkung]{bem}\newtheorem*{obs}{Observation}")
    {'bem': 'Bemerkung', 'obs': 'Observation'}
    """
    titles: dict[str, str] = {}
    for match in (found for text in texts for found in _DECLARATION.finditer(text)):
        if match["thmtools"]:
            found = _TITLE_KEY.search(f"{match['before'] or ''},{match['after'] or ''}")
            names = match["names"].split(",")
            titles |= {name.strip(): (found[1] or found[2] or name) if found else name for name in names}
        else:
            name = match["name"] or match["box"] or match["short"]
            titles[name.strip()] = group(match.string[match.end() : match.end() + 500], 0)
    return titles


def kind_of_title(title: str) -> Kind | None:
    """Return the kind that the printed title of an environment names, or ``None``; "Proof of Theorem" names none.

    >>> kind_of_title("Main Theorem"), kind_of_title(r"\\bf Lemma-Definition"), kind_of_title("Remark")
    ('theorem', 'lemma', None)
    >>> [kind_of_title(title) for title in ("Korollar", "Hilfssatz", "Définition", "Следствие", "Problema")]
    ['corollary', 'lemma', 'definition', 'corollary', None]
    """
    words = (plain(title) or title).casefold()  # \protect\theoremname is all that babel and LyX leave to read
    places = [(found.start(), kind) for kind, stem in _STEMS.items() if (found := re.search(stem, words))]
    if not places:
        return _NAMES.get(words.strip("*. "))
    start, kind = min(places)
    return None if _ABOUT.search(words[:start]) else kind


def _kind(name: str, kinds: dict[str, Kind | None]) -> Kind | None:
    return kinds.get(name, kinds.get(name.rstrip("*")))


def _environments(text: str, kinds: dict[str, Kind | None]) -> Iterator[tuple[int, int | None, str]]:
    r"""Yield start and end of the bodies of statements; the end is ``None`` without an ``\end``."""
    open_: list[tuple[str, int]] = []
    for match in _EDGE.finditer(text):
        name = match["name"].strip()
        if _kind(name, kinds) is None:
            continue
        if match["edge"] == "begin":
            open_.append((name, match.end()))
            continue
        while open_:
            other, start = open_.pop()
            if other == name:
                yield start, match.start(), name
                break
            yield start, None, other  # opened inside and never ended
    yield from ((start, None, name) for name, start in open_)


def _first_stated(text: str) -> str:
    r"""Write the statements that ``restatable`` repeats as their environments.

    >>> _first_stated(r"\begin{restatable}[Euclid]{theorem}{euclid} Let \end{restatable} \euclid*")
    '\\begin{theorem}[Euclid] Let \\end{theorem} \\euclid*'
    """
    pieces: list[str] = []
    position = 0
    names: list[str] = []  # of open environments
    for edge in _RESTATED.finditer(text):
        if edge["edge"] == "end" and names:
            pieces += [text[position : edge.start()], f"\\end{{{names.pop()}}}"]
            position = edge.end()
        elif edge["edge"] == "begin" and (found := restated(text[edge.end() : edge.end() + _TITLED])) is not None:
            name, title, rest = found
            pieces += [text[position : edge.start()], f"\\begin{{{name}}}", f"[{title}]" if title else ""]
            position = min(edge.end() + _TITLED, len(text)) - len(rest)
            names.append(name)
    return "".join([*pieces, text[position:]])


def restated(body: str) -> tuple[str, str, str] | None:
    r"""Split the body of a ``restatable`` into its environment, its title and the rest (thm-restate).

    >>> restated(r"[Euclid]{theorem}{euclid} Let")
    ('theorem', 'Euclid', ' Let')
    """
    title, rest = optional_title(body)
    found = _RESTATED_AS.match(rest)
    return None if found is None else (found["name"].strip(), title, rest[found.end() :])


def boxes(*texts: str) -> set[str]:
    """Return the names of the environments that ``texts`` declare with a title in braces."""
    return {name.strip() for text in texts for name in _BOX.findall(text)}


def title_of_box(body: str, name: str) -> tuple[str, str]:
    r"""Split the title of a ``\newtcbtheorem``, in braces and followed by a label, from the rest.

    >>> title_of_box("[colback=red]{Euclid}{primes} Let", "thm"), title_of_box("{Euclid} {Let}", "thm*")
    (('Euclid', ' Let'), ('Euclid', ' {Let}'))
    """
    options = re.match(r"\s*(?:\[[^\]]{0,500}\]\s*)?(?=\{)", body)
    if options is None:
        return "", body
    title = group(body, options.end())
    rest = body[options.end() + len(title) + 2 :]
    label = None if name.endswith("*") else re.match(r"\s*\{[^{}]*\}", rest)
    return title, rest if label is None else rest[label.end() :]


def optional_title(body: str) -> tuple[str, str]:
    r"""Split the title in the optional argument from the start of a body.

    >>> optional_title(" [Theorem 2 of {[3]}] Let"), optional_title("[name=Sylow, label=a] Let")
    (('Theorem 2 of {[3]}', ' Let'), ('Sylow', ' Let'))
    """
    begin = re.match(r"\s*(?:\\label\s*\{[^{}]*\}\s*)?\[", body)
    if begin is None:
        return "", body
    depth = 0
    for match in re.compile(r"\\.|[{}\]]", re.DOTALL).finditer(body, begin.end()):
        if match.group() == "]" and depth == 0:
            title = body[begin.end() : match.start()]
            if _OPTIONS.match(title):
                found = _OPTION.search(title)
                title = found["title"].strip() if found else ""
            return title, body[match.end() :]
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
    return "", body
