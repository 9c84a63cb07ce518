r"""A knowledge graph by a language model: concepts of papers, and typed edges between them.

>>> said = '''{"concepts": [{"name": "Noetherian rings", "description": "Rings whose ideals are finitely generated."},
...             {"name": "Hilbert's basis theorem"}],
...            "edges": [{"source": "Hilbert's basis theorem", "relation": "uses", "target": "Noetherian ring"}]}'''
>>> graph = merged({"p1": read_answer(said), "p2": read_answer('{"concepts": ["noetherian ring"]}')})
>>> [(concept.name, concept.papers) for concept in graph.concepts]
[('Noetherian rings', ('p1', 'p2')), ("Hilbert's basis theorem", ('p1',))]
>>> graph.edges
(Edge(source="Hilbert's basis theorem", target='Noetherian rings', relation='uses'),)

The model reads the first two and the last two passages of each paper (knowledge-graph paper, section 3.2). Spellings of
a name are one concept as in :mod:`mathamr.text.concepts`, which makes a graph without a model. The paper of a concept
is the one that was read, whatever the answer says. An edge whose ends are not both concepts is left out, and an unknown
relation becomes ``related_to``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from graphs.errors import Failure
from mathamr.text.asking.answers import KeptAnswers, Question
from mathamr.text.asking.json_objects import first_object, texts
from mathamr.text.asking.models import LanguageModel
from mathamr.text.knowledge_graph import Edge, KnowledgeGraph, canonical, concepts_of

RELATIONS = ("related_to", "uses", "generalizes", "is_instance_of", "implies", "defines", "proves")
"""Types of edges: those that the paper names."""
MAX_TOKENS = 1_500
"""Length of an answer, in tokens: some twenty concepts and as many edges."""
_LONGEST_NAME, _LONGEST_DESCRIPTION = 80, 500  # characters
_MOST = 50  # concepts, and edges, of one answer
SYSTEM = "You list concepts of mathematical papers for a knowledge graph. You answer with one JSON object and no more."
PROMPT = (
    "List the mathematical concepts that these passages of a paper are about, and relations between them. Answer as "
    '{{"concepts": [{{"name": "...", "description": "one sentence"}}], "edges": [{{"source": "...", "relation": "...", '
    '"target": "..."}}]}}. Source and target are names of concepts; a relation is one of {relations}.\n\n{passages}'
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """Concepts of one answer, name -> description, and edges: source, target and relation."""

    concepts: Mapping[str, str]
    edges: tuple[Edge, ...]


def passages_of(chunks: Sequence[str]) -> list[str]:
    """Return the first two and the last two chunks of a paper, each once."""
    return [chunk for i, chunk in enumerate(chunks) if i < 2 or i >= len(chunks) - 2]


def question_for(paper: str, chunks: Sequence[str]) -> Question:
    """Return what a model is asked about the chunks of a paper."""
    prompt = PROMPT.format(relations=", ".join(RELATIONS), passages="\n\n".join(passages_of(chunks)))
    return Question(paper, [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}])


def read_answer(answer: str) -> Extracted:
    """Return the concepts and edges in an answer; values of other types, and names that are too long, are left out."""
    content = first_object(answer, ("concepts", "edges"))
    concepts: dict[str, str] = {}
    for one in _list(content.get("concepts"))[:_MOST]:
        fields = one if isinstance(one, dict) else {"name": one}
        if name := _text(fields.get("name"), _LONGEST_NAME):
            concepts.setdefault(name, _text(fields.get("description"), _LONGEST_DESCRIPTION))
    edges = []
    for one in _list(content.get("edges"))[:_MOST]:
        if isinstance(one, dict):
            source, target = (_text(one.get(end), _LONGEST_NAME) for end in ("source", "target"))
            relation = "_".join(_text(one.get("relation"), _LONGEST_NAME).casefold().split())
            if source and target:
                edges.append(Edge(source, target, relation if relation in RELATIONS else RELATIONS[0]))
    return Extracted(concepts, tuple(edges))


def merged(answers: Mapping[str, Extracted], *, least_papers: int = 1) -> KnowledgeGraph:
    """Return the graph of all answers, by paper: concepts of at least ``least_papers`` papers, in the order found."""
    mentions = ((paper, *concept) for paper, found in answers.items() for concept in found.concepts.items())
    concepts = concepts_of(mentions, least_papers)
    edges: dict[Edge, None] = {}
    for edge in (edge for found in answers.values() for edge in found.edges):
        source, target = concepts.get(canonical(edge.source)), concepts.get(canonical(edge.target))
        if source and target and source is not target:
            edges[Edge(source.name, target.name, edge.relation)] = None
    return KnowledgeGraph(tuple(concepts.values()), tuple(edges))


def ask(
    chunks: Mapping[str, Sequence[str]],
    model: LanguageModel,
    answers: KeptAnswers,
    *,
    least_papers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> tuple[KnowledgeGraph, list[Failure]]:
    """Return the graph of a model's answers about papers, and a failure for each paper without a concept.

    ``chunks`` are passages by paper (:func:`mathamr.text.knowledge_graph.chunked`). The file ``answers`` is resumed.
    """
    questions = [question_for(paper, own) for paper, own in chunks.items()]
    found: dict[str, Extracted] = {}
    failures = []
    for paper, answer in zip(chunks, answers.ask(model, questions, progress), strict=True):
        if isinstance(answer, str):
            found[paper] = read_answer(answer)
        if paper not in found or not found[paper].concepts:
            failures.append(answers.failure(paper, "concepts", answer, "no concept in the answer"))
    return merged(found, least_papers=least_papers), failures


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object, most: int) -> str:
    """Return a text of at most ``most`` characters, "" for any other value."""
    found = texts(value)
    return found[0] if isinstance(value, str) and found and len(found[0]) <= most else ""
