"""One writer, many readers, and a clear word when a file is not what it should be."""

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from graphs import database
from graphs.errors import StoreError

SCHEMA = "CREATE TABLE IF NOT EXISTS word(text TEXT)"


def test_a_second_writer_is_refused_and_nothing_is_harmed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words") as first:
        first.execute("INSERT INTO word VALUES ('ring')")
        first.commit()
        with (
            pytest.raises(StoreError, match="another process is writing"),
            database.writer(path, SCHEMA, purpose="words"),
        ):
            pass
    assert database.connect_read_only(path, purpose="words").execute("SELECT * FROM word").fetchall() == [("ring",)]


def test_what_was_not_committed_is_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words") as connection:
        connection.execute("INSERT INTO word VALUES ('ring')")
    assert database.connect_read_only(path, purpose="words").execute("SELECT * FROM word").fetchall() == []


@pytest.mark.parametrize("number", range(5))
def test_a_writer_that_is_interrupted_at_its_start_leaves_all_tables_or_no_file(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, execute, statements = tmp_path / "a.db", database.Cursor.execute, count()

    def interrupted(self: database.Cursor, *arguments: Any) -> database.Cursor:
        if next(statements) == number:
            raise KeyboardInterrupt
        return execute(self, *arguments)

    monkeypatch.setattr(database.Cursor, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt), database.writer(path, SCHEMA, purpose="words"):
        pass
    monkeypatch.undo()
    if path.exists():
        assert database.connect_read_only(path, purpose="words").execute("SELECT * FROM word").fetchall() == []


def test_a_file_of_another_purpose_is_refused_by_readers_and_writers(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words"):
        pass
    with pytest.raises(StoreError, match="holds words, not tensors"):
        database.connect_read_only(path, purpose="tensors")
    with pytest.raises(StoreError, match="holds words, not tensors"), database.writer(path, SCHEMA, purpose="tensors"):
        pass


def test_a_reader_finds_the_last_commit_of_a_writer_that_was_killed_in_the_middle_of_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    program = textwrap.dedent(
        f"""
        import os, signal
        from graphs import database
        with database.writer({str(path)!r}, {SCHEMA!r}, purpose="words") as connection:
            connection.executemany("INSERT INTO word VALUES (?)", [("ring" * 5000,)] * 50)
            connection.commit()
            connection.execute("PRAGMA cache_size = 10")
            connection.execute("UPDATE word SET text = 'field'")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    subprocess.run([sys.executable, "-c", program], check=False, cwd=Path(__file__).parents[2])
    assert Path(f"{path}-journal").exists()
    with closing(database.connect_read_only(path, purpose="words")) as connection:
        assert set(connection.execute("SELECT text FROM word")) == {("ring" * 5000,)}


def test_a_file_that_another_process_writes_is_no_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words"):
        pass
    monkeypatch.setattr(database, "_PATIENCE", 0)
    reader = database.connect_read_only(path, purpose="words")
    in_use = r"a\.db: another process is using this file; wait until it has finished, then try again$"
    with closing(reader), closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match=in_use):
            database.connect_read_only(path, purpose="words")
        with pytest.raises(StoreError, match=in_use):
            reader.execute("SELECT text FROM word")
        with pytest.raises(StoreError, match=in_use), database.writer(path, SCHEMA, purpose="words"):
            pass


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmark(url)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"), database.writer(path, SCHEMA, purpose="words"):
        pass
    with pytest.raises(StoreError, match="holds no words"):
        database.connect_read_only(path, purpose="words")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database", b"\x00" * 5000])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"a\.db: "):
        database.connect_read_only(path, purpose="words")


def test_a_missing_file_says_what_to_build(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="build words first"):
        database.connect_read_only(tmp_path / "none.db", purpose="words")


def test_readers_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words"):
        pass
    with pytest.raises(Exception, match="readonly"):
        database.connect_read_only(path, purpose="words").execute("INSERT INTO word VALUES ('ring')")


def test_a_damaged_page_is_named_wherever_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words") as connection:
        connection.executemany("INSERT INTO word VALUES (?)", [("ring" * 500,)] * 50)
        connection.commit()
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = b"\xff" * (len(content) - 3 * 4096)
    path.write_bytes(content)
    with closing(database.connect_read_only(path, purpose="words")) as connection:
        with pytest.raises(StoreError, match=r"a\.db: not a readable SQLite database .*malformed"):
            list(connection.execute("SELECT text FROM word"))
        with pytest.raises(StoreError, match=r"a\.db: not a readable"):
            connection.execute("SELECT text FROM word").fetchall()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """A bound on the pages of the file stands for a full disk."""
    path = tmp_path / "a.db"
    with database.writer(path, SCHEMA, purpose="words") as connection:
        connection.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match=r"a\.db: database or disk is full; make room .*: it resumes"):
            connection.executemany("INSERT INTO word VALUES (?)", [("ring" * 500,)] * 500)
    assert database.connect_read_only(path, purpose="words").execute("SELECT * FROM word").fetchall() == []


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreError, match=r"a\.db: cannot be written .*; choose another place"),
        database.writer(tmp_path / "file" / "a.db", SCHEMA, purpose="words"),
    ):
        pass


def test_a_fault_of_the_rows_does_not_blame_the_database(tmp_path: Path) -> None:
    rows = ((text.decode(),) for text in (b"ring", b"\xff"))
    with (
        database.writer(tmp_path / "a.db", SCHEMA, purpose="words") as connection,
        pytest.raises(UnicodeDecodeError),
    ):
        connection.executemany("INSERT INTO word VALUES (?)", rows)


ENDLESS = "WITH RECURSIVE n(text) AS (SELECT 1 UNION ALL SELECT text + 1 FROM n) SELECT text FROM n"


@pytest.mark.parametrize(
    ("hostile", "statement"),
    [
        (f"CREATE VIEW word AS {ENDLESS};", "SELECT count(*) FROM word"),
        (
            f"CREATE TABLE word(text); CREATE TRIGGER t AFTER INSERT ON word BEGIN INSERT INTO word {ENDLESS}; END;",
            "INSERT INTO word VALUES ('group')",
        ),
    ],
    ids=["view", "trigger"],
)
def test_views_and_triggers_of_a_file_do_not_run(tmp_path: Path, hostile: str, statement: str) -> None:
    path = tmp_path / "words.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"CREATE TABLE meta(key, value); INSERT INTO meta VALUES ('purpose', '\"words\"'); {hostile}"
        )
    with (
        pytest.raises(StoreError, match=r"words\.db: has views or triggers"),
        database.writer(path, SCHEMA, purpose="words") as connection,
    ):
        connection.execute(statement)
