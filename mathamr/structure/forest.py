"""Trees of many formulas as flat arrays: symbols, classes, parents and edges, node after node.

>>> from graphs.formulas.tree import FormulaTree
>>> forest = ForestBuilder(Names())
>>> forest.add(FormulaTree("slt", ("V!x", "N!2"), (-1, 0), ("", "a")))
>>> forest.add(None)
>>> forest.add(FormulaTree("slt", ("V!y",), (-1,), ("",)))
>>> trees = forest.finish()
>>> trees.bounds.tolist(), trees.parents.tolist(), trees.owner.tolist()
([0, 2, 2, 3], [-1, 0, -1], [0, 0, 2])
>>> trees.take([2, 0]).parents.tolist()
[-1, -1, 1]
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.errors import RetrievalError
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind
from mathamr.structure.scoring import symbol_class

KINDS: tuple[TreeKind, TreeKind] = ("slt", "opt")
MAX_NAMES = 1 << 23  # symbols that a pair of them fits into 64 bits with
MAX_EDGES = 1 << 7
Integers = npt.NDArray[np.int32]


class Names:
    """Numbers of symbols and of edge labels.

    Args:
        known: names of an index, which keep their numbers and are not changed; new ones get numbers above them.
    """

    def __init__(self, known: Names | None = None) -> None:
        self._known_symbols: Mapping[str, int] = {} if known is None else known._symbols
        self._known_edges: Mapping[str, int] = {} if known is None else known._edges
        self._symbols: dict[str, int] = {}
        self._edges: dict[str, int] = {"": 0} if known is None else {}

    def symbol(self, symbol: str) -> int:
        """Return the number of a symbol; raise RetrievalError for more symbols than pairs have room for."""
        number = _number(symbol, self._known_symbols, self._symbols)
        if number >= MAX_NAMES:
            raise RetrievalError(f"more than {MAX_NAMES:,} different symbols; index fewer formulas together")
        return number

    def symbols(self) -> list[str]:
        """Return all symbols, by their numbers."""
        return [*self._known_symbols, *self._symbols]

    def edges(self) -> list[str]:
        """Return all edge labels, by their numbers."""
        return [*self._known_edges, *self._edges]

    @classmethod
    def of(cls, symbols: Sequence[str], edges: Sequence[str]) -> Names:
        """Return names by their numbers, as :meth:`symbols` and :meth:`edges` list them."""
        names = cls()
        names._symbols = {symbol: number for number, symbol in enumerate(symbols)}
        names._edges = {label: number for number, label in enumerate(edges)}
        return names

    def edge(self, label: str) -> int:
        """Return the number of an edge label; rare labels past :data:`MAX_EDGES` share the last number."""
        return min(_number(label, self._known_edges, self._edges), MAX_EDGES - 1)


def _number(name: str, known: Mapping[str, int], new: dict[str, int]) -> int:
    number = new.get(name)
    if number is None and (number := known.get(name)) is None:
        number = new[name] = len(known) + len(new)
    return number


@dataclass(frozen=True)
class Forest:
    """Trees of one kind of F formulas with N nodes in all; a formula without a tree has no node.

    Attributes:
        bounds: node numbers at which trees begin, and the last one ends (F + 1,).
        symbols: number of each node's symbol (N,).
        classes: number of the class of each node's symbol (N,).
        parents: node number of each node's parent, -1 at a root (N,).
        edges: number of the label of the edge to each node (N,).
    """

    bounds: npt.NDArray[np.int64]
    symbols: Integers
    classes: Integers
    parents: npt.NDArray[np.int64]
    edges: Integers

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(own.nbytes for own in (self.bounds, self.symbols, self.classes, self.parents, self.edges))

    @cached_property
    def owner(self) -> npt.NDArray[np.int64]:
        """Number of the formula of each node (N,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.bounds))

    def take(self, formulas: Sequence[int] | npt.NDArray[np.integer]) -> Forest:
        """Return the trees of some formulas, in the order given."""
        numbers = np.asarray(formulas, dtype=np.int64)
        sizes = self.bounds[numbers + 1] - self.bounds[numbers]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        shift = np.repeat(self.bounds[numbers] - bounds[:-1], sizes)
        nodes = np.arange(bounds[-1]) + shift
        parents = self.parents[nodes]
        parents = np.where(parents < 0, -1, parents - shift)
        return Forest(bounds, self.symbols[nodes], self.classes[nodes], parents, self.edges[nodes])


class ForestBuilder:
    """Forest in the making: trees are added one after another."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._bounds, self._parents = array("q", [0]), array("q")
        self._symbols, self._classes, self._edges = array("i"), array("i"), array("i")

    def add(self, tree: FormulaTree | None) -> None:
        """Add the tree of the next formula; None where it has none."""
        if tree is not None:
            start, names = len(self._symbols), self._names
            self._symbols.extend([names.symbol(label) for label in tree.labels])
            self._classes.extend([names.symbol(symbol_class(label)) for label in tree.labels])
            self._parents.extend([-1 if parent < 0 else start + parent for parent in tree.parents])
            self._edges.extend([names.edge(label) for label in tree.edge_labels])
        self._bounds.append(len(self._symbols))

    def finish(self) -> Forest:
        """Return the forest."""
        whole = [np.array(own, dtype=np.int32) for own in (self._symbols, self._classes, self._edges)]
        bounds, parents = np.array(self._bounds, dtype=np.int64), np.array(self._parents, dtype=np.int64)
        return Forest(bounds, whole[0], whole[1], parents, whole[2])


def forests_of(formulas: Iterable[ParsedFormula], names: Names) -> tuple[Forest, Forest]:
    """Return the symbol layout trees and the operator trees of formulas."""
    builders = [ForestBuilder(names) for _ in KINDS]
    for formula in formulas:
        for kind, builder in zip(KINDS, builders, strict=True):
            builder.add(getattr(formula, kind))
    return builders[0].finish(), builders[1].finish()
