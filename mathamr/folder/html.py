r"""Passages of HTML: paragraphs below their headings, and statements marked by a class.

>>> text = '''<title>Notes</title><h1>Primes</h1>
... <p>Let <math><mi>p</mi><annotation encoding="application/x-tex">p</annotation></math> be prime.</p>
... <div class="theorem">There are <script type="math/tex">\\infty</script> many primes.</div>'''
>>> for passage in read_html("a.html", text):
...     print(passage.place, "|", passage.title, "|", passage.text)
2 | Primes | Let \(p\) be prime.
3 | Theorem. Primes | There are \(\infty\) many primes.

Formulas are the LaTeX that a page contains: sources of MathJax and KaTeX in the text, scripts of MathJax, annotations
of MathML (KaTeX, Pandoc, Wikipedia) and ``alttext`` (LaTeXML). MathML without LaTeX is read as words. Scripts are never
run, nothing is loaded, and entities of a document type are not expanded.
"""

from __future__ import annotations

import re

from lxml import etree

from graphs.errors import CorpusError
from mathamr.folder.markdown import STATEMENTS
from mathamr.folder.passages import Outline, Passage

SUFFIXES = (".html", ".htm", ".xhtml")

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LEFT_OUT = frozenset(
    """head script style template noscript nav aside footer iframe svg object form button select textarea pre math img
    mjx-container canvas video audio""".split()  # noqa: SIM905
)
_LEFT_OUT_CLASSES = frozenset(
    """katex-html MathJax MathJax_Preview MathJax_Display MathJax_SVG MathJax_CHTML MJX_Assistive_MathML toc ltx_tag
    ltx_note reference mw-editsection""".split()  # noqa: SIM905
)
_ROW = frozenset(("ltx_equation", "ltx_eqn_row"))  # of align in LaTeXML, whose cells have parts of a formula
_INLINE = frozenset(
    """a abbr b bdi bdo big cite code del dfn em font i ins kbd label mark q s samp small span strike strong sub sup
    time tt u var wbr""".split()  # noqa: SIM905
)
_STATEMENT = re.compile(rf"(?:^|[_-])({STATEMENTS})\Z", re.IGNORECASE)
_LATEX = frozenset(("application/x-tex", "application/x-latex", "tex", "latex"))


def read_html(file: str, text: str) -> list[Passage]:
    """Return the passages of a page; ``file`` is its path below the folder.

    Raises:
        CorpusError: the page has no content, or is nested too deeply to be read whole.
    """
    parser = etree.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True, huge_tree=True
    )  # huge_tree: 2,048 nested elements, instead of 256
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise CorpusError(f"is not HTML: {error}") from error
    if root is None:
        raise CorpusError("is not HTML: it has no element")
    limits = parser.error_log.filter_types([etree.ErrorTypes.ERR_RESOURCE_LIMIT])
    if limits:  # the parser drops the rest of the page
        raise CorpusError(f"is nested too deeply at line {limits[0].line} ({limits[0].message}); close its elements")
    return _Reader(file).read(root)


class _Reader:
    """Reader of one page, element by element."""

    def __init__(self, file: str) -> None:
        self._outline = Outline(file)
        self._pieces: list[str] = []
        self._line = 0
        self._statement: tuple[etree._Element, str, int] | None = None  # element, name and line
        self._body: list[str] = []  # of the statement

    def read(self, root: etree._Element) -> list[Passage]:
        """Return the passages below an element."""
        title = root.findtext(".//title")
        if title and root.find(".//h1") is None:
            self._outline.heading(0, title)
        walk = etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            tag = element.tag if isinstance(element.tag, str) else "script"
            classes = set(_classes(element))  # a tag of LaTeXML is left out, but "Theorem 1" names a statement
            unread = tag in _LEFT_OUT or classes >= _ROW
            left_out = unread or (_LEFT_OUT_CLASSES & classes and "ltx_tag_theorem" not in classes)
            if event == "start":
                if left_out:
                    walk.skip_subtree()
                    self._add(_formula(element, tag), element)
                else:
                    self._start(tag, element)
                    self._add(element.text, element)
            else:
                if not left_out:
                    self._end(tag, element)
                self._add(element.tail, element)
        self._end_block()
        return self._outline.close()

    def _start(self, tag: str, element: etree._Element) -> None:
        if tag == "br":
            self._pieces.append("\n")
        elif tag not in _INLINE:
            self._end_block()
            names = filter(None, map(_STATEMENT.search, _classes(element)))
            if self._statement is None and tag not in ("html", "body") and (name := next(names, None)) is not None:
                self._statement = element, name[1].capitalize(), _line(element)

    def _end(self, tag: str, element: etree._Element) -> None:
        if tag in _HEADINGS and self._statement is None:
            self._outline.heading(_HEADINGS[tag], self._taken())
        elif tag in _HEADINGS and self._statement is not None and not self._body:
            statement, name, line = self._statement
            self._statement = statement, " ".join(self._taken().split()).strip(". ") or name, line
        elif tag not in _INLINE:
            self._end_block()
        if self._statement is not None and self._statement[0] is element:
            _, name, line = self._statement
            self._outline.statement(str(line), name, " ".join(self._body))
            self._statement, self._body = None, []

    def _add(self, text: str | None, element: etree._Element) -> None:
        if text:
            if not self._line and not text.isspace():
                blank = text[: len(text) - len(text.lstrip())]
                self._line = _line(element) + blank.count("\n")
            self._pieces.append(text)

    def _taken(self) -> str:
        text, self._pieces, self._line = "".join(self._pieces), [], 0
        return text

    def _end_block(self) -> None:
        line = str(self._line)
        if (text := self._taken()) and not text.isspace():
            if self._statement is not None:
                self._body.append(text)
            else:
                self._outline.paragraph(line, text)


def _classes(element: etree._Element) -> list[str]:
    return str(element.get("class") or "").split()


def _line(element: etree._Element) -> int:
    line = element.sourceline
    return line if isinstance(line, int) else 0


def _formula(element: etree._Element, tag: str) -> str:
    r"""Return the LaTeX of an element between ``\(`` and ``\)``; for MathML without LaTeX, its text; else nothing."""
    latex = ""
    if tag == "math":
        annotations = (one.text for one in element.iter("annotation") if (one.get("encoding") or "").lower() in _LATEX)
        latex = next(filter(None, annotations), "") or element.get("alttext") or ""
        if not latex.strip():
            return f" {' '.join(''.join(map(str, element.itertext())).split())} "
    elif tag == "script" and str(element.get("type") or "").startswith("math/tex"):
        latex = element.text or ""
    elif tag == "img" and {"latex", "tex"} & set(_classes(element)):
        latex = element.get("alt") or ""
    elif _ROW.issubset(_classes(element)):
        latex = " ".join(str(one.get("alttext", "")).removeprefix(r"\displaystyle") for one in element.iter("math"))
    latex = " ".join(latex.split()).removeprefix("$").removesuffix("$")
    return rf"\({latex}\)" if latex and r"\)" not in latex else ""
