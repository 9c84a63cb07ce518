"""Facts of posts kept for search: votes, tags, lengths and links, which learned rankings read of their candidates.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "facts.db"
>>> question, answer = Post("7", "question", tags=("sets",)), Post("8", "answer", parent_id="7", score=3)
>>> keep_facts(path, Facts({"7": question, "8": answer}, lengths={"8": 40}, links={"7": 2}))
>>> with KeptFacts(path) as kept:
...     facts = kept.of(["8"])
>>> facts.posts["8"].score, facts.posts["7"].tags, facts.lengths, facts.links
(3, ('sets',), {'8': 40}, {'7': 2})
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphs import database
from graphs.corpus.post import Post
from mathamr.ranking.features import Facts

_PURPOSE = "facts of posts"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS fact(
    post_id TEXT PRIMARY KEY, kind TEXT NOT NULL, parent_id TEXT, accepted_answer_id TEXT, score INTEGER,
    tags TEXT NOT NULL, length INTEGER, links INTEGER
) WITHOUT ROWID;
"""


def keep_facts(path: Path, facts: Facts) -> None:
    """Write the facts of all answers and their questions to a new file; ``topics`` is left out."""
    with database.writer(path, _SCHEMA, purpose=_PURPOSE) as connection:
        connection.executemany(
            "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    post.post_id,
                    post.kind,
                    post.parent_id,
                    post.accepted_answer_id,
                    post.score,
                    json.dumps(post.tags),
                    facts.lengths.get(post.post_id),
                    facts.links.get(post.post_id),
                )
                for post in facts.posts.values()
            ),
        )
        connection.commit()


class KeptFacts(database.OpenFile):
    """Reads facts.db."""

    purpose = _PURPOSE

    def of(self, answers: Sequence[str], topics: Mapping[str, frozenset[str]] | None = None) -> Facts:
        """Return the facts of answers and their questions; ``topics`` are questions that are the topic, by its id."""
        rows = self._rows(answers)
        known = {row[0] for row in rows}
        rows += self._rows({row[2] for row in rows if row[2] is not None} - known)
        posts = {row[0]: _post(row) for row in rows}
        lengths = {row[0]: row[6] for row in rows if row[6] is not None}
        links = {row[0]: row[7] for row in rows if row[7] is not None}
        return Facts(posts, lengths, links, topics or {})

    def _rows(self, post_ids: Iterable[str]) -> list[tuple[Any, ...]]:
        return list(database.rows_of_ids(self._connection, "SELECT * FROM fact WHERE post_id IN", post_ids))


def _post(row: tuple[Any, ...]) -> Post:
    post_id, kind, parent_id, accepted, score, tags = row[:6]
    return Post(
        post_id, kind, tags=tuple(json.loads(tags)), parent_id=parent_id, accepted_answer_id=accepted, score=score
    )
