"""Ids of posts and of failures: no two records of a collection share one, and all files name a failure by the same id.

>>> broken = Failure("", "read", "bad_json", "posts.jsonl:3: not JSON")
>>> records = list(identified([Post("7", "answer"), Post("7", "answer"), broken, Post("a b", "answer")]))
>>> [record.post_id for record in records]
['7', '7 #2', 'unread 4e4934bfb8c20656', 'unread c8687a08aa5d6ed2']
>>> records[1].message, list(identified(records)) == records
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

_NAMED = re.compile(r"unread [0-9a-f]{16}|.+ #\d+")


def identified(posts: Iterable[Post | Failure], *, texts: bool = False) -> Iterator[Post | Failure]:
    """Yield the posts, no two with one id; with ``texts``, the id may be any string that UTF-8 can hold.

    A record that could not be read may have no id, and a post an invalid one (:func:`graphs.corpus.post.is_id`): the
    message, which names its place, or the id itself gives it one. A post with the id of an earlier record becomes a
    failure. Failures that were named here before keep their ids. The ids are kept in a temporary file, so that memory
    stays flat.
    """
    with closing(sqlite3.connect("")) as seen:
        seen.execute("CREATE TABLE seen(post_id TEXT PRIMARY KEY, times INTEGER) WITHOUT ROWID")
        for post in posts:
            any_text = texts and isinstance(post, Post)
            if not (post.post_id == encodable(post.post_id) if any_text else is_id(post.post_id)):
                if isinstance(post, Post):
                    message = f"post id {post.post_id[:80]!r}; an id is printable, without blanks, and not empty"
                    post = Failure(post.post_id, "read", "bad_id", message)
                elif _NAMED.fullmatch(post.post_id):
                    yield post
                    continue
                yield replace(post, post_id=f"unread {_digest(post.post_id or post.message)}")
                continue
            (times,) = seen.execute(_COUNT_ID, (post.post_id,)).fetchone()
            if times == 1:
                yield post
            elif isinstance(post, Failure):
                yield replace(post, post_id=f"{post.post_id} #{times}")
            else:
                message = f"there are {times} posts with the id {post.post_id} up to here; the first counts"
                yield Failure(f"{post.post_id} #{times}", "read", "duplicate_id", message)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


_COUNT_ID = "INSERT INTO seen VALUES (?, 1) ON CONFLICT(post_id) DO UPDATE SET times = times + 1 RETURNING times"
