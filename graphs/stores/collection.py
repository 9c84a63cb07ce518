"""collection.db: the MathAMR+ graphs of a collection as Penman text, and a record of every post that has none.

    collection = Collection("work/collection.db")
    collection.get("255").penman            # '(m / multi-sentence :snt1 (...) ...)'
    collection.without_graph()              # 4: the posts that have a record of a failure instead

:func:`build` streams posts through the parser in several processes; it may be killed at any moment and started again:
it then continues with the posts that have neither a graph nor such a record. Two records never share an id
(:func:`graphs.corpus.record_ids.identified`).

``graphs/stores/shards.py`` builds a collection in parts and merges them, ``graphs/stores/census.py`` counts what is in
one, ``graphs/stores/exchange.py`` moves one as a plain Penman file.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any

from graphs import database
from graphs.corpus.post import Post
from graphs.corpus.record_ids import identified
from graphs.errors import Failure, StoreError, encodable
from graphs.graph.graph_maker import GraphMaker, MadeGraphs, ParserFactory, StoredGraph, single, worker_died
from graphs.processes import batched, ordered_map
from graphs.row_digests import check_row, damaged, row_digest, texts_of_row
from graphs.stores.origin import TOPICS, comparable, continue_only, trees_of

PURPOSE = "MathAMR+ graphs"
IMPORTED = "imported"  # in the meta table if all graphs are of an import, which the next import may replace
SELECTION, _BEGUN = "selection", "begun"  # in the meta table: kinds of posts that are done, and that were begun
_PAGE_ROWS = 256  # rows that a reader takes at once: while it uses them, a writer can commit
BATCH_SIZE = 64  # posts a worker parses at once, and the posts a kill can cost each worker

SCHEMA = """
CREATE TABLE IF NOT EXISTS graph(
    post_id TEXT PRIMARY KEY, kind TEXT NOT NULL, penman TEXT NOT NULL,
    formula_map TEXT NOT NULL, attachments TEXT NOT NULL, reattached INTEGER NOT NULL, digest INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failure(
    post_id TEXT NOT NULL, stage TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS failure_post ON failure(post_id);
"""
_COLUMNS = "post_id, kind, penman, formula_map, attachments, reattached, digest"


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """Counts of a collection: graphs, failures by (stage, kind), formulas, and how these are attached.

    Of an import, ``renamed_roles`` counts the edges of formula trees whose role had another release's name, and
    ``unknown_roles`` those by (tree, role) whose role is no release's that we know.
    """

    graphs: int
    failures: dict[tuple[str, str], int]
    formulas: int
    attachments: dict[str, int]
    renamed_roles: int = 0
    unknown_roles: dict[tuple[str, str], int] = field(default_factory=dict)


def build(
    path: str | os.PathLike[str],
    posts: Iterable[Post | Failure],
    parser: ParserFactory,
    *,
    source: str,
    shard: str = "1/1",
    formulas_db: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
    skipped: Callable[[int], None] | None = None,
    whole: bool = True,
    selection: Iterable[str] = (),
    topics: str = "",
    retried: Callable[[int | None], None] | None = None,
) -> BuildSummary:
    """Make the graph of every post that ``path`` does not hold yet.

    Args:
        posts: the collection, streamed; failures of reading are kept as records.
        parser: makes the AMR parser of each worker process.
        source: fingerprint of the collection; resuming with another one is refused.
        shard: part of the collection that the posts are (:class:`graphs.stores.shards.Shard`); checked in the same way.
        formulas_db: trees of the formulas by id; missing ones are parsed from LaTeX. A build that began with this file
            cannot be resumed without it, and vice versa.
        workers: processes that parse, in addition to the one that reads and writes. With one worker, or only one batch,
            this process parses, because starting others would take longer. If a post kills it, the next build uses
            other processes, in which such a post becomes a failure.
        progress: called with the number of posts done since the last call.
        skipped: called with the number of posts that the file has already; None: ``progress`` is.
        whole: the posts are all of the collection (or shard); a file of chosen posts is never ``finished``.
        selection: names of the kinds of posts, recorded once all of them are done: shards of others are not merged.
        topics: fingerprint of the topics, if they are among the posts; resuming with other topics is refused.
        retried: called with the number of posts that failed, or whose graph lacks a part, before they are tried again;
            after a stopped retry with None: each post is tried once. ``retried=None``: failures stay.

    Raises:
        StoreError: when another process writes to the file, it was begun from another collection or parser, or has
            posts of other kinds than those that are tried again.
    """
    with writer(path) as connection:
        trees = trees_of(connection, formulas_db)
        begun = {"source": source, "shard": shard, "trees": trees, TOPICS: comparable(connection, topics)}
        continue_only(connection, path, begun)
        if retried is not None:
            retried(_forget_failures(connection, path, selection))
        _add_selection(connection, _BEGUN, selection)
        was_finished = bool(database.read_meta(connection).get("finished"))
        database.write_meta(connection, finished=False)
        connection.execute("DELETE FROM meta WHERE key = ?", (IMPORTED,))
        connection.commit()
        batches = _pending_batches(connection, posts, skipped or progress or (lambda count: None))
        first = list(islice(batches, 2))
        if len(first) < 2:
            workers = 1
        with _in_process(connection, workers) as alone:
            results = ordered_map(
                GraphMaker,
                (parser, formulas_db),
                chain(first, batches),
                workers=workers,
                split=single,
                give_up=worker_died,
                apart=not alone,
            )
            for batch in results if first else ():
                continue_only(connection, path, {"parser": batch.parser})
                _write(connection, batch)
                connection.commit()
                if progress is not None:
                    progress(batch.posts)
        if whole:
            _add_selection(connection, SELECTION, selection)
        database.write_meta(connection, finished=whole or (was_finished and not first))
        connection.execute("DELETE FROM meta WHERE key = ?", (_RETRYING,))
        connection.commit()
    return summarize(path)


def add_graphs(path: str | os.PathLike[str], graphs: Iterable[StoredGraph], *, source: str, parser: str) -> None:
    """Add graphs that were made elsewhere, by ``parser`` from the collection ``source``.

    Raises:
        StoreError: when another process writes to the file, or it was begun from another collection or parser.
    """
    with writer(path) as connection:
        continue_only(connection, path, {"source": source, "parser": parser})
        insert_graphs(connection, graphs)
        connection.commit()


def _add_selection(connection: sqlite3.Connection, key: str, selection: Iterable[str]) -> None:
    known = str(database.read_meta(connection).get(key) or "").split(", ")
    if names := sorted({*known, *selection} - {""}):
        database.write_meta(connection, **{key: ", ".join(names)})


@contextmanager
def _in_process(connection: sqlite3.Connection, workers: int) -> Iterator[bool]:
    """Return whether to work in this process alone: with one worker, unless the last that did so has died of it."""
    died = bool(database.read_meta(connection).get(_ALONE))
    alone = workers == 1 and not died
    if alone:
        database.write_meta(connection, **{_ALONE: True})
        connection.commit()
    try:
        yield alone
    finally:
        connection.rollback()  # what an error has left half done
        connection.execute("DELETE FROM meta WHERE key = ?", (_ALONE,))
        connection.commit()


_ALONE = "in_process"  # in the meta table as long as a build works in one process


writer = partial(database.writer, schema=SCHEMA, purpose=PURPOSE)
"""Opens the collection at a path as its only writer."""


_RETRYING = "retrying"  # in the meta table from the start of a retry to the end of its build


def _forget_failures(
    connection: sqlite3.Connection, path: str | os.PathLike[str], selection: Iterable[str]
) -> int | None:
    """Delete every record of a failure, and the graphs that lack a part for it; return the number of posts.

    Returns None, and keeps everything, after a stopped retry. The caller commits.
    """
    meta = database.read_meta(connection)
    kinds = str(meta.get(_BEGUN) or meta.get(SELECTION) or "")
    if missing := sorted({*kinds.split(", ")} - {"", *selection}):
        raise StoreError(f"has posts of {missing[0]}, which would not be tried again; retry all of {kinds}", path=path)
    if meta.get(_RETRYING):
        return None
    (posts,) = connection.execute("SELECT count(DISTINCT post_id) FROM failure").fetchone()
    connection.execute("DELETE FROM graph WHERE post_id IN (SELECT post_id FROM failure)")
    connection.execute("DELETE FROM failure")
    database.write_meta(connection, **{_RETRYING: True})
    return int(posts)


def _write(connection: sqlite3.Connection, batch: MadeGraphs) -> None:
    """Write a batch; of equal records that cannot be read, which may be in two batches, the first counts."""
    known = _ids_present(connection, [failure.post_id for failure in batch.failures])
    insert_graphs(connection, batch.graphs)
    insert_failures(connection, (failure for failure in batch.failures if failure.post_id not in known))


def _pending_batches(
    connection: sqlite3.Connection, posts: Iterable[Post | Failure], skipped: Callable[[int], None]
) -> Iterator[list[Post | Failure]]:
    """Yield batches of the posts that are in neither table; ``skipped`` is called with the number of the others."""
    for batch in batched(identified(posts), BATCH_SIZE):
        first: dict[str, Post | Failure] = {}  # of equal records that cannot be read
        for post in batch:
            first.setdefault(post.post_id, post)
        done = _ids_present(connection, list(first))
        pending = [post for post_id, post in first.items() if post_id not in done]
        if len(pending) < len(batch):
            skipped(len(batch) - len(pending))
        if pending:
            yield pending


def _ids_present(connection: sqlite3.Connection, post_ids: Sequence[str]) -> set[str]:
    """Return the ids of ``posts`` that are in either table."""
    return {
        post_id
        for table in ("graph", "failure")
        for (post_id,) in database.rows_of_ids(connection, f"SELECT post_id FROM {table} WHERE post_id IN", post_ids)
    }


class Collection(database.OpenFile):
    """Reads collection.db. Iteration is in the order of post ids; nothing is held in memory."""

    purpose = PURPOSE

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM graph").fetchone()[0])

    @property
    def meta(self) -> dict[str, object]:
        """Origin of the collection: source, parser, shard; ``finished``: whether all its posts were processed."""
        return database.read_meta(self._connection)

    def __contains__(self, post_id: object) -> bool:
        """Return whether there is a graph of a post."""
        return self._connection.execute("SELECT 1 FROM graph WHERE post_id = ?", (post_id,)).fetchone() is not None

    def get(self, post_id: str) -> StoredGraph:
        """Return the graph of one post.

        Raises:
            StoreError: when the collection has none, with the reason where there is one.
        """
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM graph WHERE post_id = ?", (post_id,)).fetchone()
        if row is None:
            of_post = (
                "SELECT message FROM failure WHERE post_id = ? OR instr(post_id, ? || ' unread ') = 1 "
                "ORDER BY post_id <> ?"
            )
            reason = self._connection.execute(of_post, (post_id, post_id, post_id)).fetchone()
            why = f": {reason[0]}" if reason else " and no record of a failure: is the id right?"
            raise StoreError(f"no graph of post {post_id}{why}", path=self.path)
        return self._stored(row)

    def post_ids(self, *kinds: str) -> list[str]:
        """Ids of the posts that have a graph; of some kinds only, where they are given; sorted."""
        return list(self.ids(*kinds))

    def ids(self, *kinds: str) -> Iterator[str]:
        """Yield what :meth:`post_ids` returns: a list of a million ids takes 70 MB."""
        return (post_id for (post_id,) in self._rows("post_id", kinds))

    def __iter__(self) -> Iterator[StoredGraph]:
        return self.graphs()

    def graphs(self, *kinds: str) -> Iterator[StoredGraph]:
        """Yield every graph (of some kinds)."""
        return map(self._stored, self._rows(_COLUMNS, kinds))

    def rows(self, *kinds: str) -> Iterator[tuple[str, str, str]]:
        """Yield post id, Penman text and formula map as JSON of every graph (of some kinds)."""
        for row in self._rows(_COLUMNS, kinds):
            self._check(row)
            yield row[0], row[2], row[3]

    def formula_ids(self, *kinds: str) -> Iterator[tuple[str, list[str]]]:
        """Yield post id and formula ids, in the order of placeholders, of every graph (of some kinds)."""
        for post_id, _, names in self.rows(*kinds):
            yield post_id, list(texts_of_row(names, dict, post_id, path=self.path).values())

    def failures(self) -> Iterator[Failure]:
        """Yield every record of a failure."""
        query = "SELECT post_id, stage, kind, message, rowid FROM failure WHERE (post_id, rowid) > (?, ?) "
        query += f"ORDER BY post_id, rowid LIMIT {_PAGE_ROWS}"
        last = ("", -1)
        while page := self._connection.execute(query, last).fetchall():
            yield from (Failure(*row[:-1]) for row in page)
            last = (page[-1][0], page[-1][-1])

    def without_graph(self, stage: str = "", kind: str = "") -> int:
        """Return the number of posts with a record of a failure (of one stage and kind) and no graph."""
        where = " AND stage = ? AND kind = ?" if stage else ""
        query = f"SELECT count(DISTINCT post_id) FROM failure WHERE post_id NOT IN (SELECT post_id FROM graph){where}"
        return int(self._connection.execute(query, (stage, kind) if stage else ()).fetchone()[0])

    def incomplete(self) -> int:
        """Return the number of posts with both a graph and a record of a failure: a part of their text is missing."""
        query = "SELECT count(*) FROM graph WHERE post_id IN (SELECT post_id FROM failure)"
        return int(self._connection.execute(query).fetchone()[0])

    def _rows(self, columns: str, kinds: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of graphs (of some kinds) by post id; a writer can commit between two pages."""
        of_kinds = f" AND kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        comparison, last = ">=", ""
        while True:
            query = f"SELECT {columns} FROM graph WHERE post_id {comparison} ?{of_kinds} ORDER BY post_id LIMIT ?"
            page = self._connection.execute(query, (last, *kinds, _PAGE_ROWS)).fetchall()
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            comparison, last = ">", page[-1][0]

    def _stored(self, row: tuple[str, str, str, str, str, int, int]) -> StoredGraph:
        self._check(row)
        formula_map, attachments = (texts_of_row(text, dict, row[0], path=self.path) for text in row[3:5])
        if not isinstance(row[5], int):
            raise damaged(row[0], f"{row[5]!r:.40} is no number", self.path)
        return StoredGraph(row[0], row[1], row[2], formula_map, attachments, row[5])

    def _check(self, row: tuple[str, str, str, str, str, int, int]) -> None:
        check_row(row[-1], row[0], *row[:-1], path=self.path)


def insert_graphs(connection: sqlite3.Connection, graphs: Iterable[StoredGraph]) -> None:
    """Write graphs, in place of others of their posts; the caller commits."""
    rows = (
        (one.post_id, one.kind, one.penman, json.dumps(one.formula_map), json.dumps(one.attachments), one.reattached)
        for one in graphs
    )
    insert = f"INSERT OR REPLACE INTO graph({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
    connection.executemany(insert, ((*row, row_digest(*row)) for row in rows))


def insert_failures(connection: sqlite3.Connection, failures: Iterable[Failure]) -> None:
    """Write records of failures; the caller commits."""
    rows = ((one.post_id, one.stage, one.kind, encodable(one.message)) for one in failures)
    connection.executemany("INSERT INTO failure(post_id, stage, kind, message) VALUES (?, ?, ?, ?)", rows)


def summarize(path: str | os.PathLike[str]) -> BuildSummary:
    """Count what is in the file."""
    with Collection(path) as collection:
        attachments: Counter[str] = Counter()
        graphs = 0
        for graph in collection:
            graphs += 1
            attachments.update(graph.attachments.values())
        failures = Counter((f.stage, f.kind) for f in collection.failures())
    return BuildSummary(graphs, dict(failures), attachments.total(), dict(attachments))
