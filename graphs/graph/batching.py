"""Graphs into batches: flat tensors, batches by a budget, augmentation.

>>> from graphs.graph.tensors import GraphArrays
>>> arrays = GraphArrays.from_edges(
...     labels=[9, 8, 4], edges=[(0, 10, 1), (2, 4, 0)], representatives=[2], representative_kinds=[2], num_virtual=1)
>>> batch = collate([arrays, arrays])
>>> batch.labels.tolist(), batch.relation.tolist()
([9, 8, 4, 9, 8, 4], [4, 4, 5, 5, 10, 10, 11, 11])
>>> batch.edge_index[:, :4].tolist()
[[2, 5, 0, 3], [0, 3, 2, 5]]
>>> batch.representatives.tolist(), batch.ptr.tolist(), batch.virtual_kind.tolist()
([2, 5], [0, 1, 2], [-1, -1, 2, -1, -1, 2])

:func:`collate` is the plain form; :func:`graphs.graph.packed.collate_packed` gives the same tensors straight from the
stored bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphs.graph.tensors import GraphArrays
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL, MASK, NUM_VIRTUAL_RELATIONS

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
        sentence_vectors: float32 (S, k), vectors of the text of the S sentence virtual nodes in their order, where the
            store of the graphs has such.
        has_threads: graphs are threads of posts (:mod:`graphs.graph.threads`), with labels of their own.
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
    sentence_vectors: Tensor | None = None
    has_threads: bool = False

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.labels.size(0)

    @property
    def num_edges(self) -> int:
        """E, inverses included."""
        return self.relation.size(0)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """Return the batch on ``device``."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> GraphBatch:
        """Return the batch in page-locked memory, which GPUs copy without waiting."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, function: Callable[[Tensor], Tensor]) -> GraphBatch:
        tensors = {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)}
        moved: dict[str, Any] = {name: function(tensor) for name, tensor in tensors.items()}
        return replace(self, **moved)


def collate(graphs: Sequence[GraphArrays]) -> GraphBatch:
    """Join graphs into a batch. Edges of equal relation keep the order of the graphs, and their order in a graph."""
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
    is_virtual = [np.arange(graph.num_nodes) >= graph.num_nodes - graph.num_virtual for graph in graphs]
    mask = np.concatenate([np.empty(0, np.bool_), *is_virtual])
    virtual_kind = np.where(mask, labels - FIRST_VIRTUAL_LABEL, -1)
    return batch_of(labels, edge_index[:, order], relations[order], nodes, virtual_kind, representatives, kinds, counts)


def _cat(parts: Sequence[npt.NDArray[np.integer]]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *parts])


def batch_of(
    labels: Int64,
    edge_index: Int64,
    relations: Int64,
    nodes: Int64,
    virtual_kind: Int64,
    representatives: Int64,
    kinds: Int64,
    counts: Int64,
) -> GraphBatch:
    """Join some graphs into a batch, from flat arrays as of :class:`GraphBatch`.

    Args:
        nodes: number of nodes of each graph, (B,).
        kinds: ``VirtualKind`` of each representative, (V,).
        counts: number of representatives of each graph, (B,).
    """
    ptr = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=ptr[1:])
    return GraphBatch(
        labels=torch.from_numpy(labels),
        edge_index=torch.from_numpy(edge_index),
        relation=torch.from_numpy(relations),
        node_graph=torch.from_numpy(np.repeat(np.arange(len(nodes)), nodes)),
        is_virtual=torch.from_numpy(virtual_kind >= 0),
        virtual_kind=torch.from_numpy(virtual_kind),
        representatives=torch.from_numpy(representatives),
        representative_kind=torch.from_numpy(kinds),
        ptr=torch.from_numpy(ptr),
        num_graphs=len(nodes),
    )


def mask_nodes(batch: GraphBatch, probability: float, generator: torch.Generator) -> GraphBatch:
    """Label each node that is not virtual ``[MASK]`` with ``probability`` (thesis, 3.4.4: 0.1).

    The generator may live on the CPU or on the batch's device.
    """
    drawn = torch.rand(batch.num_nodes, generator=generator, device=generator.device).to(batch.labels.device)
    return replace(batch, labels=batch.labels.masked_fill((drawn < probability) & ~batch.is_virtual, MASK))


def drop_edges(batch: GraphBatch, probability: float, generator: torch.Generator) -> GraphBatch:
    """Drop each edge with ``probability`` (thesis, 3.4.4: 0.1), except those of virtual nodes.

    An edge and its inverse are two edges and are drawn independently, as the thesis has it. Auxiliary edges stay also
    where they run between formula nodes and sentence roots (structures ``global`` and ``none``).
    """
    drawn = torch.rand(batch.num_edges, generator=generator, device=generator.device).to(batch.labels.device)
    source, target = batch.edge_index
    of_virtual_node = batch.is_virtual.index_select(0, source) | batch.is_virtual.index_select(0, target)
    hierarchy = (batch.relation < NUM_VIRTUAL_RELATIONS) | of_virtual_node
    kept = torch.nonzero((drawn >= probability) | hierarchy).squeeze(1)
    return replace(
        batch, edge_index=batch.edge_index.index_select(1, kept), relation=batch.relation.index_select(0, kept)
    )


def within_budget(
    num_nodes: Sequence[int] | Int64, num_edges: Sequence[int] | Int64, *, max_nodes: int, max_edges: int
) -> list[list[int]]:
    """Cut a sequence of graphs into batches that keep within a budget; return their places in order.

    >>> within_budget([5, 5, 9, 2], [8, 8, 16, 2], max_nodes=10, max_edges=20)
    [[0, 1], [2], [3]]

    A batch closes when the next graph does not fit. A graph larger than the budget is alone in its batch.
    """
    batches: list[list[int]] = []
    nodes = edges = 0
    for place, (graph_nodes, graph_edges) in enumerate(zip(num_nodes, num_edges, strict=True)):
        nodes, edges = nodes + int(graph_nodes), edges + int(graph_edges)
        if not batches or nodes > max_nodes or edges > max_edges:
            batches.append([])
            nodes, edges = int(graph_nodes), int(graph_edges)
        batches[-1].append(place)
    return batches
