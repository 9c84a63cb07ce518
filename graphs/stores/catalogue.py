r"""catalogue.db: all posts of a collection in its order, without their texts, made while they are read once.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "catalogue.db"
>>> posts = [Post("7", "question", title="Is $x$ odd?", accepted_answer_id="8"), Post("8", "answer", parent_id="7")]
>>> with recording(path) as record:
...     for post in posts:
...         record(post)
>>> with Catalogue(path) as catalogue:
...     print(*catalogue.posts(), sep="\n")
Post(post_id='7', kind='question', title='', body='', markup='html', tags=(), parent_id=None, accepted_answer_id='8', score=None, formula_prefix='')
Post(post_id='8', kind='answer', title='', body='', markup='html', tags=(), parent_id='7', accepted_answer_id=None, score=None, formula_prefix='')

Training pairs, searched posts and the control of leaks need no texts; of a text its hashes tell whether a topic asks
the same. With the texts in posts.db (:mod:`graphs.stores.posts`) the posts are whole again: :meth:`Catalogue.whole`.

The file has one table, a row for each post or :class:`Failure` of the collection. Where posts share an id, posts.db has
the text of the first, and the rows of the others have their own.
"""  # noqa: E501 - a post as it is printed

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from graphs import database
from graphs.corpus.leaks import DIGEST_BYTES, digests
from graphs.corpus.post import Post
from graphs.errors import Failure
from graphs.stores.posts import IDS_PER_QUERY, PostTexts

PURPOSE = "the catalogue of a collection's posts"
_FORM = 1  # of the table; a file of another form is made anew
_SCHEMA = """
CREATE TABLE IF NOT EXISTS post(
    position INTEGER PRIMARY KEY, post_id TEXT, kind TEXT, parent_id TEXT, accepted_answer_id TEXT, score TEXT,
    tags TEXT, digests BLOB, own_text TEXT, failure TEXT
);
CREATE TABLE IF NOT EXISTS known(post_id TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_COLUMNS = "post_id, kind, parent_id, accepted_answer_id, score, tags, digests, own_text, failure"
_INSERT = f"INSERT INTO post({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@contextmanager
def recording(
    path: Path, *, with_digests: bool = True, version: str = ""
) -> Iterator[Callable[[Post | Failure], None]]:
    """Yield a function that is called with every post of a collection, in order.

    The file appears, or is replaced, after the block: not if the block raises, nor if the process is killed. Readers of
    an earlier file keep it.

    Args:
        with_digests: record hashes of the texts of questions.
        version: version of the code that reads posts and hashes their texts.
    """
    new = path.with_name(f"{path.name}.new")
    for leftover in (new, new.with_name(f"{new.name}-journal")):
        leftover.unlink(missing_ok=True)
    with database.writer(new, _SCHEMA, purpose=PURPOSE) as connection:

        def record(post: Post | Failure) -> None:
            if isinstance(post, Failure):
                values: tuple[Any, ...] = (*(None,) * 8, _json([post.post_id, post.stage, post.kind, post.message]))
                connection.execute(_INSERT, values)
                return
            first = connection.execute("INSERT OR IGNORE INTO known VALUES (?)", (post.post_id,)).rowcount == 1
            connection.execute(
                _INSERT,
                (
                    post.post_id,
                    post.kind,
                    post.parent_id,
                    post.accepted_answer_id,
                    None if post.score is None else str(post.score),  # of any size
                    _json(post.tags),
                    b"".join(digests(post)) if with_digests else b"",
                    None if first else _json([post.title, post.body, post.markup, post.formula_prefix]),
                    None,
                ),
            )

        yield record
        database.write_meta(connection, form=_FORM, version=version)
        connection.commit()
    new.replace(path)


def is_whole(path: Path, *, version: str = "") -> bool:
    """Return whether ``path`` has all posts of a collection, as this version of the code records them."""
    if not path.exists():
        return False
    with closing(database.connect_read_only(path, purpose=PURPOSE)) as connection:
        meta = database.read_meta(connection)
    return (meta.get("form"), meta.get("version")) == (_FORM, version)


class Catalogue(database.OpenFile):
    """Reads catalogue.db; nothing is held in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, purpose=PURPOSE)

    def posts(self) -> Iterator[Post | Failure]:
        """Yield all posts without texts, and the failures of reading, in the order of the collection."""
        return (_failure(row) if row[-1] is not None else _outline(row) for row in self._rows())

    def with_digests(self) -> Iterator[tuple[Post, list[bytes]]]:
        """Yield all posts without texts, each with the hashes of its texts (:func:`graphs.corpus.leaks.digests`)."""
        for row in self._rows():
            if row[-1] is None:
                both = row[6]
                yield _outline(row), [both[i : i + DIGEST_BYTES] for i in range(0, len(both), DIGEST_BYTES)]

    def known(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return those of the ids that posts have."""
        return frozenset(post_id for (post_id,) in self._all("SELECT post_id FROM known") if post_id in wanted)

    def count(self) -> int:
        """Return the number of posts; of those that share an id the first counts."""
        return int(self._connection.execute("SELECT count(*) FROM known").fetchone()[0])

    def whole(self, texts: PostTexts, wanted: frozenset[str] | None = None) -> Iterator[Post | Failure]:
        """Yield posts with their texts, and all failures of reading, in the order of the collection.

        Args:
            texts: posts.db of the same collection.
            wanted: ids of the posts; None: all.
        """
        rows = (row for row in self._rows() if wanted is None or row[-1] is not None or row[0] in wanted)
        while batch := list(islice(rows, IDS_PER_QUERY)):
            found = texts.posts([row[0] for row in batch if row[-1] is None and row[-2] is None])
            for row in batch:
                if row[-1] is not None:
                    yield _failure(row)
                elif row[-2] is not None:
                    title, body, markup, prefix = json.loads(row[-2])
                    yield replace(_outline(row), title=title, body=body, markup=markup, formula_prefix=prefix)
                elif (text := found.get(row[0])) is not None:
                    yield replace(
                        _outline(row),
                        title=text.title,
                        body=text.body,
                        markup=text.markup,
                        formula_prefix=text.formula_prefix,
                    )

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        return self._all(f"SELECT {_COLUMNS} FROM post ORDER BY position")

    def _all(self, query: str) -> Iterator[tuple[Any, ...]]:
        yield from self._connection.execute(query)


def _outline(row: tuple[Any, ...]) -> Post:
    score = None if row[4] is None else int(row[4])
    return Post(
        row[0], row[1], tags=tuple(json.loads(row[5])), parent_id=row[2], accepted_answer_id=row[3], score=score
    )


def _failure(row: tuple[Any, ...]) -> Failure:
    return Failure(*json.loads(row[-1]))


def _json(value: object) -> str:
    """ASCII, so that halves of surrogate pairs, which a message may quote, are kept."""
    return json.dumps(value)
