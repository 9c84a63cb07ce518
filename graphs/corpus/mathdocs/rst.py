r"""Docstrings in reStructuredText: their sections, and the paragraphs of a section with formulas and names marked.

>>> doc = "Sine.\n\nThe value :math:`\\sin x` of ``jv`` [1]_.\n\nNotes\n-----\n.. math:: y = \\sin x\n\n>>> sin(0)\n0.0"
>>> [section.title for section in sections(doc)]
['', 'Notes']
>>> [(span.kind, span.text) for span in paragraphs(sections(doc)[0].text)[1]]
[('text', 'The value '), ('formula', '\\sin x'), ('text', ' of '), ('code', 'jv'), ('text', '.')]
>>> paragraphs(sections(doc)[1].text)
[[Span(kind='formula', text='y = \\sin x')]]

Doctests, literal blocks, tables, references, footnote marks, version notes and unknown directives are dropped. Nothing
recurses, and no file or role is looked up.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Literal

from graphs.corpus.text.text_formulas import is_formula


@dataclass(frozen=True, slots=True)
class Section:
    """Section of a docstring; the text before the first title has the title ''."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a paragraph: ``text``, a ``formula`` (LaTeX), or ``code`` (a name or an expression)."""

    kind: Literal["text", "formula", "code"]
    text: str


Paragraph = list[Span]

_STRONG_LINE = re.compile(r"\*\*[^*]{1,60}\*\*")
_UNDERLINE = re.compile(r"([-=~^*#])\1{2,}\s*\Z")
_DIRECTIVE = re.compile(r"\.\.\s+([\w:-]+?)\s*::\s*(.*)\Z", re.DOTALL)
_OPTION = re.compile(r"\s*:[\w-]+:.*\Z")
_KEPT_DIRECTIVES = frozenset(["note", "warning", "important", "tip", "hint", "caution", "attention", "admonition"])
_RULE = re.compile(r"[\s=+|\-~]*(?:={3,}|-{3,}|\+[-=]+\+)[\s=+|\-~]*\Z")
_LIST_ITEM = re.compile(r"(?:[-*•]|#\.|\(?\d{1,2}[.)]|\(?[a-z]\))\s+")
_INLINE = re.compile(
    r"""(?P<literal> ``(?P<literal_text>.+?)`` )
      | (?P<role> (?<![\w`]) :(?P<role_name>[\w:.+-]+): `(?P<role_text>[^`]+)` )
      | (?P<reference> `(?P<reference_text>[^`<>]+?) \s* (?:<[^`<>]*>)?`__? (?![\w]) )
      | (?P<interpreted> (?<![\w`]) `(?P<interpreted_text>[^`]+)` (?![\w`]) )
      | (?P<dollars> \$\$(?P<display>[^$]+)\$\$ | \$(?P<inline>[^$]+)\$ )
      | (?P<footnote> \s* \[ (?:\d{1,3}|\#\w*|[A-Z]\w{1,30}|[A-Za-z]+\d[\w.-]*) \]_ )
      | (?P<strong> \*\*(?P<strong_text>[^*\s](?:[^*]*[^*\s])?)\*\* )
      | (?P<emphasis> (?<![\w*\\]) \*(?P<emphasis_text>[^*\s](?:[^*]*[^*\s])?)\* (?![\w*]) )
      | (?P<target> \|(?P<target_text>[A-Za-z][\w ]*)\| )
      | (?P<escape> \\(?P<escaped>[\s*`_\\|]) )
    """,
    re.VERBOSE | re.DOTALL,
)
_WANTS_NOUN = re.compile(
    r"(?:\b(?:in|see|by|from|to|of|with|and|or|and in|following|example,?|per)|[.!?;(])\s*\Z", re.I
)
_STRAY = re.compile(r":(?:math|func|class|meth|mod|ref|obj|doc):|`+_{0,2}")  # unbalanced markup
_ROLE_TARGET = re.compile(r"(.*?)\s*<([^<>]*)>\Z", re.DOTALL)
_CODE_ROLES = frozenset("func class meth attr mod obj data const exc py:func py:class py:meth py:mod any".split())  # noqa: SIM905
# Backslashes of LaTeX commands that Python has read as escapes, in docstrings that are not raw: \alpha, \beta, \frac.
_EATEN_TAB = re.compile(r"\t(?=(?:imes|heta|au|ilde|ext|anh?|o)\b)")
_EATEN = str.maketrans({"\x07": "\\a", "\x08": "\\b", "\x0c": "\\f", "\x0b": "\\v"})


def sections(docstring: str) -> list[Section]:
    """Return the sections of a docstring in order; a title is an underlined line, or a bold one (mpmath)."""
    restored = _EATEN_TAB.sub(r"\\t", docstring.translate(_EATEN))
    lines = restored.expandtabs().splitlines()
    lines = textwrap.dedent("\n".join(lines)).splitlines()
    titled: list[tuple[str, list[str]]] = [("", [])]
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        before = titled[-1][1][-1] if titled[-1][1] else ""
        title = line.strip()
        underlined = _UNDERLINE.fullmatch(following.strip()) is not None and _UNDERLINE.fullmatch(title) is None
        bold = _STRONG_LINE.fullmatch(title) is not None and not following.strip()
        if (underlined or bold) and title and not (line[0].isspace() or before.strip() or len(title) > 60):
            titled.append((title, [""] if bold else []))
            continue
        below_title = bool(titled[-1][0]) and not titled[-1][1]
        if below_title and _UNDERLINE.fullmatch(title):
            continue
        titled[-1][1].append(line)
    return [Section(title.strip("* "), "\n".join(text).strip("\n")) for title, text in titled]


def paragraphs(text: str, *, backticks_are_math: bool = False) -> list[Paragraph]:
    """Return the paragraphs of a section; with ``backticks_are_math`` (SymPy, mpmath) ```x^2``` is a formula."""
    return [
        spans
        for block, is_formula_block in _blocks(text)
        if (spans := [Span("formula", block)] if is_formula_block else _inline(block, backticks_are_math))
    ]


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Return text, and True for a display formula, of each paragraph, list item and ``math`` directive."""
    lines = textwrap.dedent(text).splitlines()
    out: list[tuple[str, bool]] = []
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        if not line:
            number += 1
            continue
        indent = _indent(lines[number])
        directive = _DIRECTIVE.match(line)
        if directive is not None:
            content, number = _content(lines, number, indent)
            if directive[1] == "math":
                out += [(formula, True) for formula in _math(directive[2], content)]
            elif directive[1] in _KEPT_DIRECTIVES:
                body = textwrap.dedent("\n".join(content)).strip("\n")
                first = "" if directive[1] == "admonition" else directive[2]
                lines[number:number] = ["", *(" " * indent + x for x in [*first.splitlines(), *body.splitlines()]), ""]
        elif line.startswith((".. ", "..[", "__ ")) or line == "..":  # a comment, footnote or link target
            _, number = _content(lines, number, indent)
        elif line.startswith(">>>"):
            while number < len(lines) and lines[number].strip():
                number += 1
        else:
            block, number = _paragraph(lines, number)
            joined = " ".join(block)
            if joined.endswith("::"):  # a literal block follows
                joined = joined[:-2].rstrip() + (":" if joined[:-2].strip() else "")
                while number < len(lines) and (not lines[number].strip() or _indent(lines[number]) > indent):
                    number += 1
                joined = _without_announcement(joined)
            elif joined.endswith(":") and next((x for x in lines[number:] if x.strip()), "").lstrip().startswith(">>>"):
                joined = _without_announcement(joined)
            if joined.strip():
                out.append((joined, False))
    return out


def _without_announcement(text: str) -> str:
    """Remove the last sentence, which announces code that is dropped, unless it has a formula."""
    last = re.search(r"(?:(?<=[.!?])\s+|\A)(?:[^.!?]|[.!?](?!\s))*\Z", text)
    if last is None or re.search(r":math:|`|\$", last.group()):
        return text
    return text[: last.start()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _content(lines: list[str], number: int, indent: int) -> tuple[list[str], int]:
    """Return the lines below line ``number`` indented by more than ``indent``, and the number of the next line."""
    content: list[str] = []
    number += 1
    while number < len(lines) and (not lines[number].strip() or _indent(lines[number]) > indent):
        content.append(lines[number])
        number += 1
    return content, number


def _paragraph(lines: list[str], number: int) -> tuple[list[str], int]:
    """Return the stripped lines of the paragraph or list item from ``number`` on, and the number after it."""
    block: list[str] = []
    first = _LIST_ITEM.match(lines[number].strip())
    margin = _indent(lines[number])
    while number < len(lines):
        line = lines[number].strip()
        if not line or (block and (line.startswith(">>>") or _DIRECTIVE.match(line))):
            break
        if _RULE.match(line):  # a table, whose rows are not sentences
            while number < len(lines) and lines[number].strip():
                number += 1
            return [], number
        item = _LIST_ITEM.match(line)
        if block and item is not None and (line[0] in "-*•#" if first is None else _indent(lines[number]) <= margin):
            break
        block.append(line[first.end() :] if first is not None and not block else line)
        number += 1
    return block, number


def _math(argument: str, content: list[str]) -> list[str]:
    """Return the formulas of a ``math`` directive: its argument and its lines, separated by blank lines."""
    body = textwrap.dedent("\n".join(line for line in content if not _OPTION.match(line)))
    parts = [argument, *re.split(r"\n\s*\n", body)]
    if argument.strip() and content and content[0].strip() and not _OPTION.match(content[0]):
        parts[:2] = [f"{argument}\n{parts[1]}"]
    return [_aligned(" ".join(part.split())) for part in parts if part.strip()]


def _aligned(latex: str) -> str:
    """Add the environment of a formula with ``&`` or ``\\\\\\\\`` that LaTeX needs and Sphinx does not."""
    outside = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", "", latex)
    return f"\\begin{{aligned}} {latex} \\end{{aligned}}" if re.search(r"(?<!\\)&|\\\\", outside) else latex


def _inline(text: str, backticks_are_math: bool) -> Paragraph:
    """Return the spans of one paragraph."""
    spans: Paragraph = []

    def add(kind: Literal["text", "formula", "code"], piece: str) -> None:
        piece = re.sub(r"\s+", " ", _STRAY.sub("", piece) if kind == "text" else piece)
        if kind == "text" and spans and spans[-1].kind == "text":
            spans[-1] = Span("text", spans[-1].text + piece)
        elif piece:
            spans.append(Span(kind, piece))

    position = 0
    for match in _INLINE.finditer(text):
        add("text", text[position : match.start()])
        position = match.end()
        if match["literal"]:
            add("code", match["literal_text"])
        elif match["role"]:
            name, content = match["role_name"], match["role_text"]
            if name == "math":
                add("formula", content.strip())
                continue
            target = _ROLE_TARGET.match(content)
            shown = target[1] if target is not None and target[1] else content.strip("<>")
            if name in _CODE_ROLES:
                add("code", shown.lstrip("~!.").rpartition(".")[2] if " " not in shown else shown)
            elif name not in ("cite", "eq", "ref", "numref", "doi", "issue", "arxiv") or target is not None:
                add("text", shown)
        elif match["reference"]:
            add("text", match["reference_text"])
        elif match["interpreted"]:
            content = match["interpreted_text"]
            if backticks_are_math and content[0] not in "~.!" and is_formula(content, "", ""):
                add("formula", content.strip())
            else:
                add("code", content)
        elif match["dollars"]:
            content = match["display"] or match["inline"]
            after = text[match.end() : match.end() + 1]
            before = text[match.start() - 1 : match.start()]
            if match["display"] or is_formula(content, before, after):
                add("formula", content.strip())
            else:
                add("text", match.group())
        elif match["footnote"]:  # "see [1]_" needs a noun, "the method [1]_ is" does not
            written = spans[-1].text if spans and spans[-1].kind == "text" else ""
            if not spans or _WANTS_NOUN.search(written):
                add("text", " a reference" if written and not written[-1].isspace() else "a reference")
        else:
            add(
                "text", match["strong_text"] or match["emphasis_text"] or match["target_text"] or match["escaped"] or ""
            )
    add("text", text[position:])
    return spans if any(span.text.strip() for span in spans) else []
