"""Origin of a collection: entries of its meta table that every continued build compares.

``source`` is the fingerprint of the posts and their formulas, ``topics_hash`` that of the topics and theirs, which is
recorded once topics are built. A file of an earlier version, or an import, may have graphs of topics without this hash:
their texts are unknown, and no hash is recorded later.
"""

from __future__ import annotations

import os
import sqlite3

from graphs import database
from graphs.errors import StoreError
from graphs.formulas.store import FormulaStore

TOPICS = "topics_hash"
_WAYS_OUT = {TOPICS: "build into another file, or leave the topics out of this one"}


def continue_only(connection: sqlite3.Connection, path: str | os.PathLike[str], wanted: dict[str, str]) -> None:
    """Refuse to continue a file that was begun from something else; record entries that it lacks."""
    meta = database.read_meta(connection)
    for key, value in wanted.items():
        if value and meta.setdefault(key, value) != value:
            way_out = _WAYS_OUT.get(key, "build into another file")
            message = f"begun with {key} {meta[key]!r}, now asked to go on with {value!r}; {way_out}"
            raise StoreError(message, path=path)
    database.write_meta(connection, **{key: value for key, value in wanted.items() if value})


def comparable(connection: sqlite3.Connection, topics: str) -> str:
    """Return the hash of the topics, or "" for a file that has graphs of topics without a hash."""
    if not topics or TOPICS in database.read_meta(connection):
        return topics
    return "" if connection.execute("SELECT 1 FROM graph WHERE kind = 'topic' LIMIT 1").fetchone() else topics


def trees_of(connection: sqlite3.Connection, formulas_db: str | os.PathLike[str] | None) -> str:
    """Name the source of formula trees: LaTeX, or a formulas.db with its letters and a hash of its files.

    A file of an earlier version keeps the name without letters and hash.
    """
    if formulas_db is None:
        return "LaTeX"
    with FormulaStore.open(formulas_db) as store:
        identity = store.identity()
    return "formulas.db" if database.read_meta(connection).get("trees") == "formulas.db" else identity
