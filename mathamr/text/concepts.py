r"""A knowledge graph without a language model: terms of definitions and names of statements.

>>> from mathamr.text.statements import find_statements
>>> text = r'''
... \begin{definition} A ring is \emph{Noetherian} if its ideals are finitely generated. \end{definition}
... \begin{theorem}[Hilbert's basis theorem] If $R$ is Noetherian, so is $R[x]$. \end{theorem}'''
>>> paper = Paper("p1", "Rings", (), find_statements(text).statements, {})
>>> graph = graph_of([paper], least_papers=1)
>>> [(concept.name, concept.papers) for concept in graph.concepts]
[('Noetherian', ('p1',)), ("Hilbert's basis theorem", ('p1',))]
>>> graph.concepts[0].description
'A ring is Noetherian if its ideals are finitely generated.'
>>> graph.edges
(Edge(source="Hilbert's basis theorem", target='Noetherian', relation='mentions'),)

A concept is a term emphasised in a definition, or the bracketed name of a statement if it is not a reference to the
literature. Spellings that differ in case, hyphens or a plural ``s`` are one. Its papers are those that define it or
name a statement after it, not all that mention it. Its description is the sentence with the term, or the first
sentence of the statement. An edge leads from each concept to the concepts whose names its descriptions contain.

The knowledge-graph paper asks a language model for concepts and relations (section 3.2). This module finds fewer
concepts, but all of them occur in the papers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from graphs.papers.plain import sentences_of
from mathamr.text.knowledge_graph import Concept, Edge, KnowledgeGraph, canonical, concepts_of
from mathamr.text.sources.papers import Paper
from mathamr.text.statements import Statement

_LEAST, _MOST = 4, 60  # characters of a name
_MOST_WORDS = 6
# Names that only give an origin or a degree of importance.
_NO_NAME = re.compile(
    r"(?i)[$\\\d]|\A(?:(?:main )?(?:theorem|lemma|proposition|corollary|definition|remark|example)s?|only if|iff|"
    r"every|left|right|first|second|unique|exists?|proof|continued|main|also|then|same|only|both|with|where)\Z"
)
_PARENTHESES = re.compile(r"\s*[(\[][^)\]]*[)\]]")


def graph_of(papers: Iterable[Paper], *, least_papers: int = 2) -> KnowledgeGraph:
    """Return the concepts that at least ``least_papers`` papers have, in the order found, and their edges."""
    mentions = [
        (paper.paper_id, name, description)
        for paper in papers
        for statement in paper.statements
        for name, description in _named(statement)
    ]
    concepts = concepts_of(mentions, least_papers)
    described: dict[str, list[str]] = {}
    for _, name, description in mentions:
        if (same := canonical(name)) in concepts:
            described.setdefault(same, []).append(description)
    return KnowledgeGraph(tuple(concepts.values()), tuple(_edges(described, concepts)))


def _named(statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield the names in a statement, with their descriptions."""
    sentences = sentences_of(statement.text)
    if title := _name(statement.title):
        yield title, sentences[0]
    if statement.kind == "definition":
        for term in statement.terms:
            if name := _name(term):
                yield name, next((one for one in sentences if term in one), sentences[0])


def _name(text: str) -> str:
    """Return the name in a title or a term, or ""."""
    name = _PARENTHESES.sub("", text).strip(" .,;:")
    wordy = _LEAST <= len(name) <= _MOST and len(name.split()) <= _MOST_WORDS and name[0].isalpha()
    return name if wordy and not _NO_NAME.search(name) else ""


def _edges(described: dict[str, list[str]], concepts: dict[str, Concept]) -> Iterable[Edge]:
    by_length: dict[int, set[str]] = {}
    for same in described:
        by_length.setdefault(len(same.split()), set()).add(same)
    for same, descriptions in described.items():
        met: dict[str, None] = {}
        for description in descriptions:
            words = description.split()
            for length, known in by_length.items():
                spans = (canonical(" ".join(words[i : i + length])) for i in range(len(words) - length + 1))
                met.update(dict.fromkeys(span for span in spans if span in known and span != same))
        for other in met:
            yield Edge(concepts[same].name, concepts[other].name, "mentions")
