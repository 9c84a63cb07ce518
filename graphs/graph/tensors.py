"""A graph as integer arrays, and as the compact bytes that preprocessed.db stores.

>>> import numpy as np
>>> arrays = GraphArrays.from_edges(
...     labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1)
>>> arrays.relations.tolist(), arrays.edge_index.tolist()
([4, 5, 10, 11], [[2, 0, 0, 1], [0, 2, 1, 0]])
>>> blob = encode(arrays)
>>> len(blob), decode(blob, "255") == arrays
(54, True)
>>> decode(blob[:-2], "255")
Traceback (most recent call last):
    ...
graphs.errors.GraphError: post 255: stored graph has 52 bytes, its header says 54; preprocess the collection again

Every edge is there in both directions, sorted by relation; relation ``2k + 1`` is the inverse of ``2k`` and its edges
stand in the same order, so only forward edges are stored, and relations as runs. All numbers are little-endian:

======================  ==========================================================================
header, 7 of 4 bytes    magic and format; bytes a number (2 or 4); nodes; forward edges; runs;
                        representatives; virtual nodes
body, 2 or 4 bytes      labels; source and target of each edge; relation and length of each run;
                        node and kind of each representative
======================  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.errors import Failure, GraphError, GraphTooLargeError, MathAMRError
from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.virtual_nodes import VirtualNodeSpec, add_virtual_nodes
from graphs.graph.vocabulary import Decode, Row, Vocabulary, formula_map_of, own_roles

Int32 = npt.NDArray[np.int32]

MAGIC = 0x4D410001  # "MA", format 1
HEADER_BYTES = 28
MAX_NODES, MAX_EDGES = 500_000, 4_000_000
"""Of one graph, inverse edges counted. A graph cannot be encoded in parts: one past the budget of a batch is a batch of
its own. ``train=modern``, for tens of gigabytes, encodes 1,000,000 nodes and 4,000,000 edges at once."""
HEADER_FIELDS = ("magic", "width", "nodes", "edges", "runs", "representatives", "virtual")


@dataclass(frozen=True, slots=True, eq=False)
class GraphArrays:
    """One graph: N nodes, E edges (inverses included), V representatives.

    Attributes:
        labels: int32 (N,), ids of the vocabulary.
        edge_index: int32 (2, E), source and target.
        relations: int32 (E,), ascending.
        representatives: int32 (V,), the nodes of the retrieval vectors: formulas, sentences, the document last.
        representative_kinds: uint8 (V,), ``VirtualKind`` of each.
        num_virtual: the last so many nodes are virtual, the document's the very last.
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
        """From forward edges (source, even relation, target): adds the inverses and sorts by relation, stably."""
        forward = np.asarray(edges, dtype=np.int32).reshape(-1, 3)  # (E / 2, 3)
        source, relations, target = forward[np.argsort(forward[:, 1], kind="stable")].T
        edge_index, relations = with_inverses(source, target, relations)
        return cls(
            labels=np.asarray(labels, dtype=np.int32),
            edge_index=edge_index,
            relations=relations,
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
        return self.num_virtual == other.num_virtual and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("labels", "edge_index", "relations", "representatives", "representative_kinds")
        )

    __hash__ = None  # type: ignore[assignment]


def with_inverses(source: Int32, target: Int32, relations: Int32) -> tuple[Int32, Int32]:
    """Edges (2, E) and relations (E,) with inverses, sorted; from forward edges sorted by relation, each (E / 2,)."""
    edge_index = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])  # (2, E)
    both = np.concatenate([relations, relations + 1])
    order = np.argsort(both, kind="stable")
    return edge_index[:, order], both[order]


def to_arrays(graph: DocumentGraph, spec: VirtualNodeSpec, vocabulary: Vocabulary) -> GraphArrays:
    """Virtual nodes by ``spec``, ids by ``vocabulary``, inverse edges added, sorted by relation.

    Raises:
        GraphTooLargeError: when there are more than :data:`MAX_NODES` or :data:`MAX_EDGES`.
    """
    _check_size(len(graph.labels), 2 * len(graph.edges))
    extended = add_virtual_nodes(own_roles(graph), spec)
    _check_size(len(extended.labels), 2 * len(extended.edges))
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


def _check_size(nodes: int, edges: int) -> None:
    for number, bound, what in ((nodes, MAX_NODES, "nodes"), (edges, MAX_EDGES, "edges")):
        if number > bound:
            raise GraphTooLargeError(
                f"a graph of {number:,} {what}; at most {bound:,} are encoded; cut the post into several"
            )


def encode(arrays: GraphArrays) -> bytes:
    """The stored form of a graph.

    Raises:
        GraphError: when its edges are not sorted by relation with every inverse in its place, or lead to nodes that
            are not there.
    """
    is_forward = arrays.relations % 2 == 0
    source, target = arrays.edge_index[:, is_forward]
    relations = arrays.relations[is_forward]
    edge_index, both = with_inverses(source, target, relations)
    if not (np.array_equal(both, arrays.relations) and np.array_equal(edge_index, arrays.edge_index)):
        raise GraphError("edges are not sorted by relation with inverses in the same order; use GraphArrays.from_edges")
    starts = np.flatnonzero(np.diff(relations, prepend=-1))
    runs, lengths = relations[starts], np.diff(starts, append=len(relations))
    representatives = (arrays.representatives, arrays.representative_kinds)
    pairs = [np.stack(pair, axis=1).ravel() for pair in ((source, target), (runs, lengths), representatives)]
    for what, ends in (("an edge joins", arrays.edge_index), ("a representative is", arrays.representatives)):
        if ends.size and not 0 <= ends.min() <= ends.max() < arrays.num_nodes:
            worst = ends.min() if ends.min() < 0 else ends.max()
            raise GraphError(f"{what} node {worst}, but the graph has the nodes 0..{arrays.num_nodes - 1}")
    body = np.concatenate([arrays.labels, *pairs])
    width = 2 if body.max(initial=0) < 1 << 16 else 4
    header = (
        MAGIC,
        width,
        arrays.num_nodes,
        len(source),
        len(runs),
        len(arrays.representatives),
        arrays.num_virtual,
    )
    return np.asarray(header, dtype="<u4").tobytes() + body.astype(f"<u{width}").tobytes()


def decode(blob: bytes, post_id: str) -> GraphArrays:
    """The inverse of :func:`encode`; ``post_id`` is named in errors.

    Raises:
        GraphError: when the bytes are cut off, are no stored graph of this format, or name a node that is not there.
    """
    _, width, nodes, edges, runs, _, virtual = check_header(blob, post_id)
    body = np.frombuffer(blob, dtype=f"<u{width}", offset=HEADER_BYTES).astype(np.int32)
    bounds = np.cumsum([nodes, 2 * edges, 2 * runs])
    labels, *pairs = np.split(body, bounds)
    (source, target), (relation, lengths), (nodes_of, kinds) = (part.reshape(-1, 2).T for part in pairs)
    if lengths.sum() != edges:
        raise GraphError(f"post {post_id}: runs of {lengths.sum()} edges, header says {edges}; preprocess again")
    if virtual > nodes:
        raise GraphError(f"post {post_id}: {virtual} of {nodes} nodes are virtual, says the header; preprocess again")
    for what, ends in (("an edge joins", np.append(source, target)), ("a representative is", nodes_of)):
        if len(ends) and not 0 <= ends.min() <= ends.max() < nodes:
            worst = ends.max() if ends.max() >= nodes else ends.min()
            raise GraphError(
                f"post {post_id}: {what} node {worst}, but the graph has the nodes 0..{nodes - 1}; the file is "
                "damaged, preprocess the collection again"
            )
    edge_index, relations = with_inverses(source, target, np.repeat(relation, lengths))
    return GraphArrays(labels, edge_index, relations, nodes_of, kinds.astype(np.uint8), virtual)


def check_header(blob: bytes, post_id: str) -> tuple[int, ...]:
    """The seven numbers of the header (``HEADER_FIELDS``), once they fit the length of the blob.

    Raises:
        GraphError: when they do not.
    """
    if len(blob) < HEADER_BYTES:
        raise GraphError(f"post {post_id}: stored graph has {len(blob)} bytes, less than a header; preprocess again")
    header = tuple(np.frombuffer(blob, dtype="<u4", count=len(HEADER_FIELDS)).tolist())
    magic, width, nodes, edges, runs, representatives, _ = header
    if magic != MAGIC or width not in (2, 4):
        raise GraphError(
            f"post {post_id}: not a stored graph of this version (begins {blob[:8].hex()}); preprocess again"
        )
    expected = HEADER_BYTES + width * (nodes + 2 * edges + 2 * runs + 2 * representatives)
    if len(blob) != expected:
        raise GraphError(
            f"post {post_id}: stored graph has {len(blob)} bytes, its header says {expected};"
            " preprocess the collection again"
        )
    return header


class Convert:
    """Lives in the worker processes of ``store.build``: rows -> what preprocessed.db holds of them.

    For each row ``(post id, nodes, edges, packed graph)``, or the failure. It stands here because this module, unlike
    the store, needs no torch, which takes each process seconds to import.
    """

    def __init__(self, decode: Decode, spec: VirtualNodeSpec, vocabulary: Vocabulary) -> None:
        self._decode = decode
        self._spec = spec
        self._vocabulary = vocabulary

    def __call__(self, rows: list[Row]) -> list[tuple[str, int, int, bytes] | Failure]:
        return [self._convert(*row) for row in rows]

    def _convert(self, post_id: str, text: str, formula_map: str) -> tuple[str, int, int, bytes] | Failure:
        try:
            _check_size(text.count(" / "), 0)  # of each node that is no constant: reading a million takes a minute
            graph = self._decode(text, formula_map_of(formula_map))
            arrays = to_arrays(graph, self._spec, self._vocabulary)
            blob = encode(arrays)
        except MathAMRError as error:
            message = str(error).encode(errors="backslashreplace").decode()  # may quote what UTF-8 has no bytes for
            return Failure(post_id, "tensors", getattr(error, "kind", type(error).__name__), message)
        return post_id, arrays.num_nodes, arrays.num_edges, blob


def worker_died(rows: list[Row]) -> list[tuple[str, int, int, bytes] | Failure]:
    """The records of rows that took their process down with them."""
    message = "the process that converted this graph died, out of memory perhaps"
    return [Failure(post_id, "tensors", "worker_died", message) for post_id, _, _ in rows]
