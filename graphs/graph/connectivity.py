"""Connectivities: which formulas and sentences of a post are joined by auxiliary edges (thesis, 4.3.3).

Three members in document order, a sentence and its two formulas, as a chain and as a ring:

>>> import numpy as np
>>> [ends.tolist() for ends in auxiliary_pairs("sequential", np.array([3]))]
[[0, 1], [1, 2]]
>>> [ends.tolist() for ends in auxiliary_pairs("circular", np.array([3]))]
[[0, 1, 2], [1, 2, 0]]

A connectivity is a function with the decorator :func:`connectivity`, here or in a package with an entry point of the
group ``mathamr.connectivities``. It gets the numbers of members of several graphs and returns the positions of the
sources and of the targets, counted over all graphs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs import digests
from graphs.errors import ConfigError
from graphs.extensions import CONNECTIVITIES, described, loaded, named, points

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
_BUILT_IN = ("none", "sequential", "circular", "fully_connected")
_SAMPLE = np.array([3, 0, 1, 2, 5, 64])  # numbers of members; these graphs' edges are checked, and are in keys


def connectivity(name: str, *, count: str) -> Callable[[Rule], Rule]:
    """Register a function as the connectivity that ``graph.connectivity=name`` chooses.

    Raises:
        ConfigError: another function has the name, or the edges that the function makes are wrong.
    """

    def register(pairs: Rule) -> Rule:
        if name in _KNOWN and _place(_KNOWN[name].pairs) != _place(pairs):
            owners = f"{_place(_KNOWN[name].pairs)} and {_place(pairs)}"
            raise ConfigError(f"two connectivities are called {name}: {owners}; rename one")
        known = Connectivity(pairs, count)
        if problem := _problem(known):
            raise ConfigError(f"connectivity {name} ({_place(pairs)}): {problem}")
        _KNOWN[name] = known
        return pairs

    return register


def _place(pairs: Rule) -> str:
    return f"{pairs.__module__}.{pairs.__qualname__}"


def _problem(known: Connectivity) -> str:
    """Return the first fault in the edges of graphs with up to 64 members; "" without one."""
    try:
        sources, targets = (np.asarray(ends) for ends in known.pairs(_SAMPLE.copy()))
    except Exception as error:  # noqa: BLE001 - of a function of a package
        return f"for the numbers of members {_SAMPLE.tolist()} it raises {type(error).__name__}: {error}"
    if sources.dtype.kind not in "iu" or targets.dtype.kind not in "iu":
        return f"the positions are of the types {sources.dtype} and {targets.dtype}; return arrays of integers"
    if sources.ndim != 1 or sources.shape != targets.shape:
        return f"the arrays have the shapes {sources.shape} and {targets.shape}; give each edge a source and a target"
    graph = np.repeat(np.arange(len(_SAMPLE)), _SAMPLE)
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        if not (0 <= source < len(graph) and 0 <= target < len(graph)):
            return f"the edge {source} -> {target} ends at no member; positions run from 0 to {len(graph) - 1} here"
        if graph[source] != graph[target]:
            return (
                f"the edge {source} -> {target} joins two graphs; add the first position of each graph to its members"
            )
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            counts = [connection.execute(f"SELECT {known.count.format(n=n)}").fetchone()[0] for n in _SAMPLE.tolist()]
    except (sqlite3.Error, LookupError, ValueError) as error:
        return f"count={known.count!r} is no SQL expression of {{n}}: {type(error).__name__}: {error}"
    num_pairs = np.bincount(graph[sources], minlength=len(_SAMPLE)).tolist()
    wrong = [
        (n, count, edges) for n, count, edges in zip(_SAMPLE.tolist(), counts, num_pairs, strict=True) if count != edges
    ]
    return "count gives {1} edges for {0} members, and the function makes {2}".format(*wrong[0]) if wrong else ""


def edge_identity(name: str) -> dict[str, str]:
    """Return a hash of the edges of graphs with up to 64 members, for keys; empty for the connectivities of the thesis.

    >>> edge_identity("circular")
    {}

    Raises:
        ConfigError: two packages, or a package and this module, have this name; or its package is faulty.
    """
    named(CONNECTIVITIES, name, {own for own, one in _KNOWN.items() if one.pairs.__module__ == __name__})
    if name in _BUILT_IN:
        return {}
    edges = [np.asarray(ends).tolist() for ends in auxiliary_pairs(name, _SAMPLE.copy())]
    return {"auxiliary_edges": digests.of_json(edges)[:16]}


def connectivities() -> tuple[str, ...]:
    """Return the names of all connectivities."""
    return tuple(dict.fromkeys([*_KNOWN, *(point.name for point in points(CONNECTIVITIES))]))


def _find(name: str) -> Connectivity:
    """Return a connectivity; that of another package is imported when it is used."""
    if name not in _KNOWN and (point := named(CONNECTIVITIES, name)) is not None:
        before = dict(_KNOWN)
        try:
            loaded(point, described("connectivity", point))
        except ConfigError:  # of a faulty module, nothing stays registered
            _KNOWN.clear()
            _KNOWN.update(before)
            raise
    if name not in _KNOWN:
        raise ConfigError(f'connectivity {name} is not registered; write @connectivity("{name}", ...) above it')
    return _KNOWN[name]


def auxiliary_pairs(name: str, members: Int64) -> Pairs:
    """Return the positions of the ends of all auxiliary edges; ``members`` as of :class:`Connectivity`."""
    return _find(name).pairs(members)


def auxiliary_count(name: str, members: str) -> str:
    """Return the SQL expression for the number of auxiliary edges of a graph.

    >>> auxiliary_count("sequential", "formulas + roots")
    '(max((formulas + roots) - 1, 0))'
    """
    return f"({_find(name).count.format(n=f'({members})')})"


def number_of_edges(name: str, members: int) -> int:
    """Return the number of auxiliary edges of a graph with ``members`` formulas and sentences; makes none of them.

    >>> number_of_edges("fully_connected", 2001)
    2001000
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        (number,) = connection.execute(f"SELECT {auxiliary_count(name, str(members))}").fetchone()
    return int(number)


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


@connectivity("fully_connected", count="{n} * ({n} - 1) / 2")
def fully_connected(members: Int64) -> Pairs:
    """Join each member to every later one."""
    positions = np.arange(int(members.sum()))
    after = np.repeat(np.cumsum(members), members) - positions - 1
    return np.repeat(positions, after), counted(positions + 1, after)
