"""Digests of rows in SQLite files: a bit that has flipped since a row was written is a message when the row is read.

>>> import sqlite3
>>> database = sqlite3.connect(":memory:")
>>> _ = database.execute("CREATE TABLE post(post_id TEXT, text TEXT, digest INTEGER)")
>>> _ = database.execute("INSERT INTO post VALUES ('7', 'Is it odd?', ?)", [row_digest("7", "Is it odd?")])
>>> post_id, text, found = database.execute("SELECT post_id, text, digest FROM post").fetchone()
>>> database.close()
>>> check_row(found, "7", post_id, text)
>>> check_row(found, "7", post_id, "Is it old?")
Traceback (most recent call last):
    ...
graphs.errors.StoreError: the row of post 7 is not what was written; delete the file and build it again

SQLite notices a broken page, and not a changed letter of a text. The digest is a CRC-32: a flipped bit is always
noticed, of other changes all but one in four billion.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from graphs.errors import StoreError


def row_digest(*values: object, blob: bytes = b"") -> int:
    """Return the digest of a row.

    Args:
        values: texts and numbers of the row, in the order of its columns.
        blob: bytes of the row.
    """
    return crc32(blob, crc32("\0".join(map(str, values)).encode()))


def check_row(digest: int, post_id: str, *values: object, blob: bytes = b"", path: Path | None = None) -> None:
    """Compare a row with its digest.

    Raises:
        StoreError: the row has changed since it was written.
    """
    if digest != row_digest(*values, blob=blob):
        message = f"the row of post {post_id} is not what was written; delete the file and build it again"
        raise StoreError(message, path=path)
