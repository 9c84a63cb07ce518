"""Hierarchy of virtual nodes over a MathAMR+ graph, and the choice of a document's retrieval vectors.

"Solve FORMULA_0." has the concepts ``solve-01`` and ``FORMULA_0``; the operator tree of the formula is ``V!x``:

>>> graph = DocumentGraph(
...     labels=["solve-01", "FORMULA_0", "V!x"], kinds=[NodeKind.AMR, NodeKind.FORMULA, NodeKind.OPT],
...     edges=[(0, ":ARG1", 1), (1, ":opt", 2)], root=0, sentence=[0, 0, -1], formula=[-1, 0, 0],
...     sentence_roots=[0], formula_nodes=[1], formula_ids=["17"])
>>> full = add_virtual_nodes(graph, VirtualNodeSpec())
>>> full.labels[3:], full.num_virtual, full.representatives
(['VIRTUAL_FORMULA', 'VIRTUAL_SENTENCE', 'VIRTUAL_DOCUMENT'], 3, [3, 4, 5])
>>> full.edges[2:5]
[(3, ':virtual_formula', 2), (4, ':virtual_sentence', 0), (4, ':virtual_sentence', 1)]
>>> full.edges[5:]
[(5, ':virtual_document', 3), (5, ':virtual_document', 4), (5, ':virtual_document', 0)]
>>> without = add_virtual_nodes(graph, VirtualNodeSpec(structure="none", formulas="none"))
>>> without.labels, without.representatives
(['solve-01'], [0])

Edges run from the virtual node down; the inverse of each (``:virtual_formula*`` ...) is added with the tensors, as for
every relation. Virtual nodes are the last nodes of a graph, in the order formulas, sentences, document.

=============  ============================================================================  =========================
structure      virtual nodes                                                                 representatives
=============  ============================================================================  =========================
``full``       a formula VN over its trees, a sentence VN over its concepts, a document VN   the virtual nodes
               over these and the AMR root (thesis, section 3.2)
``global``     one document VN over every node (4.3.2)                                       formula nodes, sentence
                                                                                             roots, the document VN
``none``       none (4.3.2)                                                                  formula nodes, sentence
                                                                                             roots
=============  ============================================================================  =========================

The i-th representative of kind formula always represents ``FORMULA_i``. A formula without any of the kept trees has
its formula node as the only constituent. A sentence root that is a formula node is represented once, as the formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from itertools import product
from typing import Any, Literal, Self, get_args

import numpy as np

from graphs.errors import ConfigError, GraphTooLargeError, suggestion
from graphs.graph.connectivity import auxiliary_pairs, connectivities, number_of_edges
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind

Structure = Literal["full", "global", "none"]
FormulaMode = Literal["both", "opt", "slt", "none"]
ThreadMode = Literal["none", "question", "siblings"]
Edge = tuple[int, str, int]

VIRTUAL_LABELS = ("VIRTUAL_FORMULA", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT")  # by VirtualKind
VIRTUAL_RELATIONS = (":virtual_formula", ":virtual_sentence", ":virtual_document")  # by VirtualKind
AUXILIARY_RELATION = ":auxiliary_vn"
_FIRST_FIELDS = ("structure", "connectivity", "formulas")  # in all hashes; further fields came later
MAX_AUXILIARY_EDGES = 1_500_000
"""Edges between the formulas and sentences of a post; the longest in ARQMath-mini would have some 370,000."""


class VirtualKind(IntEnum):
    """Kind of a virtual node, or of a representative in its place."""

    FORMULA = 0
    SENTENCE = 1
    DOCUMENT = 2


@dataclass(frozen=True, slots=True)
class VirtualNodeSpec:
    """Virtual nodes on top of a graph, and the formula trees that stay in it (thesis, 4.3.1 to 4.3.3).

    With structure ``global`` or ``none`` the auxiliary edges of ``connectivity`` run between the formula nodes and
    sentence roots, which then stand for formulas and sentences. With ``thread`` an answer is one graph with its
    question, or also with its siblings (:mod:`graphs.graph.threads`).

    A further field needs its :meth:`choices`, its default in ``GraphConfig`` and in ``conf/graph/default.yaml``, and,
    where it adds nodes or edges, :mod:`graphs.graph.hierarchy` and :mod:`graphs.stores.graph_sizes`.
    """

    structure: Structure = "full"
    connectivity: str = "none"
    formulas: FormulaMode = "both"
    thread: ThreadMode = "none"

    def __post_init__(self) -> None:
        for name, allowed in self.choices().items():
            value = getattr(self, name)
            if value not in allowed:
                names = [str(one) for one in allowed]
                raise ConfigError(f"{name} is {value!r}; give one of {', '.join(names)}{suggestion(str(value), names)}")
        if self.thread != "none" and self.structure == "none":
            raise ConfigError(
                f"graph.thread={self.thread} joins the document nodes of posts, and graphs of structure 'none' have no "
                "such node; use graph.structure=full or global"
            )

    @classmethod
    def choices(cls) -> dict[str, tuple[Any, ...]]:
        """Return the values of each field: the only list of fields beside their definitions above."""
        return {
            "structure": get_args(Structure),
            "connectivity": connectivities(),
            "formulas": get_args(FormulaMode),
            "thread": get_args(ThreadMode),
        }

    @classmethod
    def every(cls, **fixed: Any) -> list[Self]:
        """Return all valid combinations of the choices, with ``fixed`` values of fields that do not vary."""
        choices = cls.choices() | {name: (value,) for name, value in fixed.items()}
        found = []
        for values in product(*choices.values()):
            with suppress(ConfigError):  # values that exclude each other
                found.append(cls(**dict(zip(choices, values, strict=True))))
        return found

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Return the virtual nodes of ``settings``, the group ``graph`` with all its settings.

        Raises:
            ConfigError: an unknown value, or values that exclude each other.
        """
        return cls(**{one.name: settings[one.name] for one in fields(cls)})

    def content(self) -> dict[str, Any]:
        """Return the settings as they are written to files; a later field only if it is set, so that hashes stay."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, default) in values.items() if name in _FIRST_FIELDS or value != default}


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


def check_structure(structure: Structure) -> None:
    """Raise ConfigError for graphs without virtual nodes of sentences, where these are to have vectors."""
    if structure != "full":
        raise ConfigError(
            f"graphs of structure '{structure}' have no virtual nodes of sentences for model.sentence_vectors; use "
            "graph.structure=full, or model.sentence_vectors=null"
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
    auxiliary = _auxiliary_edges(graph, representatives, spec.connectivity)
    if spec.structure == "global":
        document = len(labels)
        labels.append(VIRTUAL_LABELS[VirtualKind.DOCUMENT])
        edges += [(document, VIRTUAL_RELATIONS[VirtualKind.DOCUMENT], node) for node in range(document)]
        representatives.append((VirtualKind.DOCUMENT, 0, document))
    nodes = [node for _, _, node in representatives]
    kinds = [kind for kind, _, _ in representatives]
    return ExtendedGraph(labels, list(graph.kinds), edges + auxiliary, len(labels) - len(graph.labels), nodes, kinds)


def constituents(graph: DocumentGraph) -> tuple[list[list[int]], list[list[int]]]:
    """Tree nodes of each formula, its own node where it has no tree; and concepts of each sentence."""
    trees: list[list[int]] = [[] for _ in graph.formula_nodes]
    concepts: list[list[int]] = [[] for _ in graph.sentence_roots]
    for node, kind in enumerate(graph.kinds):
        if kind in (NodeKind.OPT, NodeKind.SLT):
            trees[graph.formula[node]].append(node)
        elif graph.sentence[node] >= 0:
            concepts[graph.sentence[node]].append(node)
    return [nodes or [graph.formula_nodes[i]] for i, nodes in enumerate(trees)], concepts


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


def check_auxiliary(connectivity: str, members: int) -> None:
    """Raise GraphTooLargeError for too many auxiliary edges between formulas and sentences."""
    number = number_of_edges(connectivity, members)
    if number > MAX_AUXILIARY_EDGES:
        raise GraphTooLargeError(
            f"{members:,} formulas and sentences have {number:,} edges with graph.connectivity={connectivity}; at most "
            f"{MAX_AUXILIARY_EDGES:,} are made; leave the post out, or connect them sequentially"
        )


def in_document_order(graph: DocumentGraph, members: Sequence[tuple[VirtualKind, int, int]]) -> list[int]:
    """Return the nodes of ``members`` (kind, number, node) in reading order: each sentence, then its formulas."""
    place = places(graph)

    def position(member: tuple[VirtualKind, int, int]) -> tuple[int, int, int]:
        kind, number, _ = member
        return (place[number], 1, number) if kind is VirtualKind.FORMULA else (number, 0, number)

    return [node for _, _, node in sorted(members, key=position)]


def places(graph: DocumentGraph) -> list[int]:
    """Return the sentence that each formula is read after.

    Formulas are numbered by occurrence in the text, so one that the parser left in no sentence (it hangs from the
    document root) comes right after the formula before it, or at the start of the first sentence.
    """
    place: list[int] = []
    for node in graph.formula_nodes:
        number = graph.sentence[node]
        place.append(number if number >= 0 else place[-1] if place else 0)
    return place


def select_formulas(graph: DocumentGraph, formulas: FormulaMode) -> DocumentGraph:
    """Return the graph with only the formula trees of the mode (thesis, 4.3.1).

    ``opt`` and ``slt`` drop the nodes of the other tree. ``none`` excludes mathematics entirely: trees and formula
    nodes go. What only a formula node held together is then tied to that node's parent (or, where it had none, to the
    first of its neighbours, which also takes its place as a root), so a connected graph stays connected. When a post
    is nothing but formulas, its root stays, without trees, so that no graph is empty.
    """
    if formulas == "both":
        return graph
    if formulas != "none":
        dropped = NodeKind.SLT if formulas == "opt" else NodeKind.OPT
        return _keep_nodes(graph, [kind is not dropped for kind in graph.kinds])
    if not any(kind is NodeKind.AMR for kind in graph.kinds):
        root = graph.root
        return DocumentGraph([graph.labels[root]], [graph.kinds[root]], [], 0, [0], [-1], [0], [], [])
    bridged = replace(_bridge_formula_nodes(graph), formula_nodes=[], formula_ids=[])
    return _keep_nodes(bridged, [kind is NodeKind.AMR for kind in graph.kinds])


def _keep_nodes(graph: DocumentGraph, keep: Sequence[bool]) -> DocumentGraph:
    kept_nodes = [node for node, kept in enumerate(keep) if kept]
    new = {node: place for place, node in enumerate(kept_nodes)}
    return DocumentGraph(
        labels=[graph.labels[node] for node in kept_nodes],
        kinds=[graph.kinds[node] for node in kept_nodes],
        edges=[(new[s], role, new[t]) for s, role, t in graph.edges if keep[s] and keep[t]],
        root=new[graph.root],
        sentence=[graph.sentence[node] for node in kept_nodes],
        formula=[graph.formula[node] for node in kept_nodes],
        sentence_roots=[new.get(node, -1) for node in graph.sentence_roots],  # a tree may have taken one
        formula_nodes=[new[node] for node in graph.formula_nodes],
        formula_ids=graph.formula_ids,
    )


def _bridge_formula_nodes(graph: DocumentGraph) -> DocumentGraph:
    """Move the edges and root places that hang on formula nodes alone to AMR nodes, which exist.

    Sentences that consist of formulas only are dropped; the others are numbered anew.
    """
    leader = list(range(len(graph.labels)))  # union-find over the AMR nodes

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    neighbours: dict[int, list[Edge]] = {n: [] for n, kind in enumerate(graph.kinds) if kind is NodeKind.FORMULA}
    is_amr = [kind is NodeKind.AMR for kind in graph.kinds]
    for source, role, target in graph.edges:
        if is_amr[source] and is_amr[target]:
            leader[find(source)] = find(target)
        elif all(is_amr[node] or node in neighbours for node in (source, target)):
            for node in {source, target} & neighbours.keys():
                neighbours[node].append((source, role, target))

    # Formula nodes that touch one another are bridged as one group.
    stand_in: dict[int, int] = {}
    edges = list(graph.edges)
    for start in neighbours:
        if start in stand_in:
            continue
        group = _touching(start, neighbours)
        incident = [edge for node in group for edge in neighbours[node] if is_amr[edge[0]] or is_amr[edge[2]]]
        hub = next((s for s, _, _ in incident if is_amr[s]), incident[0][2] if incident else -1)
        for source, role, target in incident:
            upper, lower = source if is_amr[source] else hub, target if is_amr[target] else hub
            if find(upper) != find(lower):
                edges.append((upper, role, lower))
                leader[find(upper)] = find(lower)
        stand_in.update(dict.fromkeys(group, hub))

    nodes = range(len(is_amr))
    first = {graph.sentence[node]: node for node in reversed(nodes) if is_amr[node]}  # sentence -> its first AMR node
    roots = {n: node if is_amr[node] else first.get(n, -1) for n, node in enumerate(graph.sentence_roots)}
    kept = [number for number, node in roots.items() if node >= 0]
    renumbered = {number: i for i, number in enumerate(kept)}
    root = graph.root if is_amr[graph.root] else stand_in.get(graph.root, -1)
    return replace(
        graph,
        edges=edges,
        root=root if root >= 0 else is_amr.index(True),
        sentence=[renumbered.get(number, -1) for number in graph.sentence],
        sentence_roots=[roots[number] for number in kept],
    )


def _touching(start: int, neighbours: Mapping[int, Sequence[Edge]]) -> list[int]:
    """Return ``start`` and the formula nodes that edges between formula nodes connect with it."""
    group: list[int] = []
    stack, seen = [start], {start}
    while stack:
        node = stack.pop()
        group.append(node)
        for source, _, target in neighbours[node]:
            other = source if target == node else target
            if other in neighbours and other not in seen:
                seen.add(other)
                stack.append(other)
    return group
