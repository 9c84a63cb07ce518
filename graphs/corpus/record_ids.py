"""Ids of posts and of failures: no two records of a collection share one, and all files name a failure by the same id.

>>> broken = [Failure("7", "read", "bad_post", "posts.jsonl:3: no kind"), Failure("", "read", "bad_json", "line 4")]
>>> records = list(identified([*broken, Post("7", "answer"), Post("7", "answer"), Post("a b", "answer")]))
>>> [record.post_id for record in records]
['7 unread c7c219de1e893930', 'unread 6e9a75dfb2347539', '7', '7 #2', 'unread 937babd74d0416ac']
>>> records[3].message, list(identified(records)) == records
('there are 2 posts with the id 7 up to here; the first counts', True)

Only graphs need ids that are printable and without blanks; concepts are found by their names:

>>> [record.post_id for record in identified([Post("finite group", "answer")], texts=True)]
['finite group']
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace

from graphs.corpus.post import Post, is_id
from graphs.errors import Failure, encodable

_LINE = re.compile(r":\d+: ")  # after the path of the file that a message names
_NAMED = re.compile(r"(\S+ )?unread [0-9a-f]{16}|.* #\d+", re.DOTALL)


def identified(posts: Iterable[Post | Failure], *, texts: bool = False) -> Iterator[Post | Failure]:
    """Yield the posts, no two with one id; with ``texts``, the id may be any string that UTF-8 can hold.

    A post with the id of an earlier one, or with an invalid id (:func:`graphs.corpus.post.is_id`), becomes a failure.
    Failures get ids that no post has, so a broken record takes no id from a post; those that were named here before
    keep theirs. The ids of posts are kept in a temporary file, so that memory stays flat.
    """
    with closing(sqlite3.connect("")) as seen:
        seen.execute("CREATE TABLE seen(post_id TEXT PRIMARY KEY, times INTEGER) WITHOUT ROWID")
        for post in posts:
            if isinstance(post, Failure):
                yield post if _NAMED.fullmatch(post.post_id) else _unread(post)
            elif not (post.post_id == encodable(post.post_id) if texts else is_id(post.post_id)):
                message = f"post id {post.post_id[:80]!r}; an id is printable, without blanks, and not empty"
                yield _unread(Failure(post.post_id, "read", "bad_id", message))
            else:
                (times,) = seen.execute(_COUNT_ID, (post.post_id,)).fetchone()
                message = f"there are {times} posts with the id {post.post_id} up to here; the first counts"
                yield post if times == 1 else Failure(f"{post.post_id} #{times}", "read", "duplicate_id", message)


def _unread(failure: Failure) -> Failure:
    """Name a failure by its id, as far as it has a valid one, and a hash of its id, place and message."""
    line = _LINE.search(failure.message)
    name = failure.message.rfind("/", 0, line.start()) + 1 if line else 0  # the folder may move
    content = (failure.post_id + failure.message[name:]).encode(errors="backslashreplace")
    digest = hashlib.sha256(content).hexdigest()[:16]
    valid = f"{failure.post_id} " if is_id(failure.post_id) else ""
    return replace(failure, post_id=f"{valid}unread {digest}")


_COUNT_ID = "INSERT INTO seen VALUES (?, 1) ON CONFLICT(post_id) DO UPDATE SET times = times + 1 RETURNING times"
