"""Blocks of running text from the markup of a post, with one character for each formula.

>>> from graphs.corpus.text.markup import FORMULA, read_html
>>> blocks = read_html('<p>Let <span class="math-container" id="7">$x&lt;1$</span> hold.</p><ul><li>one</li></ul>')
>>> [(block.text.replace(FORMULA, "@"), block.kind, block.formulas) for block in blocks]
[('Let @ hold.', 'paragraph', [('7', 'x<1')]), ('one', 'item', [])]

A ``<math>`` element is a formula by its LaTeX: ``alttext``, an annotation in TeX, or LaTeX as its content (as wikis
write it). Without LaTeX its text is kept:

>>> [block.text.replace(FORMULA, "@") for block in read_html("<p>Is <math><mi>x</mi><mo>=</mo><mn>1</mn></math>?</p>")]
['Is x=1?']
>>> read_html('<p><math alttext="x&lt;1"><mi>x</mi></math></p>')[0].formulas
[(None, 'x<1')]

A tokenizer of one regular expression instead of a tree: a tree builder drops what it cannot place (libxml2 stops at
2,048 nested elements and after ``</html>``), and here no formula may be lost, whatever a post looks like. It is linear
in the length of the post, keeps no more than the text, and resolves nothing but character references.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Literal

#: Stands for a formula in :attr:`Block.text`; taken out of every text that is read.
FORMULA = "\ue000"

#: How a block is set off: ``paragraph`` and ``line`` (after a line break) may go on a sentence of the block before,
#: an ``item`` of a list begins one, a ``heading`` (or the row of a table) begins one and ends it.
BlockKind = Literal["paragraph", "line", "item", "heading"]


@dataclass(slots=True)
class Block:
    """Text between two block boundaries; the k-th :data:`FORMULA` in it is ``formulas[k]`` = (id or None, LaTeX)."""

    text: str
    kind: BlockKind
    formulas: list[tuple[str | None, str]] = field(default_factory=list)


_TAG = re.compile(
    r"""<(?: (?P<comment>!--)
           | (?P<end>/?) (?P<name>[a-zA-Z][a-zA-Z0-9]{0,15}+)
             (?P<attributes> (?:
               \s+ [^\s"'<>/=]++ (?: \s*+ = \s*+ (?: "[^"]*+" | '[^']*+' | [^\s"'=<>`]++ ) )?+
             )*+ ) \s*+ /?>
           | [!?] [a-zA-Z\[] [^<>]*+ >
        )""",
    re.VERBOSE,
)
_ALTTEXT = re.compile(r"""\salttext\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))""", re.IGNORECASE)
_TEX = re.compile(
    r"""<annotation\s[^<>]*?\bencoding\s*=\s*["']?(?:application/x-(?:la)?tex|(?:La)?TeX)\b[^<>]*>""", re.IGNORECASE
)
_MATHML = re.compile(r"<(?:m[a-z]{1,15}|semantics|apply|annotation|c[in])\b", re.IGNORECASE)
_ANNOTATIONS = re.compile(r"<annotation\b")
_ELEMENT = re.compile(r"</?[a-zA-Z][^<>]*+>")
_ID = re.compile(r"""\sid\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+))""", re.IGNORECASE)
_CLASS = re.compile(r"""\sclass\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))""", re.IGNORECASE)
_MATH_CONTAINER = re.compile(r"\bmath-container\b", re.IGNORECASE)
# Control characters, half surrogate pairs, invisible joiners, and the private use area that FORMULA is taken from.
_UNWANTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b-\u200f\u2060\ufeff\ue000-\uf8ff\ud800-\udfff]")

_PARAGRAPHS = frozenset(
    "p div blockquote section article main center form fieldset address figure figcaption body html".split()  # noqa: SIM905
)
_ITEMS = frozenset("li ul ol dl dt dd pre hr details summary".split())  # noqa: SIM905
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6 table thead tbody tfoot tr caption header footer nav".split())  # noqa: SIM905
_INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite code del dfn em font i img ins kbd label mark nobr q rp rt ruby s samp small
    span strike strong sub sup time tt u var wbr br td th script style head title meta link iframe object embed
    noscript""".split()  # noqa: SIM905
)
_BOUNDARIES = _PARAGRAPHS | _ITEMS | _HEADINGS
_KNOWN = _BOUNDARIES | _INLINE
_MUTED = frozenset(["pre", "script", "style"])
_MAX_ID = 200
_MARKS = {"sup": "^", "sub": "_"}
_MAX_RAISED = 8
"""Elements ``<sup>`` and ``<sub>`` in each other that are read."""
_ONE_SYMBOL = re.compile(rf"\w+|{FORMULA}|\([^()]*\)")
# Endings of ordinal numbers, signs of notes and marks, prose.
_FUNCTION = r"(?:sin|cos|tan|cot|log|exp|mod|max|min|gcd|lcm|det|dim)\b"
_NO_SCRIPT = re.compile(
    r"\A(?:st|nd|rd|th|er|i?[eè]me|TM|SM|[*†‡§®™]+|\[[^\]]*\])\Z|\.\Z"
    rf"|\s(?!{_FUNCTION})[^\W\d_]{{3}}|(?<![^\W\d_])(?!{_FUNCTION})[^\W\d_]{{3,}}\s"
)
_BLANK_LINES = re.compile(r"\n[ \t]*+\n[ \t\n]*+")
_ITEM_LINE = re.compile(r"\n(?=[ \t]*+(?:[-*•]|\d{1,3}[.)]|\([a-z\d]{1,3}\)|[a-z]\))[ \t])")
_BULLET = re.compile(r"\A(?:[-*•]|\d{1,3}[.)]) ")
_DISPLAY = re.compile(
    r"""\$\$[^$]*+\$\$
      | \\\[ [^\\]*+ (?:\\(?![\[\]])[^\\]*+)*+ \\\]
      | \\begin\{[a-z]+\*?\} [^\\]*+ (?:\\(?!begin\{|end\{)[^\\]*+)*+""",
    re.VERBOSE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp);")
_ONE_LINE = re.compile(r"\\begin\{(equation\*?|displaymath|math)\}(.*)\\end\{\1\}", re.DOTALL)


def clean(text: str) -> str:
    """``text`` without the characters that no store or parser takes (control characters, half surrogate pairs)."""
    return _UNWANTED.sub("", text)


def strip_delimiters(latex: str) -> str:
    """LaTeX without the dollars, brackets or one-line environment around it.

    >>> strip_delimiters("$$x+1$$"), strip_delimiters(r"\\(a\\)"), strip_delimiters(r"\\begin{math} b \\end{math}")
    ('x+1', 'a', 'b')
    >>> strip_delimiters(r"\\begin{align} a &= b \\end{align}")  # the & needs its environment
    '\\\\begin{align} a &= b \\\\end{align}'
    """
    latex = latex.strip()
    if "&" in latex:  # escaped twice over, as some official posts are: LaTeX has no "&lt;"
        latex = _ENTITY.sub(lambda match: html.unescape(match.group()), latex)
    for opening, closing in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
        if len(latex) >= len(opening) + len(closing) and latex.startswith(opening) and latex.endswith(closing):
            latex = latex[len(opening) : -len(closing)].strip()
            break
    match = _ONE_LINE.fullmatch(latex)
    return latex if match is None or f"\\begin{{{match[1]}}}" in match[2] else match[2].strip()


def read_html(markup: str) -> list[Block]:
    """Return the blocks of an HTML fragment, in document order; formulas are ``math-container`` spans and the
    ``<math>`` elements.

    Dropped: tags, comments, images, scripts and styles, the text of ``<pre>`` (program output and drawings, which no
    parser of sentences can use). Formulas are kept even there. Table rows are blocks, their cells parted by commas.
    """
    return _Reader(markup).read()


def read_text(markup: str) -> list[Block]:
    """Return the blocks of plain text: a blank line ends a paragraph, a list marker begins an item."""
    text = clean(markup.replace("\r\n", "\n"))
    if "$$" in text or "\\" in text:  # lines within a display formula are its own affair
        text = _DISPLAY.sub(lambda match: match.group().replace("\n", " "), text)
    blocks: list[Block] = []
    for part in _BLANK_LINES.split(text):
        for number, line in enumerate(_ITEM_LINE.split(part)):
            words = " ".join(line.split())
            bare = _BULLET.sub("", words)
            if bare:
                blocks.append(Block(bare, "item" if number > 0 or bare != words else "paragraph"))
    return blocks


def _is_formula(attributes: str) -> bool:
    """Return whether the first ``class`` among a span's attributes is that of formulas."""
    match = _CLASS.search(attributes)
    return match is not None and _MATH_CONTAINER.search(match[match.lastindex or 0]) is not None


def _latex_of(attributes: str, content: str) -> str:
    """Return the LaTeX of a ``<math>`` element, "" where it has none."""
    match = _ALTTEXT.search(attributes)
    if match is not None:
        latex = match[match.lastindex or 0]
    elif (annotation := _TEX.search(content)) is not None:
        end = content.find("</", annotation.end())
        latex = content[annotation.end() :] if end < 0 else content[annotation.end() : end]
    else:
        latex = "" if _MATHML.search(content) else content
    return clean(html.unescape(latex)).strip()


class _Reader:
    """Parser of the tags of a fragment, in one pass."""

    def __init__(self, markup: str) -> None:
        self.markup = markup
        self.blocks: list[Block] = []
        self.pieces: list[str] = []
        self.formulas: list[tuple[str | None, str]] = []
        self.kind: BlockKind = "paragraph"
        self.muted: str | None = None
        self.last_end: dict[str, int] = {}
        # The formula span that is open: its id, its text so far, and how many plain spans are open in it.
        self.formula_id: str | None = None
        self.formula_pieces: list[str] | None = None
        self.inner_spans = 0
        self.raised: list[tuple[str, int]] = []  # open <sup> and <sub>: their mark, and their first piece

    def read(self) -> list[Block]:
        markup = self.markup
        position = 0
        search_from = 0
        last_comment_end = markup.rfind("-->")
        while (tag := _TAG.search(markup, search_from)) is not None:
            search_from = tag.end()
            if tag["comment"]:
                end = markup.find("-->", tag.end()) if tag.end() <= last_comment_end else -1
                self.text(markup[position : tag.start()])
                position = tag.end() if end < 0 else end + 3
                search_from = position
                continue
            name = (tag["name"] or "").lower()
            if name == "math" and not tag["end"] and (end := self.math_end(tag.end())) >= 0:
                self.text(markup[position : tag.start()])
                self.math(tag["attributes"], markup[tag.end() : end])
                closed = markup.find(">", end)
                position = search_from = len(markup) if closed < 0 else closed + 1
                continue
            if name and name not in _KNOWN:
                continue  # "a <b, c>" of a formula, not an element
            self.text(markup[position : tag.start()])
            position = tag.end()
            if name:
                self.tag(name, bool(tag["end"]), tag)
        self.text(markup[position:])
        self.close_block()
        return self.blocks

    def math_end(self, position: int) -> int:
        """Return the place of the ``</math`` that closes what begins before ``position``; -1 without one."""
        if "math" not in self.last_end:  # searched once, for a post may open many and close none
            self.last_end["math"] = self.markup.rfind("</math")
        return self.markup.find("</math", position) if self.last_end["math"] >= position else -1

    def math(self, attributes: str, content: str) -> None:
        """Read a ``<math>`` element as a formula by its LaTeX, or as text if it has no LaTeX."""
        latex = _latex_of(attributes, content)
        if not latex:
            marked = _ANNOTATIONS.search(content)
            self.text(" ".join(_ELEMENT.sub("", content[: marked.start()] if marked else content).split()))
        elif self.formula_pieces is not None:  # inside a math-container span
            self.formula_pieces.append(latex)
        else:
            self.formula_id, self.formula_pieces = None, [latex]
            self.close_formula()

    def text(self, raw: str) -> None:
        if not raw:
            return
        text = clean(html.unescape(raw) if "&" in raw else raw)
        if self.formula_pieces is not None:
            self.formula_pieces.append(text)
        elif self.muted is None:
            self.pieces.append(text)

    def tag(self, name: str, is_end: bool, match: re.Match[str]) -> None:
        if name == "span":
            self.span(is_end, match["attributes"])
        elif name in _BOUNDARIES:
            self.boundary(name, is_end, match.end())
        elif self.formula_pieces is not None:
            return
        elif name == "br":
            self.close_block("line")
        elif name in ("td", "th"):
            if not is_end and any(piece.strip() for piece in self.pieces):
                self.pieces.append(", ")
        elif name in _MARKS:
            if is_end:
                self.lower()
            elif len(self.raised) < _MAX_RAISED:
                self.raised.append((_MARKS[name], len(self.pieces)))
        elif name in _MUTED:
            self.mute(name, is_end, match.end())

    def lower(self) -> None:
        """End a ``<sup>`` or ``<sub>``: 10<sup>2</sup> is not 102, 3<sup>n+1</sup> not 3n+1; n<sup>th</sup> is nth."""
        if not self.raised:
            return
        mark, first = self.raised.pop()
        content = "".join(self.pieces[first:])
        script = content.strip()
        if script and not _NO_SCRIPT.search(script):
            before, after = content.split(script, 1)
            self.pieces[first:] = [before, mark, script if _ONE_SYMBOL.fullmatch(script) else f"({script})", after]

    def span(self, is_end: bool, attributes: str) -> None:
        if is_end:
            if self.formula_pieces is not None:
                if self.inner_spans:
                    self.inner_spans -= 1
                else:
                    self.close_formula()
        elif _is_formula(attributes):
            self.close_formula()
            match = _ID.search(attributes)
            value = "" if match is None else html.unescape(match[1] or match[2] or match[3] or "")
            self.formula_id = clean(value).strip()[:_MAX_ID] or None
            self.formula_pieces = []
            self.inner_spans = 0
        elif self.formula_pieces is not None:
            self.inner_spans += 1

    def boundary(self, name: str, is_end: bool, position: int) -> None:
        self.close_formula()
        self.close_block()
        if name in _HEADINGS:
            self.kind = "paragraph" if is_end else "heading"
        elif name in _ITEMS:
            self.kind = "paragraph" if is_end else "item"
        if name in _MUTED:
            self.mute(name, is_end, position)

    def mute(self, name: str, is_end: bool, position: int) -> None:
        if is_end:
            self.muted = None if self.muted == name else self.muted
        elif self.muted is None:
            if name not in self.last_end:
                self.last_end[name] = self.markup.rfind(f"</{name}")
            if self.last_end[name] >= position:  # never muted to the end of the post by a tag that nothing closes
                self.muted = name

    def close_formula(self) -> None:
        if self.formula_pieces is not None:
            self.formulas.append((self.formula_id, strip_delimiters("".join(self.formula_pieces))))
            self.pieces.append(FORMULA)
            self.formula_pieces = None

    def close_block(self, following: BlockKind = "paragraph") -> None:
        self.close_formula()
        while self.raised:
            self.lower()
        text = " ".join("".join(self.pieces).split())
        if text:
            self.blocks.append(Block(text, self.kind, self.formulas))
            self.kind = following
            self.formulas = []
        elif self.kind == "line":
            self.kind = following
        self.pieces = []
