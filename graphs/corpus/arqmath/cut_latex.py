"""LaTeX of topic formulas that the official XML cuts, restored from the latex TSV.

>>> post = Post("B.1", "topic", "", '<span class="math-container" id="q_7">$1</span>')
>>> with_whole_latex(post, {"q_7": "1<a<m"}).body
'<span class="math-container" id="q_7">$1&lt;a&lt;m$</span>'

In four formulas of 2022, one of them the query of B.394, what follows a ``<`` is missing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import replace

from graphs.corpus.arqmath.lost_ids import comparable, fields_of
from graphs.corpus.arqmath.tsv_rows import columns_of, formula_column, quoted_rows
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post
from graphs.errors import CorpusError

_NAMED_SPAN = re.compile(r'(<span class="math-container" id="([^"]*)">)(.*?)</span>', re.DOTALL)


def published_latex(given: PackedFile) -> dict[str, str]:
    """Return the LaTeX of each formula of a topics' latex TSV, by id."""
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
