"""Batches straight from stored graphs: the fast way from preprocessed.db to a :class:`GraphBatch`.

>>> from graphs.graph.stored import StoredArrays, encode
>>> arrays = StoredArrays.from_edges(
...     labels=[8, 9, 10], edges=[(1, 12, 2), (0, 10, 1)], root=0,
...     formulas=[(1, 0)], trees=[[2]], sentence_roots=[0], concepts=[[0, 1]])
>>> batch = collate_packed([encode(arrays), encode(arrays)], VirtualNodeSpec(structure="global"))
>>> batch.labels.tolist(), batch.relation.tolist()[:6]
([8, 9, 10, 4, 8, 9, 10, 4], [4, 4, 4, 4, 4, 4])
>>> batch.representatives.tolist(), batch.ptr.tolist(), batch.representative_kind.tolist()
([1, 0, 3, 5, 4, 7], [0, 3, 6], [0, 1, 2, 0, 1, 2])

The plain way adds virtual nodes graph by graph (:func:`graphs.graph.tensors.to_arrays`) and sorts all edges by relation
(:func:`graphs.graph.batching.collate`). Here no graph is unpacked individually. Edges of virtual nodes have the lowest
relations, so they come first and need no sorting; of the others, the runs of equal relations that each stored graph
consists of are sorted, a tenth as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from graphs.errors import GraphError
from graphs.graph.batching import GraphBatch, batch_of
from graphs.graph.hierarchy import Int64, Parts, hierarchy
from graphs.graph.stored import BODY, HEADER_BYTES, HEADER_FIELDS, MAGIC, check_header, decode
from graphs.graph.tensors import GraphArrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL, NUM_VIRTUAL_RELATIONS


def collate_packed(
    blobs: Sequence[bytes],
    spec: VirtualNodeSpec,
    *,
    post_ids: Sequence[str] | None = None,
    num_labels: int | None = None,
    num_relations: int | None = None,
    checked: bool = False,
) -> GraphBatch:
    """Join stored graphs (:func:`graphs.graph.stored.encode`) into a batch, with virtual nodes.

    Args:
        spec: structure and connectivity of the virtual nodes; the formula mode is that of the stored graphs.
        post_ids: ids that errors name.
        num_labels: number of labels in the vocabulary; a higher id is refused.
        num_relations: number of relations in the vocabulary; a higher id is refused.
        checked: every blob was in a batch before; its content is not checked again.

    Raises:
        GraphError: when a blob is cut off or not of this format, names a node that does not exist, or holds an id
            outside the vocabulary.
    """
    header, (labels, edges, tree_nodes, concepts, member_nodes, runs, sizes) = _unpack(blobs, post_ids)
    _, _, nodes, num_edges, num_runs, *_, root = header
    relation, length = runs[::2], runs[1::2]
    place, size = sizes[::2], sizes[1::2]
    parts = Parts(nodes, header[5:7].T, header[7:9].T, root, tree_nodes, concepts, member_nodes, place, size)
    if not checked:
        if not _is_sound(parts, edges, num_edges, relation, length, num_runs):
            for i, blob in enumerate(blobs):
                decode(blob, _name(post_ids, i))  # raises, and says what is wrong
        _check_ids(labels, nodes, num_labels, "label", post_ids)
        _check_ids(relation, num_runs, num_relations, "relation", post_ids)
    placed = hierarchy(parts, spec)
    edges += np.repeat(placed.offsets, 2 * num_edges)
    virtual = tuple(chain.from_iterable((ends, ends[::-1]) for ends in placed.edges))  # with inverses
    counts = [len(sources) for sources, _ in virtual]
    first = sum(counts)  # edges of virtual nodes, which the others follow
    edge_index = np.empty((2, first + 2 * int(num_edges.sum())), dtype=np.int64)
    for row in (0, 1):
        np.concatenate([ends[row] for ends in virtual], out=edge_index[row, :first])
    relation, length = _sorted_runs(edges, length, relation, edge_index[:, first:])
    counts_of_all = np.concatenate([np.array(counts), length])
    virtual_kind = np.full(len(labels) + len(placed.nodes), -1)
    virtual_kind[placed.nodes] = placed.kinds
    all_labels = virtual_kind + FIRST_VIRTUAL_LABEL
    all_labels[virtual_kind < 0] = labels
    return batch_of(
        all_labels,
        edge_index,
        np.repeat(np.concatenate([_VIRTUAL_RELATIONS, relation]), counts_of_all),
        nodes + placed.num_virtual,
        virtual_kind,
        placed.representatives,
        placed.representative_kinds,
        placed.num_representatives,
    )


_VIRTUAL_RELATIONS = np.arange(NUM_VIRTUAL_RELATIONS)


def extended(blob: bytes, spec: VirtualNodeSpec, post_id: str) -> GraphArrays:
    """Decode one stored graph with its virtual nodes; raises as :func:`collate_packed`."""
    batch = collate_packed([blob], spec, post_ids=[post_id])
    return GraphArrays(
        labels=batch.labels.numpy().astype(np.int32),
        edge_index=batch.edge_index.numpy().astype(np.int32),
        relations=batch.relation.numpy().astype(np.int32),
        representatives=batch.representatives.numpy().astype(np.int32),
        representative_kinds=batch.representative_kind.numpy().astype(np.uint8),
        num_virtual=int(batch.is_virtual.sum()),
    )


def _sorted_runs(edges: Int64, length: Int64, relation: Int64, edge_index: Int64) -> tuple[Int64, Int64]:
    """Write edges and their inverses to ``edge_index``, sorted by relation; return relation and length of each run.

    Each run is in the batch twice: forward, its sources at even places of ``edges`` and its targets after them; and as
    its inverse, whose sources are the targets of the other.
    """
    begin = 2 * (np.cumsum(length) - length)
    both = np.concatenate([relation, relation + 1])
    order = np.argsort(both.astype(np.uint16) if both.max(initial=0) < 1 << 16 else both, kind="stable")
    length = np.concatenate([length, length])[order]
    place = np.repeat(np.concatenate([begin, begin + 1])[order] - 2 * (np.cumsum(length) - length), length)
    place += np.arange(0, 2 * len(place), 2)
    np.take(edges, place, out=edge_index[0], mode="wrap")  # the mode spares a copy: no place is out of bounds
    place ^= 1  # of the other end
    np.take(edges, place, out=edge_index[1], mode="wrap")
    return both[order], length


def _unpack(blobs: Sequence[bytes], post_ids: Sequence[str] | None) -> tuple[Int64, list[Int64]]:
    """Return the headers, (10, B), and the seven parts of the bodies (``BODY``), each over all graphs."""
    sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
    sound = bool(sizes.min(initial=HEADER_BYTES) >= HEADER_BYTES)
    if sound:
        header = np.frombuffer(b"".join([blob[:HEADER_BYTES] for blob in blobs]), dtype="<u4").astype(np.int64)
        header = header.reshape(len(blobs), len(HEADER_FIELDS)).T
        magic, width = header[:2]
        bounds = np.zeros((len(BODY) + 1, len(blobs)), dtype=np.int64)  # of the parts, bytes from the start
        np.cumsum(BODY @ header[2:-1], axis=0, out=bounds[1:])
        bounds = HEADER_BYTES + width * bounds
        sound = bool(((magic == MAGIC) & ((width == 2) | (width == 4)) & (bounds[-1] == sizes)).all())
    if not sound:
        for i, blob in enumerate(blobs):
            check_header(blob, _name(post_ids, i))
    parts = []
    widths = set(width.tolist())
    for begins, ends in pairwise(bounds.tolist()):
        pieces = [blob[begin:end] for blob, begin, end in zip(blobs, begins, ends, strict=True)]
        if len(widths) < 2:
            parts.append(np.frombuffer(b"".join(pieces), f"<u{max(widths, default=2)}").astype(np.int64))
        else:
            arrays = [np.frombuffer(piece, f"<u{size}") for piece, size in zip(pieces, width.tolist(), strict=True)]
            parts.append(np.concatenate(arrays, dtype=np.int64))
    return header, parts


def _is_sound(parts: Parts, edges: Int64, num_edges: Int64, relation: Int64, length: Int64, num_runs: Int64) -> bool:
    """Return whether all graphs name existing nodes, in the right number, and no relation of virtual nodes."""
    return bool(
        (parts.root < parts.nodes).all()
        and _below(edges, 2 * num_edges, parts.nodes)
        and _below(parts.tree_nodes, parts.constituents[:, 0], parts.nodes)
        and _below(parts.concepts, parts.constituents[:, 1], parts.nodes)
        and _below(parts.member_nodes, parts.members.sum(1), parts.nodes)
        and _add_up(parts.size, parts.members.ravel(), parts.constituents.ravel())
        and _add_up(length, num_runs, num_edges)
        and relation.min(initial=NUM_VIRTUAL_RELATIONS) >= NUM_VIRTUAL_RELATIONS
    )


def _below(values: Int64, counts: Int64, bounds: Int64) -> bool:
    """Return whether consecutive runs of ``counts`` values are below their ``bounds``."""
    some = counts > 0
    begin = np.cumsum(counts) - counts
    return not some.any() or bool((np.maximum.reduceat(values, begin[some]) < bounds[some]).all())


def _add_up(values: Int64, counts: Int64, sums: Int64) -> bool:
    """Return whether consecutive runs of ``counts`` values have the sums ``sums``."""
    totals = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, out=totals[1:])
    return bool((totals[np.cumsum(counts)] == np.cumsum(sums)).all())


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
