"""Texts of posts: posts -> posts.db, which examples, text encoders and searches read.

build_texts(corpus.posts(), Path("posts.db"), Console())
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphs.corpus.corpus import Completed
from graphs.corpus.post import Post
from graphs.errors import Failure
from graphs.stores import posts as post_texts
from mathamr.stages.console import Console


def build_texts(
    posts: Iterable[Post | Failure],
    out: Path,
    console: Console,
    total: int | None = None,
    *,
    completing: Completed | None = None,
) -> int:
    """Write the texts of posts, without formula ids, which depend on the graphs; return the number of posts in ``out``.

    Args:
        posts: posts, read as they are needed.
        out: posts.db; texts that it has are kept.
        total: number of posts, where it is known.
        completing: collection that completes its posts after they were read.
    """
    with console.stage("texts", total=total, unit="posts") as advance:
        return post_texts.build(out, posts, (), advance, completing)
