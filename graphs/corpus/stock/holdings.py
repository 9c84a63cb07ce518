"""Holdings of a collection: counts, parts that are missing, and the reason why no experiment can run.

>>> missing = Missing("links between posts", "train.positives=duplicates has no duplicates", "collection")
>>> Holdings("arqmath", {"posts.question": 2}, (missing,), {}, reason="").counts["posts.question"]
2
"""

from __future__ import annotations

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
        name: what is read.
        size: number of bytes to read; 0: unknown, and ``progress`` counts items.
        run: reads, once.
        unit: name of the items.
    """

    name: str
    size: int
    run: Callable[[Callable[[int], None]], None]
    unit: str = "bytes"
