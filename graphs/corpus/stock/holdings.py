"""Holdings of a collection: counts, parts that are missing, and the reason why no experiment can run.

>>> missing = Missing("links between posts", "train.positives=duplicates has no duplicates", "collection")
>>> Holdings("arqmath", {"posts.question": 2}, (missing,), {}, reason="").counts["posts.question"]
2
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
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that is not there.

    Attributes:
        what: the part, as a noun phrase.
        consequence: what is impossible or different without it.
        part: part of the published tree that has it (``--only``); empty where downloading does not help.
        stops: True where every experiment stops without it.
    """

    what: str
    consequence: str
    part: str = ""
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Holdings:
    """Counts of a collection by a key such as ``posts.question``; what is missing; why no experiment can run.

    Attributes:
        name: form of the collection.
        counts: numbers by key, in the order of a table.
        missing: parts that are not there.
        unread: reasons why files that belong to a collection are not read, by path.
        reason: why no experiment can run; empty if one can.
        failed: names of tests that cannot be searched or scored.
    """

    name: str
    counts: dict[str, int]
    missing: tuple[Missing, ...]
    unread: dict[str, str]
    reason: str
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the stocktaking: ``run(progress)`` reads it and says how many bytes or items went by.

    Attributes:
        size: number of bytes to read; 0: unknown, and ``progress`` counts items.
        unit: name of the items.
    """

    name: str
    size: int
    run: Callable[[Callable[[int], None]], None]
    unit: str = "bytes"


class AcceptedAnswers:
    """Counter of accepted answers, and of those that are not in the collection; keeps 8 bytes of each id."""

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
        absent = absent_ids(self._accepted, self._answers)
        if absent == self.count:
            what = f"accepted answers: none of {absent:,} is in the collection" if absent else "accepted answers"
            return Missing(what, "every answer makes a training pair with its question")
        if absent:
            return Missing(f"{absent:,} of {self.count:,} accepted answers", "their questions have no training pair")
        return None


def number(post_id: str) -> int:
    """Return 64 bits of an id."""
    return int.from_bytes(hashlib.blake2b(post_id.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def absent_ids(named: array[int], known: array[int]) -> int:
    """Return how many of the named ids are not known."""
    import numpy as np

    return int(np.isin(np.array(named), np.array(known), invert=True).sum())


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
