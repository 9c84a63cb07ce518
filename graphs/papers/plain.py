r"""LaTeX prose as plain text with formulas in ``$...$``.

>>> plain(r"\textbf{Let} \(n\ge 2\), see~\href{http://x.org}{here}. \begin{align*} a &= b \\ c. \end{align*} \cite{a}")
'Let $n\\ge 2$, see here. $\\begin{aligned} a &= b \\\\ c \\end{aligned}$.'
>>> plain(r"\begin{itemize}\item Erd\H{o}s -- \'Elie's ``proof''\item $x_{\text{in $A$}}$\end{itemize}")
'Erdős – Élie\'s "proof" $x_{\\text{in $A$}}$'

>>> plain(r"of \PMlinkname{characteristic}{Characteristic} zero")
'of characteristic Characteristic zero'

>>> sentences_of(r"Let $f(x) = x. y$ be e.g. a map. Then $f'(x) = \text{1. If $x$}$. It is.")
['Let $f(x) = x. y$ be e.g. a map.', "Then $f'(x) = \\text{1. If $x$}$.", 'It is.']

Styling is removed and its text kept; labels, citations, references, footnotes and figures are removed. Inside a formula
only labels and tags are removed, since the notation is part of its meaning. The sign ``\$`` stays escaped, so that it
opens no formula; :func:`graphs.corpus.text.placeholders.extract` gives readers and encoders the bare sign.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from graphs.corpus.text import sentences
from graphs.corpus.text.text_formulas import closings
from graphs.papers.latex_source import group

# Display environments that number or align; aligned ones keep their cells.
_ALONE = ("equation", "displaymath", "math")
_ALIGNED = {
    "align": "aligned", "alignat": "aligned", "flalign": "aligned", "eqnarray": "aligned", "split": "aligned",
    "xalignat": "aligned", "xxalignat": "aligned", "IEEEeqnarray": "aligned", "darray": "aligned",
    "gather": "gathered", "multline": "gathered", "dmath": "gathered", "mathpar": "gathered",
    "numcases": "cases", "subnumcases": "cases",
}  # fmt: skip
# Environments with an argument: the left-hand side of cases, or columns, which are removed.
_WITH_ARGUMENT = frozenset(("alignat", "xalignat", "xxalignat", "IEEEeqnarray", "darray", "numcases", "subnumcases"))
_OPTIONS = re.compile(r"(?:\[[^\[\]]{0,50}\]\s*){0,2}(?=\{)")  # places before the columns
_MATH = re.compile(
    r"\\\\|\\[$%]"  # nothing that opens a formula
    r"|(?P<inline>\\\()|(?P<display>\\\[)|(?P<dollars>\$\$?)"
    r"|(?P<ensured>\\ensuremath\s*(?=\{))"
    rf"|\\begin\s*\{{(?P<name>{'|'.join((*_ALONE, *_ALIGNED))})(?P<star>\*?)\}}"
)
_NUMBERING = re.compile(
    r"\\(?:label|tag\*?)\s*\{[^{}]*\}|\\(?:nonumber|notag|pause)\b|\\IEEE[a-zA-Z]*num(?:ber|space)(?![a-zA-Z])\*?"
    r"|\\IEEEeqnarraymulticol\s*\{[^{}]*\}\s*\{[^{}]*\}"
)
_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")
_JOINER = "\u2060"  # a mark without width, which texts do not need
_ENSURE = re.compile(r"\\ensuremath\s*(?=\{)")

# Commands removed with all their arguments, or, after the last bar, with one argument before the text that stays.
_DROPPED = re.compile(
    r"\\(?:[a-zA-Z]*label|index[a-zA-Z]*|gls(?:add|reset|unset)[a-z]*|cite[a-zA-Z]*|[a-zA-Z]*ref|footnote(?:mark|text)?|url|thanks|vspace|hspace|vskip|hskip|includegraphics"
    r"|bibitem|pagestyle|setcounter|addtocounter|pageref|input|include|todo|marginpar|phantomsection|pdfbookmark"
    r"|fontsize|color)\*?\s*(?:\[[^\]]{0,500}\]\s*){0,3}(?=\{|\b)"
    r"|\\(?:href|hyperref|hyperlink|hypertarget|textcolor|glslink|glsdisp)\s*(?:\[[^\]]{0,500}\]\s*)?(?=\{)"
)
# \hyperref[sec:a]{text}, and \texorpdfstring{text}{bookmark}
_REFERENCE = re.compile(r"\\hyperref\s*\[[^\]]{0,500}\](?=\s*\{)")
_ARGUMENT = r"\{(?:[^{}]|\{[^{}]{0,500}+\}){0,500}+\}"
_BOOKMARK = re.compile(rf"\\texorpdfstring\s*(?P<shown>{_ARGUMENT})\s*{_ARGUMENT}")
# Of a macro of the author's, what is between its arguments is unknown; a space keeps their words apart.
_ARGUMENTS = re.compile(rf"\\[a-zA-Z]{{2,}}\*?\s*{_ARGUMENT}(?:{_ARGUMENT}){{1,8}}")
_FLOAT = re.compile(r"\\begin\{(figure|table|tikzpicture|tikzcd|wrapfigure)\*?\}.{0,20000}?\\end\{\1\*?\}", re.DOTALL)
_EDGE = re.compile(r"\\begin\s*\{[^{}]*\}(?:\s*\[[^\]]{0,500}\])?|\\end\s*\{[^{}]*\}")
_ITEM = re.compile(r"\\item\b\s*(?:\[(?P<mark>[^\]]{0,500})\])?")
_ACCENT = re.compile(
    r"\\(?P<mark>[`'^\"~=.]|[uvHtcdbrk](?![a-zA-Z]))\s*(?:\{\s*(?P<a>\\?[a-zA-Z])\s*\}|(?P<b>\\?[a-zA-Z]))"
)
_COMBINING = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328", "b": "\u0331",
    "t": "\u0361",
}  # fmt: skip
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å",
    "i": "i", "j": "j", "S": "§", "dots": "...", "ldots": "...", "textendash": "–", "textemdash": "—", "slash": "/",
    "LaTeX": "LaTeX", "TeX": "TeX", "textbackslash": "", "qed": "", "quad": " ", "qquad": " ", "par": "\n\n",
    "textquoteright": "'", "textquoteleft": "'", "newline": " ", "linebreak": " ",
}  # fmt: skip
_COMMAND = re.compile(r"\\(?P<word>[a-zA-Z@]+)\*?(?:\s*\[[^\]]{0,500}\](?=\s*\{))?\s*|\\(?P<sign>.)", re.DOTALL)


def plain(latex: str) -> str:
    """Return LaTeX without comments as plain text with ``$...$`` formulas; white space is folded. Takes linear time."""
    pieces: list[str] = []
    formulas: list[str] = []
    latex = _FLOAT.sub(" ", latex).replace("\x00", "")
    position = 0
    for opening, end, inner in _formulas(latex, across_paragraphs=True):
        pieces.append(latex[position : opening.start()])
        inner, stop = _final_stop(" ".join(_ENSURE.sub("", _NUMBERING.sub("", inner)).split()))
        if inner:
            pieces.append(f"\x00{len(formulas)}\x00{stop}")
            formulas.append(f"${inner}$")
        position = end
    pieces.append(latex[position:])
    text = " ".join(_prose("".join(pieces)).split())
    return re.sub("\x00(\\d+)\x00", lambda match: formulas[int(match[1])], text)


def formula_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each formula ``$...$`` in a plain text."""
    return [(opening.start(), end) for opening, end, _ in _formulas(text) if opening["dollars"]]


def _formulas(latex: str, *, across_paragraphs: bool = False) -> Iterator[tuple[re.Match[str], int, str]]:
    """Yield the opening, the end and the LaTeX of each formula; an opening without an end is text."""
    closes = closings(latex, across_paragraphs=across_paragraphs)
    unclosed, position = set[str](), 0  # openings without an end, each searched once
    while (opening := _MATH.search(latex, position)) is not None:
        token, start = opening.group(), opening.end()
        closing, position = {"\\(": "\\)", "\\[": "\\]"}.get(token, token), start
        if token in unclosed:
            continue
        if opening["ensured"]:
            inner = group(latex, start)
            position = start + len(inner) + 2
        elif opening["name"]:
            name = opening["name"] + opening["star"]
            end = latex.find(f"\\end{{{name}}}", start)
            if end < 0:
                unclosed.add(token)
                continue
            inner, position = _of_environment(opening["name"], latex[start:end].strip()), end + len(name) + 6
        elif closing == token and not opening["dollars"]:
            continue
        else:
            end = closes[token].get(opening.start(), -1)
            if end < 0:
                end = _first(latex, start, closing)
            if end < 0:
                unclosed.add(token)
                continue
            inner, position = latex[start:end], end + len(closing)
        yield opening, position, inner


def _of_environment(name: str, inner: str) -> str:
    """Return the LaTeX of a formula from the name and the content of its environment."""
    kind, side = _ALIGNED.get(name), ""
    if name in _WITH_ARGUMENT and (options := _OPTIONS.match(inner)):
        argument = group(inner, options.end())
        inner = inner[options.end() + len(argument) + 2 :]
        side = f"{argument} " if kind == "cases" else ""
    inner, stop = _final_stop(_NUMBERING.sub("", inner))
    return inner + stop if kind is None else f"{side}\\begin{{{kind}}} {inner} \\end{{{kind}}}{stop}"


def _final_stop(formula: str) -> tuple[str, str]:
    r"""Split a formula into itself and the final punctuation of its sentence.

    >>> _final_stop(r"x = 1."), _final_stop(r"\left( x \right."), _final_stop(r"1, 2, \, ;")
    (('x = 1', '.'), ('\\left( x \\right.', ''), ('1, 2, \\,', ';'))
    """
    found = re.search(r"(?<!\\right)(?<!\\left)(?<![\\.])(?P<stop>[.,;])\s*\Z", formula)
    return (formula, "") if found is None else (formula[: found.start()].rstrip(), found["stop"])


def _first(latex: str, start: int, closing: str) -> int:
    """Return the place of the first ``closing`` that is not escaped, within braces or not; -1 if it is missing."""
    end = latex.find(closing, start)
    while end > 0 and latex[end - 1] == "\\" and closing[0] == "$" and not latex.endswith("\\\\", start, end):
        end = latex.find(closing, end + 1)
    return end


def _prose(text: str) -> str:
    """Return text between formulas without commands."""
    text = _without_dropped(text)
    text = _ITEM.sub(lambda match: f" {match['mark'] or ''} ", text)
    text = _EDGE.sub(" ", text)
    text = _ACCENT.sub(_accented, text)
    text = _ARGUMENTS.sub(lambda match: match[0].replace("}{", "} {"), text)
    text = _COMMAND.sub(_command, text)
    text = text.replace("``", '"').replace("''", '"').replace("---", "—").replace("--", "–")
    return re.sub(r"[{}]", "", text.replace("~", " "))


def _without_dropped(text: str) -> str:
    r"""Remove commands with their arguments; a hyperlink keeps its text.

    >>> _without_dropped(r"\item\label{a}\index{b}Let \href{x.org}{it} be")
    '\\item{}Let {it} be'
    """
    text = _BOOKMARK.sub(r"\g<shown>", _REFERENCE.sub("", text))
    pieces, position, last = [], 0, ""
    for match in _DROPPED.finditer(text):
        if match.start() < position:
            continue
        pieces.append(piece := text[position : match.start()])
        last = piece[-1:] or last
        position = match.end()
        if text.startswith("{", position):
            position += len(group(text, position)) + 2
        if last.isalpha() and text[position : position + 1].isalpha():
            pieces.append("{}")  # \item\label{a}Let is not \itemLet
    return "".join([*pieces, text[position:]])


def _accented(match: re.Match[str]) -> str:
    letter = (match["a"] or match["b"]).lstrip("\\")
    return unicodedata.normalize("NFC", letter[0] + _COMBINING[match["mark"]])


def _command(match: re.Match[str]) -> str:
    if match["word"]:
        return _LETTERS.get(match["word"], "")
    return {"\\": " ", " ": " ", "\n": " ", ",": " ", ";": " ", ":": " ", "-": "", "/": "", "@": "", "$": r"\$"}.get(
        match["sign"], match["sign"]
    )


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text with formulas in ``$...$``; white space outside formulas is folded.

    Formulas become placeholders, the text is split as in the graph track (:mod:`graphs.corpus.text.sentences`), and the
    formulas are put back. A dollar without a partner is a plain dollar.
    """
    pieces: list[str] = []
    formulas: list[str] = []
    position = 0
    for start, end in formula_spans(text):
        pieces += [_PLACEHOLDER.sub(r"FORMULA \1", text[position:start]), f"FORMULA_{len(formulas)}"]
        formulas.append(text[start:end])
        position = end
    pieces.append(_PLACEHOLDER.sub(r"FORMULA \1", text[position:]))
    marked = "".join(_JOINER + piece if piece[:1].isdigit() else piece for piece in pieces)  # FORMULA_1 before 2
    cut = sentences.split(marked)
    return [_PLACEHOLDER.sub(lambda match: formulas[int(match[1])], one).replace(_JOINER, "") for one in cut]
