"""Index of formulas by the structure of their trees, and its search: the best k of all formulas, exactly.

>>> from graphs.formulas.latex import parse_latex
>>> rules = Scoring.by_default()
>>> formulas = [r"f(f(x))=\\sin x", r"\\sqrt{2}", "f(z)=\\\\cos z"]
>>> index = StructureIndex.build((parse_latex(latex) for latex in formulas), rules)
>>> [number for number, score in index.search(parse_latex(r"g(g(y))=\\sin y"), k=2)]
[0, 2]
>>> index.alignments(parse_latex(r"g(g(y))=\\sin y"), 0)["opt"].renaming
{'V!g': 'V!f', 'V!y': 'V!x'}

A formula's score is ``(1 - pairs) * alignment + pairs * P``. ``P`` is its BM25 score over symbols and pairs, as a share
of the most that any formula can have (:mod:`mathamr.structure.postings`). The P of a formula whose trees equal the
query's under one renaming is at least ``renamed`` times that of a formula in the query's own letters. ``alignment`` is
the weighted mean over both kinds of tree of ``A / (W ** (1 - size) * D ** size)``, where A is the aligned weight of the
largest common subtree under one renaming, W the weight of the query's tree and D that of the formula's; the weight of a
node is the inverse document frequency of its symbol. Formulas without any symbol or pair of the query are not found.

**Exact.** Formulas are aligned in the order of an upper bound of their scores. A bound of A follows from the index
alone: each aligned node but the topmost shares the pair of classes with its parent. The search ends when no bound
reaches the k-th best score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.errors import RetrievalError
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind
from mathamr.evaluation.order import best_numbers
from mathamr.structure import kernel
from mathamr.structure.alignment import Floats, Integers, Query, align, aligned_weights
from mathamr.structure.forest import KINDS, Forest, ForestBuilder, Names, forests_of
from mathamr.structure.postings import Keys, Postings, keys_of, symbol_keys
from mathamr.structure.scoring import VARIABLE, Scoring, may_be_renamed, symbol_class

SMALLEST_BATCH, LARGEST_BATCH = 64, 2048  # formulas aligned together
MOST_PAIRS = 1 << 24  # pairs of nodes that are compared together, 16 bytes each
COMPILED_PAIRS = 1 << 26  # of nodes: a second of work for numpy, four times as long as compiled code takes to load
_ROOM = 1e-5  # sums are made in float32; bounds are raised by more than that costs


@dataclass(frozen=True)
class Alignment:
    """Aligned part of two trees.

    Attributes:
        nodes: node of the formula's tree for each aligned node of the query's.
        kept: aligned nodes of the query whose symbols are equal, or equal under the renaming.
        renaming: variables of the query and those of the formula that they stand for; names of functions,
            dots and infinity are aligned as variables, and are never renamed.
    """

    nodes: Mapping[int, int]
    kept: frozenset[int]
    renaming: Mapping[str, str]


@dataclass(frozen=True)
class _Tree:
    """A tree of the query, with its keys and the weight of the whole."""

    query: Query
    keys: Keys

    @property
    def weight(self) -> float:
        return float(self.query.weights.sum())


class StructureIndex:
    """Formulas by the structure of their trees. Formulas have numbers, in the order they were indexed in.

    Attributes:
        names: numbers of symbols and edge labels.
        forests: symbol layout trees and operator trees.
        postings: inverted index of their symbols and pairs.
    """

    def __init__(self, names: Names, forests: tuple[Forest, Forest], postings: Postings, scoring: Scoring) -> None:
        self.names, self.forests, self.postings, self.scoring = names, forests, postings, scoring
        self._symbols, self._edges = names.symbols(), names.edges()
        self._variable = names.symbol(VARIABLE)
        numbers = np.arange(len(self._symbols), dtype=np.int32)
        sizes = [
            np.bincount(forest.owner, weights=self._weights_of(numbers, place)[forest.symbols], minlength=len(forest))
            for place, forest in enumerate(forests)
        ]
        self._sizes = [np.maximum(own, 1e-9) ** scoring.size for own in sizes]
        self._compared = 0  # pairs of nodes in all searches

    @classmethod
    def build(cls, formulas: Iterable[ParsedFormula], scoring: Scoring) -> StructureIndex:
        """Index formulas; one that lacks a tree is found by the other, one without any is never found.

        Raises:
            RetrievalError: no formulas.
        """
        names = Names()
        names.symbol(VARIABLE)
        forests = forests_of(formulas, names)
        if not len(forests[0]):
            raise RetrievalError("no formulas to index")
        return cls(names, forests, Postings.build(forests, scoring), scoring)

    def __len__(self) -> int:
        return len(self.forests[0])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in memory, without the dictionary of symbols."""
        forests = sum(forest.nbytes for forest in self.forests)
        return self.postings.nbytes + forests + sum(own.nbytes for own in self._sizes)

    @property
    def _is_compiled(self) -> bool:
        """True if earlier searches compared enough for compiled code to pay."""
        return self._compared >= COMPILED_PAIRS

    def search(
        self, formula: ParsedFormula, k: int = 1000, *, names: npt.NDArray[np.str_] | None = None
    ) -> list[tuple[int, float]]:
        """Return the numbers and scores of the best ``k`` formulas, best first.

        Args:
            names: ids of all formulas, by which equal scores are ordered (:mod:`mathamr.evaluation.order`); None: by
                number.

        Raises:
            RetrievalError: ``k`` below 1.
        """
        if k < 1:
            raise RetrievalError(f"k={k}; at least 1 result must be asked for")
        trees = self._read(formula)
        pairs = self._pairs(trees)
        candidates = np.flatnonzero(pairs > 0)
        bounds = self._bounds(trees, pairs, candidates)
        total = bounds.sum(axis=0) * (1 + _ROOM)
        size = min(max(k, SMALLEST_BATCH), len(candidates))
        ahead = np.zeros(len(candidates), dtype=bool)
        ahead[np.argpartition(-total, size - 1)[:size] if size else []] = True
        found = self._align(trees, pairs, candidates, bounds, np.flatnonzero(ahead), -1.0)
        threshold = _least(bounds[:, found].sum(axis=0), k)
        open_ = np.flatnonzero(~ahead & (total >= threshold))
        open_ = open_[np.argsort(-total[open_], kind="stable")]
        batch = SMALLEST_BATCH
        while len(open_) and total[open_[0]] >= threshold:
            few, open_ = open_[:batch], open_[batch:]
            found = np.append(found, self._align(trees, pairs, candidates, bounds, few, threshold))
            threshold = _least(bounds[:, found].sum(axis=0), k)
            batch = min(2 * batch, LARGEST_BATCH)
        return best_numbers(candidates[found], bounds[:, found].sum(axis=0), k, names)

    def scores(self, formula: ParsedFormula, numbers: Integers | None = None) -> Floats:
        """Return the scores of the formulas with these numbers, 0 for those that are not found; default: of all (F,).

        It is the search without bounds.
        """
        trees = self._read(formula)
        pairs = self._pairs(trees)
        formulas = np.arange(len(self)) if numbers is None else numbers
        scores = np.zeros(len(formulas))
        able = np.flatnonzero(pairs[formulas] > 0)
        parts = np.zeros((1 + len(trees), len(able)))
        self._align(trees, pairs, formulas[able], parts, np.arange(len(able)), -1.0)
        scores[able] = parts.sum(axis=0)
        return scores

    def alignments(self, formula: ParsedFormula, number: int) -> dict[TreeKind, Alignment]:
        """Return the alignment of a query with one formula, for each kind of tree that both have."""
        found: dict[TreeKind, Alignment] = {}
        for place, (kind, tree) in enumerate(zip(KINDS, self._read(formula), strict=True)):
            own = self.forests[place].take([number])
            if tree is None or not len(own.symbols):
                continue
            matches = align(tree.query, own)
            _, kept, _ = aligned_weights(tree.query, own, matches, self._variable, self.scoring)
            nodes = {node: int(match) for node, match in enumerate(matches[:, 0]) if match >= 0}
            found[kind] = self._alignment(getattr(formula, kind), own, nodes, kept[:, 0])
        return found

    def tree(self, number: int, kind: TreeKind) -> FormulaTree | None:
        """Return a tree of an indexed formula; None where it has none."""
        own = self.forests[KINDS.index(kind)].take([number])
        if not len(own.symbols):
            return None
        labels = tuple(self._symbols[symbol] for symbol in own.symbols)
        edges = tuple(self._edges[edge] for edge in own.edges)
        return FormulaTree(kind, labels, tuple(own.parents.tolist()), edges)

    # -- a query -------------------------------------------------------------------------------------------------

    def _read(self, formula: ParsedFormula) -> list[_Tree | None]:
        names = Names(self.names)
        trees: list[_Tree | None] = []
        for place, kind in enumerate(KINDS):
            tree: FormulaTree | None = getattr(formula, kind)
            if tree is None:
                trees.append(None)
                continue
            builder = ForestBuilder(names)
            builder.add(tree)
            forest = builder.finish()
            credits = np.array([self.scoring.credit(label) for label in tree.labels])
            trees.append(_Tree(Query(forest, self._weights_of(forest.symbols, place), credits), keys_of(forest, place)))
        return trees

    def _weights_of(self, symbols: npt.NDArray[np.int32], place: int) -> Floats:
        return self.postings.rarity_of(symbol_keys(symbols, place))

    def _pairs(self, trees: list[_Tree | None]) -> Floats:
        keys = _keys_of(trees)
        return self.postings.scores(keys, fast=self._is_compiled) if len(keys) else np.zeros(len(self))

    def _pairs_part(self, trees: list[_Tree | None], pairs: Floats, equal: npt.NDArray[np.bool_]) -> Floats:
        """Return the part of symbol pairs in some scores; ``equal`` formulas are the query's under one renaming."""
        least = self.scoring.renamed * self.postings.own_score(_keys_of(trees), self.scoring) if equal.any() else 0.0
        part: Floats = self.scoring.pairs * np.where(equal, np.maximum(pairs, least), pairs)
        return part

    def _aligned(self, tree: _Tree, place: int, few: Integers) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the part of the alignment in the scores of some formulas, and which trees are equal to the query's.

        Trees are equal under one renaming. Many or large trees are aligned in turns.
        """
        weights, equal = np.zeros(len(few)), np.zeros(len(few), dtype=bool)
        pairs = self._nodes(place, few) * len(tree.query)
        self._compared += int(pairs.sum())
        weigh = kernel.weigh if self._is_compiled else kernel.weigh_reference
        for part in _parts(pairs):
            weights[part], equal[part] = weigh(tree.query, self.forests[place], few[part], self._variable, self.scoring)
        return self._shares(tree, place, few) * weights, equal

    def _align(
        self,
        trees: list[_Tree | None],
        pairs: Floats,
        candidates: Integers,
        bounds: Floats,
        few: Integers,
        least: float,
    ) -> Integers:
        """Put the scores of a few candidates in the place of their bounds; return the few whose score may be ``least``.

        Each tree is aligned only where the bound is not below ``least`` by the trees before it.
        """
        equal = np.ones(len(few), dtype=bool)
        for place, tree in enumerate(trees):
            if tree is not None:
                able = bounds[:, few].sum(axis=0) * (1 + _ROOM) >= least
                few, equal = few[able], equal[able]
                bounds[1 + place, few], own = self._aligned(tree, place, candidates[few])
                equal &= own
        bounds[0, few] = self._pairs_part(trees, pairs[candidates[few]], equal)
        return few

    def _bounds(self, trees: list[_Tree | None], pairs: Floats, few: Integers) -> Floats:
        """Return upper bounds of the parts of the scores of some formulas: pairs, and each tree (3, formulas)."""
        bounds = np.zeros((1 + len(trees), len(few)))
        equal = np.ones(len(few), dtype=bool)
        for place, tree in enumerate(trees):
            if tree is not None:
                most, whole = self._most_aligned(tree, place, few)
                bounds[1 + place] = self._shares(tree, place, few) * most
                equal &= whole
        bounds[0] = self._pairs_part(trees, pairs[few], equal)
        return bounds

    def _nodes(self, place: int, few: Integers) -> Integers:
        """Return the numbers of nodes of the trees of some formulas."""
        bounds = self.forests[place].bounds
        return bounds[few + 1] - bounds[few]

    def _shares(self, tree: _Tree, place: int, few: Integers) -> Floats:
        """Return the factors by which aligned weights enter the scores of some formulas."""
        scoring = self.scoring
        factor = (1 - scoring.pairs) * (scoring.layout if place == 0 else 1 - scoring.layout)
        return factor / (max(tree.weight, 1e-9) ** (1 - scoring.size) * self._sizes[place][few])

    def _most_aligned(self, tree: _Tree, place: int, few: Integers) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return upper bounds of the aligned weights of some formulas, and which trees may be equal to the query's.

        The topmost node has a symbol of the formula, or is a variable or a number. Each other one shares a pair of
        classes with its parent, which counts its weight with the credit of another symbol; equal symbols give the rest
        of the weight. A tree of as many nodes that has all pairs of classes may be equal to the query's, and counts in
        full.
        """
        query = tree.query
        lower = np.flatnonzero(query.tree.parents >= 0)
        partial = query.weights * query.credits
        bound = self.postings.matched(tree.keys.direct, partial[lower], fast=self._is_compiled)[few]
        able = np.flatnonzero(bound >= partial[lower].sum() * (1 - _ROOM))
        whole = np.zeros(len(few), dtype=bool)
        whole[able[self._nodes(place, few[able]) == len(query)]] = True
        open_nodes = np.flatnonzero(query.credits < 1)
        if len(open_nodes):
            rest = query.weights[open_nodes] - partial[open_nodes]
            bound += self.postings.matched(tree.keys.symbols[open_nodes], rest, fast=self._is_compiled)[few]
        own = query.tree.classes == query.tree.symbols  # neither variables nor numbers
        least = float(partial[~own].max(initial=0.0))
        bound += self.postings.greatest(tree.keys.symbols[own], query.weights[own], least)[few]
        bound[whole] = tree.weight
        return np.minimum(bound, tree.weight), whole

    def _alignment(
        self, tree: FormulaTree, own: Forest, nodes: dict[int, int], kept: npt.NDArray[np.bool_]
    ) -> Alignment:
        labels = {node: self._symbols[own.symbols[other]] for node, other in nodes.items()}
        renaming = {
            tree.labels[node]: label
            for node, label in labels.items()
            if kept[node] and symbol_class(label) == VARIABLE and may_be_renamed(tree.labels[node], label)
        }
        same = (n for n in nodes if kept[n] and labels[n] == renaming.get(tree.labels[n], tree.labels[n]))
        return Alignment(nodes, frozenset(same), renaming)


def _keys_of(trees: Iterable[_Tree | None]) -> npt.NDArray[np.int64]:
    keys = [keys for tree in trees if tree is not None for keys, _ in tree.keys.tables()]
    return np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)


def _parts(sizes: Integers) -> list[slice]:
    """Return parts of at most LARGEST_BATCH formulas and some MOST_PAIRS pairs of nodes; one formula is no less.

    >>> _parts(np.array([9, MOST_PAIRS, 9, 9]))
    [slice(0, 1, None), slice(1, 4, None)]
    >>> [part.stop for part in _parts(np.ones(5000, dtype=np.int64))], _parts(np.zeros(0, dtype=np.int64))
    ([2048, 4096, 5000], [])
    """
    rooms = np.cumsum(sizes) // MOST_PAIRS
    batches = np.arange(len(sizes)) // LARGEST_BATCH
    cuts = np.flatnonzero((np.diff(rooms) != 0) | (np.diff(batches) != 0)) + 1
    ends = [*cuts.tolist(), len(sizes)] if len(sizes) else []
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []


def _least(scores: Floats, k: int) -> float:
    """Return a bound of the scores that equal the k-th best one in float32; -1 where there are fewer."""
    if len(scores) < k:
        return -1.0
    return float(np.nextafter(np.float32(np.partition(scores, -k)[-k]), np.float32(-1)))
