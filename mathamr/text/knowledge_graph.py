"""Pairs for training, and queries for a benchmark, from a knowledge graph over papers.

    {"concepts": [{"name": "Bailey's lemma", "description": "A transformation of ...", "papers": ["p1", "p2"]}, ...],
     "edges": [{"source": "Bailey's lemma", "target": "Rogers-Ramanujan identities", "relation": "generalizes"}, ...]}

>>> graph = KnowledgeGraph(
...     (Concept("Bailey's lemma", "A transformation.", ("p1",)), Concept("Partitions", "", ("p2", "p3"))),
...     (Edge("Bailey's lemma", "Partitions", "uses"),))
>>> chunks = {"p1": ["a"], "p2": ["b"], "p3": ["c"]}
>>> sorted(pairs(graph, chunks))  # doctest: +NORMALIZE_WHITESPACE
[('A transformation.', 'a'), ("Bailey's lemma", 'a'), ("Bailey's lemma", 'b'), ("Bailey's lemma", 'c'),
 ('Partitions', 'a'), ('Partitions', 'b'), ('Partitions', 'c')]
>>> benchmark(graph)  # concepts of at least two papers, and the papers whose chunks are relevant
{'Partitions': ('p2', 'p3')}

Source: Langer, *Knowledge-Graph-Guided Fine-Tuning of Embedding Models for Mathematical Document Retrieval*: chunks of
1,500 characters with 200 of overlap; a concept's name and its description lead to the chunks of its papers, at most 20
a concept; the two ends of an edge lead to each other's chunks, at most 5 a direction; queries of the benchmark are
concepts with at least two papers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphs.errors import CorpusError

CHUNK, OVERLAP = 1_500, 200  # characters
CHUNKS_A_CONCEPT, CHUNKS_AN_EDGE = 20, 5
MIN_DEGREE = 2  # papers of a concept that is a query


@dataclass(frozen=True)
class Concept:
    """A concept: its name, what it is in a sentence (may be empty), and the papers that it was found in."""

    name: str
    description: str
    papers: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """``source`` stands in ``relation`` to ``target``; both are names of concepts."""

    source: str
    target: str
    relation: str


@dataclass(frozen=True)
class KnowledgeGraph:
    """Concepts, and edges between them."""

    concepts: tuple[Concept, ...]
    edges: tuple[Edge, ...]


def read_graph(path: Path) -> KnowledgeGraph:
    """A knowledge graph from JSON of the form above.

    Raises:
        CorpusError: no JSON, a concept or an edge without its keys, a name twice, an edge to no concept.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        concepts = tuple(
            Concept(str(one["name"]), str(one.get("description") or ""), tuple(map(str, _list(one["papers"]))))
            for one in content["concepts"]
        )
        edges = tuple(Edge(str(one["source"]), str(one["target"]), str(one["relation"])) for one in content["edges"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"is no knowledge graph ({type(error).__name__}: {error}); mathamr/text/knowledge_graph.py shows one"
        raise CorpusError(message, path=path) from error
    names: set[str] = set()
    for concept in concepts:
        if concept.name in names:
            raise CorpusError(f"has two concepts of the name {concept.name!r}", path=path)
        names.add(concept.name)
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in names:
                raise CorpusError(f"has an edge to {end!r}, which is no concept", path=path)
    return KnowledgeGraph(concepts, edges)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def to_json(graph: KnowledgeGraph) -> str:
    """A knowledge graph as :func:`read_graph` reads it."""
    return json.dumps(asdict(graph), ensure_ascii=False, indent=1) + "\n"


def chunked(text: str, *, size: int = CHUNK, overlap: int = OVERLAP) -> list[str]:
    """Passages of at most ``size`` characters, each beginning ``overlap`` before the end of the one before it.

    A cut falls between words where there is one in the last fifth of a passage.

    >>> chunked("one two three four five", size=10, overlap=3)
    ['one two', 'two three', 'ree four', 'our five']
    """
    chunks, start = [], 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            space = text.rfind(" ", end - max(1, size // 5) - 1, end + 1)
            end = space if space > start + overlap else end
        chunks.append(text[start:end].strip())
        if end == len(text):
            break
        start = end - overlap
    return [chunk for chunk in chunks if chunk]


def pairs(graph: KnowledgeGraph, chunks: Mapping[str, Sequence[str]], *, seed: int = 0) -> list[tuple[str, str]]:
    """Different (anchor, chunk) pairs: direct ones of each concept, then those over edges.

    Args:
        chunks: passages by paper; papers that are not there give none.
        seed: of the choice where a concept has more chunks than are taken.
    """
    generator = np.random.default_rng(seed)
    of_concept: dict[str, list[str]] = {}
    for concept in graph.concepts:
        mine = [chunk for paper in concept.papers for chunk in chunks.get(paper, ())]
        of_concept[concept.name] = _some(mine, CHUNKS_A_CONCEPT, generator)
    found: dict[tuple[str, str], None] = {}
    for concept in graph.concepts:
        for anchor in (concept.name, concept.description):
            if anchor:
                found.update(((anchor, chunk), None) for chunk in of_concept[concept.name])
    for edge in graph.edges:
        for anchor, other in ((edge.source, edge.target), (edge.target, edge.source)):
            chosen = _some(of_concept[other], CHUNKS_AN_EDGE, generator)
            found.update(((anchor, chunk), None) for chunk in chosen)
    return list(found)


def benchmark(graph: KnowledgeGraph, *, min_degree: int = MIN_DEGREE) -> dict[str, tuple[str, ...]]:
    """Queries (names of concepts), and the papers all of whose chunks are relevant to them."""
    return {concept.name: concept.papers for concept in graph.concepts if len(set(concept.papers)) >= min_degree}


def _some(chunks: Sequence[str], count: int, generator: np.random.Generator) -> list[str]:
    if len(chunks) <= count:
        return list(chunks)
    return [chunks[i] for i in sorted(generator.permutation(len(chunks))[:count])]
