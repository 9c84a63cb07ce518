"""Merging of a document's AMR graphs into one graph, with the sentence of each variable.

>>> from graphs.amr.penman_text import decode, encode
>>> chunks = [decode("(d / document :snt1 (p / prove-01) :snt2 (h / hold-01))"), decode("(p / please-01~0)")]
>>> merged = merge(chunks)
>>> encode(merged.graph)
'(m / multi-sentence :snt1 (p / prove-01) :snt2 (h / hold-01) :snt3 (p2 / please-01))'
>>> sentences_of(merged.graph)
({'m': -1, 'p': 0, 'h': 1, 'p2': 2}, ['p', 'h', 'p2'])

A graph with the top ``multi-sentence`` (or ``document``, in the transition parser) and ``:snt1``, ``:snt2`` ... is a
collection of sentences; any other graph is one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import penman

from graphs.amr.arrangement import INSTANCE, Triple, arrange, parents_of
from graphs.errors import AMRError, Failure

_COLLECTIONS = frozenset({"multi-sentence", "document"})
_EMPTY = "amr-empty"
_SENTENCE_ROLE = re.compile(r":snt([0-9]{1,18})")  # int() refuses thousands of digits
_PREFIX = re.compile(r"[^\W\d_]+")


@dataclass(slots=True)
class DocumentAMR:
    """AMR of a document, and what was repaired or lost.

    ``reattached`` counts unconnected parts, now attached by ``:rel``. ``failures`` are the missing chunks.
    ``formula_map`` holds the formula ids of placeholders in a graph made elsewhere, with other numbers.
    """

    graph: penman.Graph
    reattached: int = 0
    failures: tuple[Failure, ...] = ()
    formula_map: dict[str, str] | None = None


def merge(chunks: Sequence[penman.Graph]) -> DocumentAMR:
    """Merge the graphs of a document's chunks, in order.

    One sentence keeps its root. Several become ``:snt1`` ... ``:sntN`` of one ``multi-sentence`` root; nested
    collections are dissolved at any depth, and their other edges move to the new root. Variables are renamed to differ.
    Unconnected parts of a chunk are attached below its root by ``:rel``. Raises :class:`AMRError` for a document
    without chunks, or a variable without a concept.
    """
    if not chunks:
        raise AMRError("a document needs at least one chunk to have a graph", kind="no_graph")
    connected = [connect(chunk) for chunk in chunks]
    pieces = [(graph.top, arrange(graph)) for graph, _ in connected]
    if len(pieces) > 1:
        pieces = _renamed_apart(pieces)
    graph = _gather([top for top, _ in pieces], [triple for _, triples in pieces for triple in triples])
    return DocumentAMR(graph, sum(parts for _, parts in connected))


def connect(graph: penman.Graph) -> tuple[penman.Graph, int]:
    """Attach every part that the top cannot reach below the top by ``:rel``; return the graph and the number of parts.

    A part is attached by its first node without an edge from its other nodes, or else by its first node.
    """
    top = graph.top
    if top is None:
        raise AMRError("a graph without a node cannot be connected; add a node", kind="no_graph")
    variables = {source: None for source, _, _ in graph.triples}
    neighbours: dict[str, list[str]] = {variable: [] for variable in variables}
    pointed_at = set()
    for source, role, target in graph.triples:
        if role != INSTANCE and target in neighbours and target != source:
            neighbours[source].append(target)
            neighbours[target].append(source)
            pointed_at.add(target)
    reached = _reach([top], neighbours)
    if len(reached) == len(variables):
        return graph, 0
    triples = list(graph.triples)
    parts = 0
    places = {variable: place for place, variable in enumerate(variables)}
    for variable in variables:
        if variable not in reached:
            part = _reach([variable], neighbours)
            reached |= part
            root = min(part - pointed_at, key=places.__getitem__, default=variable)
            triples.append((top, ":rel", root))
            parts += 1
    return penman.Graph(triples, top=top, metadata=graph.metadata), parts


def sentences_of(graph: penman.Graph) -> tuple[dict[str, int], list[str]]:
    """Return each variable's sentence, counted from 0, and the root variable of each sentence.

    A variable belongs to the sentence of the ``:sntN`` that it is written below. Other parts below the root (found in
    17 of 285 real parses) belong to the sentence with the fewest edges to it, in either direction, without the root's
    edges; of several the first. -1 marks the root, and parts that only the root connects to a sentence: they belong to
    the whole document, or to an unknown sentence. A collection below ``:sntN``, as some parsers make them, is dissolved
    into its sentences. A graph without a collection is sentence 0.

    >>> from graphs.amr.penman_text import decode
    >>> beside = "(d / document :snt1 (p / prove-01 :ARG0 (w / we)) :manner (u / use-01 :ARG0 w) :mod (h / here))"
    >>> sentences_of(decode(beside))
    ({'d': -1, 'p': 0, 'w': 0, 'u': 0, 'h': -1}, ['p'])
    """
    top = graph.top
    if top is None:
        raise AMRError("a graph without a node has no sentences", kind="no_graph")
    concepts = {source: target for source, role, target in graph.triples if role == INSTANCE}
    collections = _collections(graph.triples, concepts)
    collected, roots = _outline([top], collections)
    if top not in collections:
        return dict.fromkeys(concepts, 0), roots
    parents = parents_of(graph)
    sentence = {root: number for number, root in enumerate(roots)}
    dissolved = dict.fromkeys(collected, -1)
    sentence.update(dissolved)
    for variable in concepts:
        path = []
        here = variable
        while here not in sentence:
            path.append(here)
            here = parents[here]
        for node in path:
            sentence[node] = sentence[here]
    beside = {variable for variable in concepts if sentence[variable] < 0} - dissolved.keys()
    if beside:
        sentence.update(_nearest(beside, graph.triples, sentence))
    return {variable: sentence[variable] for variable in concepts}, roots


def _nearest(beside: Set[str], triples: Iterable[Triple], sentence: dict[str, int]) -> dict[str, int]:
    """Return the nearest sentence of each variable in ``beside``; unreachable ones are left out."""
    neighbours: dict[str, list[str]] = {}
    nearest: dict[str, int] = {}  # of the variables at this distance
    for source, role, target in triples:
        if role == INSTANCE:
            continue
        for here, neighbour in ((source, target), (target, source)):
            if here not in beside:
                continue
            if neighbour in beside:
                neighbours.setdefault(here, []).append(neighbour)
            elif (number := sentence.get(neighbour, -1)) >= 0:
                nearest[here] = min(number, nearest.get(here, number))
    found: dict[str, int] = {}
    while nearest:
        found |= nearest
        following: dict[str, int] = {}
        for here, number in nearest.items():
            for neighbour in neighbours.get(here, ()):
                if neighbour not in found:
                    following[neighbour] = min(number, following.get(neighbour, number))
        nearest = following
    return found


def _collections(triples: Iterable[Triple], concepts: dict[str, str]) -> dict[str, list[str]]:
    """Return the collections of a graph: the root of each with its sentences, ordered by number."""
    numbered: dict[str, list[tuple[int, str]]] = {}
    for source, role, target in triples:
        if role[:4] == ":snt" and target in concepts and concepts[source] in _COLLECTIONS:
            match = _SENTENCE_ROLE.fullmatch(role)
            if match:
                numbered.setdefault(source, []).append((int(match[1]), target))
    return {root: [v for _, v in sorted(found, key=lambda pair: pair[0])] for root, found in numbered.items()}


def _outline(tops: Iterable[str], collections: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return the collections below ``tops``, at any depth, and the roots of their sentences in order."""
    dissolved: dict[str, None] = {}
    roots: dict[str, None] = {}
    stack = list(tops)[::-1]
    while stack:
        here = stack.pop()
        if here not in collections:
            roots[here] = None
        elif here not in dissolved:
            dissolved[here] = None
            stack.extend(reversed(collections[here]))
    return list(dissolved), list(roots)


def _gather(tops: list[str], triples: list[Triple]) -> penman.Graph:
    """Collect the sentences below ``tops`` below one root; sentences with ``amr-empty`` go if others remain."""
    concepts = {source: target for source, role, target in triples if role == INSTANCE}
    collections = _collections(triples, concepts)
    collected, roots = _outline(tops, collections)
    if not roots:  # collections whose sentences are only one another
        collected, roots = [], list(tops)
    dissolved = set(collected)
    with_more = {source for source, role, _ in triples if role != INSTANCE}
    empty = {root for root in roots if concepts[root] == _EMPTY and root not in with_more}
    if len(empty) == len(roots):
        empty.discard(roots[0])
    roots = [root for root in roots if root not in empty]
    if len(roots) == 1:
        top, gathered = roots[0], []
    else:
        top = _fresh(
            "m", (concepts.keys() - dissolved) | {target for _, _, target in triples if target not in dissolved}
        )
        gathered = [(top, INSTANCE, "multi-sentence")]
        for number, root in enumerate(roots, 1):  # each concept directly after its :sntN, where the sentence is written
            gathered += [(top, f":snt{number}", root), (root, INSTANCE, concepts[root])]
    placed = set(roots) if len(roots) > 1 else set()
    for source, role, target in triples:
        if source in empty or (role == INSTANCE and source in placed):
            continue
        if target in empty and role != INSTANCE:  # a concept may read as a variable does: (a7 / a)
            continue
        if source in dissolved:
            if role == INSTANCE or (_SENTENCE_ROLE.fullmatch(role) and target in concepts):
                continue
            source = top
        if role != INSTANCE and target in dissolved:
            target = top
        if source != target or role == INSTANCE:
            gathered.append((source, role, target))
    return penman.Graph(arrange(penman.Graph(gathered, top=top)), top=top)


def _renamed_apart(pieces: list[tuple[str, list[Triple]]]) -> list[tuple[str, list[Triple]]]:
    """Rename variables so that no piece shares one with another piece or its constants."""
    variables = [{source for source, _, _ in triples} for _, triples in pieces]
    taken = {t for (_, triples), own in zip(pieces, variables, strict=True) for _, _, t in triples if t not in own}
    taken.add("m")  # the root's
    counts: dict[str, int] = {}
    renamed = []
    for top, triples in pieces:
        names: dict[str, str] = {}
        for source, _, _ in triples:
            if source not in names:
                match = _PREFIX.match(source)
                names[source] = _fresh(match[0] if match else "x", taken, counts)
                taken.add(names[source])
        # A concept may equal a variable: only the targets of edges are renamed.
        body = [(names[s], r, t if r == INSTANCE else names.get(t, t)) for s, r, t in triples]
        renamed.append((names[top], body))
    return renamed


def _fresh(prefix: str, taken: Set[str], counts: dict[str, int] | None = None) -> str:
    """Return ``prefix``, or ``prefix2``, ``prefix3`` ...: the first unused; ``counts`` stores the next number."""
    number = counts.get(prefix, 1) if counts is not None else 1
    while (name := prefix if number == 1 else f"{prefix}{number}") in taken:
        number += 1
    if counts is not None:
        counts[prefix] = number + 1
    return name


def _reach(start: Iterable[str], neighbours: dict[str, list[str]]) -> set[str]:
    stack = list(start)
    reached = set(stack)
    while stack:
        for neighbour in neighbours[stack.pop()]:
            if neighbour not in reached:
                reached.add(neighbour)
                stack.append(neighbour)
    return reached
