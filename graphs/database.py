"""SQLite files with one writer and many readers: the basis of formulas.db, collection.db and preprocessed.db.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "words.db"
>>> with writer(path, "CREATE TABLE IF NOT EXISTS word(text TEXT PRIMARY KEY)", purpose="words") as database:
...     _ = database.execute("INSERT INTO word VALUES ('group')")
...     database.commit()
>>> connect_read_only(path, purpose="words").execute("SELECT text FROM word").fetchall()
[('group',)]

A file states its purpose in its ``meta`` table, so that a wrong file is refused by name. Writers use SQLite's rollback
journal, which (unlike its write-ahead log) also works on the network file systems of clusters. A kill at any instant
leaves the last committed state, to which the next writer or reader returns. A lock on ``FILE.lock`` refuses a second
writer at once. A commit waits for readers in the middle of a statement, and they wait for it. A full disk, a read-only
folder and a damaged page raise a :class:`graphs.errors.StoreError` that names the file.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self

from graphs.errors import StoreError
from graphs.shared_files import locked
from graphs.whole_file import whole_file

_MAP_BYTES = 1 << 40  # SQLite lowers it to its compiled limit
IDS_PER_QUERY = 512  # below every SQLite's limit of host parameters
_PATIENCE = 600  # seconds that a statement waits for one of another process
_META = "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL)"


class Connection(sqlite3.Connection):
    """A connection whose faults of disk and file are errors that name the file."""

    path: Path

    def cursor(self, *_: Any) -> Cursor:  # type: ignore[override]
        """Return a cursor whose faults are explained, too."""
        return super().cursor(Cursor)

    def execute(self, *arguments: Any) -> Cursor:
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> Cursor:
        return self.cursor().executemany(*arguments)

    def executescript(self, script: str) -> Cursor:
        return self.cursor().executescript(script)

    def commit(self) -> None:
        with _faults_explained(self.path):
            super().commit()


class Cursor(sqlite3.Cursor):
    """A cursor of a :class:`Connection`."""

    connection: Connection

    def execute(self, *arguments: Any) -> Cursor:
        with _faults_explained(self.connection.path):
            return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> Cursor:
        """Run a statement for each row. What the rows themselves raise is no fault of this file."""
        try:
            return super().executemany(*arguments)
        except sqlite3.DatabaseError as error:
            raise _explained(error, self.connection.path) from error

    def executescript(self, script: str) -> Cursor:
        with _faults_explained(self.connection.path):
            super().executescript(script)
        return self

    def __next__(self) -> Any:
        try:  # not by the context manager: this is called for every row
            return super().__next__()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise _explained(error, self.connection.path) from error

    def fetchone(self) -> Any:
        """Return the next row; None after the last."""
        with _faults_explained(self.connection.path):
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _faults_explained(self.connection.path):
            return super().fetchall()


class _ReadOnly(Connection):
    """A connection that its last reference closes: no other thread could do so for the one that opened it."""

    def __del__(self) -> None:
        if hasattr(self, "path"):  # else it was never open
            self.close()


def _refuse_views(_action: int, _one: str | None, _other: str | None, _file: str | None, source: str | None) -> int:
    """Refuse what a view or a trigger of the file would do: a view without an end reads for ever."""
    return sqlite3.SQLITE_OK if source is None else sqlite3.SQLITE_DENY


def _explained(error: sqlite3.DatabaseError | UnicodeDecodeError, path: Path) -> Exception:
    """Return the error to raise instead: of disk and file one that names the file, else ``error``."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError)
    if damaged or re.search("Could not decode to UTF-8|no such (column|table)", str(error)):
        return StoreError(f"not a readable SQLite database ({error}); delete it and build it again", path=path)
    if code == sqlite3.SQLITE_AUTH:
        return StoreError("has views or triggers, which MathAMR+ does not write; build it again", path=path)
    if code == sqlite3.SQLITE_BUSY:
        return StoreError("another process is using this file; wait until it has finished, then try again", path=path)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return StoreError(f"{error}; make room or the folder writable, then run it again: it resumes", path=path)
    return error


@contextmanager
def _faults_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise _explained(error, path) from error


@contextmanager
def writer(path: str | os.PathLike[str], schema: str, *, purpose: str) -> Iterator[sqlite3.Connection]:
    """Open ``path`` as its only writer; a missing file is created with ``schema`` (SQL statements).

    Raises:
        StoreError: another process that writes to it, or a file of another purpose.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.lock").touch()
    except OSError as error:
        raise StoreError(f"cannot be written ({error.strerror}); choose another place", path=path) from error
    with locked(Path(f"{path}.lock"), patience=0) as held:
        if not held:
            message = "another process is writing to this file; wait until it has finished, or write to another file"
            raise StoreError(message, path=path)
        if not path.exists():
            _create(path, schema, purpose)
        with _faults_explained(path):
            connection = sqlite3.connect(path, timeout=_PATIENCE, factory=Connection)
        connection.path = path
        connection.set_authorizer(_refuse_views)
        try:
            with _damage_explained(path):
                connection.execute("PRAGMA synchronous=NORMAL")
                if (tables := _tables(connection)) and "meta" not in tables:
                    message = f"this is a database of another program, not one for {purpose}; give another path"
                    raise StoreError(message, path=path)
                if tables:
                    _check_purpose(connection, path, purpose)
                _make_tables(connection, schema, purpose)
            yield connection
        finally:
            connection.close()


def _make_tables(connection: sqlite3.Connection, schema: str, purpose: str) -> None:
    connection.execute(_META)
    connection.executescript(schema)
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('purpose', ?)", (json.dumps(purpose),))
    connection.commit()


def _create(path: Path, schema: str, purpose: str) -> None:
    """Write a database without rows; a writer that is stopped meanwhile leaves no file without its tables."""
    with closing(sqlite3.connect(":memory:")) as empty:
        _make_tables(empty, schema, purpose)
        content = empty.serialize()
    try:
        with whole_file(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        message = f"{error.strerror}; make room or the folder writable, then run it again: it resumes"
        raise StoreError(message, path=path) from error


def connect_read_only(path: str | os.PathLike[str], *, purpose: str) -> sqlite3.Connection:
    """Open ``path`` for reading; many processes may do so at once.

    Raises:
        StoreError: a file that is missing, not a database, or of another purpose.
    """
    path = Path(path)
    if not path.is_file():
        raise StoreError(f"no such file; build {purpose} first", path=path)
    with _damage_explained(path):
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro",
            uri=True,
            timeout=_PATIENCE,
            check_same_thread=False,
            factory=_ReadOnly,
        )
        connection.path = path
        connection.set_authorizer(_refuse_views)
        try:
            _roll_back(connection, path)
            if "meta" not in _tables(connection):
                raise StoreError(f"this database holds no {purpose} (it has no meta table)", path=path)
            _check_purpose(connection, path, purpose)
        except BaseException:
            connection.close()
            raise
    return connection


class OpenFile:
    """File of a ``purpose`` that is read from when it is made until :meth:`close`, or within ``with``.

    Raises:
        StoreError: as :func:`connect_read_only`.
    """

    purpose: ClassVar[str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection = connect_read_only(self.path, purpose=self.purpose)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class Reader:
    """File that any number of processes and threads read; each opens it at its first read.

    An instance can be handed to worker processes, forked or spawned.
    """

    def __init__(self, path: str | os.PathLike[str], *, purpose: str) -> None:
        self.path, self._purpose = Path(path), purpose
        self._local = threading.local()

    @property
    def connection(self) -> sqlite3.Connection:
        """Return this thread's connection; errors are those of :func:`connect_read_only`."""
        local = self._local
        if getattr(local, "process", None) != os.getpid():
            # A forked child must neither use nor close its parent's connection: keep the object, open another.
            local.inherited = getattr(local, "connection", None)
            local.connection = connect_read_only(self.path, purpose=self._purpose)
            local.connection.execute(f"PRAGMA mmap_size = {_MAP_BYTES}")
            local.process = os.getpid()
        return local.connection

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_local"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._local = threading.local()

    def close(self) -> None:
        """Close the file in this thread; the next read opens it again."""
        if getattr(self._local, "process", None) == os.getpid():
            self._local.connection.close()
            self._local.process = None


def rows_of_ids(connection: sqlite3.Connection, query: str, ids: Iterable[int | str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``query``, which ends in ``IN``, for any number of ids; few are held at once.

    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE word AS SELECT 1 AS id, 'ring' AS text UNION SELECT 2, 'field'")
    >>> list(rows_of_ids(connection, "SELECT text FROM word WHERE id IN", [2, 3]))
    [('field',)]
    >>> connection.close()
    """
    stream = iter(ids)
    while some := list(islice(stream, IDS_PER_QUERY)):
        yield from connection.execute(f"{query} ({','.join('?' * len(some))})", some).fetchall()


def _roll_back(connection: sqlite3.Connection, path: Path) -> None:
    """Roll back the incomplete transaction of a killed writer, which a read-only connection cannot; else do nothing."""
    try:
        _tables(connection)
    except StoreError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
        if code != sqlite3.SQLITE_READONLY:
            raise
        try:
            with closing(sqlite3.connect(path)) as writing:
                _tables(writing)
        except sqlite3.OperationalError as refused:
            message = (
                f"a writer was killed, and its incomplete transaction cannot be rolled back here ({refused}); "
                + ("make the file and its folder writable, or build it again, which resumes")
            )
            raise StoreError(message, path=path) from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def read_meta(connection: sqlite3.Connection) -> dict[str, object]:
    """Return the whole ``meta`` table, values decoded from JSON.

    Raises:
        StoreError: a value is no JSON.
    """
    try:
        return {key: json.loads(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    except (ValueError, TypeError, RecursionError) as error:
        message = f"damaged (its meta table: {error}); delete it and build it again"
        raise StoreError(message, path=getattr(connection, "path", None)) from error


def write_meta(connection: sqlite3.Connection, **values: object) -> None:
    """Set entries of the ``meta`` table (JSON values); the caller commits."""
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in values.items()])


def _check_purpose(connection: sqlite3.Connection, path: Path, purpose: str) -> None:
    found = read_meta(connection).get("purpose")
    if found not in (None, purpose):
        raise StoreError(f"this file holds {found}, not {purpose}; give another path", path=path)


@contextmanager
def _damage_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        message = f"not a readable SQLite database ({error}); delete it and build it again"
        raise StoreError(message, path=path) from error
