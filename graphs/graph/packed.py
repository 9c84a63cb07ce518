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
(:func:`graphs.graph.batching.collate`). Here no graph is unpacked on its own. Edges of virtual nodes have the lowest
relations, so they come first and need no sorting; of the others, the runs of equal relations that each stored graph
consists of are sorted, a tenth as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

from graphs.errors import GraphError
from graphs.graph.batching import GraphBatch, batch_of
from graphs.graph.hierarchy import Hierarchy, Int64, Parts, hierarchy
from graphs.graph.stored import HEADER_BYTES, HEADER_FIELDS, MAGIC, NUMBERS_EACH, check_header, decode
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
) -> GraphBatch:
    """One batch of stored graphs (:func:`graphs.graph.stored.encode`), with virtual nodes.

    Args:
        spec: structure and connectivity of the virtual nodes; the formula mode is that of the stored graphs.
        post_ids: ids that errors name.
        num_labels: number of labels in the vocabulary; a higher id is refused.
        num_relations: number of relations in the vocabulary; a higher id is refused.

    Raises:
        GraphError: when a blob is cut off or not of this format, names a node that does not exist, or holds an id
            outside the vocabulary.
    """
    header, (labels, ends, runs, formula, sentence, tree, concept) = _unpack(blobs, post_ids)
    _, _, nodes, num_edges, num_runs, formulas, sentences, tree_nodes, concepts, root = header
    relation, length = runs[::2], runs[1::2]
    parts = Parts(
        nodes=nodes,
        formulas=formulas,
        sentences=sentences,
        tree_nodes=tree_nodes,
        concepts=concepts,
        root=root,
        formula=formula.reshape(-1, 3),
        sentence=sentence.reshape(-1, 2),
        tree=tree,
        concept=concept,
    )
    sound = (
        _names_its_nodes(parts)
        & (_of_each(np.maximum, ends, 2 * num_edges) < nodes)
        & (_of_each(np.add, length, num_runs) == num_edges)
        & (_of_each(np.add, relation < NUM_VIRTUAL_RELATIONS, num_runs) == 0)
    )
    for i in np.flatnonzero(~sound).tolist():
        decode(blobs[i], _name(post_ids, i))  # raises, and says what is wrong
    _check_ids(labels, nodes, num_labels, "label", post_ids)
    _check_ids(relation, num_runs, num_relations, "relation", post_ids)
    extended = hierarchy(parts, spec)
    virtual = tuple(chain.from_iterable((edges, edges[::-1]) for edges in extended.edges))  # with inverses
    counts = [len(sources) for sources, _ in virtual]
    first = sum(counts)  # edges of virtual nodes, which the others follow
    edge_index = np.empty((2, first + len(ends)), dtype=np.int64)
    for row in (0, 1):
        np.concatenate([edges[row] for edges in virtual], out=edge_index[row, :first])
    relations = np.empty(first + len(ends), dtype=np.int64)
    relations[:first] = np.repeat(np.arange(NUM_VIRTUAL_RELATIONS), counts)
    ends += np.repeat(extended.offsets, 2 * num_edges)  # source, target, source, target ...
    _sort_runs(ends, relation, length, edge_index[:, first:], relations[first:])
    return batch_of(
        _labels(labels, nodes, extended),
        edge_index,
        relations,
        nodes + extended.num_virtual,
        extended.num_virtual,
        extended.representatives,
        extended.representative_kinds,
        extended.num_representatives,
    )


def extended(blob: bytes, spec: VirtualNodeSpec, post_id: str) -> GraphArrays:
    """One stored graph with its virtual nodes; raises as :func:`collate_packed`."""
    batch = collate_packed([blob], spec, post_ids=[post_id])
    return GraphArrays(
        labels=batch.labels.numpy().astype(np.int32),
        edge_index=batch.edge_index.numpy().astype(np.int32),
        relations=batch.relation.numpy().astype(np.int32),
        representatives=batch.representatives.numpy().astype(np.int32),
        representative_kinds=batch.representative_kind.numpy().astype(np.uint8),
        num_virtual=int(batch.is_virtual.sum()),
    )


def _sort_runs(ends: Int64, relation: Int64, length: Int64, edge_index: Int64, relations: Int64) -> None:
    """Write edges and their inverses to ``edge_index`` and ``relations``, sorted by relation.

    Each run is in the batch twice: forward, its sources at the even places of ``ends``, and as its inverse, whose
    sources are the targets at the odd places. The other end of an edge at place i is at i ^ 1.
    """
    begin = 2 * (np.cumsum(length) - length)
    both = np.concatenate([relation, relation + 1])
    order = np.argsort(both.astype(np.uint16) if both.max(initial=0) < 1 << 16 else both, kind="stable")
    length = np.concatenate([length, length])[order]
    place = np.arange(0, 2 * len(ends), 2)
    place += np.repeat(np.concatenate([begin, begin + 1])[order] - 2 * (np.cumsum(length) - length), length)
    if len(ends):
        np.take(ends, place, out=edge_index[0], mode="wrap")  # the mode spares a copy: no place is out of bounds
        place ^= 1
        np.take(ends, place, out=edge_index[1], mode="wrap")
    relations[:] = np.repeat(both[order], length)


def _labels(labels: Int64, nodes: Int64, extended: Hierarchy) -> Int64:
    """Labels of all nodes of the batch, virtual ones at the end of each graph."""
    found = np.empty(len(labels) + len(extended.nodes), dtype=np.int64)
    found[extended.nodes] = FIRST_VIRTUAL_LABEL + extended.kinds
    others = np.arange(len(labels))
    others += np.repeat(np.cumsum(extended.num_virtual) - extended.num_virtual, nodes)
    found[others] = labels
    return found


def _unpack(blobs: Sequence[bytes], post_ids: Sequence[str] | None) -> tuple[Int64, list[Int64]]:
    """The headers, (10, B), and the seven parts of the bodies, each over all graphs."""
    header = np.frombuffer(b"".join([blob[:HEADER_BYTES] for blob in blobs]), dtype="<u4").astype(np.int64)
    sound = len(header) == len(HEADER_FIELDS) * len(blobs)
    if sound:
        header = header.reshape(len(blobs), len(HEADER_FIELDS)).T
        magic, width = header[:2]
        bounds = np.zeros((len(NUMBERS_EACH) + 1, len(blobs)), dtype=np.int64)  # of the parts, bytes from the start
        np.cumsum(header[2:-1] * np.array(NUMBERS_EACH)[:, None], axis=0, out=bounds[1:])
        bounds = HEADER_BYTES + width * bounds
        sizes = np.fromiter(map(len, blobs), dtype=np.int64, count=len(blobs))
        sound = bool(((magic == MAGIC) & ((width == 2) | (width == 4)) & (bounds[-1] == sizes)).all())
    if not sound:
        for i, blob in enumerate(blobs):
            check_header(blob, _name(post_ids, i))
    parts = []
    for begins, ends in pairwise(bounds.tolist()):
        pieces = [blob[begin:end] for blob, begin, end in zip(blobs, begins, ends, strict=True)]
        if (width == 2).all() or (width == 4).all():
            parts.append(np.frombuffer(b"".join(pieces), f"<u{width[0] if len(width) else 2}").astype(np.int64))
        else:
            arrays = [np.frombuffer(piece, f"<u{size}") for piece, size in zip(pieces, width.tolist(), strict=True)]
            parts.append(np.concatenate(arrays, dtype=np.int64))
    return header, parts


def _names_its_nodes(parts: Parts) -> np.ndarray:
    """Mask of the graphs whose formulas and sentences name nodes and places that exist, in the right number. (B,)"""
    node, place, of_trees = parts.formula.T
    sentence, of_concepts = parts.sentence.T
    named = (
        (node, parts.formulas),
        (sentence, parts.sentences),
        (parts.tree, parts.tree_nodes),
        (parts.concept, parts.concepts),
    )
    sound = parts.root < parts.nodes
    for nodes, counts in named:
        sound &= _of_each(np.maximum, nodes, counts) < parts.nodes
    sound &= _of_each(np.maximum, place, parts.formulas) < np.maximum(parts.sentences, 1)
    sound &= _of_each(np.add, of_trees, parts.formulas) == parts.tree_nodes
    sound &= _of_each(np.add, of_concepts, parts.sentences) == parts.concepts
    return sound


def _of_each(function: np.ufunc, values: np.ndarray, counts: Int64) -> Int64:
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
