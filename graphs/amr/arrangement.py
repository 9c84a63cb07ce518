"""Order of a graph's triples in Penman text: each node below its parent in the tree of the text.

>>> chain = penman.decode("(a / and :op1 (s / sum :ARG1-of (h / hold-01)) :op2 s)")
>>> parents_of(chain)
{'s': 'a', 'h': 's'}
>>> shuffled = penman.Graph([*chain.triples[:2], *reversed(chain.triples[2:])], top="a")
>>> [source for source, role, _ in arrange(shuffled) if role == INSTANCE]
['a', 's', 'h']
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import penman

from graphs.errors import AMRError

Triple = tuple[str, str, str]

INSTANCE = ":instance"


def arrange(graph: penman.Graph) -> list[Triple]:
    """Return the graph's triples in the order of a Penman text.

    A node stays below the node it was written under: the node whose edge precedes its ``:instance`` triple. A node
    without such a place goes below the first node with an edge to or from it. Edges between placed nodes follow their
    source.
    Raises :class:`AMRError`: ``no_concept`` for a variable without a concept, ``disconnected``.
    """
    triples, top = graph.triples, graph.top
    concepts = _concepts(graph)
    parents = parents_of(graph)
    hosted: dict[str, list[Triple]] = {variable: [] for variable in concepts}  # what is written at each node
    pushed = {top}
    for source, role, target in triples:
        if role != INSTANCE:
            host = source
            if target in concepts and target not in pushed and parents[target] == source:
                pushed.add(target)
            elif target in concepts and source not in pushed and parents[source] == target:
                pushed.add(source)
                host = target
            hosted[host].append((source, role, target))
    ordered: list[Triple] = [(top, INSTANCE, concepts[top])]
    seen, path = {top}, [(top, iter(hosted[top]))]
    while path:
        here, remaining = path[-1]
        for source, role, target in remaining:
            ordered.append((source, role, target))
            child = target if source == here else source
            if child in concepts and child not in seen and parents[child] == here:
                seen.add(child)
                ordered.append((child, INSTANCE, concepts[child]))
                path.append((child, iter(hosted[child])))
                break
        else:
            path.pop()
    return ordered


def _concepts(graph: penman.Graph) -> dict[str, str]:
    concepts = {source: target for source, role, target in graph.triples if role == INSTANCE and target is not None}
    for source, role, _ in graph.triples:
        if source not in concepts:
            raise AMRError(
                f"variable {source!r} with role {role!r} has no concept; add its :instance triple", kind="no_concept"
            )
    return concepts


def _places(graph: penman.Graph) -> dict[str, str]:
    """Return the parents given by the order of the triples: the edge to the parent precedes the ``:instance``."""
    triples = graph.triples
    parents: dict[str, str] = {}
    for (source, role, target), (node, following, _) in pairwise(triples):
        if following == INSTANCE and role != INSTANCE and node not in parents and node != graph.top:
            if node == target:
                parents[node] = source
            elif node == source:
                parents[node] = target
    return parents


def parents_of(graph: penman.Graph) -> dict[str, str]:  # noqa: C901
    """Return each variable's parent in the written tree (see :func:`arrange`); the top has none.

    Raises :class:`AMRError`: ``no_concept``, ``disconnected``.
    """
    concepts = _concepts(graph)
    old = _places(graph)
    kept: dict[str, list[str]] = {}
    for child, parent in old.items():
        kept.setdefault(parent, []).append(child)
    parents: dict[str, str] = {}
    reached: set[str] = {graph.top}
    queue: deque[str] = deque()

    def add(node: str) -> None:
        stack = [node]
        while stack:
            parent = stack.pop()
            queue.append(parent)
            for child in kept.get(parent, ()):
                if child not in reached:
                    reached.add(child)
                    parents[child] = parent
                    stack.append(child)

    add(graph.top)
    if len(reached) == len(concepts):
        return parents
    neighbours: dict[str, list[str]] = {variable: [] for variable in concepts}
    for source, role, target in graph.triples:
        if role != INSTANCE and target in concepts:
            neighbours[source].append(target)
            neighbours[target].append(source)
    late: deque[tuple[str, str]] = deque()  # nodes whose old place may still be reached
    while queue or late:
        if queue:
            parent = queue.popleft()
            order = [(child, parent) for child in neighbours[parent] if child not in reached]
            late.extend(pair for pair in order if pair[0] in old)
            order = [pair for pair in order if pair[0] not in old]
        else:
            order = [late.popleft()]
        for child, parent in order:
            if child not in reached:
                reached.add(child)
                parents[child] = parent
                add(child)
    if len(reached) < len(concepts):
        lost = [variable for variable in concepts if variable not in reached]
        raise AMRError(
            f"{len(lost)} of {len(concepts)} nodes, {lost[0]!r} among them, have no path to the top {graph.top!r};"
            " graphs.amr.document.connect attaches them",
            kind="disconnected",
        )
    return parents
