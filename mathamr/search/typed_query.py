"""A query as it was typed, before any model reads it.

>>> typed_post("Is $x^2+1$ prime?").body
'Is $x^2+1$ prime?'
>>> typed_post("证明$x^2+1$是").body  # so that the formula is no prose
'证明 $x^2+1$ 是'
>>> typed_post(" ")
Traceback (most recent call last):
    ...
graphs.errors.RetrievalError: the query is empty; type words, or a formula between dollar signs
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.text_formulas import MAX_INLINE, find
from graphs.errors import RetrievalError
from mathamr.folder.passages import spaced
from mathamr.search.words import QueryWords

MAX_CHARACTERS = 10_000  # the longest questions of ARQMath; 2,000 formulas of one letter take a few seconds
TYPED = "query"  # post id of a typed query


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """A query as text, for a system that reads posts itself; ``words`` counts its formulas."""

    text: PlaceholderText
    words: QueryWords


def typed_post(query: str) -> Post:
    """Return a query as a post, read as documents are.

    Raises:
        RetrievalError: an empty query, or one that is too long, or has too long a formula.
    """
    if len(query) > MAX_CHARACTERS:
        raise RetrievalError(
            f"the query has {len(query):,} characters, but at most {MAX_CHARACTERS:,} are read; shorten it, or encode "
            "it as a post of a collection"
        )
    if not query.strip():
        raise RetrievalError("the query is empty; type words, or a formula between dollar signs")
    query = spaced(query)
    found = find(query)
    dollars = [place.start() for place in re.finditer(r"(?<!\\)\$", query)]
    unread = [place for place in dollars if not any(start <= place < end for start, end, _ in found)]
    for start, end in pairwise(unread):
        if end - start > MAX_INLINE and not any(start < other < end for other, *_ in found):
            raise RetrievalError(
                f"a formula of the query has {end - start - 1:,} characters, but at most {MAX_INLINE:,} are read; "
                "shorten it"
            )
    return Post(TYPED, "topic", body=query, markup="text")
