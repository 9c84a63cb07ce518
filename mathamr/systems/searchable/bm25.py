"""BM25 kept for search: tokens of a query against the stored scores of posts.

record = keep_bm25("text", None, index, 1000, Path("index/words"))
open_bm25(record, Path("index/words")).rank(topic)       # [("540", 21.7), ...]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.corpus.post import Topic
from mathamr.retrieval.bm25 import BM25Index
from mathamr.retrieval.index import Ranking
from mathamr.retrieval.lexical import Tokens
from mathamr.systems.searchable.formulas import keep_formulas
from mathamr.systems.searchable.kept import entry

_FORMULAS = "formulas.db"


@dataclass(frozen=True)
class BM25Search:
    """BM25 over posts.

    Attributes:
        tokens: reader of the tokens of a post.
        index: scores of the posts.
        results: number of results of a query.
    """

    tokens: Tokens
    index: BM25Index
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a token with the query."""
        (ranking,) = self.index.search([self.tokens.of_post(topic.post)], self.results)
        return ranking

    def close(self) -> None:
        """Do nothing: no file is open."""


def keep_bm25(
    by: str,
    formulas_db: Path | None,
    index: BM25Index,
    results: int,
    folder: Path,
    *,
    stem: str = "none",
    topics: Sequence[Topic] = (),
) -> dict[str, Any]:
    """Write an index to ``folder``; return the record that :func:`open_bm25` reads.

    Args:
        by: tokens that are compared, text or formulas.
        formulas_db: published trees of the formulas of topics; None: trees come from LaTeX.
        index: scores of the posts.
        results: number of results of a query.
        folder: new folder.
        stem: stemmer of the words.
        topics: topics whose published trees are kept.
    """
    index.write(folder)
    published = by == "formulas" and formulas_db is not None
    if published and formulas_db is not None:
        keep_formulas(formulas_db, topics, folder / _FORMULAS)
    return {"by": by, "published": published, "results": results, "stem": stem}


def open_bm25(record: Mapping[str, Any], folder: Path) -> BM25Search:
    """Open what :func:`keep_bm25` has written.

    Raises:
        StoreError: a file is missing or damaged.
    """
    formulas_db = folder / _FORMULAS if entry(record, "published") else None
    tokens = Tokens(entry(record, "by"), formulas_db, stem=record.get("stem", "none"))
    return BM25Search(tokens, BM25Index.open(folder), entry(record, "results"))
