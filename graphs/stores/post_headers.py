r"""post_headers.db: headers of all posts of a collection, in its order, made while they are read once.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "post_headers.db"
>>> posts = [Post("7", "question", title="Is $x$ odd?", accepted_answer_id="8"), Post("8", "answer", parent_id="7")]
>>> with recording(path) as record:
...     for post in posts:
...         record(post)
>>> with PostHeaders(path) as headers:
...     print(*headers.posts(), sep="\n")
Post(post_id='7', kind='question', title='', body='', markup='html', tags=(), parent_id=None, accepted_answer_id='8', score=None, formula_prefix='')
Post(post_id='8', kind='answer', title='', body='', markup='html', tags=(), parent_id='7', accepted_answer_id=None, score=None, formula_prefix='')

A header is a post without its texts. Training pairs, searched posts and the control of leaks need no texts; of a text
its marks tell whether a topic asks the same. With the texts in posts.db (:mod:`graphs.stores.posts`) the posts are
whole again: :meth:`PostHeaders.whole`.

The file has one table, a row for each post or :class:`Failure` of the collection. No two have the same id
(:func:`graphs.corpus.record_ids.identified`).
"""  # noqa: E501 - a post as it is printed

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, fields, replace
from pathlib import Path
from typing import Any

from graphs import database
from graphs.corpus.leaks import DIGEST_BYTES, QuestionMarks, marks
from graphs.corpus.post import Post, PostKind
from graphs.errors import Failure
from graphs.processes import batched
from graphs.row_digests import check_row, damaged, row_digest, texts_of_row
from graphs.stores.posts import PostTexts

PURPOSE = "the headers of a collection's posts"
_FORM = 4  # of the table; a file of another form is made anew
_SCHEMA = """
CREATE TABLE IF NOT EXISTS post(
    position INTEGER PRIMARY KEY, post_id TEXT, kind TEXT, parent_id TEXT, accepted_answer_id TEXT, score TEXT,
    tags TEXT, digests BLOB, signature BLOB, failure TEXT, digest INTEGER
);
CREATE TABLE IF NOT EXISTS known(post_id TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_COLUMNS = "post_id, kind, parent_id, accepted_answer_id, score, tags, digests, signature, failure"
_INSERT = f"INSERT INTO post({_COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@contextmanager
def recording(path: Path, *, answers: bool = False, version: str = "") -> Iterator[Callable[[Post | Failure], None]]:
    """Yield a function that is called with every post of a collection, in order; no two may have the same id.

    The file appears, or is replaced, after the block: not if the block raises, nor if the process is killed. Readers of
    an earlier file keep it.

    Args:
        answers: record marks of all texts, not of those of questions alone.
        version: version of the code that reads posts and hashes their texts.
    """
    new = path.with_name(f"{path.name}.new")
    for leftover in (new, new.with_name(f"{new.name}-journal")):
        leftover.unlink(missing_ok=True)
    broken = 0
    with database.writer(new, _SCHEMA, purpose=PURPOSE) as connection:

        def record(post: Post | Failure) -> None:
            nonlocal broken
            if isinstance(post, Failure):
                broken += 1
                values: tuple[Any, ...] = (*(None,) * 8, json.dumps(astuple(post)))
            else:
                connection.execute("INSERT INTO known VALUES (?)", (post.post_id,))
                known = marks(post, answers=answers)
                values = (
                    post.post_id,
                    post.kind,
                    post.parent_id,
                    post.accepted_answer_id,
                    None if post.score is None else str(post.score),  # of any size
                    json.dumps(post.tags),
                    b"".join(known.digests),
                    known.signature,
                    None,
                )
            connection.execute(_INSERT, (*values, row_digest(*values)))

        yield record
        database.write_meta(connection, form=_FORM, version=version, broken=broken)
        connection.commit()
    new.replace(path)


def is_whole(path: Path, *, version: str = "") -> bool:
    """Return whether ``path`` has all posts of a collection, as this version of the code records them."""
    if not path.exists():
        return False
    with closing(database.connect_read_only(path, purpose=PURPOSE)) as connection:
        meta = database.read_meta(connection)
    return (meta.get("form"), meta.get("version")) == (_FORM, version)


class PostHeaders(database.OpenFile):
    """Reads post_headers.db; nothing is held in memory."""

    purpose = PURPOSE

    def posts(self) -> Iterator[Post | Failure]:
        """Yield all posts without texts, and the failures of reading, in the order of the collection."""
        return (self._failure(row) if row[-1] is not None else self._header(row) for row in self._rows())

    def broken(self) -> int:
        """Return the number of failures of reading."""
        return int(str(database.read_meta(self._connection)["broken"]))

    def failures(self) -> Iterator[Failure]:
        """Yield the failures of reading, in the order of the collection."""
        return (self._failure(row) for row in self._rows(" WHERE failure IS NOT NULL"))

    def with_marks(self) -> Iterator[tuple[Post, QuestionMarks]]:
        """Yield all posts without texts, each with the marks of its text (:func:`graphs.corpus.leaks.marks`)."""
        for row in self._rows():
            if row[-1] is None:
                joined = row[6]
                digests = tuple(joined[i : i + DIGEST_BYTES] for i in range(0, len(joined), DIGEST_BYTES))
                yield self._header(row), QuestionMarks(digests, row[7])

    def known(self, wanted: frozenset[str], kind: PostKind | None = None) -> frozenset[str]:
        """Return those of the ids that posts have; with ``kind``, posts of this kind."""
        query = "SELECT post_id FROM known" if kind is None else "SELECT post_id FROM post WHERE kind = ?"
        rows = self._connection.execute(query, () if kind is None else (kind,))
        return frozenset(post_id for (post_id,) in rows if post_id in wanted)

    def count(self) -> int:
        """Return the number of posts."""
        return int(self._connection.execute("SELECT count(*) FROM known").fetchone()[0])

    def whole(self, texts: PostTexts, wanted: frozenset[str] | None = None) -> Iterator[Post | Failure]:
        """Yield posts with their texts, and all failures of reading, in the order of the collection.

        Args:
            texts: posts.db of the same collection.
            wanted: ids of the posts; None: all.
        """
        rows = (row for row in self._rows() if wanted is None or row[-1] is not None or row[0] in wanted)
        for batch in batched(rows, database.IDS_PER_QUERY):
            with_texts = texts.posts([row[0] for row in batch if row[-1] is None])
            for row in batch:
                if row[-1] is not None:
                    yield self._failure(row)
                elif (text := with_texts.get(row[0])) is not None:
                    yield replace(
                        self._header(row),
                        title=text.title,
                        body=text.body,
                        markup=text.markup,
                        formula_prefix=text.formula_prefix,
                    )

    def _rows(self, where: str = "") -> Iterator[tuple[Any, ...]]:
        query = f"SELECT {_COLUMNS}, digest FROM post{where} ORDER BY position"
        for *row, digest in self._connection.execute(query):
            check_row(digest, _name(row), *row, path=self.path)
            yield tuple(row)

    def _header(self, row: tuple[Any, ...]) -> Post:
        tags = texts_of_row(row[5], list, row[0], path=self.path)
        try:
            score = None if row[4] is None else int(row[4])
        except ValueError as error:
            raise damaged(row[0], error, self.path) from error
        return Post(row[0], row[1], tags=tuple(tags), parent_id=row[2], accepted_answer_id=row[3], score=score)

    def _failure(self, row: tuple[Any, ...]) -> Failure:
        name = _name(row)
        texts = texts_of_row(row[-1], list, name, path=self.path)
        if len(texts) != len(fields(Failure)):
            raise damaged(name, f"texts of a failure: {len(texts)}", self.path)
        return Failure(*texts)


def _name(row: Sequence[Any]) -> str:
    """Return the id of a row's post; that of a failure is in its text."""
    return "without an id" if row[0] is None else str(row[0])
