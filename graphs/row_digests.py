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

import json
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from graphs.errors import StoreError

_Texts = TypeVar("_Texts", dict[str, str], list[str])


def row_digest(*values: object, blob: bytes = b"") -> int:
    """Return the digest of a row: of its texts and numbers, in the order of its columns, and its ``blob``."""
    return crc32(blob, crc32("\0".join(map(str, values)).encode()))


def check_row(digest: int, post_id: str, *values: object, blob: bytes = b"", path: Path | None = None) -> None:
    """Compare a row with its digest.

    Raises:
        StoreError: the row has changed since it was written.
    """
    if digest != row_digest(*values, blob=blob):
        message = f"the row of post {post_id} is not what was written; delete the file and build it again"
        raise StoreError(message, path=path)


def texts_of_row(text: str, kind: type[_Texts], post_id: str, *, path: Path) -> _Texts:
    """Return a JSON object or list of texts from a row whose digest fits: whoever writes a file can write its digests.

    Raises:
        StoreError: it is something else.
    """
    try:
        content = json.loads(text)
        if not isinstance(content, kind):
            raise ValueError(f"{text[:40]!r} is no JSON {'object' if kind is dict else 'list'}")
        for value in content.values() if isinstance(content, dict) else content:
            if not isinstance(value, str):
                raise ValueError(f"{str(value)[:40]!r} is no text")
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(post_id, error, path) from error
    return content


def damaged(post_id: str, why: object, path: Path) -> StoreError:
    """Return the error for a row whose digest fits and whose content does not."""
    return StoreError(f"the row of post {post_id} is damaged ({why}); delete the file and build it again", path=path)
