"""Graphs into batches: flat tensors, batches by a budget, augmentation.

>>> from graphs.tensors import GraphArrays, encode
>>> arrays = GraphArrays.from_edges(
...     labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1)
>>> batch = collate([arrays, arrays])
>>> batch.labels.tolist(), batch.relation.tolist()
([9, 8, 4, 9, 8, 4], [4, 4, 5, 5, 10, 10, 11, 11])
>>> batch.edge_index[:, :4].tolist()
[[2, 5, 0, 3], [0, 3, 2, 5]]
>>> batch.representatives.tolist(), batch.ptr.tolist(), batch.virtual_kind.tolist()
([2, 5], [0, 1, 2], [-1, -1, 2, -1, -1, 2])
>>> collate_packed([encode(arrays), encode(arrays)]).relation.equal(batch.relation)
True

:func:`collate` is the plain form. :func:`collate_packed` gives the same tensors straight from the stored bytes: no
graph is unpacked on its own, and instead of sorting edges it sorts the runs of equal relations that each stored graph
consists of, a tenth as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphs.errors import GraphError
from graphs.tensors import HEADER_BYTES, HEADER_FIELDS, MAGIC, GraphArrays, check_header
from graphs.vocabulary import FIRST_VIRTUAL_LABEL, MASK, NUM_VIRTUAL_RELATIONS

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GraphBatch:
    """B graphs as one disconnected graph: N nodes, E edges (inverses included), V representatives.

    Attributes:
        labels: int64 (N,).
        edge_index: int64 (2, E), source and target.
        relation: int64 (E,), ascending over the whole batch.
        node_graph: int64 (N,), the graph of each node.
        is_virtual: bool (N,).
        virtual_kind: int64 (N,), ``VirtualKind`` of a virtual node, -1 for others.
        representatives: int64 (V,), nodes of the retrieval vectors, graph by graph, the document's last in each.
        representative_kind: int64 (V,), ``VirtualKind`` of each.
        ptr: int64 (B + 1,), graph ``i`` owns ``representatives[ptr[i]:ptr[i + 1]]``.
        num_graphs: B.
    """

    labels: Tensor
    edge_index: Tensor
    relation: Tensor
    node_graph: Tensor
    is_virtual: Tensor
    virtual_kind: Tensor
    representatives: Tensor
    representative_kind: Tensor
    ptr: Tensor
    num_graphs: int

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.labels.size(0)

    @property
    def num_edges(self) -> int:
        """E, inverses included."""
        return self.relation.size(0)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """The batch on ``device``."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> GraphBatch:
        """The batch in page-locked memory, from which copies to a GPU do not wait."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, function: Callable[[Tensor], Tensor]) -> GraphBatch:
        moved = {f.name: function(getattr(self, f.name)) for f in fields(self) if f.name != "num_graphs"}
        return replace(self, **moved)


def collate(graphs: Sequence[GraphArrays]) -> GraphBatch:
    """One batch of graphs. Edges of equal relation keep the order of the graphs, and their order within a graph."""
    nodes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
    offsets = np.cumsum(nodes) - nodes
    relations = _cat([graph.relations for graph in graphs])
    order = np.argsort(relations, kind="stable")
    edge_index = np.concatenate(
        [np.empty((2, 0), np.int64), *(g.edge_index + offset for g, offset in zip(graphs, offsets, strict=True))],
        axis=1,
    )
    labels = _cat([graph.labels for graph in graphs])
    representatives = _cat([g.representatives + offset for g, offset in zip(graphs, offsets, strict=True)])
    kinds = _cat([graph.representative_kinds for graph in graphs])
    counts = np.array([len(graph.representatives) for graph in graphs], dtype=np.int64)
    virtual = np.array([graph.num_virtual for graph in graphs], dtype=np.int64)
    return _batch(labels, edge_index[:, order], relations[order], nodes, virtual, representatives, kinds, counts)


def collate_packed(
    blobs: Sequence[bytes],
    *,
    post_ids: Sequence[str] | None = None,
    num_labels: int | None = None,
    num_relations: int | None = None,
) -> GraphBatch:
    """:func:`collate` of graphs in their stored form (``tensors.encode``).

    Args:
        post_ids: named in errors.
        num_labels: ids of the vocabulary; a label past them is refused. Likewise ``num_relations``.

    Raises:
        GraphError: when a blob is cut off or not of this format, or holds an id outside the vocabulary.
    """
    if not blobs:
        return collate([])
    numbers, starts, header = _words(blobs, post_ids)
    nodes, edges, runs, counts, virtual = header[:, 2:].T
    lengths = np.stack([nodes, edges, edges, runs, runs, counts, counts], axis=1)  # (B, 7), in the order of the body
    begins = starts[:, None] + np.cumsum(lengths, axis=1) - lengths  # (B, 7)
    offsets = np.cumsum(nodes) - nodes

    labels = _segments(numbers, begins[:, 0], nodes)
    run_relation = _segments(numbers, begins[:, 3], runs)
    run_length = _segments(numbers, begins[:, 4], runs)
    _check_ids(labels, nodes, num_labels, "label", post_ids)
    _check_ids(run_relation, runs, num_relations, "relation", post_ids)

    # A forward run with sources at s and targets at t becomes two runs of the batch: (s, t), and its inverse (t, s).
    graph = np.repeat(np.arange(len(blobs)), runs)  # of each run
    first = np.cumsum(run_length) - run_length  # of each run, among all forward edges
    within = first - (np.cumsum(edges) - edges)[graph]
    source, target = begins[graph, 1] + within, begins[graph, 2] + within
    relation = np.concatenate([run_relation, run_relation + 1])
    order = np.argsort(relation, kind="stable")
    length = np.concatenate([run_length, run_length])[order]
    step = np.arange(2 * int(edges.sum())) - np.repeat(np.cumsum(length) - length, length)
    offset = np.repeat(np.concatenate([offsets[graph], offsets[graph]])[order], length)
    edge_index = np.empty((2, len(step)), dtype=np.int64)
    edge_index[0] = numbers[np.repeat(np.concatenate([source, target])[order], length) + step]
    edge_index[1] = numbers[np.repeat(np.concatenate([target, source])[order], length) + step]
    edge_index += offset

    representatives = _segments(numbers, begins[:, 5], counts) + np.repeat(offsets, counts)
    kinds = _segments(numbers, begins[:, 6], counts)
    relations = np.repeat(relation[order], length)
    return _batch(labels, edge_index, relations, nodes, virtual, representatives, kinds, counts)


def _words(
    blobs: Sequence[bytes], post_ids: Sequence[str] | None
) -> tuple[npt.NDArray[np.unsignedinteger], Int64, Int64]:
    """All numbers of all blobs in one array, where each body begins in it, and the headers (B, 7)."""
    header = np.frombuffer(b"".join([blob[:HEADER_BYTES] for blob in blobs]), dtype="<u4")
    sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    if len(header) == len(HEADER_FIELDS) * len(blobs):
        header = header.reshape(len(blobs), len(HEADER_FIELDS)).astype(np.int64)
        width = header[:, 1]
        expected = HEADER_BYTES + width * (header[:, 2] + 2 * header[:, 3:6].sum(axis=1))
        sound = bool(((header[:, 0] == MAGIC) & (sizes == expected) & ((width == 2) | (width == 4))).all())
    else:
        sound = False
    if not sound:
        for i, blob in enumerate(blobs):
            check_header(blob, _name(post_ids, i))
    if (width == 2).all():
        numbers = np.frombuffer(b"".join(blobs), dtype="<u2")
        ends = np.cumsum(sizes // 2)
        return numbers, ends - sizes // 2 + HEADER_BYTES // 2, header
    parts = [np.frombuffer(blob, f"<u{w}", offset=HEADER_BYTES) for blob, w in zip(blobs, width, strict=True)]
    numbers = np.concatenate(parts, dtype=np.uint32)
    body = (sizes - HEADER_BYTES) // width
    return numbers, np.cumsum(body) - body, header


def _segments(numbers: npt.NDArray[np.unsignedinteger], begins: Int64, lengths: Int64) -> Int64:
    """``numbers[begins[i] : begins[i] + lengths[i]]`` of every i, one behind the other."""
    parts = [numbers[b:e] for b, e in zip(begins.tolist(), (begins + lengths).tolist(), strict=True)]
    return np.concatenate(parts, dtype=np.int64)


def _check_ids(ids: Int64, counts: Int64, bound: int | None, what: str, post_ids: Sequence[str] | None) -> None:
    if bound is None or not len(ids) or ids.max() < bound:
        return
    worst = int(ids.argmax())
    place = _name(post_ids, int(np.searchsorted(np.cumsum(counts), worst, side="right")))
    raise GraphError(
        f"post {place}: {what} {ids[worst]} is outside the vocabulary of {bound}; the file was made with another"
        " vocabulary, preprocess the collection again"
    )


def _name(post_ids: Sequence[str] | None, position: int) -> str:
    return f"at position {position} of the batch" if post_ids is None else post_ids[position]


def _cat(parts: Sequence[npt.NDArray[np.integer]]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _batch(
    labels: Int64,
    edge_index: Int64,
    relations: Int64,
    nodes: Int64,
    virtual: Int64,
    representatives: Int64,
    kinds: Int64,
    counts: Int64,
) -> GraphBatch:
    """The tensors, from flat arrays and the numbers of nodes, virtual nodes and representatives of each graph."""
    ends = np.cumsum(nodes)
    first = np.cumsum(virtual) - virtual
    places = np.arange(int(virtual.sum())) + np.repeat(ends - virtual - first, virtual)
    is_virtual = np.zeros(len(labels), dtype=np.bool_)
    is_virtual[places] = True
    virtual_kind = np.full(len(labels), -1, dtype=np.int64)
    virtual_kind[places] = labels[places] - FIRST_VIRTUAL_LABEL
    ptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ptr[1:])
    return GraphBatch(
        labels=torch.from_numpy(labels),
        edge_index=torch.from_numpy(edge_index),
        relation=torch.from_numpy(relations),
        node_graph=torch.from_numpy(np.repeat(np.arange(len(nodes)), nodes)),
        is_virtual=torch.from_numpy(is_virtual),
        virtual_kind=torch.from_numpy(virtual_kind),
        representatives=torch.from_numpy(representatives),
        representative_kind=torch.from_numpy(kinds),
        ptr=torch.from_numpy(ptr),
        num_graphs=len(nodes),
    )


def mask_nodes(batch: GraphBatch, probability: float, generator: torch.Generator) -> GraphBatch:
    """Each node that is not virtual gets the label ``[MASK]`` with ``probability`` (thesis, 3.4.4: 0.1).

    The generator may live on the CPU or on the batch's device.
    """
    drawn = torch.rand(batch.num_nodes, generator=generator, device=generator.device).to(batch.labels.device)
    return replace(batch, labels=batch.labels.masked_fill((drawn < probability) & ~batch.is_virtual, MASK))


def drop_edges(batch: GraphBatch, probability: float, generator: torch.Generator) -> GraphBatch:
    """Each edge is left out with ``probability`` (thesis, 3.4.4: 0.1), but for those of virtual nodes.

    An edge and its inverse are two edges and are drawn independently, as the thesis has it. Auxiliary edges stay also
    where they run between formula nodes and sentence roots (structures ``global`` and ``none``).
    """
    drawn = torch.rand(batch.num_edges, generator=generator, device=generator.device).to(batch.labels.device)
    source, target = batch.edge_index
    hierarchy = (batch.relation < NUM_VIRTUAL_RELATIONS) | batch.is_virtual[source] | batch.is_virtual[target]
    keep = (drawn >= probability) | hierarchy
    return replace(batch, edge_index=batch.edge_index[:, keep], relation=batch.relation[keep])
