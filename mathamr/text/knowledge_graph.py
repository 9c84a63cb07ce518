"""Training pairs and benchmark queries from a knowledge graph over papers.

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
1,500 characters with an overlap of 200. A concept's name and its description lead to the chunks of its papers, at most
20 for each concept. The two ends of an edge lead to each other's chunks, at most 5 in each direction. Queries of the
benchmark are concepts with at least two papers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphs.errors import CorpusError

CHUNK, OVERLAP = 1_500, 200  # characters
CHUNKS_A_CONCEPT, CHUNKS_AN_EDGE = 20, 5
MIN_DEGREE = 2  # fewest papers of a concept that is a query


@dataclass(frozen=True)
class Concept:
    """Concept: its name, a description of one sentence (may be empty), and its papers."""

    name: str
    description: str
    papers: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """``source`` has the ``relation`` to ``target``; both are names of concepts."""

    source: str
    target: str
    relation: str


@dataclass(frozen=True)
class KnowledgeGraph:
    """Concepts, and edges between them."""

    concepts: tuple[Concept, ...]
    edges: tuple[Edge, ...]


def canonical(name: str) -> str:
    """Return the common form of all spellings of a name.

    >>> canonical("Cauchy Sequences"), canonical("Cauchy-sequence"), canonical("compactness")
    ('cauchy sequence', 'cauchy sequence', 'compactness')
    """
    words = re.findall(r"[^\W_]+", name.casefold().replace("'s", "s"))
    if words and len(words[-1]) > 4 and words[-1].endswith("s") and not words[-1].endswith(("ss", "us", "is")):
        words[-1] = words[-1][:-1]
    return " ".join(words)


def concepts_of(mentions: Iterable[tuple[str, str, str]], least_papers: int) -> dict[str, Concept]:
    """Return the concepts that at least ``least_papers`` papers have, by :func:`canonical` name, in the order found.

    Args:
        mentions: paper, name and description, which may be empty; of a concept the first name and description count.
    """
    names: dict[str, str] = {}
    descriptions: dict[str, str] = {}
    papers: dict[str, dict[str, None]] = {}
    for paper, name, description in mentions:
        if same := canonical(name):
            names.setdefault(same, name)
            descriptions[same] = descriptions.get(same) or description
            papers.setdefault(same, {})[paper] = None
    kept = {same: own for same, own in papers.items() if len(own) >= least_papers}
    return {same: Concept(names[same], descriptions[same], tuple(own)) for same, own in kept.items()}


def read_graph(path: Path) -> KnowledgeGraph:
    """Read a knowledge graph from JSON of the form above.

    Raises:
        CorpusError: not JSON, a concept or an edge without its keys, a repeated name in any spelling
            (:func:`canonical`), an edge to an unknown concept.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        concepts = tuple(
            Concept(str(one["name"]), str(one.get("description") or ""), tuple(map(str, _list(one["papers"]))))
            for one in content["concepts"]
        )
        edges = tuple(Edge(str(one["source"]), str(one["target"]), str(one["relation"])) for one in content["edges"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"is not a knowledge graph ({type(error).__name__}: {error}); see the module for the form"
        raise CorpusError(message, path=path) from error
    names = {concept.name for concept in concepts}
    spelled: dict[str, str] = {}  # two spellings would put one concept into a test and into training
    for concept in concepts:
        same = canonical(concept.name) or concept.name
        if same in spelled:
            message = f"has two concepts with the name {same!r}: {spelled[same]!r} and {concept.name!r}; rename one"
            raise CorpusError(message, path=path)
        spelled[same] = concept.name
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in names:
                raise CorpusError(f"has an edge to {end!r}, which is not a concept; add the concept", path=path)
    return KnowledgeGraph(concepts, edges)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def to_json(graph: KnowledgeGraph) -> str:
    """Return a knowledge graph in the form that :func:`read_graph` reads."""
    return json.dumps(asdict(graph), ensure_ascii=False, indent=1) + "\n"


def chunked(text: str, *, size: int = CHUNK, overlap: int = OVERLAP) -> list[str]:
    """Return passages of at most ``size`` characters, each starting ``overlap`` before the end of the one before it.

    A cut falls between words if the last fifth of a passage has a space.

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
    """Return different (anchor, chunk) pairs: direct ones of each concept, then those over edges.

    ``chunks`` are passages by paper; missing papers give none. ``seed`` determines the choice among more chunks than
    are taken.
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
            sample = _some(of_concept[other], CHUNKS_AN_EDGE, generator)
            found.update(((anchor, chunk), None) for chunk in sample)
    return list(found)


def benchmark(graph: KnowledgeGraph) -> dict[str, tuple[str, ...]]:
    """Return queries (names of concepts), and the papers whose chunks are all relevant to them."""
    return {concept.name: concept.papers for concept in graph.concepts if len(set(concept.papers)) >= MIN_DEGREE}


def _some(chunks: Sequence[str], count: int, generator: np.random.Generator) -> list[str]:
    if len(chunks) <= count:
        return list(chunks)
    return [chunks[i] for i in sorted(generator.permutation(len(chunks))[:count])]
