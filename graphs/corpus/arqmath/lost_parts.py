"""Parts of posts and topics that got lost, although a formula TSV has them: ids of formulas, and the ends of some.

>>> post = Post("2", "answer", "", '<span class="math-container">$y &lt; 1$</span>')
>>> with_ids(post, {"y<1": ["11"]}).body
'<span class="math-container" id="11">$y &lt; 1$</span>'

A span without an id gets that of the post's first listed formula with the same LaTeX that no span carries yet. Formulas
of comments, and those that are listed as missing in the post, give none.

>>> topic = Post("B.1", "topic", "", '<span class="math-container" id="q_7">$1</span>')
>>> with_whole_latex(topic, {"q_7": "1<a<m"}).body
'<span class="math-container" id="q_7">$1&lt;a&lt;m$</span>'

The official XML cuts four topic formulas of 2022, one of them the query of B.394, before a ``<``.
"""

from __future__ import annotations

import csv
import html
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from graphs.corpus.arqmath.tsv_rows import COMMENT, MISSING, columns_of, formula_column, quoted_rows
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post
from graphs.corpus.text.markup import strip_delimiters
from graphs.errors import CorpusError

_NAMELESS = '<span class="math-container">'
_NAMELESS_SPAN = re.compile(r'<span class="math-container">(.*?)</span>', re.DOTALL)
_SPAN_ID = re.compile(r'<span class="math-container" id="([^"]*)">')

Listed = dict[str, dict[str, list[str]]]
"""post or topic id -> LaTeX -> ids of its formulas with this LaTeX"""


def named_formulas(markup: str) -> set[str] | None:
    """Return the ids that spans of a post carry; ``None`` where no span lacks one."""
    return set(_SPAN_ID.findall(markup)) if _NAMELESS in markup else None


def with_ids(post: Post, listed: dict[str, list[str]]) -> Post:
    """``post`` with ids in its nameless formula spans, as far as ``listed`` has their LaTeX."""
    left = {latex: list(ids) for latex, ids in listed.items()}

    def named(match: re.Match[str]) -> str:
        ids = left.get(comparable(match[1]))
        return f'<span class="math-container" id="{ids.pop(0)}">{match[1]}</span>' if ids else match[0]

    title = _NAMELESS_SPAN.sub(named, post.title)
    return replace(post, title=title, body=_NAMELESS_SPAN.sub(named, post.body))


def listed_formulas(files: Sequence[PackedFile], owner: str, named: Mapping[str, set[str]]) -> Listed:
    """Return the formulas that latex TSVs list for the posts (or topics) in ``named``, without the ids named there."""
    listed: Listed = defaultdict(lambda: defaultdict(list))
    for given in files:
        with given.open() as file:
            header = columns_of(file.readline())
            if "id" not in header or owner not in header:
                raise CorpusError(f"has no columns id and {owner}; is this a formula TSV?", path=str(given), line=1)
            at_id, at_owner, at_formula = header.index("id"), header.index(owner), formula_column(header)
            for row, closed in quoted_rows(file):
                before = row.split(b"\t", at_owner + 1)  # most rows are of other posts, and need no reader
                key = before[at_owner].decode(errors="replace") if closed and len(before) > at_owner else ""
                key = key if owner == "post_id" else number_of(key)
                columns = fields_of(row) if key in named else []
                if len(columns) != len(header) or columns[at_id] in named[key]:
                    continue
                described = dict(zip(header, columns, strict=True))
                if described.get("type") != COMMENT and MISSING not in described.get("issue", ""):
                    listed[key][comparable(columns[at_formula])].append(columns[at_id])
    return listed


def fields_of(row: bytes) -> list[str]:
    """Return the columns of a row, however long they are; none if it is broken."""
    csv.field_size_limit(max(csv.field_size_limit(), len(row)))
    try:
        return next(csv.reader([row.decode(errors="replace")], delimiter="\t"), [])
    except csv.Error:
        return []


def comparable(latex: str) -> str:
    """LaTeX as posts and TSVs agree on it: references resolved, dollars and white space gone."""

    return re.sub(r"[\s$]+", "", strip_delimiters(html.unescape(html.unescape(latex))))


def number_of(topic_id: str) -> str:
    """Return the number of a topic: ``B.201`` and ``A.201`` ask about the same post."""
    return topic_id.rpartition(".")[2]


_NAMED_SPAN = re.compile(r'(<span class="math-container" id="([^"]*)">)(.*?)</span>', re.DOTALL)


def formulas_of(given: PackedFile) -> dict[str, str]:
    """Return each formula of a topics' TSV, by id."""
    found: dict[str, str] = {}
    with given.open() as file:
        header = columns_of(file.readline())
        if "id" not in header:
            raise CorpusError("has no column id; is this a formula TSV?", path=str(given), line=1)
        at_id, at_formula = header.index("id"), formula_column(header)
        for row, _ in quoted_rows(file):
            columns = fields_of(row)
            if len(columns) == len(header):
                found[columns[at_id]] = columns[at_formula]
    return found


def with_whole_latex(post: Post, published: Mapping[str, str]) -> Post:
    """``post`` with the published LaTeX in each span that has only its beginning."""

    def whole(match: re.Match[str]) -> str:
        opening, formula_id, given = match.groups()
        latex = html.unescape(published.get(formula_id, ""))
        begins = comparable(given)
        if comparable(latex) == begins or not comparable(latex).startswith(begins):
            return match[0]
        return f"{opening}${html.escape(latex)}$</span>"

    return replace(post, title=_NAMED_SPAN.sub(whole, post.title), body=_NAMED_SPAN.sub(whole, post.body))
