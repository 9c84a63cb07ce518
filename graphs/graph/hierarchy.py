"""Virtual nodes of all graphs of a batch at once, from the stored graphs.

:func:`graphs.graph.virtual_nodes.add_virtual_nodes` is the reference; this module computes the same with arrays over
the batch, so that virtual nodes need not be stored. The example has two copies of a graph of two nodes, a concept and a
formula without trees, in one sentence:

>>> parts = Parts(
...     nodes=np.array([2, 2]), members=np.array([[1, 1], [1, 1]]),
...     constituents=np.array([[1, 2], [1, 2]]), root=np.array([0, 0]),
...     tree_nodes=np.array([1] * 2), concepts=np.array([0, 1] * 2), member_nodes=np.array([1, 0] * 2),
...     place=np.array([0, 0] * 2), size=np.array([1, 2] * 2))
>>> full = hierarchy(parts, VirtualNodeSpec(connectivity="sequential"))
>>> full.num_virtual.tolist(), full.nodes.tolist(), full.kinds.tolist()
([3, 3], [2, 3, 4, 7, 8, 9], [0, 1, 2, 0, 1, 2])
>>> [np.stack(edges).T.tolist() for edges in full.edges]  # formulas, sentences, document, auxiliary
[[[2, 1], [7, 6]], [[3, 0], [3, 1], [8, 5], [8, 6]], \
[[4, 2], [4, 3], [4, 0], [9, 7], [9, 8], [9, 5]], [[3, 2], [8, 7]]]
>>> flat = hierarchy(parts, VirtualNodeSpec(structure="none"))
>>> flat.representatives.tolist(), flat.offsets.tolist()
([1, 0, 3, 2], [0, 2])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.graph.connectivity import auxiliary_pairs, counted
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec

Int64 = npt.NDArray[np.int64]
Edges = tuple[Int64, Int64]  # sources and targets

_NO_EDGES: Edges = (np.empty(0, np.int64), np.empty(0, np.int64))
_FORMULA, _SENTENCE, _DOCUMENT = (kind.value for kind in VirtualKind)  # numpy takes its time with enumerations


@dataclass(frozen=True, slots=True)
class Parts:
    """Input to the placement of virtual nodes: B graphs with M members (formulas and sentences) together.

    Nodes are counted within their graph.

    Attributes:
        nodes: number of nodes of each graph, (B,).
        members: numbers of formulas and of sentences of each graph, (B, 2).
        constituents: numbers of tree nodes and of concepts of each graph, (B, 2).
        root: root of each AMR, (B,).
        tree_nodes: tree nodes of all formulas, graph by graph.
        concepts: concepts of all sentences, graph by graph.
        member_nodes: node of each formula and root of each sentence, formulas first in each graph, (M,).
        place: place of each member, (M,).
        size: number of tree nodes or concepts of each member, (M,).
    """

    nodes: Int64
    members: Int64
    constituents: Int64
    root: Int64
    tree_nodes: Int64
    concepts: Int64
    member_nodes: Int64
    place: Int64
    size: Int64


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Virtual nodes of a batch of B graphs, and their representatives; nodes are counted over the batch.

    Attributes:
        num_virtual: number of virtual nodes of each graph, (B,).
        nodes: virtual nodes, which are the last ones of each graph.
        kinds: ``VirtualKind`` of each virtual node.
        edges: edges of the relations of formulas, sentences, documents, and auxiliary ones, in the order of graphs.
        representatives: nodes of the retrieval vectors, (V,), graph by graph.
        representative_kinds: ``VirtualKind`` of each representative, (V,).
        num_representatives: number of representatives of each graph, (B,).
        offsets: first node of each graph, (B,).
    """

    num_virtual: Int64
    nodes: Int64
    kinds: Int64
    edges: tuple[Edges, Edges, Edges, Edges]
    representatives: Int64
    representative_kinds: Int64
    num_representatives: Int64
    offsets: Int64


def hierarchy(parts: Parts, spec: VirtualNodeSpec) -> Hierarchy:
    """Place the virtual nodes of ``spec``; the graphs already have its formula mode."""
    return _full(parts, spec.connectivity) if spec.structure == "full" else _flat(parts, spec)


def _full(parts: Parts, connectivity: str) -> Hierarchy:
    covered = parts.size > 0  # (M,), members with a virtual node
    each = np.ones((len(parts.nodes), 3), dtype=np.int64)  # virtual nodes of each kind, of documents one
    each[:, :2] = parts.members if covered.all() else _sums(covered, parts.members.ravel()).reshape(-1, 2)
    num_virtual = each.sum(1)
    ends = np.cumsum(parts.nodes + num_virtual)
    offsets = ends - parts.nodes - num_virtual
    nodes = counted(offsets + parts.nodes, num_virtual)
    kinds = np.repeat(np.arange(each.size) % 3, each.ravel())  # of a graph 0 ... 0 1 ... 1 2
    is_member = kinds != _DOCUMENT
    of_member, kind_of_member = nodes[is_member], kinds[is_member]
    size, of_formula = parts.size[covered], kind_of_member == _FORMULA
    num_nodes, num_concepts = parts.constituents.T
    children = nodes.copy()  # of the documents: all virtual nodes of a graph, in the place of its node the AMR's root
    children[np.cumsum(num_virtual) - 1] = offsets + parts.root
    auxiliary = _NO_EDGES
    if connectivity != "none":
        auxiliary = _auxiliary(of_member, kind_of_member, parts.place[covered], num_virtual - 1, connectivity)
    return Hierarchy(
        num_virtual=num_virtual,
        nodes=nodes,
        kinds=kinds,
        edges=(
            (np.repeat(of_member[of_formula], size[of_formula]), parts.tree_nodes + np.repeat(offsets, num_nodes)),
            (np.repeat(of_member[~of_formula], size[~of_formula]), parts.concepts + np.repeat(offsets, num_concepts)),
            (np.repeat(ends - 1, num_virtual), children),
            auxiliary,
        ),
        representatives=nodes,
        representative_kinds=kinds,
        num_representatives=num_virtual,
        offsets=offsets,
    )


def _flat(parts: Parts, spec: VirtualNodeSpec) -> Hierarchy:
    """Structures ``global`` and ``none``: formula nodes and sentence roots stand for formulas and sentences."""
    graphs = np.arange(len(parts.nodes))
    num_virtual = np.full_like(graphs, spec.structure == "global")
    ends = np.cumsum(parts.nodes + num_virtual)
    offsets = ends - parts.nodes - num_virtual
    members = parts.members.sum(1)
    of_member = parts.member_nodes + np.repeat(offsets, members)
    kind_of_member = np.repeat(np.arange(parts.members.size) % 2, parts.members.ravel())
    is_formula = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.bool_)
    is_formula[of_member[kind_of_member == _FORMULA]] = True
    kept = (kind_of_member == _FORMULA) | ~is_formula[of_member]  # a root that is a formula node is represented once
    of_member, kind_of_member = of_member[kept], kind_of_member[kept]
    members = _sums(kept, members)
    alone = members == 0  # graphs whose root represents them
    document = ends[num_virtual > 0] - 1
    owners = (np.repeat(graphs, members), graphs[alone], graphs[num_virtual > 0])
    order = np.argsort(np.concatenate(owners), kind="stable")
    kinds = (kind_of_member, np.full(int(alone.sum()), _SENTENCE), np.full(len(document), _DOCUMENT))
    auxiliary, documents = _NO_EDGES, _NO_EDGES
    if spec.connectivity != "none":
        auxiliary = _auxiliary(of_member, kind_of_member, parts.place[kept], members, spec.connectivity)
    if len(document):
        documents = np.repeat(document, parts.nodes), counted(offsets, parts.nodes)
    return Hierarchy(
        num_virtual=num_virtual,
        nodes=document,
        kinds=kinds[2],
        edges=(_NO_EDGES, _NO_EDGES, documents, auxiliary),
        representatives=np.concatenate([of_member, (offsets + parts.root)[alone], document])[order],
        representative_kinds=np.concatenate(kinds)[order],
        num_representatives=members + alone + num_virtual,
        offsets=offsets,
    )


def _auxiliary(of_member: Int64, kind: Int64, place: Int64, members: Int64, connectivity: str) -> Edges:
    """Edges between the nodes of formulas and sentences, in document order (thesis, 4.3.3).

    Args:
        of_member: node of each formula and sentence, graph by graph, formulas first and in their order.
        kind: ``VirtualKind`` of each.
        place: sentence that a formula is read after, number of a sentence.
        members: number of formulas and sentences of each graph, (B,).
    """
    graph = np.repeat(np.arange(len(members)), members)
    ordered = of_member[np.lexsort((kind == _FORMULA, place, graph))]  # stable: formulas of a place keep their order
    sources, targets = auxiliary_pairs(connectivity, members)
    return ordered[sources], ordered[targets]


def _sums(values: npt.NDArray[np.bool_], counts: Int64) -> Int64:
    """Number of true values among the first ``counts[0]``, among the next ``counts[1]``, ..."""
    ends = np.cumsum(counts)
    totals = np.concatenate([[0], np.cumsum(values)])
    sums: Int64 = totals[ends] - totals[ends - counts]
    return sums
