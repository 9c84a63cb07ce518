"""Published formula trees of topics, kept in an index folder.

keep_formulas(Path("outputs/shared/arqmath-1f0c/formulas.db"), topic_set.topics, Path("index/graph/formulas.db"))

A typed query has no published trees, so only those of the topics are needed: some thousands of rows of millions.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphs import database
from graphs.corpus.post import Topic
from graphs.corpus.text.placeholders import extract
from graphs.formulas.store import PURPOSE, SCHEMA
from graphs.formulas.tsv import key


def keep_formulas(formulas_db: Path, topics: Iterable[Topic], target: Path) -> None:
    """Write the rows of the topics' formulas to a new file ``target``, with their trees and failures.

    Raises:
        StoreError: files that cannot be read or written.
    """
    ids = [key(formula.formula_id) for topic in topics for formula in extract(topic.post).formulas]
    source = database.connect_read_only(formulas_db, purpose=PURPOSE)
    try:
        with database.writer(target, SCHEMA, purpose=PURPOSE) as connection:
            database.write_meta(connection, letters=database.read_meta(source).get("letters", "plain"))
            for start in range(0, len(ids), database.IDS_PER_QUERY):
                some = ids[start : start + database.IDS_PER_QUERY]
                chosen = f"IN ({', '.join('?' * len(some))})"
                formulas = f"FROM formula WHERE formula_id {chosen}"
                for table, query, times in (
                    ("tree", f"SELECT * FROM tree WHERE id IN (SELECT slt {formulas} UNION SELECT opt {formulas})", 2),
                    ("formula", f"SELECT * {formulas}", 1),
                    ("failure", f"SELECT * FROM failure WHERE formula_id {chosen}", 1),
                ):
                    rows = source.execute(query, some * times).fetchall()
                    if rows:
                        marks = ", ".join("?" * len(rows[0]))
                        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
            connection.commit()
    finally:
        source.close()
