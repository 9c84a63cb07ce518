"""Connectivities: which formulas and sentences of a post are joined by auxiliary edges (thesis, 4.3.3).

Three members in document order, a sentence and its two formulas, as a chain and as a ring:

>>> import numpy as np
>>> [ends.tolist() for ends in auxiliary_pairs("sequential", np.array([3]))]
[[0, 1], [1, 2]]
>>> [ends.tolist() for ends in auxiliary_pairs("circular", np.array([3]))]
[[0, 1, 2], [1, 2, 0]]

A connectivity is a function with the decorator :func:`connectivity`. It gets the numbers of members of several graphs
and returns the positions of the sources and of the targets, counted over all graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.errors import ConfigError

Int64 = npt.NDArray[np.int64]
Pairs = tuple[Int64, Int64]
Rule = Callable[[Int64], Pairs]


@dataclass(frozen=True)
class Connectivity:
    """Method to join members.

    Args:
        pairs: numbers of members of each graph, (B,), to positions of sources and targets, (E,) each.
        count: SQL expression for the number of edges of a graph with ``{n}`` members.
    """

    pairs: Rule
    count: str


_KNOWN: dict[str, Connectivity] = {}


def connectivity(name: str, *, count: str) -> Callable[[Rule], Rule]:
    """Register a function as the connectivity that ``graph.connectivity=name`` chooses.

    Raises:
        ConfigError: another function has the name.
    """

    def register(pairs: Rule) -> Rule:
        known = _KNOWN.get(name)
        if known is not None and known.pairs.__qualname__ != pairs.__qualname__:
            raise ConfigError(f"two connectivities are called {name}; rename one")
        _KNOWN[name] = Connectivity(pairs, count)
        return pairs

    return register


def connectivities() -> tuple[str, ...]:
    """Return the names of all connectivities."""
    return tuple(_KNOWN)


def auxiliary_pairs(name: str, members: Int64) -> Pairs:
    """Return the positions of the ends of all auxiliary edges, graph by graph.

    Args:
        name: connectivity.
        members: number of formulas and sentences of each graph, (B,).
    """
    return _KNOWN[name].pairs(members)


def auxiliary_count(name: str, members: str) -> str:
    """Return the SQL expression for the number of auxiliary edges of a graph.

    >>> auxiliary_count("sequential", "formulas + roots")
    'max(formulas + roots - 1, 0)'
    """
    return _KNOWN[name].count.format(n=members)


def counted(first: Int64, counts: Int64) -> Int64:
    """Return ``first[i]``, ``first[i]`` + 1, ... of each length ``counts[i]``, one after the other.

    >>> counted(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    begin = np.cumsum(counts) - counts
    numbers = np.repeat(first - begin, counts)
    numbers += np.arange(len(numbers))
    return numbers


@connectivity("none", count="0")
def none(members: Int64) -> Pairs:
    """Join nothing."""
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


@connectivity("sequential", count="max({n} - 1, 0)")
def sequential(members: Int64) -> Pairs:
    """Join each member to the one that follows it."""
    positions = np.arange(int(members.sum()))
    followed = np.repeat(np.cumsum(members), members) - positions > 1
    return positions[followed], positions[followed] + 1


@connectivity("circular", count="iif({n} > 2, {n}, max({n} - 1, 0))")
def circular(members: Int64) -> Pairs:
    """Join members as a chain, and its last member to its first; a ring of two would repeat its one edge."""
    positions = np.arange(int(members.sum()))
    begin, is_last = np.cumsum(members) - members, np.repeat(np.cumsum(members), members) - positions == 1
    following = positions + 1
    following[is_last] = begin[members > 0]
    has_edge = ~is_last | np.repeat(members > 2, members)
    return positions[has_edge], following[has_edge]


@connectivity("fully_connected", count="({n}) * ({n} - 1) / 2")
def fully_connected(members: Int64) -> Pairs:
    """Join each member to every later one."""
    positions = np.arange(int(members.sum()))
    after = np.repeat(np.cumsum(members), members) - positions - 1
    return np.repeat(positions, after), counted(positions + 1, after)
