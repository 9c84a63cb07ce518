"""A graph with its virtual nodes as integer arrays.

>>> arrays = GraphArrays(
...     labels=np.array([9, 8, 4]), edge_index=np.array([[2, 0, 0, 1], [0, 2, 1, 0]]),
...     relations=np.array([4, 5, 10, 11]), representatives=np.array([2]), representative_kinds=np.array([2]),
...     num_virtual=1)
>>> arrays.num_nodes, arrays.num_edges
(3, 4)

Every edge is there in both directions, sorted by relation; relation ``2k + 1`` is the inverse of ``2k``, and its edges
are in the same order. :mod:`graphs.graph.stored` has the form that is stored, without virtual nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from graphs.errors import GraphTooLargeError

Int32 = npt.NDArray[np.int32]

MAX_NODES, MAX_EDGES = 500_000, 4_000_000
"""Of one graph, inverse edges counted. A graph cannot be encoded in parts: one past the budget of a batch is a batch
alone. ``train=modern``, for tens of gigabytes, encodes 1,000,000 nodes and 4,000,000 edges at once."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphArrays:
    """A graph: N nodes, E edges (inverses included), V representatives.

    Attributes:
        labels: int32 (N,), ids of the vocabulary.
        edge_index: int32 (2, E), source and target.
        relations: int32 (E,), ascending.
        representatives: int32 (V,), the nodes of the retrieval vectors: formulas, sentences, the document last.
        representative_kinds: uint8 (V,), ``VirtualKind`` of each.
        num_virtual: number of virtual nodes; they are the last ones, the document's the very last.
    """

    labels: Int32
    edge_index: Int32
    relations: Int32
    representatives: Int32
    representative_kinds: npt.NDArray[np.uint8]
    num_virtual: int

    @property
    def num_nodes(self) -> int:
        """Nodes, virtual ones included."""
        return len(self.labels)

    @property
    def num_edges(self) -> int:
        """Edges, inverses included."""
        return len(self.relations)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphArrays):
            return NotImplemented
        return all(np.array_equal(getattr(self, one.name), getattr(other, one.name)) for one in fields(self))

    __hash__ = None  # type: ignore[assignment]


def check_size(nodes: int, edges: int) -> None:
    """Refuse a graph with too many nodes or edges, inverse edges counted.

    Raises:
        GraphTooLargeError: with both numbers.
    """
    for number, bound, what in ((nodes, MAX_NODES, "nodes"), (edges, MAX_EDGES, "edges")):
        if number > bound:
            raise GraphTooLargeError(
                f"a graph of {number:,} {what}; at most {bound:,} are encoded; cut the post into several"
            )
