"""Accepted answers of a collection, and those that are not in it. 8 bytes of each id are kept.

>>> accepted = AcceptedAnswers()
>>> accepted.add_question("a1")
>>> accepted.add_question("a2")
>>> accepted.add_question(None)
>>> accepted.add_answer("a2")
>>> accepted.count, accepted.missing()
(2, Missing(what='1 of 2 accepted answers', consequence='their questions have no training pair', part='', stops=False))
"""

from __future__ import annotations

import hashlib
from array import array

from graphs.corpus.stock.holdings import Missing


class AcceptedAnswers:
    """Counter of accepted answers."""

    def __init__(self) -> None:
        self._accepted, self._answers = array("Q"), array("Q")

    @property
    def count(self) -> int:
        """Number of questions with an accepted answer, in the collection or not."""
        return len(self._accepted)

    def add_question(self, accepted_answer_id: str | None) -> None:
        """Add a question."""
        if accepted_answer_id:
            self._accepted.append(number(accepted_answer_id))

    def add_answer(self, post_id: str) -> None:
        """Add an answer."""
        self._answers.append(number(post_id))

    def missing(self) -> Missing | None:
        """Return the accepted answers that are not in the collection; None if all are."""
        import numpy as np

        absent = int(np.isin(np.array(self._accepted), np.array(self._answers), invert=True).sum())
        if absent == self.count:
            what = f"accepted answers: none of {absent:,} is in the collection" if absent else "accepted answers"
            return Missing(what, "every answer makes a training pair with its question")
        if absent:
            return Missing(f"{absent:,} of {self.count:,} accepted answers", "their questions have no training pair")
        return None


def number(post_id: str) -> int:
    """Return 64 bits of an id."""
    return int.from_bytes(hashlib.blake2b(post_id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def repeated(ids: array[int]) -> int:
    """Return the number of posts with the id of an earlier one.

    >>> repeated(array("Q", [3, 1, 3])), repeated(array("Q"))
    (1, 0)
    """
    import numpy as np

    return len(ids) - len(np.unique(np.frombuffer(ids, np.uint64))) if ids else 0


def missing_ids(count: int) -> Missing:
    """Return what is lost with posts that have the id of an earlier one."""
    what = f"distinct ids: {count:,} {'post has' if count == 1 else 'posts have'} the id of an earlier one"
    return Missing(what, "only the first post of an id is used")
