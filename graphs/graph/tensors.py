"""A graph with its virtual nodes as integer arrays.

>>> arrays = GraphArrays.from_edges(
...     labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1)
>>> arrays.relations.tolist(), arrays.edge_index.tolist()
([4, 5, 10, 11], [[2, 0, 0, 1], [0, 2, 1, 0]])

Every edge is there in both directions, sorted by relation; relation ``2k + 1`` is the inverse of ``2k``, and its edges
are in the same order. :mod:`graphs.graph.stored` has the form that is stored, without virtual nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from graphs.errors import GraphTooLargeError
from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.virtual_nodes import VirtualNodeSpec, add_virtual_nodes
from graphs.graph.vocabulary import Vocabulary, own_roles

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

    @classmethod
    def from_edges(
        cls,
        labels: Sequence[int],
        edges: Sequence[tuple[int, int, int]],
        representatives: Sequence[int],
        representative_kinds: Sequence[int],
        num_virtual: int,
    ) -> GraphArrays:
        """Return tensors of forward edges (source, even relation, target) with inverses, stably sorted by relation."""
        forward = np.asarray(edges, dtype=np.int32).reshape(-1, 3)  # (E / 2, 3)
        source, relations, target = forward[np.argsort(forward[:, 1], kind="stable")].T
        edge_index = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])  # (2, E)
        both = np.concatenate([relations, relations + 1])
        order = np.argsort(both, kind="stable")
        return cls(
            labels=np.asarray(labels, dtype=np.int32),
            edge_index=edge_index[:, order],
            relations=both[order],
            representatives=np.asarray(representatives, dtype=np.int32),
            representative_kinds=np.asarray(representative_kinds, dtype=np.uint8),
            num_virtual=num_virtual,
        )

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


def to_arrays(graph: DocumentGraph, spec: VirtualNodeSpec, vocabulary: Vocabulary) -> GraphArrays:
    """Virtual nodes by ``spec``, ids by ``vocabulary``, inverse edges added, sorted by relation.

    Raises:
        GraphTooLargeError: when there are more than :data:`MAX_NODES` or :data:`MAX_EDGES`.
    """
    check_size(len(graph.labels), 2 * len(graph.edges))
    extended = add_virtual_nodes(own_roles(graph), spec)
    check_size(len(extended.labels), 2 * len(extended.edges))
    label_id, relation_id = vocabulary.label_id, vocabulary.relation_id
    labels = [label_id(label, kind) for label, kind in zip(extended.labels, extended.kinds, strict=False)]
    labels += [vocabulary.labels.index(label) for label in extended.labels[len(labels) :]]
    return GraphArrays.from_edges(
        labels=labels,
        edges=[(source, relation_id(role), target) for source, role, target in extended.edges],
        representatives=extended.representatives,
        representative_kinds=extended.representative_kinds,
        num_virtual=extended.num_virtual,
    )


def check_size(nodes: int, edges: int) -> None:
    """Raise GraphTooLargeError for a graph with too many nodes or edges, inverse edges counted."""
    for number, bound, what in ((nodes, MAX_NODES, "nodes"), (edges, MAX_EDGES, "edges")):
        if number > bound:
            raise GraphTooLargeError(
                f"a graph of {number:,} {what}; at most {bound:,} are encoded; cut the post into several"
            )
