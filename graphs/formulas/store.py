"""formulas.db: the trees of a collection's formulas, made once from the official files.

    build("work/formulas.db", corpus.formulas(), workers=8)
    store = FormulaStore.open("work/formulas.db")
    store.get("1552").slt.tangent_string()      # '[V!N[&comma;[V!Z[&comma;[V!Q[&comma;[V!R]]]]]]]'
    store.get("2020:q_3"), store.visual_ids(["1552"])

Each different tree is stored once; ``slt`` and ``opt`` of a formula are ids of trees. ``failure`` has formulas and rows
without a tree, ``source`` the progress in each file, ``meta`` a hash of each file. Of two rows with the id of one
formula the first counts, and another tree is a failure. ARQMath lists a formula that an answer quotes once for each
post, with one tree. Decimal ids are stored as integers, which saves space for 28 million formulas.

:func:`build` reads the files in pieces of a megabyte. The results of a piece and the new place in its file are written
in one transaction, so a build resumes after a kill at any moment. No process holds more than a few pieces.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any

from graphs import database
from graphs.corpus.files import FormulaFiles
from graphs.errors import Failure, FormulaError, StoreError
from graphs.formulas.content import parse_opt
from graphs.formulas.mathml import Letters
from graphs.formulas.presentation import parse_slt
from graphs.formulas.tree import ParsedFormula, TreeKind, pack, unpack
from graphs.formulas.tsv import Piece, Place, Source, key, of_choice, pieces, rows, same_content, sources_of
from graphs.processes import ordered_map

PURPOSE = "formula trees"
HASH_OF = "hash of "  # keys of the meta table
_TOPICS = re.compile(r"\w+ \d+:")  # names of topics' files
DUPLICATE = "duplicate_id"  # kind of failure: a row of a formula that another row has described differently
CACHE_KIBIBYTES = 262_144  # holds nearly the whole index of hashes of a full ARQMath, 18 million trees
REMEMBERED, SHORT = 65_536, 1_000  # formulas whose trees a process remembers; longest MathML of these

SCHEMA = """
CREATE TABLE IF NOT EXISTS tree(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS formula(
    formula_id PRIMARY KEY, post_id, visual_id, slt INTEGER REFERENCES tree, opt INTEGER REFERENCES tree
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failure(formula_id, post_id, representation TEXT NOT NULL, kind TEXT NOT NULL,
    message TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS failure_formula ON failure(formula_id);
CREATE TABLE IF NOT EXISTS source(name TEXT PRIMARY KEY, size INTEGER NOT NULL, offset INTEGER NOT NULL,
    line INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a build: rows read in this run, bytes of all files, read or not."""

    rows: int
    bytes_done: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """Content of formulas.db: formulas, different trees, and failures by (representation, kind); "not listed" counts
    formulas without a row in the files of a representation."""

    formulas: int
    trees: int
    failures: dict[tuple[str, str], int]


def build(
    path: str | os.PathLike[str],
    files: FormulaFiles,
    *,
    letters: Letters = "plain",
    posts: frozenset[str] | None = None,
    workers: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> BuildSummary:
    """Make the trees of all formulas in ``files``, or resume an interrupted build.

    Args:
        letters: choice of :func:`graphs.formulas.presentation.parse_slt`; a database holds one kind.
        posts: posts whose formulas are read, in addition to those of all topics; None: all posts. A further call with
            other posts adds theirs, and reads topics' files that have changed again.
        workers: processes that parse, in addition to the one that writes.
        progress: function called after every piece.

    Raises:
        StoreError: another process that writes to the file, or a file begun with other files or letters.
        CorpusError: a missing file, or one that is not a formula file.
    """
    sources = [of_choice(source, posts) for source in sources_of(files)]
    with database.writer(path, SCHEMA, purpose=PURPOSE) as connection:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
        meta = database.read_meta(connection)
        begun_with = meta.get("letters", letters)
        if begun_with != letters:
            message = f"begun with letters={begun_with!r}, not {letters!r}; give another path, or delete this file"
            raise StoreError(message, path=path)
        if "letters" not in meta:  # a build that has nothing to do must not write: the file's bytes are its identity
            database.write_meta(connection, letters=letters)
            connection.commit()
        _forget_changed_topics(connection, sources)
        places = [_place(connection, path, source) for source in sources]
        connection.commit()
        offsets = {source.name: place.offset for source, place in zip(sources, places, strict=True)}
        total = sum(source.size for source in sources)
        row_count = 0
        to_do = (piece for source, place in zip(sources, places, strict=True) for piece in pieces(source, place))
        for piece_trees in ordered_map(_TreeMaker, (letters, posts), to_do, workers=workers):
            _write(connection, piece_trees)
            row_count += len(piece_trees.formulas)
            offsets[piece_trees.piece.source.name] = piece_trees.piece.end.offset
            if progress is not None:
                done = sum(min(offsets[source.name], source.size) for source in sources)
                progress(Progress(row_count, done, total))
        failures = _failure_table(connection) | _not_listed(connection, {source.representation for source in sources})
        return BuildSummary(_count(connection, "formula"), _count(connection, "tree"), failures)


def _not_listed(connection: sqlite3.Connection, representations: set[TreeKind]) -> dict[tuple[str, str], int]:
    """Return the number of formulas that the files of a representation have no row for, where there are some."""
    kinds = sorted(representations)
    failed = "EXISTS (SELECT 1 FROM failure f WHERE f.formula_id = formula.formula_id AND representation = '{0}')"
    sums = ", ".join(f"sum({kind} IS NULL AND NOT {failed.format(kind)})" for kind in kinds)
    numbers = connection.execute(f"SELECT {sums} FROM formula").fetchone() if kinds else ()
    return {(kind, "not listed"): number for kind, number in zip(kinds, numbers, strict=True) if number}


def _forget_changed_topics(connection: sqlite3.Connection, sources: Sequence[Source]) -> None:
    """Forget the topics of which ``sources`` lack a file that was read, so that all their files are read again."""
    known = {str(name) for (name,) in connection.execute("SELECT name FROM source")}
    for prefix in {source.prefix for source in sources if source.prefix}:
        read = {name for name in known if name.partition(" ")[2].startswith(prefix)}
        if read <= {source.name for source in sources}:
            continue
        ids = (prefix, f"{prefix}\U0010ffff")
        within = "formula WHERE formula_id >= ? AND formula_id < ?"
        trees = connection.execute(f"SELECT slt FROM {within} UNION SELECT opt FROM {within}", ids * 2).fetchall()
        connection.execute(f"DELETE FROM {within}", ids)
        unused = {tree for (tree,) in trees if tree is not None}
        for column in ("slt", "opt"):
            query = f"SELECT DISTINCT {column} FROM formula WHERE {column} IN (SELECT value FROM json_each(?))"
            unused -= {tree for (tree,) in connection.execute(query, (json.dumps(sorted(unused)),))}
        connection.executemany("DELETE FROM tree WHERE id = ?", [(tree,) for tree in unused])
        connection.execute("DELETE FROM failure WHERE formula_id >= ? AND formula_id < ?", ids)
        connection.executemany("DELETE FROM source WHERE name = ?", [(name,) for name in read])
        connection.commit()


def _place(connection: sqlite3.Connection, path: str | os.PathLike[str], source: Source) -> Place:
    """Return the place to resume in a file; note its hash. Raises StoreError if the file has changed."""
    row = connection.execute("SELECT size, offset, line FROM source WHERE name = ?", (source.name,)).fetchone()
    size, offset, line = row or (source.size, 0, 0)
    found = source.hash
    known = database.read_meta(connection).get(HASH_OF + source.name) if row else None
    if size != source.size or (known is not None and not same_content(str(known), found)):
        how = f"has {source.size:,} bytes and had {size:,}" if size != source.size else "had another content"
        raise StoreError(f"{source.file} {how} when this database was started; build a new one", path=path)
    if known is None:
        database.write_meta(connection, **{HASH_OF + source.name: found})
    return Place(offset, line)


# -- making trees, in each process ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _PieceTrees:
    """Results of a piece; ids are keys of the database, and a tree is named by its hash."""

    piece: Piece
    trees: dict[int, bytes]
    formulas: list[tuple[int | str, int | str, int | str | None, int | None]]
    lines: list[int]
    failures: list[tuple[int | str | None, ...]]


class _TreeMaker:
    """Maker of packed trees from rows. It remembers trees of short formulas, such as ``n``, which occur often."""

    def __init__(self, letters: Letters, posts: frozenset[str] | None = None) -> None:
        self._posts = posts
        self._parse = {"slt": partial(parse_slt, letters=letters), "opt": partial(parse_opt, letters=letters)}
        self._remembered = lru_cache(REMEMBERED)(self._packed)

    def _packed(self, representation: TreeKind, mathml: str) -> tuple[int, bytes]:
        """Return a tree's bytes and a 64-bit hash; the odds that two of 18 million trees share one are 1 : 100,000."""
        data = pack(self._parse[representation](mathml))
        return _hash(data), data

    def __call__(self, piece: Piece) -> _PieceTrees:
        piece_trees = _PieceTrees(replace(piece, data=None), {}, [], [], [])  # the bytes are not sent back
        source = piece.source
        for line, row in rows(piece):
            if isinstance(row, str):
                message = f"{source.file}:{line}: {row}"
                piece_trees.failures.append((None, None, source.representation, "row", message))
                continue
            if self._posts is not None and not source.prefix and row.post_id not in self._posts:
                continue
            formula_id, post_id = key(row.formula_id), key(row.post_id)
            tree: int | None = None
            try:
                if not row.mathml:
                    raise FormulaError("no MathML", kind="missing")
                packed = self._remembered if len(row.mathml) <= SHORT else self._packed
                tree, data = packed(source.representation, row.mathml)
                piece_trees.trees[tree] = data
            except FormulaError as error:
                message = f"{source.file}:{line}: {error}"
                piece_trees.failures.append((formula_id, post_id, source.representation, error.kind, message))
            piece_trees.lines.append(line)
            piece_trees.formulas.append(
                (formula_id, post_id, None if row.visual_id is None else key(row.visual_id), tree)
            )
        return piece_trees


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big", signed=True)


def _write(connection: sqlite3.Connection, piece_trees: _PieceTrees) -> None:
    """Write the results of a piece, and the place in its file, in one transaction."""
    source = piece_trees.piece.source
    column = source.representation
    connection.executemany("INSERT OR IGNORE INTO tree(hash, data) VALUES (?, ?)", piece_trees.trees.items())
    cursor = connection.executemany(
        f"INSERT INTO formula(formula_id, post_id, visual_id, {column}) "
        "VALUES (?, ?, ?, (SELECT id FROM tree WHERE hash = ?)) "
        f"ON CONFLICT(formula_id) DO UPDATE SET {column} = excluded.{column}, "
        "visual_id = coalesce(visual_id, excluded.visual_id) "
        f"WHERE {column} IS NULL OR {column} = excluded.{column}",
        piece_trees.formulas,
    )
    # A file that is read again, for other posts, replaces the failures of its formulas and of its broken rows.
    read = [(formula_id, column, DUPLICATE) for formula_id, *_ in piece_trees.formulas]
    connection.executemany("DELETE FROM failure WHERE formula_id = ? AND representation = ? AND kind <> ?", read)
    duplicates = _duplicates(connection, piece_trees) if cursor.rowcount < len(piece_trees.formulas) else []
    with_tree = {row[0] for row in piece_trees.formulas if row[-1] is not None}.union(row[0] for row in duplicates)
    piece_trees.failures = [failure for failure in piece_trees.failures if failure[0] not in with_tree] + duplicates
    if piece_trees.piece.start.line == 1:
        of_rows = "(formula_id IS NULL OR kind = ?) AND representation = ? AND instr(message, ?) = 1"
        connection.execute(f"DELETE FROM failure WHERE {of_rows}", (DUPLICATE, column, f"{source.file}:"))
    connection.executemany("INSERT INTO failure VALUES (?, ?, ?, ?, ?)", piece_trees.failures)
    end = piece_trees.piece.end
    place = (source.name, source.size, end.offset, end.line)
    connection.execute("INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?)", place)
    connection.commit()


def _duplicates(connection: sqlite3.Connection, piece_trees: _PieceTrees) -> list[tuple[int | str | None, ...]]:
    """Return a failure for each row of a piece whose tree is not that of an earlier row of the formula."""
    source = piece_trees.piece.source
    query = f"SELECT hash FROM formula JOIN tree ON tree.id = {source.representation} WHERE formula_id = ?"
    found: list[tuple[int | str | None, ...]] = []
    for line, (formula_id, post_id, _, tree) in zip(piece_trees.lines, piece_trees.formulas, strict=True):
        kept = connection.execute(query, (formula_id,)).fetchone()
        if kept is not None and kept != (tree,):
            message = f"{source.file}:{line}: an earlier row of formula {formula_id} has another tree, which counts"
            found.append((formula_id, post_id, source.representation, DUPLICATE, message))
    return found


# -- reading -------------------------------------------------------------------------------------------------------


class FormulaStore(database.Reader):
    """Formulas of a database, read-only. It can be sent to other processes; each opens the file again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, purpose=PURPOSE)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> FormulaStore:
        """Open formulas.db. Raises StoreError if it is missing or another file."""
        store = cls(path)
        _ = store.connection
        return store

    def __enter__(self) -> FormulaStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return _count(self.connection, "formula")

    def get(self, formula_id: str) -> ParsedFormula | None:
        """Return both trees of a formula; ``None`` for an unknown formula."""
        return self.get_many([formula_id]).get(formula_id)

    def get_many(self, formula_ids: Iterable[str]) -> dict[str, ParsedFormula]:
        """Return the trees of the known formulas. A missing tree is ``None``; ``errors`` has the reason."""
        names = {key(formula_id): formula_id for formula_id in formula_ids}
        trees = "LEFT JOIN tree s ON s.id = slt LEFT JOIN tree o ON o.id = opt"
        found: dict[str, ParsedFormula] = {}
        query = f"SELECT formula_id, s.data, s.hash, o.data, o.hash FROM formula {trees}"
        for formula_id, slt, slt_hash, opt, opt_hash in self._select(query, names):
            found[names[formula_id]] = ParsedFormula(
                None if slt is None else unpack(self._checked(slt, slt_hash), "slt"),
                None if opt is None else unpack(self._checked(opt, opt_hash), "opt"),
                () if slt is not None and opt is not None else self._errors(formula_id),
            )
        return found

    def _checked(self, data: bytes, known: int) -> bytes:
        if _hash(data) != known:
            raise StoreError("a tree is not what was written; delete the file and build it again", path=self.path)
        return data

    def visual_ids(self, formula_ids: Iterable[str]) -> dict[str, str]:
        """Return the visual ids of the formulas that have one."""
        names = {key(formula_id): formula_id for formula_id in formula_ids}
        found = self._select("SELECT formula_id, visual_id FROM formula", names)
        return {names[formula_id]: str(visual_id) for formula_id, visual_id in found if visual_id is not None}

    def sources(self) -> dict[str, tuple[int, str]]:
        """Return the size and hash of each formula file that was read to its end."""
        query, meta = "SELECT name, size FROM source WHERE offset >= size", database.read_meta(self.connection)
        return {name: (size, str(meta.get(HASH_OF + name))) for name, size in self.connection.execute(query)}

    def identity(self) -> str:
        """Return the letters of the trees, and a hash of the posts' formula files; topics can be added later."""
        files = {(name.partition(" of ")[0], print_.partition(" ")[2]) for name, (_, print_) in self.sources().items()}
        posts = sorted(one for one in files if not _TOPICS.match(one[0]))
        letters = database.read_meta(self.connection).get("letters")
        return f"formulas.db, {letters} letters, {blake2b(repr(posts).encode(), digest_size=6).hexdigest()}"

    def failure_records(self) -> Iterator[Failure]:
        """Yield every formula or row without a tree that counts; the message names file, line and reason."""
        query = "SELECT coalesce(post_id, ''), representation, kind, message FROM failure"
        for post_id, representation, kind, message in self.connection.execute(query):
            yield Failure(str(post_id), "formula", kind, f"{representation} {message}")

    def _select(self, query: str, names: dict[int | str, str]) -> Iterator[tuple[Any, ...]]:
        return database.rows_of_ids(self.connection, f"{query} WHERE formula_id IN", names)

    def _errors(self, formula_id: int | str) -> tuple[tuple[TreeKind, str], ...]:
        query = "SELECT representation, message FROM failure WHERE formula_id = ?"
        return tuple(self.connection.execute(query, (formula_id,)))


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _failure_table(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    query = "SELECT representation, kind, count(*) FROM failure GROUP BY representation, kind ORDER BY 1, 3 DESC, 2"
    return {(representation, kind): number for representation, kind, number in connection.execute(query)}
