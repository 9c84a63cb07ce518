r"""Training part of a collection: its first pairs with their posts, and the requested ones of these.

>>> import tempfile
>>> from pathlib import Path
>>> from graphs.corpus.corpus import open_corpus
>>> root = Path(tempfile.mkdtemp())
>>> lines = (f'{{"problem": "Is ${i}$ odd?", "solution": "See ${i}/2$."}}' for i in range(9))
>>> _ = (root / "train.jsonl").write_text("\n".join(lines))
>>> some = Source(open_corpus("problems", root), most_pairs=2)
>>> [post.post_id for post in some.posts()]
['train-1', 'train-1/solution', 'train-2', 'train-2/solution']
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from functools import cached_property

from graphs.corpus.corpus import Corpus
from graphs.corpus.files import Fingerprints, FormulaFiles
from graphs.corpus.pairs import given_pairs
from graphs.corpus.post import Pair, Post
from graphs.errors import Failure


class Source:
    """First ``most_pairs`` pairs of ``corpus`` (None: all), the same pairs wherever the files are."""

    def __init__(self, corpus: Corpus, most_pairs: int | None = None) -> None:
        self._corpus = corpus
        self._most_pairs = most_pairs
        self.name = corpus.name

    def pairs(self) -> list[Pair]:
        """Return the pairs, in the order of the collection."""
        return self._pairs

    @cached_property
    def _pairs(self) -> list[Pair]:
        pairs: dict[Pair, None] = {}  # no pair twice
        for pair in given_pairs(self._corpus):
            pairs[pair] = None
            if len(pairs) == self._most_pairs:
                break
        return list(pairs)

    def posts(self) -> Iterator[Post | Failure]:
        """Yield the posts of pairs, in the order of the collection, which is read up to the last of them."""
        missing = {post_id for pair in self._pairs for post_id in (pair.question_id, pair.answer_id)}
        if not missing:
            return
        for post in self._corpus.posts():
            if isinstance(post, Failure):
                yield post
            elif post.post_id in missing:
                missing.remove(post.post_id)
                yield post
                if not missing:
                    return

    def formulas(self) -> FormulaFiles | None:
        """Location of the published trees of the collection's formulas."""
        return self._corpus.formulas()

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        whole = self._corpus.fingerprints()
        posts = hashlib.sha256(f"{whole.posts}\0first pairs\0{self._most_pairs}".encode()).hexdigest()
        return Fingerprints(posts=posts, formulas=whole.formulas)

    def fingerprints(self) -> Fingerprints:
        """Return hashes that change with the collection and with the number of pairs."""
        return self._fingerprints


def comparable(markup: str) -> str:
    """Markup without tags, punctuation and case; "" where nothing is left."""
    return _NEITHER_LETTER_NOR_DIGIT.sub(" ", html.unescape(_TAG.sub(" ", markup))).casefold().strip()


_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[\W_]+")
