"""Collections to learn from: their posts come pair by pair, an answer after its question, and no topic asks of them.

>>> class Sums(PairPosts):
...     name = "sums"
...     def fingerprints(self) -> Fingerprints:
...         return Fingerprints(posts="5b1")
...     def posts(self) -> Iterator[Post | Failure]:
...         yield Post("1", "question", body="What is $1+1$?")
...         yield Post("1/answer", "answer", body="$2$.", parent_id="1")
>>> list(Sums(Path("sums")).pairs())
[Pair(question_id='1', answer_id='1/answer')]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from graphs.corpus.accepted import Posts
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Pair, Post
from graphs.errors import Failure


class PairPosts(ABC):
    """A collection in folder ``root`` that is nothing but pairs."""

    name: str

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def posts(self) -> Iterator[Post | Failure]:
        """Yield the two posts of each pair; the parent of the answer is its question."""

    def pairs(self) -> Iterator[Pair]:
        """Yield each question with its answer."""
        return self.pairs_of(self.posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        """Yield the same as :meth:`pairs`, from posts already read."""
        for post in posts():
            if isinstance(post, Post) and post.parent_id is not None:
                yield Pair(post.parent_id, post.post_id)

    def formulas(self) -> None:
        """Return None: the trees are made from the LaTeX in the posts."""
        return

    @abstractmethod
    def fingerprints(self) -> Fingerprints:
        """Return a hash of the posts."""
