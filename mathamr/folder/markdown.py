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
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from graphs.corpus.text.text_formulas import find
from mathamr.folder.passages import Outline, Passage

_OF_QUARTO = (".qmd", ".rmd")  # and R Markdown
SUFFIXES = (".md", ".markdown", *_OF_QUARTO)

STATEMENTS = (
    "Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example|Exercise|Problem|Question|Conjecture|Proof"
    "|Claim|Fact|Observation|Axiom|Notation|Solution"
    "|Satz|Hilfssatz|Korollar|Bemerkung|Beispiel|Aufgabe|Beweis|Folgerung|Vermutung|Behauptung|Übung"
    "|Théorème|Lemme|Corollaire|Définition|Remarque|Exemple|Exercice|Preuve|Démonstration"
)
"""Words that a statement begins with, in bold."""

MAX_LAZY = 10_000  # lines without > that continue quotes, counted each time that they are read

_HEADER = re.compile(r"---[ \t]*\n(?P<yaml>(?:(?!(?:---|\.{3})[ \t]*$).*\n){0,198})(?:---|\.{3})[ \t]*$", re.MULTILINE)
_TITLE = re.compile(r"(?m)^title:[ \t]*(?P<title>[^\s|>].*)")  # in YAML
_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_FENCE = re.compile(
    r"(?P<indent> {0,3}|[ \t]*(?=:))(?P<fence>`{3,}(?![^`\n]*`)|~{3,}|:{3,})[ \t]*(?P<brace>\{?)(?P<info>[^\s`},]*)"
)
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
_PROOFS = "Proof|Beweis|Preuve|Démonstration"
_STATEMENT = re.compile(
    rf"(?P<bold>\*\*|__|[*_](?=(?:{_PROOFS})\b[^*_\n]{{0,200}}[.:][*_]))"
    rf"(?P<name>(?:{STATEMENTS})\b[^*_\n]{{0,200}}?)(?P<stop>[.:])?(?P=bold)"
    r"(?P<after>[.:])?(?:[ \n]\((?P<title>[^()\n]{1,200})\)[.:])?(?P<text>.*)",
    re.DOTALL,
)
_PROSE = re.compile(r"\s*[a-zà-öø-ÿ,;)]")  # after **Example** or **Theorem 2** in a sentence
_ENDED = re.compile(r"(?:[∎□◻■]|\\(?:black)?square|\\(?:Black)?[Bb]ox|\\qed\w*|\bQ\. ?E\. ?D\b|\bQED)\W*\Z")  # a proof
_STOPPED = re.compile(rf"[.!?]\W*\Z|{_ENDED.pattern}")
_CALLOUT = re.compile(  # > [!theorem] Euclid of Obsidian
    rf"\[!(?P<name>{STATEMENTS})\][+-]?[ \t]*(?P<title>[^\n]{{0,200}})(?P<text>.*)", re.DOTALL | re.IGNORECASE
)
_NAMED = re.compile(  # after :::, or ``` of MyST: {prf:theorem} Euclid; {.lemma name="Zorn"} or lemma of Pandoc
    rf"(?P<brace>\{{(?:\w+:|[^{{}}\n]{{0,200}}?\.)?)?(?P<name>{STATEMENTS})(?:-start)?(?![\w-])(?(brace)[^{{}}\n]{{0,200}}\}})",
    re.IGNORECASE,
)
_QUARTOS = {  # of {#thm-line} and @thm-line
    "thm": "theorem", "lem": "lemma", "cor": "corollary", "prp": "proposition", "cnj": "conjecture",
    "def": "definition", "exm": "example", "exr": "exercise", "sol": "solution", "rem": "remark",
}  # fmt: skip
_TARGETS = _QUARTOS | {"fig": "figure", "tbl": "table", "eq": "equation", "sec": "section", "lst": "listing"}
_REFERENCE = re.compile(  # code, a formula, or @thm-line, which prints "Theorem 1", and [-@thm-line], which prints 1
    rf"`[^`\n]*`|\$[^$\n]*\$|(?<![\w@`\\])(?P<open>\[-?)?@(?P<kind>{'|'.join(_TARGETS)})-[\w-]*\w(?(open)\](?!\())"
)
_QUARTO = re.compile(rf"\A\{{#({'|'.join(_QUARTOS)})-[^\s{{}}]*")  # its name is the first heading
_UNNAMED = re.compile(rf"\{{(?!{_NO_TEXT})[^{{}}\n]{{1,200}}\}}(?![ \t]*:)")
_MARK = re.compile("(?:# )?\x03")  # of an edge, also of one in code
_EDGE = re.compile("\x03(?:(?P<name>[^\x03]*)\x03(?P<title>.*))?(?P<text>)", re.DOTALL)  # begins or ends a block
_TARGET = re.compile(r"(?m)^(?:\([\w:. -]+\)=|\+{3}(?: \{.*\})?)[ \t]*(?:\n|\Z)")  # (label)= and +++ of MyST
_FIRST = re.compile(r"(?m)^(?:# |==+[ \t]*$)")  # heading of the first level
_OPTION = re.compile(r"[ \t]*:[\w-]+:")  # of a block of MyST
_LATEX = re.compile(  # \begin{theorem}[Euler]\label{euler}, and its end
    rf"(?i)[ \t]*\\(?:begin\{{(?P<name>{STATEMENTS})\*?\}}(?:\[(?P<title>[^\[\]\n]{{0,200}})\])?"
    rf"|end\{{(?P<end>{STATEMENTS})\*?\}})"
    r"(?:[ \t]*\\label\{[^{}\n]*\})?[ \t]*\Z"
)
_YAML = re.compile(  # options of a block of MyST between ---
    r"(?m)^( {0,3}[`~:]{3,}[ \t]*\{[^}\n]{1,200}\}[^\n]*)((?:\n---[ \t]*)(?:\n[^\n]*){0,20}?\n---[ \t]*)$"
)
_NAME = re.compile(r'\b(?:name|title)="([^"\n]*)"')
_TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,2000}>")
_UNSEEN = re.compile(r"(?is)<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<(script|style|pre|textarea|svg)\b.*?(?:</\1\s*>|\Z)")
_BLOCK_TAG = re.compile(r"(?i)(?=</?(?:br|dd|details|div|dt|h[1-6]|li|p|summary|t[dhr])\b)")
_ATTRIBUTES = r"\{(?:[#.=][a-zA-Z]|[\w-]+=)[^{}\n]*\}"  # of Pandoc: {.a}, {width="3cm"}, {=html}
_ROLES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\{[\w:+-]+\}`([^`<>]{0,500}?) ?<[^`<>\n]*>`"), r"\1"),  # {ref}`words <label>` of MyST
    (re.compile(r"\{cite[\w:]*\}`([^`\n]*)`"), r"[\1]"),
    (re.compile(r"\{eq\}`[^`\n]*`"), "(⋯)"),
    (re.compile(r"\{(?:[\w:]*ref[\w:]*|doc)\}`[^`\n]*`"), "⋯"),
    (re.compile(r"(?<![^\s(\[\"'*])\{[\w:+-]+\}(?=`)"), ""),
)
_INLINE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\\cite[a-z]*\{([^{}\n]*)\}"), r"[\1]"),
    (re.compile(r"\\eqref\{[^{}\n]*\}|\\@ref\(eq:[\w:.-]+\)"), "(⋯)"),  # bookdown has \@ref
    (re.compile(r"\\(?!h)[a-zA-Z]{0,6}ref\{[^{}\n]*\}|\\@ref\([\w:.-]+\)"), "⋯"),
    (re.compile(r"(?<![\w%])%%(?:\s[^%]{0,2000}\s|[^\s%](?:[^%]{0,2000}[^\s%\d])?)%%(?!\w)"), ""),  # %%comment%%
    (re.compile(r"\{\{[<%][^{}\n]*[>%]\}\}"), ""),  # {{< video >}}
    (  # [@euler, p. 3; @gauss]
        re.compile(
            r"\[(?:(?i:see|also|cf\.?|e\.g\.|i\.e\.|siehe|vgl\.|voir)[ ,]{1,2}){0,3}-?@\w[^\[\]]{0,1000}\](?![(\[])"
        ),
        lambda citation: re.sub(r"-?@(?=\w)", "", citation[0]),
    ),
    (re.compile(rf"{_MARK.pattern}|\A\[(?:![\w|-]+\][+-]?|[ xX]\] )"), ""),  # [!note], and [ ] of a task
    (re.compile(r"(?m)!\[\[[^\[\]\n]*\]\]|(?:^|[ \t])(?:\{[#.][^{}\n]*\}|\^[\w-]+)[ \t]*$"), ""),  # ids: {#a} and ^a
    (  # [[note#section|words]] and [[folder/note]] of Obsidian
        re.compile(
            r"(?<![a-zA-Z\d=])\[\[(?:[^\[\]|\n]*\|([^\[\]\n]*)|(?:[^\[\]|#\n]*/)?#?([^\[\]|#\n]*)[^\[\]|\n]*)\]\]"
        ),
        r"\1\2",
    ),
    (re.compile(r"(?<![\w=])==(?=\S)([^=\n]+)(?<=\S)==(?![\w=])"), r"\1"),
    (re.compile(r"!\[[^\[\]]{0,1000}\]\([^()]{0,2000}\)(?:\{[^{}\n]*\})?"), ""),
    (re.compile(r" ?\[\^[\w-]+\]:?"), ""),  # of a footnote
    (
        re.compile(
            rf"\[([^\[\]]{{0,1000}})\](?:\((?:[^()]|\([^()]{{0,500}}\)){{0,2000}}\)|\[[^\[\]]{{0,200}}\])(?:{_ATTRIBUTES})?"
        ),
        r"\1",
    ),
    (_TAG, ""),
    (re.compile(rf"(?:\[([^\[\]\n]{{0,1000}})\]|(?<=\x02)){_ATTRIBUTES}"), r"\1"),  # [words]{.a}
    (re.compile(r"(?<!\\)\*\*(?=\S)([^*]{1,1000})(?<=\S)\*\*"), r"\1"),
    (re.compile(r"(?<![\w*\\])\*{1,3}(?=\S)|(?<=[^\s\\])\*{1,3}(?![\w*])"), ""),
    (re.compile(r"(?<![\w\\])_{1,3}(?=\S)|(?<=[^\s\\])_{1,3}(?!\w)"), ""),
    (re.compile(r"\\([!-#%-'*-/:-@_`{-~\n])"), r"\1"),  # escaped signs, but not \$, \( and \[; ends of lines
    (re.compile(r"`+"), ""),
)


def read_markdown(file: str, text: str) -> list[Passage]:
    """Return the passages of a Markdown file; ``file`` is its path below the folder."""
    outline = Outline(file)
    if _FIRST.search(text) is None:  # a note of Obsidian has the title of its file
        outline.heading(0, outline.name)
    if file.lower().endswith(_OF_QUARTO):  # in other files, @sec-team is a name
        text = _REFERENCE.sub(
            lambda r: r[0] if not r["kind"] else "⋯" if r["open"] == "[-" else _TARGETS[r["kind"]].title(), text
        )
    read_into(outline, text, str)
    return outline.close()


def read_into(outline: Outline, text: str, place: Callable[[int], str]) -> None:
    """Add the passages of a text to an outline; ``place`` makes the name of a place from a line."""
    if header := (yaml := _HEADER.match(text)) and _TITLE.search(yaml["yaml"]):
        outline.heading(0, header["title"].strip().strip("\"'"))
    text, formulas, joined = _without_formulas(_without_code(re.sub("[\x02\x03]", " ", text)))
    level = depth = at = last = 0  # `last`: place of the token that ends a proof of several paragraphs
    until = 0  # depth of blocks and quotes where the statement ends; 0: after a paragraph, whose level is `at`
    begun: tuple[str, str] | None = None  # place and name of the statement
    body: list[str] = []

    def end() -> None:
        nonlocal begun
        if begun is not None:
            outline.statement(*begun, " ".join(body))
        begun = None
        body.clear()

    tokens = _BLOCKS.parse(text)
    for number, token in enumerate(tokens):
        if depth < until or (not until and number > last and not _goes_on(token, at, body, formulas)):
            end()
        depth += (token.type == "blockquote_open") - (token.type == "blockquote_close")
        if token.type == "heading_open":
            level = int(token.tag[1:])
        elif token.type in ("inline", "html_block") and token.map is not None:
            content = _content(token)
            where = place(token.map[0] + bisect.bisect_left(joined, token.map[0]) + 1)
            edge = _EDGE.match(content) if level else None
            if edge is not None:
                depth = max(depth - 1 if edge["title"] is None else depth + 1, 0)
                level, content = 0, edge["title"] or ""
            if level and (begun is None or not until or any(body)):
                end()
                outline.heading(level, _plain(content, formulas))
            elif level and begun is not None:
                begun = begun[0], _titled(begun[1], _plain(content, formulas))
            elif statement := edge if edge and edge["name"] else _in_bold(content) or _CALLOUT.match(content):
                end()
                parts = {name: _plain(part, formulas) for name, part in statement.groupdict("").items()}
                begun = where, _titled(parts.get("name", ""), parts.get("title", ""))
                until, at = 0 if statement.re is _STATEMENT else depth, token.level - (token.type == "inline")
                last = _end_of_proof(tokens, number, formulas) if not until and re.match(_PROOFS, parts["name"]) else 0
                body.append(parts["text"].strip())
            elif begun is not None:
                body.append(_plain(content, formulas).strip())
            else:
                outline.paragraph(where, _plain(content, formulas))
            level = 0
    end()


def _in_bold(content: str) -> re.Match[str] | None:
    """Return the statement that a paragraph begins in bold; **Example** usage is a part of a sentence."""
    found = _STATEMENT.match(content)
    in_prose = found and _PROSE.match(found["text"]) and not (found["stop"] or found["after"] or found["title"])
    return found and (re.match(_PROOFS, found["name"]) and found if in_prose else found)


def _end_of_proof(tokens: list[Token], start: int, formulas: list[str]) -> int:
    """Return the place of the paragraph that ends with the sign of the end of a proof in bold; 0 without one."""
    for number in range(start, len(tokens)):
        token = tokens[number]
        if token.type in ("heading_open", "blockquote_close") or (number > start and _in_bold(token.content)):
            break
        if token.type == "inline" and _ENDED.search(_plain(token.content, formulas)[-40:]):
            return number
    return 0


def _goes_on(token: Token, at: int, body: list[str], formulas: list[str]) -> bool:
    """Return whether a token does not end the statement in bold before it, whose paragraph has the level ``at``.

    A list, a formula and words in lower case belong to a statement whose text ends without a stop.
    """
    is_inline = token.type == "inline"
    if not any(body) or token.nesting < 0 or token.type == "paragraph_open" or token.level - is_inline > at:
        return True
    block = _plain(token.content, formulas) if is_inline else ""
    is_part = block[:1].islower() or block.startswith(("$$", "\\[", "\\begin")) or token.type.endswith("list_open")
    return is_part and _STOPPED.search(body[-1][-20:]) is None


def _content(token: Token) -> str:
    """Return the text of a token, without labels, and without the tags of a block of HTML."""
    content = _TARGET.sub("", token.content)
    if token.type == "html_block":
        content = _TAG.sub("", _BLOCK_TAG.sub(" ", _UNSEEN.sub("", content))).strip()
    return content


def _titled(name: str, title: str) -> str:
    """Return the name of a statement with its title, which may repeat it: ``> [!lemma] Lemma: Zorn``."""
    name, title = name.strip(".: "), title.strip(".: ")
    title = re.sub(rf"(?i)\A{re.escape(name)}\b[\s.:]*(?:\((.*)\)\Z)?", r"\1", title)
    return f"{name[:1].upper()}{name[1:]}" + f" ({title})" * bool(title)


def _without_code(text: str) -> str:
    """Return a text with empty lines in place of code and of its header.

    Blocks of ``math`` become formulas. The edges of other blocks of MyST and Pandoc become headings (:data:`_EDGE`).
    """
    text = _QUOTED_MATH.sub(r"\1$$\n\2\1$$", text)
    lines = _YAML.sub(lambda block: block[1] + "\n:-:" * block[2].count("\n"), text).split("\n")
    if lines[0].strip() == "---":  # a header in YAML
        end = next((number for number, line in enumerate(lines[1:200], 1) if line.strip() in ("---", "...")), -1)
        lines[: end + 1] = [""] * (end + 1)
    blocks = [("", "text")]  # fence and kind of the open blocks
    fence_line, options, typed = 0, -2, list(lines)
    begun = 0  # environments of LaTeX; one without an end begins no block
    ends = {m["end"].lower(): number for number, line in enumerate(lines) if (m := _LATEX.match(line)) and m["end"]}
    for number, line in enumerate(lines):
        edge = _FENCE.match(line)
        fence, kind = blocks[-1]
        if edge is not None and fence and edge["fence"].startswith(fence) and not edge["info"]:
            lines[number] = {"math": "$$", "text": f"{edge['indent']}# \x03"}.get(kind, "")
            blocks.pop()
        elif kind == "math" and lines[number - 1] == "$$" and _OPTION.match(line):
            lines[number - 1 : number + 1] = ["\x03" if number > 1 and lines[number - 2].strip() else "", "$$"]
        elif kind == "code" or (options == number - 1 and _OPTION.match(line)):
            lines[number], options = "", number
        elif kind == "text" and (latex := _LATEX.match(line)) is not None:
            if latex["name"] and number < ends.get(latex["name"].lower(), 0):
                lines[number], begun = f"# \x03{latex['name']}\x03{latex['title'] or ''}", begun + 1
            elif latex["end"] and begun:
                lines[number], begun = "# \x03", begun - 1
        elif kind == "text" and edge is not None:
            fence_line, info, colons = number, edge["info"], edge["fence"][0] == ":"
            kind = "text" if colons or (edge["brace"] and not re.match(_NO_TEXT, info)) else "code"
            kind = "math" if info in ("math", "latex", "tex") else kind
            first = line.strip().lstrip(edge["fence"][0]).strip()
            lines[number] = {"math": "$$", "text": f"{edge['indent']}# {_edge(first)}"}.get(kind, "")
            options = number
            if info or not colons:  # {solution-start} and {solution-end} are blocks without content
                kind = "gate" if kind == "text" and info.endswith(("-start", "-end")) else kind
                blocks.append((":::" if colons else edge["fence"], kind))
    if blocks[-1][1] == "code":  # without an end, it may be in a formula: four spaces are ~~~~
        lines[fence_line:] = typed[fence_line:]
    return "\n".join(lines)


def _edge(first: str) -> str:
    """Return the mark of the first line of a block, without its fence; of the last line, which is empty."""
    if not first or "-end}" in first:
        return "\x03"
    first = _QUARTO.sub(lambda label: f"{{.{_QUARTOS[label[1]]}", first)
    named = _NAMED.match(first)
    block = named or _UNNAMED.match(first)
    kind, title = named["name"] if named else "", first[block.end() :] if block else ""
    if (name := _NAME.search(first)) is not None:
        title = name[1]
    elif kind.lower() == "solution":  # the label of its exercise
        title = ""
    return f"\x03{kind}\x03{title}"


def _ends_quote(state: StateBlock, _start: int, _end: int, silent: bool) -> bool:
    """Return whether a line without ``>`` ends its quote: each quote above could read all such lines."""
    state.env["lazy"] = state.env.get("lazy", 0) + silent
    return silent and state.env["lazy"] > MAX_LAZY


_BLOCKS.block.ruler.push("lazy", _ends_quote, {"alt": ["blockquote"]})


def _begins_statement(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """Return whether a line in a paragraph begins a statement, such as ``**Proof.**``, and continues no sentence."""
    if not silent or (found := _STATEMENT.match(state.src, *_line(state, start))) is None:
        return False
    before = state.src[slice(*_line(state, start - 1))].rstrip()
    is_new = before.endswith((":", "\x02")) or _STOPPED.search(before[-20:]) is not None
    return bool(found["stop"] or found["after"]) or (is_new and _PROSE.match(found["text"]) is None)


def _line(state: StateBlock, number: int) -> tuple[int, int]:
    return state.bMarks[number] + state.tShift[number], state.eMarks[number]


_BLOCKS.block.ruler.push("statement", _begins_statement, {"alt": ["paragraph"]})


def _without_formulas(text: str) -> tuple[str, list[str], list[int]]:
    """Return a text with a mark for each formula, the formulas, and the lines that they were joined to.

    A formula of several lines becomes one mark, so that the sentence around it is one paragraph. For each lost line,
    the list has the number, from 0, of the line with the mark.
    """
    text = re.sub(r"\$`([^`$\n]{1,2000})`\$|\{math\}`([^`$\n]{1,2000})`", r"$\1\2$", text)  # GitHub, MyST
    text = re.sub(r"(?m)\$\$[ \t]*\([\w:.-]+\)[ \t]*$", "$$", text)  # the label of an equation of MyST
    text = _CODE.sub(lambda code: code[0] if _QUOTE.match(code[0]) else _DOLLAR.sub(r"\1\\$", code[0]), text)
    text = re.sub(r"\\\\([()])", r"\\\1", text)  # MathJax: the backslash of \( is escaped
    text = re.sub(r"(?m)^([ \t>]*)\\\\([\[\]])[ \t]*$", r"\1\\\2", text)
    text = re.sub(r"\\\\\[((?:[^\n\\]|\\[^\n\\])+)\\\\\]", r"\\[\1\\]", text)
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


def _plain(text: str, formulas: list[str]) -> str:
    """Return the text of inline markup, with its formulas; code becomes one of them, so that it keeps its signs."""

    def shown(mark: re.Match[str]) -> str:
        return formulas[int(mark[1])] if int(mark[1]) < len(formulas) else ""

    def marked(code: re.Match[str]) -> str:
        if _QUOTE.match(code[0]):
            return code[0]
        formulas.append(_FORMULA.sub(shown, code[0]).strip("`"))
        return f"\x02{len(formulas) - 1}\x02"

    for pattern, instead in _ROLES:
        text = pattern.sub(instead, text)
    text = _CODE.sub(marked, text)
    for pattern, shorter in _INLINE:
        text = pattern.sub(shorter, text)
    return _MARK.sub("", _FORMULA.sub(shown, html.unescape(text)))
