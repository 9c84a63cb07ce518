"""Virtual nodes, and graphs of threads, node by node: what the arrays of whole batches are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from graphs.graph.batching import GraphBatch
from graphs.graph.connectivity import auxiliary_pairs
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.tensors import GraphArrays, check_size
from graphs.graph.threads import Role
from graphs.graph.virtual_nodes import (
    AUXILIARY_RELATION,
    VIRTUAL_LABELS,
    VIRTUAL_RELATIONS,
    Edge,
    VirtualKind,
    VirtualNodeSpec,
    check_auxiliary,
    constituents,
    places,
    select_formulas,
)
from graphs.graph.vocabulary import Vocabulary, own_roles


@dataclass(slots=True)
class ExtendedGraph:
    """A graph with its virtual nodes as the last ``num_virtual`` nodes; ``kinds`` covers the nodes before them.

    ``representatives`` are the nodes whose vectors stand for the document, formulas first, then sentences, the document
    last; ``representative_kinds`` says which is which. ``edges`` holds each edge once, without inverses.
    """

    labels: list[str]
    kinds: list[NodeKind]
    edges: list[Edge]
    num_virtual: int
    representatives: list[int]
    representative_kinds: list[VirtualKind]


def arrays_of(
    labels: Sequence[int],
    edges: Sequence[tuple[int, int, int]],
    representatives: Sequence[int],
    representative_kinds: Sequence[int],
    num_virtual: int,
) -> GraphArrays:
    """Return tensors of forward edges (source, even relation, target) with inverses, stably sorted by relation."""
    forward = np.asarray(edges, dtype=np.int32).reshape(-1, 3)
    source, relations, target = forward[np.argsort(forward[:, 1], kind="stable")].T
    edge_index = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    both = np.concatenate([relations, relations + 1])
    order = np.argsort(both, kind="stable")
    return GraphArrays(
        labels=np.asarray(labels, dtype=np.int32),
        edge_index=edge_index[:, order],
        relations=both[order],
        representatives=np.asarray(representatives, dtype=np.int32),
        representative_kinds=np.asarray(representative_kinds, dtype=np.uint8),
        num_virtual=num_virtual,
    )


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
    return arrays_of(
        labels=labels,
        edges=[(source, relation_id(role), target) for source, role, target in extended.edges],
        representatives=extended.representatives,
        representative_kinds=extended.representative_kinds,
        num_virtual=extended.num_virtual,
    )


def add_virtual_nodes(graph: DocumentGraph, spec: VirtualNodeSpec) -> ExtendedGraph:
    """Keep the formula trees that ``spec`` names, add its virtual nodes and edges. Takes time linear in the graph."""
    graph = select_formulas(graph, spec.formulas)
    if spec.structure == "full":
        return _full_hierarchy(graph, spec.connectivity)
    representatives = [(VirtualKind.FORMULA, i, node) for i, node in enumerate(graph.formula_nodes)]
    formula_nodes = set(graph.formula_nodes)
    for number, node in enumerate(graph.sentence_roots):
        if node not in formula_nodes:
            representatives.append((VirtualKind.SENTENCE, number, node))
    if not representatives:
        representatives.append((VirtualKind.SENTENCE, 0, graph.root))
    edges = list(graph.edges)
    labels = list(graph.labels)
    num_virtual = 0
    if spec.structure == "global":
        num_virtual = 1
        document = len(labels)
        labels.append(VIRTUAL_LABELS[VirtualKind.DOCUMENT])
        edges += [(document, VIRTUAL_RELATIONS[VirtualKind.DOCUMENT], node) for node in range(document)]
    edges += _auxiliary_edges(graph, representatives, spec.connectivity)
    nodes = [node for _, _, node in representatives]
    kinds = [kind for kind, _, _ in representatives]
    if num_virtual:
        nodes.append(len(labels) - 1)
        kinds.append(VirtualKind.DOCUMENT)
    return ExtendedGraph(labels, list(graph.kinds), edges, num_virtual, nodes, kinds)


def _full_hierarchy(graph: DocumentGraph, connectivity: str) -> ExtendedGraph:
    size = len(graph.labels)
    trees, concepts = constituents(graph)
    virtual: list[tuple[VirtualKind, int, int]] = []
    edges = list(graph.edges)

    def cover(kind: VirtualKind, number: int, constituents: Sequence[int]) -> None:
        node = size + len(virtual)
        virtual.append((kind, number, node))
        edges.extend((node, VIRTUAL_RELATIONS[kind], constituent) for constituent in constituents)

    for i, nodes in enumerate(trees):
        cover(VirtualKind.FORMULA, i, nodes)
    for number, nodes in enumerate(concepts):
        if nodes:
            cover(VirtualKind.SENTENCE, number, nodes)
    edges.extend(_auxiliary_edges(graph, virtual, connectivity))
    cover(VirtualKind.DOCUMENT, 0, [*(node for _, _, node in virtual), graph.root])
    kinds = [kind for kind, _, _ in virtual]
    labels = graph.labels + [VIRTUAL_LABELS[kind] for kind in kinds]
    representatives = [node for _, _, node in virtual]
    return ExtendedGraph(labels, list(graph.kinds), edges, len(virtual), representatives, kinds)


def _auxiliary_edges(
    graph: DocumentGraph, members: Sequence[tuple[VirtualKind, int, int]], connectivity: str
) -> list[Edge]:
    """Return the edges between the sentences and formulas of ``members`` (kind, number, node) (thesis, 4.3.3)."""
    if connectivity == "none":
        return []
    ordered = in_document_order(graph, members)
    check_auxiliary(connectivity, len(ordered))
    sources, targets = auxiliary_pairs(connectivity, np.array([len(ordered)]))
    return [(ordered[i], AUXILIARY_RELATION, ordered[k]) for i, k in zip(sources, targets, strict=True)]


def in_document_order(graph: DocumentGraph, members: Sequence[tuple[VirtualKind, int, int]]) -> list[int]:
    """Return the nodes of ``members`` (kind, number, node) in reading order: each sentence, then its formulas."""
    place = places(graph)

    def position(member: tuple[VirtualKind, int, int]) -> tuple[int, int, int]:
        kind, number, _ = member
        return (place[number], 1, number) if kind is VirtualKind.FORMULA else (number, 0, number)

    return [node for _, _, node in sorted(members, key=position)]


def in_threads_reference(
    batch: GraphBatch, roles: Sequence[Sequence[Role]], first_label: int, relation: int
) -> GraphBatch:
    """Compute :func:`graphs.graph.threads.in_threads` node by node."""
    nodes, vectors, down = list[tuple[int, int, bool, int]](), list[tuple[int, int]](), list[tuple[int, int]]()
    place, ptr, post = dict[int, int](), [0], 0
    for thread, some in enumerate(roles):
        documents = []
        for role in some:
            for node in (batch.node_graph == post).nonzero().flatten().tolist():
                kind, place[node] = int(batch.virtual_kind[node]), len(nodes)
                other = role > 0 and kind >= 0
                label = first_label + 1 + 3 * (role - 1) + kind if other else int(batch.labels[node])
                nodes.append((label, thread, kind >= 0, kind))  # a node's label, thread, mask and kind
                documents += [place[node]] if kind == VirtualKind.DOCUMENT else []
            span = slice(int(batch.ptr[post]), int(batch.ptr[post + 1]))
            kinds = batch.representative_kind[span].tolist()
            vectors += zip([place[node] for node in batch.representatives[span].tolist()], kinds, strict=True)
            post += 1
        down += [(len(nodes), document) for document in documents]
        vectors.append((len(nodes), VirtualKind.DOCUMENT))
        nodes.append((first_label, thread, True, VirtualKind.DOCUMENT))
        ptr.append(len(vectors))
    edges = [(place[s], place[t]) for s, t in batch.edge_index.T.tolist()] + down + [(t, s) for s, t in down]
    relations = batch.relation.tolist() + [relation] * len(down) + [relation + 1] * len(down)
    columns = [torch.tensor(column) for column in zip(*nodes, strict=True)]
    rows = [torch.tensor(column) for column in zip(*vectors, strict=True)]
    return GraphBatch(
        labels=columns[0],
        edge_index=torch.tensor(edges).T,
        relation=torch.tensor(relations),
        node_graph=columns[1],
        is_virtual=columns[2],
        virtual_kind=columns[3],
        representatives=rows[0],
        representative_kind=rows[1],
        ptr=torch.tensor(ptr),
        num_graphs=len(roles),
        has_threads=True,
    )
