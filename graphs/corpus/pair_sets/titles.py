"""Pairs of title and body of a question, for collections without answers: the title asks, the body answers.

The questions are those of any collection as JSON lines (:mod:`graphs.corpus.jsonl`). One becomes two posts:

>>> question = Post("7", "question", title="Is $x$ odd?", body="Let $x=3$.", markup="text", tags=("parity",))
>>> title, body = halves(question)
>>> title.post_id, title.kind, title.title, title.body
('7', 'question', 'Is $x$ odd?', '')
>>> body.post_id, body.kind, body.body, body.parent_id
('7/body', 'answer', 'Let $x=3$.', '7')

Answers are passed over, and so are questions without a title or without a body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from graphs.corpus.files import Fingerprints
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.pair_sets.pair_posts import PairPosts
from graphs.corpus.post import Post
from graphs.errors import Failure


class Titles(PairPosts):
    """Titles and bodies of the questions in folder ``root``."""

    name = "titles"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._questions = JsonLines(root)

    def posts(self) -> Iterator[Post | Failure]:
        """Iterate over each title, followed by its body."""
        for post in self._questions.posts():
            if isinstance(post, Failure):
                yield post
            elif post.kind == "question" and post.title.strip() and post.body.strip():
                yield from halves(post)

    def fingerprints(self) -> Fingerprints:
        """Return a hash that changes with the questions and differs from that of their own collection."""
        posts = self._questions.fingerprints().posts
        return Fingerprints(posts=hashlib.sha256(f"titles\0{posts}".encode()).hexdigest())


def halves(question: Post) -> tuple[Post, Post]:
    """Title and body of a question as a post each."""
    title = replace(question, body="", accepted_answer_id=None)
    body = replace(
        title, post_id=f"{question.post_id}/body", kind="answer", title="", body=question.body, parent_id=title.post_id
    )
    return title, body
