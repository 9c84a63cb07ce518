"""Graphs into batches: flat tensors, batches by a budget, augmentation.

>>> from graphs.graph.tensors import GraphArrays, encode
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

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Sampler

from graphs.errors import ConfigError, GraphError
from graphs.graph.tensors import HEADER_BYTES, HEADER_FIELDS, MAGIC, GraphArrays, check_header, decode
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL, MASK, NUM_VIRTUAL_RELATIONS

Int64 = npt.NDArray[np.int64]

_NUMBERS_EACH = np.array([[1], [2], [2], [2]])  # a node has one number in the stored form, an edge, run ... a pair


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
        tensors = {f.name: value for f in fields(self) if isinstance(value := getattr(self, f.name), Tensor)}
        moved: dict[str, Any] = {name: function(tensor) for name, tensor in tensors.items()}
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
        GraphError: when a blob is cut off or not of this format, names a node that is not there, or holds an id
            outside the vocabulary.
    """
    if not blobs:
        return collate([])
    header, (labels, edges, runs, representatives) = _unpack(blobs, post_ids)
    _, _, nodes, num_edges, num_runs, num_representatives, num_virtual = header
    sound = (
        (_of_each(np.maximum, edges, 2 * num_edges) < nodes)
        & (_of_each(np.maximum, representatives[::2], num_representatives) < nodes)
        & (_of_each(np.add, runs[1::2], num_runs) == num_edges)
        & (num_virtual <= nodes)
    )
    for i in np.flatnonzero(~sound).tolist():
        decode(blobs[i], _name(post_ids, i))  # raises, and says what is wrong
    _check_ids(labels, nodes, num_labels, "label", post_ids)
    _check_ids(runs[::2], num_runs, num_relations, "relation", post_ids)
    offsets = np.cumsum(nodes) - nodes
    edges += np.repeat(offsets, 2 * num_edges)  # source, target, source, target ...

    # Each run stands in the batch twice: forward, its sources at the even places of `edges`, and as its inverse, whose
    # sources are the targets at the odd places. The other end of an edge at place i is at i ^ 1.
    length = runs[1::2]
    begin = 2 * (np.cumsum(length) - length)
    relation = np.concatenate([runs[::2], runs[::2] + 1])
    order = np.argsort(relation.astype(np.uint16) if relation.max(initial=0) < 1 << 16 else relation, kind="stable")
    length = np.concatenate([length, length])[order]
    place = np.arange(0, 2 * len(edges), 2)
    place += np.repeat(np.concatenate([begin, begin + 1])[order] - 2 * (np.cumsum(length) - length), length)
    edge_index = np.empty((2, len(edges)), dtype=np.int64)
    np.take(edges, place, out=edge_index[0], mode="wrap")  # the mode spares a copy: no place is out of bounds
    place ^= 1
    np.take(edges, place, out=edge_index[1], mode="wrap")
    return _batch(
        labels,
        edge_index,
        np.repeat(relation[order], length),
        nodes,
        num_virtual,
        representatives[::2] + np.repeat(offsets, num_representatives),
        representatives[1::2].copy(),
        num_representatives,
    )


def _unpack(blobs: Sequence[bytes], post_ids: Sequence[str] | None) -> tuple[Int64, list[Int64]]:
    """The headers, (7, B), and the four parts of the bodies, each over all graphs."""
    header = np.frombuffer(b"".join([blob[:HEADER_BYTES] for blob in blobs]), dtype="<u4").astype(np.int64)
    sound = len(header) == len(HEADER_FIELDS) * len(blobs)
    if sound:
        header = header.reshape(len(blobs), len(HEADER_FIELDS)).T
        magic, width = header[:2]
        bounds = np.zeros((5, len(blobs)), dtype=np.int64)  # of the parts, bytes from the start of each blob
        np.cumsum(header[2:6] * _NUMBERS_EACH, axis=0, out=bounds[1:])
        bounds = HEADER_BYTES + width * bounds
        sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
        sound = bool(((magic == MAGIC) & ((width == 2) | (width == 4)) & (bounds[4] == sizes)).all())
    if not sound:
        for i, blob in enumerate(blobs):
            check_header(blob, _name(post_ids, i))
    parts = []
    for begins, ends in pairwise(bounds.tolist()):
        pieces = [blob[begin:end] for blob, begin, end in zip(blobs, begins, ends, strict=True)]
        if (width == width[0]).all():
            parts.append(np.frombuffer(b"".join(pieces), f"<u{width[0]}").astype(np.int64))
        else:
            arrays = [np.frombuffer(piece, f"<u{size}") for piece, size in zip(pieces, width.tolist(), strict=True)]
            parts.append(np.concatenate(arrays, dtype=np.int64))
    return header, parts


def _of_each(function: np.ufunc, values: Int64, counts: Int64) -> Int64:
    """Sum or largest of the values of each graph, which follow one another; 0 for a graph without any. (B,)"""
    found = np.zeros(len(counts), dtype=np.int64)
    some = counts > 0
    if some.any():
        found[some] = function.reduceat(values, (np.cumsum(counts) - counts)[some])
    return found


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


class BudgetSampler(Sampler[list[int]]):
    """Batches of items (graphs, or pairs of graphs) that keep within a budget, by a plan fixed by seed and epoch.

    >>> sampler = BudgetSampler([5, 5, 9, 2], [8, 8, 16, 2], max_nodes=10, max_edges=20, max_items=32, shuffle=False)
    >>> list(sampler), list(sampler.sizes())
    ([[0, 1], [2], [3]], [(10, 16), (9, 16), (2, 2)])

    Items are taken in random order and put into the batch that is open, which closes when the next one does not fit. Of
    several ranks each gets every ``world_size``-th batch; the last few batches, where they do not suffice for all, are
    left out, so that all ranks take the same number of steps.

    Iterating goes on at ``position`` and ends with ``epoch`` moved on, so that a run that was stopped goes on with
    exactly the batches it has not had: see :meth:`state_dict`.

    Args:
        num_nodes: nodes of each item, (P,); of a pair both graphs together. Likewise ``num_edges``.
        max_nodes: nodes of a batch at most. Likewise ``max_edges``, ``max_items``.
        oversized: an item past the budget makes a batch of its own (``alone``) or is an error (``refuse``).
        names: of the items, for errors.

    Raises:
        GraphError: for an oversized item that is refused, with its size and the bound.
    """

    def __init__(
        self,
        num_nodes: Sequence[int] | Int64,
        num_edges: Sequence[int] | Int64,
        *,
        max_nodes: int,
        max_edges: int,
        max_items: int,
        seed: int = 0,
        shuffle: bool = True,
        oversized: Literal["alone", "refuse"] = "alone",
        names: Sequence[str] | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.num_nodes = np.asarray(num_nodes, dtype=np.int64)
        self.num_edges = np.asarray(num_edges, dtype=np.int64)
        self.max_nodes, self.max_edges, self.max_items = max_nodes, max_edges, max_items
        self.seed, self.shuffle, self.rank, self.world_size = seed, shuffle, rank, world_size
        self.epoch = 0
        self.position = 0
        self._planned: tuple[int, list[list[int]]] | None = None
        for what, sizes, bound in (("nodes", self.num_nodes, max_nodes), ("edges", self.num_edges, max_edges)):
            if oversized == "refuse" and sizes.max(initial=0) > bound:
                worst = int(sizes.argmax())
                name = worst if names is None else names[worst]
                raise GraphError(
                    f"item {name} has {sizes[worst]} {what}, a batch at most {bound}; raise the bound, leave the item"
                    " out, or let oversized items make a batch alone"
                )

    def plan(self, epoch: int) -> list[list[int]]:
        """The batches of an epoch for this rank: always the same for the same seed and epoch."""
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self._make_plan(epoch))
        return self._planned[1]

    def _make_plan(self, epoch: int) -> list[list[int]]:
        order = np.arange(len(self.num_nodes))
        if self.shuffle:
            np.random.default_rng([self.seed, epoch]).shuffle(order)
        batches: list[list[int]] = []
        batch: list[int] = []
        nodes = edges = 0
        sizes = zip(order.tolist(), self.num_nodes[order].tolist(), self.num_edges[order].tolist(), strict=True)
        for item, item_nodes, item_edges in sizes:
            nodes, edges = nodes + item_nodes, edges + item_edges
            if batch and (nodes > self.max_nodes or edges > self.max_edges or len(batch) == self.max_items):
                batches.append(batch)
                batch, nodes, edges = [], item_nodes, item_edges
            batch.append(item)
        if batch:
            batches.append(batch)
        steps = len(batches) // self.world_size
        return batches[self.rank : steps * self.world_size : self.world_size]

    def sizes(self) -> Iterator[tuple[int, int]]:
        """Nodes and edges of each batch of this epoch."""
        for batch in self.plan(self.epoch):
            yield int(self.num_nodes[batch].sum()), int(self.num_edges[batch].sum())

    def __len__(self) -> int:
        return len(self.plan(self.epoch))

    def __iter__(self) -> Iterator[list[int]]:
        batches = self.plan(self.epoch)
        while self.position < len(batches):
            self.position += 1
            yield batches[self.position - 1]
        self.epoch, self.position = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int | str]:
        """Where the sampler stands: epoch, and how many of its batches were handed out."""
        return {"epoch": self.epoch, "position": self.position, "plan": self._fingerprint()}

    def load_state_dict(self, state: Mapping[str, int | str]) -> None:
        """Go on where ``state`` was taken.

        Raises:
            ConfigError: when it was taken over other items, another budget, seed or number of ranks.
        """
        if state["plan"] != self._fingerprint():
            raise ConfigError(
                f"the saved sampler had plan {state['plan']}, this one {self._fingerprint()}: resume with the same"
                " items, budget, seed and number of ranks"
            )
        self.epoch, self.position = int(state["epoch"]), int(state["position"])

    def _fingerprint(self) -> str:
        budget = (self.max_nodes, self.max_edges, self.max_items, self.seed, self.shuffle, self.world_size)
        digest = hashlib.sha256(repr(budget).encode())
        digest.update(self.num_nodes.tobytes())
        digest.update(self.num_edges.tobytes())
        return digest.hexdigest()[:16]
