"""Virtual nodes of all graphs of a batch at once, from what is stored of each.

:func:`graphs.graph.virtual_nodes.add_virtual_nodes` is the reference; here is the same with arrays over the batch, so
that virtual nodes cost no file of their own. A graph of two nodes, a concept and a formula without trees, in one
sentence; it is there twice:

>>> parts = Parts(
...     nodes=np.array([2, 2]), formulas=np.array([1, 1]), sentences=np.array([1, 1]),
...     tree_nodes=np.array([1, 1]), concepts=np.array([2, 2]), root=np.array([0, 0]),
...     formula=np.array([[1, 0, 1]] * 2), sentence=np.array([[0, 2]] * 2),
...     tree=np.array([1, 1]), concept=np.array([0, 1] * 2))
>>> full = hierarchy(parts, VirtualNodeSpec(connectivity="sequential"))
>>> full.num_virtual.tolist(), full.nodes.tolist(), full.kinds.tolist()
([3, 3], [2, 3, 4, 7, 8, 9], [0, 1, 2, 0, 1, 2])
>>> [np.stack(edges).T.tolist() for edges in full.edges]  # formulas, sentences, document, auxiliary
[[[2, 1], [7, 6]], [[3, 0], [3, 1], [8, 5], [8, 6]], \
[[4, 2], [4, 3], [4, 0], [9, 7], [9, 8], [9, 5]], [[3, 2], [8, 7]]]
>>> hierarchy(parts, VirtualNodeSpec(structure="none")).representatives.tolist()
[1, 0, 3, 2]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.graph.virtual_nodes import Connectivity, VirtualKind, VirtualNodeSpec

Int64 = npt.NDArray[np.int64]
Edges = tuple[Int64, Int64]  # sources and targets

_NO_EDGES: Edges = (np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Parts:
    """What virtual nodes are placed by, in B graphs with F formulas and S sentences together.

    Attributes:
        nodes: number of nodes of each graph, (B,); numbers of ``formulas``, ``sentences``, ``tree_nodes``, ``concepts``.
        root: root of each AMR, (B,), counted within its graph as all nodes here.
        formula: node, place, and number of tree nodes of each formula, (F, 3).
        sentence: root, and number of concepts of each sentence, (S, 2).
        tree: tree nodes of each formula, one after the other.
        concept: concepts of each sentence, one after the other.
    """

    nodes: Int64
    formulas: Int64
    sentences: Int64
    tree_nodes: Int64
    concepts: Int64
    root: Int64
    formula: Int64
    sentence: Int64
    tree: Int64
    concept: Int64


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Virtual nodes of a batch of B graphs, and what stands for each; nodes are counted over the batch.

    Attributes:
        num_virtual: number of virtual nodes of each graph, (B,).
        offsets: first node of each graph, (B,).
        nodes: virtual nodes, which are the last ones of each graph; ``kinds`` has their ``VirtualKind``.
        edges: edges of the relations of formulas, sentences, documents, and auxiliary ones, in the order of graphs.
        representatives: nodes of the retrieval vectors, (V,), graph by graph; ``representative_kinds`` of each, (V,).
        num_representatives: number of each graph, (B,).
    """

    num_virtual: Int64
    offsets: Int64
    nodes: Int64
    kinds: Int64
    edges: tuple[Edges, Edges, Edges, Edges]
    representatives: Int64
    representative_kinds: Int64
    num_representatives: Int64


def hierarchy(parts: Parts, spec: VirtualNodeSpec) -> Hierarchy:
    """Place the virtual nodes of ``spec``; of its formula mode the graphs are already."""
    return _full(parts, spec.connectivity) if spec.structure == "full" else _flat(parts, spec)


def _full(parts: Parts, connectivity: Connectivity) -> Hierarchy:
    covered = parts.sentence[:, 1] > 0  # (S,)
    sentences = _sums(covered, parts.sentences)  # with a virtual node, (B,)
    members = parts.formulas + sentences
    num_virtual = members + 1
    ends = np.cumsum(parts.nodes + num_virtual)
    offsets = ends - parts.nodes - num_virtual
    nodes = _counted(offsets + parts.nodes, num_virtual)
    kinds = np.repeat(
        np.tile(np.array(VirtualKind), len(ends)), np.stack([parts.formulas, sentences, members * 0 + 1], axis=1).ravel()
    )
    of_formula, of_sentence = nodes[kinds == VirtualKind.FORMULA], nodes[kinds == VirtualKind.SENTENCE]
    children = nodes.copy()  # of the documents: all virtual nodes of a graph, in the place of its own the AMR's root
    children[np.cumsum(num_virtual) - 1] = offsets + parts.root
    auxiliary = _NO_EDGES
    if connectivity != "none":
        number = _counted(np.zeros_like(members), parts.sentences)[covered]
        auxiliary = _auxiliary(parts, of_formula, of_sentence, number, sentences, connectivity)
    return Hierarchy(
        num_virtual=num_virtual,
        offsets=offsets,
        nodes=nodes,
        kinds=kinds,
        edges=(
            (np.repeat(of_formula, parts.formula[:, 2]), parts.tree + np.repeat(offsets, parts.tree_nodes)),
            (np.repeat(of_sentence, parts.sentence[covered, 1]), parts.concept + np.repeat(offsets, parts.concepts)),
            (np.repeat(ends - 1, num_virtual), children),
            auxiliary,
        ),
        representatives=nodes,
        representative_kinds=kinds,
        num_representatives=num_virtual,
    )


def _flat(parts: Parts, spec: VirtualNodeSpec) -> Hierarchy:
    """Structures ``global`` and ``none``: formula nodes and sentence roots stand for formulas and sentences."""
    graphs = np.arange(len(parts.nodes))
    num_virtual = np.full_like(graphs, spec.structure == "global")
    ends = np.cumsum(parts.nodes + num_virtual)
    offsets = ends - parts.nodes - num_virtual
    of_formula = parts.formula[:, 0] + np.repeat(offsets, parts.formulas)
    roots = parts.sentence[:, 0] + np.repeat(offsets, parts.sentences)
    is_formula = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.bool_)
    is_formula[of_formula] = True
    kept = ~is_formula[roots]  # a root that is a formula node is represented once
    of_sentence, number = roots[kept], _counted(np.zeros_like(graphs), parts.sentences)[kept]
    sentences = _sums(kept, parts.sentences)
    alone = parts.formulas + sentences == 0  # graphs whose root represents them
    document = ends[num_virtual > 0] - 1
    found = (of_formula, of_sentence, (offsets + parts.root)[alone], document)
    owners = (np.repeat(graphs, parts.formulas), np.repeat(graphs, sentences), graphs[alone], graphs[num_virtual > 0])
    order = np.argsort(np.concatenate(owners), kind="stable")
    kinds = (VirtualKind.FORMULA, VirtualKind.SENTENCE, VirtualKind.SENTENCE, VirtualKind.DOCUMENT)
    children = np.flatnonzero(_outside(document, len(is_formula))) if len(document) else _NO_EDGES[0]
    auxiliary = _NO_EDGES
    if spec.connectivity != "none":
        auxiliary = _auxiliary(parts, of_formula, of_sentence, number, sentences, spec.connectivity)
    return Hierarchy(
        num_virtual=num_virtual,
        offsets=offsets,
        nodes=document,
        kinds=np.full_like(document, VirtualKind.DOCUMENT),
        edges=(_NO_EDGES, _NO_EDGES, (np.repeat(document, parts.nodes[num_virtual > 0]), children), auxiliary),
        representatives=np.concatenate(found)[order],
        representative_kinds=np.repeat(np.array(kinds), list(map(len, found)))[order],
        num_representatives=parts.formulas + sentences + alone + num_virtual,
    )


def _auxiliary(
    parts: Parts, of_formula: Int64, of_sentence: Int64, number: Int64, sentences: Int64, connectivity: Connectivity
) -> Edges:
    """Edges between the nodes of formulas and sentences, in document order (thesis, 4.3.3).

    Args:
        number: number of each sentence in its graph; a formula comes after the sentence of its place.
        sentences: number of nodes of sentences of each graph.
    """
    graphs = np.arange(len(sentences))
    graph = np.concatenate([np.repeat(graphs, parts.formulas), np.repeat(graphs, sentences)])
    place = np.concatenate([parts.formula[:, 1], number])
    formula = np.concatenate([_counted(np.ones_like(graphs), parts.formulas), np.zeros_like(number)])  # from 1 on
    ordered = np.concatenate([of_formula, of_sentence])[np.lexsort((formula, place, graph))]
    members = parts.formulas + sentences  # (B,)
    begin = np.cumsum(members) - members
    after = np.repeat(begin + members, members) - np.arange(len(ordered)) - 1  # members that follow each
    if connectivity == "fully_connected":
        return np.repeat(ordered, after), ordered[_counted(np.arange(1, len(ordered) + 1), after)]
    following = np.arange(1, len(ordered) + 1)
    is_last = after == 0
    has_edge = ~is_last
    if connectivity == "circular":
        following[is_last] = begin[members > 0]
        has_edge |= np.repeat(members > 2, members)  # a ring of two would only repeat its one edge
    return ordered[has_edge], ordered[following[has_edge]]


def _counted(first: Int64, counts: Int64) -> Int64:
    """``first[i]``, ``first[i]`` + 1, ... of each length ``counts[i]``, one after the other.

    >>> _counted(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    begin = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(first - begin, counts)


def _sums(values: npt.NDArray[np.bool_], counts: Int64) -> Int64:
    """Number of true values among the ``counts[i]`` of each graph, which follow one another. (B,)"""
    totals = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(counts)
    found: Int64 = totals[ends] - totals[ends - counts]
    return found


def _outside(nodes: Int64, size: int) -> npt.NDArray[np.bool_]:
    """Mask of the ``size`` nodes that are not among ``nodes``."""
    mask = np.ones(size, dtype=np.bool_)
    mask[nodes] = False
    return mask
