"""Blocks of a report, independent of its format: headings, paragraphs, tables, figures and examples.

>>> report = [Heading("Rings"), Text("Two seeds."), Table([["Condition", "nDCG'"], ["none", "0.5"]], caption="Means")]
>>> print(markdown(report))
# Rings
<BLANKLINE>
Two seeds.
<BLANKLINE>
*Means*
<BLANKLINE>
| Condition | nDCG' |
|---|---|
| none | 0.5 |
<BLANKLINE>

``experiments/report/page.py`` writes the same as HTML. Plots and the text of posts are only in the page; Markdown
describes plots in words, and names the posts found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Heading:
    """Title: level 1 for the experiment, 2 and 3 for its parts."""

    text: str
    level: int = 1


@dataclass(frozen=True)
class Text:
    """Paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Code:
    """Command."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of plain text, the header first; ``quiet`` columns (numbers of the thesis) are set back."""

    rows: Sequence[Sequence[str]]
    caption: str = ""
    note: str = ""
    quiet: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """Plot: a description in words, its caption, and a function that draws it.

    ``draw`` makes the ``<svg>`` element; its ids start with the given name, which makes them unique in a page.
    """

    draw: Callable[[str], str]
    alt: str
    caption: str


@dataclass(frozen=True)
class Map:
    """Posts as points in planes, which readers can move and enlarge.

    Attributes:
        alt: description in words, instead of the picture.
        caption: text below.
        groups: names of groups of posts, and the numbers of their posts.
        data: ids, titles and groups of posts, and views with their places, for the page's program
            (``experiments/report/figures/post_map.js``).
    """

    alt: str
    caption: str
    groups: Sequence[tuple[str, int]]
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Legend:
    """Short names of virtual nodes and their meaning: ``(name, kind, text)``; a formula's text is LaTeX."""

    summary: str
    entries: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Found:
    """A result of a search; ``grade``: None without a judgment."""

    rank: int
    post: str
    score: float
    grade: int | None
    title: str
    body: str


@dataclass(frozen=True)
class Examples:
    """Topic, and the first results of each condition; title and body are text with formulas between dollar signs."""

    topic: str
    title: str
    body: str
    results: Sequence[tuple[str, Sequence[Found]]]


@dataclass(frozen=True)
class Folded:
    """Blocks that a page shows on demand."""

    summary: str
    blocks: Sequence[Block] = field(default_factory=tuple)


Block = Heading | Text | Code | Table | Figure | Map | Legend | Examples | Folded


def markdown(blocks: Sequence[Block]) -> str:
    """Return the report as Markdown, without figures and posts."""
    return "\n\n".join(part for block in blocks for part in _lines(block)) + "\n"


def _lines(block: Block) -> list[str]:
    match block:
        case Heading():
            return [f"{'#' * block.level} {_plain(block.text)}"]
        case Text():
            return [_plain(block.text)]
        case Code():
            return [_code(block.text)]
        case Table():
            caption = [f"*{_plain(block.caption)}*"] if block.caption else []
            note = [_plain(block.note)] if block.note else []
            return [*caption, as_markdown(block.rows), *note]
        case Folded():
            return [part for inner in block.blocks for part in _lines(inner)]
        case Figure() | Map():
            return [f"Plot in report.html: {_plain(block.alt)}"]
        case Examples():
            return [as_markdown(_found(block))]
        case Legend():
            return []


def _code(text: str) -> str:
    r"""Mark text as code, between more backticks than it has in a row, so that all of it is code.

    >>> print(_code("run <b>"), _code("run `<b>`"), _code("a``\nb```"), sep="\n")
    `run <b>`
    `` run `<b>` ``
    ````
    a``
    b```
    ````
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    if len(text.splitlines()) > 1:
        fence = "`" * max(3, longest + 1)
        return f"{fence}\n{text}\n{fence}"
    ticks, space = "`" * (longest + 1), " " * ("`" in text)
    return f"{ticks}{space}{text}{space}{ticks}"


def _found(block: Examples) -> list[list[str]]:
    """Return a line for each condition, with post and relevance of each result."""
    ranks = range(1, 1 + max((len(found) for _, found in block.results), default=0))
    table = [["Condition", *(f"Rank {rank}" for rank in ranks)]]
    for condition, found in block.results:
        cells = [f"{one.post} (relevance {'–' if one.grade is None else one.grade})" for one in found]
        table.append([condition, *cells, *["–"] * (len(ranks) - len(cells))])
    return table


def _plain(text: str) -> str:
    """Escape text for Markdown: no HTML, no emphasis, no links or images.

    >>> print(_plain("<b> a * c ![x](y)"))
    &lt;b> a \\* c ![x]\\(y)
    """
    text = re.sub(r"([\\*`])", r"\\\1", " ".join(text.split())).replace("](", r"]\(")
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown.

    >>> print(as_markdown([["Condition", "nDCG'"], ["none|", "0.5"]]))
    | Condition | nDCG' |
    |---|---|
    | none\\| | 0.5 |
    """
    lines = [f"| {' | '.join(_cell(cell) for cell in line)} |" for line in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def _cell(text: str) -> str:
    """Escape a cell, except the star behind a significant number.

    >>> print(_cell("a * b | `c`"), _cell("0.503 ± 0.008*"))
    a \\* b \\| \\`c\\` 0.503 ± 0.008*
    """
    return re.sub(r"(?<=\d)\\\*$", "*", _plain(text)).replace("|", r"\|")


def as_text(table: Sequence[Sequence[str]]) -> str:
    """Return a table aligned for the terminal."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table)
