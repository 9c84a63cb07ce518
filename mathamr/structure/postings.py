"""Inverted index of symbols and of symbol pairs: scores of all formulas, and bounds of their alignments.

Each node of a tree gives its symbol, and pairs with its parent and its grandparent, with the edges between them: once
with the symbols themselves, once with their classes (:func:`mathamr.structure.scoring.symbol_class`), so that
formulas that differ in the names of variables share pairs. After Tangent (Davila and Zanibbi, SIGIR 2017), weighted as
BM25.

>>> from graphs.formulas.tree import FormulaTree
>>> from mathamr.structure.forest import ForestBuilder, Names
>>> names = Names()
>>> forest = ForestBuilder(names)
>>> forest.add(FormulaTree("slt", ("V!x", "N!2"), (-1, 0), ("", "a")))
>>> forest.add(FormulaTree("slt", ("V!y", "N!2"), (-1, 0), ("", "a")))
>>> keys = keys_of(forest.finish(), 0)
>>> len(keys.symbols), len(keys.pairs), len(keys.class_pairs)  # of all nodes
(4, 2, 2)
>>> len(set(keys.pairs.tolist())), len(set(keys.class_pairs.tolist()))  # different ones
(2, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mathamr.compiled import compiled
from mathamr.structure.forest import MAX_EDGES, MAX_NAMES, Forest
from mathamr.structure.scoring import Scoring

Keyed = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Keys:
    """Keys of the symbols and pairs of a forest, and the formula of each.

    ``direct`` are those of ``class_pairs`` with the parent; one for each node but the roots, in the order of the nodes.
    """

    symbols: Keyed
    pairs: Keyed
    class_pairs: Keyed
    direct: Keyed
    owners: tuple[Keyed, Keyed, Keyed]

    def tables(self) -> Iterator[tuple[Keyed, Keyed]]:
        """Yield the keys of each table and the formula of each, tables in ascending order."""
        yield from zip((self.symbols, self.pairs, self.class_pairs), self.owners, strict=True)


def keys_of(forest: Forest, kind: int) -> Keys:
    """Return the keys of a forest; ``kind`` (0 or 1) keeps the two kinds of tree apart."""
    parents, edges = forest.parents, forest.edges.astype(np.int64)
    lower = np.flatnonzero(parents >= 0)
    upper = parents[lower]
    second = parents[upper] >= 0
    far, lower_node = lower[second], upper[second]
    top = parents[lower_node]
    nodes, ancestors = np.concatenate([lower, far]), np.concatenate([upper, top])
    paths = np.concatenate([edges[lower], edges[lower_node] * MAX_EDGES + edges[far]])
    symbols = symbol_keys(forest.symbols, kind)
    pairs = _key(kind, 1, forest.symbols[ancestors], forest.symbols[nodes], paths)
    class_pairs = _key(kind, 2, forest.classes[ancestors], forest.classes[nodes], paths)
    owner = forest.owner
    owners = (owner, owner[nodes], owner[nodes])
    return Keys(symbols, pairs, class_pairs, class_pairs[: len(lower)], owners)


def symbol_keys(symbols: npt.NDArray[np.int32], kind: int) -> Keyed:
    """Return the keys of symbols in trees of a kind."""
    return _key(kind, 0, symbols, symbols, 0)


def tables_of(forests: Sequence[Forest]) -> Iterator[tuple[Keyed, Keyed]]:
    """Yield the keys of each table of all kinds of forests, and the formula of each; no table has a key of another."""
    for kind, forest in enumerate(forests):
        yield from keys_of(forest, kind).tables()


def all_keys(forests: Sequence[Forest]) -> tuple[Keyed, Keyed]:
    """Return the keys of all tables, and the formula of each."""
    keys, owners = zip(*tables_of(forests), strict=True)
    return np.concatenate(keys), np.concatenate(owners)


def _key(
    kind: int, table: int, upper: npt.NDArray[np.int32], lower: npt.NDArray[np.int32], paths: Keyed | int
) -> Keyed:
    # 64 bits: kind (1), table (2), upper symbol (23), lower symbol (23), path (14)
    place = ((kind << 2) + table) << 46
    pair = upper.astype(np.int64) * MAX_NAMES + lower.astype(np.int64)
    return ((place + pair) << 14) + paths


@dataclass(frozen=True)
class Postings:
    """Posting lists: for each key its formulas, their counts, and their parts of the BM25 score.

    Attributes:
        keys: different keys, in ascending order (K,).
        starts: place of the first posting of each key, and the end of the last one (K + 1,).
        formulas: number of the formula of each posting (P,).
        counts: how often the formula has the key (P,).
        impacts: part of the key in the BM25 score of the formula (P,).
        size: number of formulas.
    """

    keys: Keyed
    starts: Keyed
    formulas: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    impacts: npt.NDArray[np.float32]
    size: int

    @classmethod
    def build(cls, forests: Sequence[Forest], scoring: Scoring) -> Postings:
        """Index the keys of all forests, which have the same formulas."""
        size = len(forests[0])
        lengths = np.zeros(size, dtype=np.int64)
        tables = []
        for keys, owners in tables_of(forests):  # one after another, for sorting takes memory
            lengths += np.bincount(owners, minlength=size)
            tables.append(_counted(keys, owners))
        keys, frequencies, formulas, counts = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        mean = max(float(lengths.mean()), 1.0) if size else 1.0
        norms = scoring.k1 * (1 - scoring.b + scoring.b * lengths / mean)
        impacts = np.repeat(rarity(frequencies, size), frequencies)
        impacts *= counts
        impacts /= counts + norms[formulas]
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        return cls(keys, starts, formulas, counts, impacts.astype(np.float32), size)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.keys, self.starts, self.formulas, self.counts, self.impacts)
        return sum(own.nbytes for own in arrays)

    def rarity_of(self, keys: Keyed) -> Floats:
        """Return the inverse document frequency of each key."""
        places, known = self._places(keys)
        frequencies = np.zeros(len(keys), dtype=np.int64)
        frequencies[known] = self.starts[places[known] + 1] - self.starts[places[known]]
        return rarity(frequencies, self.size)

    def scores(self, keys: Keyed, *, fast: bool = False) -> Floats:
        """Return the BM25 score of each formula as a share of the most that any formula can have (F,).

        Args:
            fast: use compiled code if numba is installed; results are equal.
        """
        own, times = np.unique(keys, return_counts=True)
        most = float((times * self.rarity_of(own)).sum())
        which, postings = self._postings(own)
        totals = self._totals(postings, [self.impacts[part] for part in postings], times[which], fast)
        return totals / most if most else totals

    def own_score(self, keys: Keyed, scoring: Scoring) -> float:
        """Return the BM25 score of a formula with exactly these keys, as a share of the most."""
        own, times = np.unique(keys, return_counts=True)
        weights = times * self.rarity_of(own)
        norm = scoring.k1 * (1 - scoring.b + scoring.b * len(keys) / self._mean_length)
        most = float(weights.sum())
        return float((weights * times / (times + norm)).sum()) / most if most else 0.0

    @cached_property
    def _mean_length(self) -> float:
        return max(float(self.counts.sum(dtype=np.int64)) / max(self.size, 1), 1.0)

    def matched(self, keys: Keyed, weights: Floats, *, fast: bool = False) -> Floats:
        """Return for each formula the greatest weight of ``keys`` that its own keys can be matched with (F,).

        A key that occurs n times in the formula is matched with the n heaviest of its equals. ``fast`` is that of
        :meth:`scores`.
        """
        order = np.lexsort((-weights, keys))
        own, starts = np.unique(keys[order], return_index=True)
        running = np.concatenate([[0.0], np.cumsum(weights[order])])
        ends = np.append(starts[1:], len(keys))
        which, postings = self._postings(own)
        gains = [(running[starts[key] : ends[key] + 1] - running[starts[key]]).astype(np.float32) for key in which]
        values = [
            best[np.minimum(self.counts[part], len(best) - 1)]
            if len(best) > 2
            else np.full(part.stop - part.start, best[1])
            for best, part in zip(gains, postings, strict=True)
        ]
        return self._totals(postings, values, np.ones(len(which)), fast)

    def greatest(self, keys: Keyed, weights: Floats, least: float) -> Floats:
        """Return for each formula the greatest weight of the keys that it has, and ``least`` where it has none (F,)."""
        found = np.full(self.size, least)
        which, postings = self._postings(keys)
        for place in np.argsort(weights[which], kind="stable").tolist():  # the greatest is written last
            if weights[which[place]] > least:
                found[self.formulas[postings[place]]] = weights[which[place]]
        return found

    def _places(self, keys: Keyed) -> tuple[Keyed, npt.NDArray[np.bool_]]:
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        known = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), bool)
        return places, known

    def _postings(self, keys: Keyed) -> tuple[Keyed, list[slice]]:
        """Return which keys are known, and the postings of each."""
        places, known = self._places(keys)
        starts, ends = self.starts[places[known]].tolist(), self.starts[places[known] + 1].tolist()
        return np.flatnonzero(known), [slice(*bounds) for bounds in zip(starts, ends, strict=True)]

    def _totals(
        self,
        postings: Sequence[slice],
        values: Sequence[npt.NDArray[np.float32]],
        weights: npt.NDArray[np.number],
        fast: bool,
    ) -> Floats:
        """Return the sum of the values of each formula (F,), those of a key times its weight; in float32."""
        if not postings:
            return np.zeros(self.size)
        if fast and (add := compiled(_add, "void(float32[::1], int32[::1], float32[::1], float32)")) is not None:
            sums = np.zeros(self.size, dtype=np.float32)
            for part, own, weight in zip(postings, values, weights.tolist(), strict=True):
                add(sums, self.formulas[part], own, weight)
            return sums.astype(np.float64)
        formulas = np.concatenate([self.formulas[part] for part in postings])
        starts = np.cumsum([0, *(part.stop - part.start for part in postings)])
        columns = sparse.csc_array((np.concatenate(values), formulas, starts), shape=(self.size, len(postings)))
        totals: Floats = (columns @ weights.astype(np.float32)).astype(np.float64)
        return totals


def _add(sums, formulas, values, weight):
    """Add the values of a key, times its weight, to the sums of its formulas."""
    for place in range(len(formulas)):
        sums[formulas[place]] += values[place] * weight


def _counted(keys: Keyed, owners: Keyed) -> tuple[Keyed, Keyed, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the different keys, ascending, and the number of formulas of each; these formulas, and their counts."""
    order = np.lexsort((owners, keys))
    keys, owners = keys[order], owners[order]
    first = np.flatnonzero(_changes(keys) | _changes(owners))
    counts = np.diff(np.append(first, len(keys)))
    keys, owners = keys[first], owners[first]
    starts = np.flatnonzero(_changes(keys))
    frequencies = np.diff(np.append(starts, len(keys)))
    return keys[starts], frequencies, owners.astype(np.int32), counts.astype(np.int32)


def rarity(frequencies: npt.NDArray[np.integer], size: int) -> Floats:
    """Return the inverse document frequencies, as BM25 in Lucene has them: log(1 + (N - n + 0.5) / (n + 0.5))."""
    return np.log(1 + (size - frequencies + 0.5) / (frequencies + 0.5))


def _changes(values: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Return where a value differs from the one before; the first one does."""
    return np.append(np.ones(min(len(values), 1), bool), values[1:] != values[:-1])
