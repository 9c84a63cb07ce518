"""Ids of millions of posts in little memory: all in one string.

>>> ids = Ids(["255", "1940278", "x/7"])
>>> ids[1], ids[-1], ids[:2], list(ids), len(ids)
('1940278', 'x/7', ['255', '1940278'], ['255', '1940278', 'x/7'], 3)
>>> list(each_once(["7", "5", "7", "6"]))
['7', '5', '6']

A Python string takes 50 bytes and its characters, and a set of strings another 60 bytes a string. Here an id takes 8
bytes and its characters. Each access makes a string. ``in`` compares with one after the other, as in a list.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar, overload

from graphs.processes import batched

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_AT_ONCE = 10_000
Item = TypeVar("Item")


class Compact(Sequence[Item]):
    """Immutable sequence whose items are made when they are asked for."""

    @abstractmethod
    def item(self, place: int) -> Item:
        """Return the item at a place from 0 on."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        places = range(len(self))[index]
        return list(map(self.item, places)) if isinstance(places, range) else self.item(places)


class Ids(Compact[str]):
    """Immutable sequence of strings."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ends = array("Q", [0])
        parts: list[str] = []
        end = 0
        for some in batched(ids, _AT_ONCE):
            parts.append("".join(some))
            for one in some:
                end += len(one)
                self._ends.append(end)
        self._text = "".join(parts)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def item(self, place: int) -> str:
        return self._text[self._ends[place] : self._ends[place + 1]]

    def __iter__(self) -> Iterator[str]:
        return (self._text[start:end] for start, end in pairwise(self._ends))


def array_of(ids: Sequence[str]) -> npt.NDArray[np.str_]:
    """Return ids as an array (len(ids),), without a list of them; each takes 4 bytes a character of the longest."""
    import numpy as np

    width = max(map(len, ids), default=1)
    return np.fromiter(ids, f"<U{max(width, 1)}", len(ids))


def each_once(ids: Iterable[str]) -> Ids:
    """Return every id once, in the order of their first places."""
    every = Ids(ids)
    return Ids(every[place] for place in first_places(every))


def first_places(ids: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the places of the ids that are not among those before them, ascending; sorts an :func:`array_of` them."""
    import numpy as np

    names = array_of(ids)
    order = np.argsort(names, kind="stable")
    repeated = np.zeros(len(names), np.bool_)
    for begin in range(0, len(names) - 1, _AT_ONCE):
        places = order[begin : begin + _AT_ONCE + 1]  # the last is the next part's first
        repeated[places[1:][names[places[1:]] == names[places[:-1]]]] = True
    return np.flatnonzero(~repeated)
