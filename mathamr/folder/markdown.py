r"""Passages of Markdown: paragraphs below their headings, and statements that begin in bold.

>>> text = '''# Primes
... We *count* `them`:
... $$
... \\pi(x) \\sim x_1 * x_2
... $$
...
... **Theorem (Euclid).** There are infinitely many.'''
>>> for passage in read_markdown("a.md", text):
...     print(passage.place, "|", passage.title, "|", passage.text)
2 | Primes | We count them: $$ \pi(x) \sim x_1 * x_2 $$
7 | Theorem (Euclid). Primes | There are infinitely many.

Blocks are those of CommonMark with tables (markdown-it-py). Formulas are found first, so their signs are not read as
markup. Blocks of code are left out, except blocks of ``math``, which are formulas. A dollar sign between backticks
begins no formula.
"""

from __future__ import annotations

import bisect
import html
import re
from collections.abc import Callable

from markdown_it import MarkdownIt

from graphs.corpus.text.text_formulas import find
from mathamr.folder.passages import Outline, Passage

SUFFIXES = (".md", ".markdown")

STATEMENTS = (
    "Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example|Exercise|Problem|Question|Conjecture|Proof"
    "|Claim|Fact|Observation|Axiom|Notation|Solution"
    "|Satz|Hilfssatz|Korollar|Bemerkung|Beispiel|Aufgabe|Beweis|Folgerung|Vermutung|Behauptung|Übung"
    "|Théorème|Lemme|Corollaire|Définition|Remarque|Exemple|Exercice|Preuve|Démonstration"
)
"""Words that a statement begins with, in bold."""

_HEADER = re.compile(r"---[ \t]*\n(?P<yaml>(?:(?!(?:---|\.{3})[ \t]*$).*\n){0,198})(?:---|\.{3})[ \t]*$", re.MULTILINE)
_TITLE = re.compile(r"(?m)^title:[ \t]*(?P<title>[^\s|>].*)")  # in YAML
_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}(?![^`\n]*`)|~{3,}|:{3,})[ \t]*(?P<brace>\{?)(?P<info>[^\s`},]*)")
_NO_TEXT = (  # blocks of MyST without sentences, and languages of notebooks
    r"(?i:[.#=]|(?:code(?:-block|-cell)?|sourcecode|literalinclude|include|figure|image|toctree|tableofcontents|contents"
    r"|bibliography|index|raw|mermaid|graphviz|digraph|plot|tikz|eval-rst|doctest|test\w+|jupyter-\w+|auto\w+|iframe|video"
    r"|embed|python|ipython|py|r|rcpp|julia|sage|octave|matlab|stan|sql|ba?sh|js|javascript|ojs|html|css|dot)(?![\w:-]))"
)
_QUOTED_MATH = re.compile(  # ```math below > [!proof] of Obsidian
    r"(?m)^( {0,3}>[ \t>]*)```(?:\{math\}|math|latex|tex)[ \t]*\n"
    r"((?:[ \t]*>(?![ \t>]*```)[^\n]*\n){1,200})[ \t]*>[ \t>]*```[ \t]*$"
)
_CODE = re.compile(  # no line after the first is empty, a formula, a heading, an item or a row
    r"(?<![\\`])(`+)(?!`)(?:[^\n]|\n(?![ \t>]*(?:\n|\$\$|[-*+#|]|\d+[.)]))){0,2000}?[^`]\1(?!`)"
)
_QUOTE = re.compile(r"(?s)``(?!`).*''|`(?!`)[^']*\S'[\s.,;:!?)][^']*\Z")  # of TeX: ``words'' or `words'
_DOLLAR = re.compile(r"(?<!\\)((?:\\\\)*)\$")  # not escaped
_STOP = re.compile(  # of the sentence, not the one of \right. or \Bigr.
    r"(?<!\\right)(?<!\\left)(?<!ig)(?<!igg)(?<!ig[lr])(?<!igg[lr])(?<![\\.\s])\s*([.,;])\s*(\$\$?|\\\]|\\\))\Z"
)
_FORMULA = re.compile("\x02(\\d+)\x02")
_STATEMENT = re.compile(
    rf"(?P<bold>\*\*|__)(?P<name>(?:{STATEMENTS})\b[^*_\n]{{0,200}}?)[.:]?(?P=bold)"
    r"(?:[ \n]\((?P<title>[^()\n]{1,200})\)[.:])?(?P<text>.*)",
    re.DOTALL,
)
# :::{prf:theorem} Euclid of MyST, which may have backticks for colons, and > [!theorem] Euclid of Obsidian
_DIRECTIVE = re.compile(
    rf"(?::{{3,}}[ \t]*\{{(?:prf:)?|\[!)(?P<name>{STATEMENTS})[\]}}][+-]?[ \t]*(?P<title>[^\n]{{0,200}})"
    r"(?:\n[ \t]*:[\w-]+:[^\n]*)*(?P<text>.*)",
    re.DOTALL | re.IGNORECASE,
)
_OPTION = re.compile(r"[ \t]*:[\w-]+:")  # of a block of MyST
_YAML = re.compile(  # options of a block of MyST between ---
    r"(?m)^( {0,3}[`~:]{3,}[ \t]*\{[^}\n]{1,200}\}[^\n]*)((?:\n---[ \t]*)(?:\n[^\n]*){0,20}?\n---[ \t]*)$"
)
_EDGE = re.compile(  # of a block of MyST or Pandoc, and options; the words after its name are kept
    rf"(?m)^[ \t]*:{{3,}}(?:[ \t]*\{{(?!{_NO_TEXT})[^{{}}\n]{{1,200}}\}}(?![ \t]*:)(?P<title>[^\n]*)|[^\n]*)"
    r"(?:\n[ \t]*:[\w-]+:[^\n]*)*$"
)
_DIV = re.compile(  # ::: {.lemma name="Zorn"} of Pandoc
    rf"(?mi)^([ \t]*:{{3,}})[ \t]*\{{[^{{}}\n]{{0,200}}?\.({STATEMENTS})(?![\w-])[^{{}}\n]{{0,200}}\}}"
)
_NAME = re.compile(r'\bname="([^"\n]*)"')
_TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,2000}>")
_UNSEEN = re.compile(r"(?is)<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<(script|style|pre|textarea|svg)\b.*?(?:</\1\s*>|\Z)")
_BLOCK_TAG = re.compile(r"(?i)(?=</?(?:br|dd|details|div|dt|h[1-6]|li|p|summary|t[dhr])\b)")
_INLINE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"!\[[^\[\]]{0,1000}\]\([^()]{0,2000}\)"), ""),
    (re.compile(r"\[([^\[\]]{0,1000})\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])"), r"\1"),
    (_TAG, ""),
    (re.compile(r"(?<![\w*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\w*])"), ""),
    (re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"), ""),
    (re.compile(r"\\([!-#%-'*-/:-@_`{-~])"), r"\1"),  # escaped signs, but not \$, \( and \[
    (re.compile(r"`+"), ""),
)


def read_markdown(file: str, text: str) -> list[Passage]:
    """Return the passages of a Markdown file; ``file`` is its path below the folder."""
    outline = Outline(file)
    read_into(outline, text, str)
    return outline.close()


def read_into(outline: Outline, text: str, place: Callable[[int], str]) -> None:
    """Add the passages of a text to an outline.

    Args:
        place: function from a line to the name of its place.
    """
    if header := (yaml := _HEADER.match(text)) and _TITLE.search(yaml["yaml"]):
        outline.heading(0, header["title"].strip().strip("\"'"))
    text, formulas, joined = _without_formulas(_without_code(text.replace("\x02", " ")))
    level = 0
    begun: tuple[str, str] | None = None  # place and name of a statement whose text is in the next paragraph
    for token in _BLOCKS.parse(text):
        if token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type in ("inline", "html_block") and token.map is not None:
            content = token.content
            if token.type == "html_block":
                content = _TAG.sub("", _BLOCK_TAG.sub(" ", _UNSEEN.sub("", content))).strip()
                if not content:
                    continue
            where = place(token.map[0] + bisect.bisect_left(joined, token.map[0]) + 1)
            if level:
                outline.heading(level, _plain(content, formulas))
                level, begun = 0, None
            elif (statement := _STATEMENT.match(content) or _DIRECTIVE.match(content)) is not None:
                parts = {
                    name: _plain(_EDGE.sub(r"\g<title>", part), formulas)
                    for name, part in statement.groupdict("").items()
                }
                name, title = (parts.get(part, "").strip(". ") for part in ("name", "title"))
                name = f"{name[:1].upper()}{name[1:]}" + f" ({title})" * bool(title)
                begun = None if parts["text"].strip() else (where, name)
                outline.statement(where, name, parts["text"])
            else:
                paragraph = _plain(_EDGE.sub(r"\g<title>", content), formulas)
                if begun is not None:
                    outline.statement(*begun, paragraph)
                else:
                    outline.paragraph(where, paragraph)
                begun = None


def _without_code(text: str) -> str:
    """Return a text with empty lines in place of code and of its header.

    Blocks of ``math`` become formulas, and other blocks of MyST, such as ``{prf:theorem}``, blocks of colons.
    """
    text = _DIV.sub(_with_name, _QUOTED_MATH.sub(r"\1$$\n\2\1$$", text))
    lines = _YAML.sub(lambda block: block[1] + "\n:-:" * block[2].count("\n"), text).split("\n")
    if lines[0].strip() == "---":  # a header in YAML
        end = next((number for number, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")), -1)
        lines[: end + 1] = [""] * (end + 1)
    blocks = [("", "text")]  # fence and kind of the open blocks
    opened, typed = 0, list(lines)
    for number, line in enumerate(lines):
        edge = _FENCE.match(line)
        fence, kind = blocks[-1]
        if edge is not None and fence and edge["fence"].startswith(fence) and not edge["info"]:
            lines[number] = {"math": "$$", "text": ":::"}.get(kind, "")
            blocks.pop()
        elif kind == "math" and lines[number - 1] == "$$" and _OPTION.match(line):
            lines[number - 1 : number + 1] = [":::" if number > 1 and lines[number - 2].strip() else "", "$$"]
        elif kind == "code":
            lines[number] = ""
        elif kind == "text" and edge is not None and (edge["fence"][0] != ":" or edge["info"] == "math"):
            opened, info = number, edge["info"]
            kind = "text" if edge["brace"] and not re.match(_NO_TEXT, info) else "code"
            kind = "math" if info in ("math", "latex", "tex") else kind
            lines[number] = {"math": "$$", "text": f":::{line.strip().lstrip(edge['fence'][0])}"}.get(kind, "")
            blocks.append((edge["fence"], kind))
    if blocks[-1][1] == "code":  # without an end, it may be in a formula: four spaces are ~~~~
        lines[opened:] = typed[opened:]
    return "\n".join(lines)


def _with_name(div: re.Match[str]) -> str:
    """Return the first line of a block of Pandoc as that of a block of MyST."""
    name = _NAME.search(div[0])
    return f"{div[1]}{{{div[2]}}} {name[1] if name else ''}"


def _without_formulas(text: str) -> tuple[str, list[str], list[int]]:
    """Return a text with a mark for each formula, the formulas, and the lines that they were joined to.

    A formula of several lines becomes one mark, so that the sentence around it is one paragraph. For each lost line,
    the list has the number, from 0, of the line with the mark.
    """
    text = re.sub(r"\$`([^`$\n]{1,2000})`\$|\{math\}`([^`$\n]{1,2000})`", r"$\1\2$", text)  # GitHub, MyST
    text = _CODE.sub(_with_escaped_dollars, text)
    text = re.sub(r"\\\\([()])", r"\\\1", text)  # MathJax: the backslash of \( is escaped
    text = re.sub(r"(?m)^([ \t>]*)\\\\([\[\]])[ \t]*$", r"\1\\\2", text)
    pieces: list[str] = []
    formulas: list[str] = []
    joined: list[int] = []
    position = line = 0
    for start, end, _ in find(text):
        line += text.count("\n", position, start)
        joined += [line] * text.count("\n", start, end)
        pieces += [text[position:start], f"\x02{len(formulas)}\x02"]
        formulas.append(_STOP.sub(r"\2\1", " ".join(re.sub(r"\n[ \t]*>", "\n", text[start:end]).split())))
        position = end
    return "".join([*pieces, text[position:]]), formulas, joined


def _with_escaped_dollars(code: re.Match[str]) -> str:
    """Return code with escaped dollars, but words after a quote of TeX as they are."""
    return code[0] if _QUOTE.match(code[0]) else _DOLLAR.sub(r"\1\\$", code[0])


def _plain(text: str, formulas: list[str]) -> str:
    """Return the text of inline markup, with its formulas."""
    for pattern, instead in _INLINE:
        text = pattern.sub(instead, text)
    text = html.unescape(text)
    return _FORMULA.sub(lambda mark: formulas[int(mark[1])] if int(mark[1]) < len(formulas) else "", text)
