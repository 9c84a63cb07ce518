r"""Fine-tuning pairs from a collection: answers, statements, formulas in their sentences, concepts.

>>> from mathamr.text.queries import paper_queries
>>> from mathamr.text.statements import Statement
>>> statement = Statement("theorem", "thm", "Euclid", "There are infinitely many primes $p$.", "On primes", "")
>>> paper = Paper("2501.1", "Primes", ("math.NT",), (statement,), {})
>>> [(pair.query, pair.document) for pair in of_statements([paper], paper_queries)]
[('Euclid', 'There are infinitely many primes $p$.'), ('On primes: theorem', 'There are infinitely many primes $p$.')]
>>> text = r"Recall that $a^2 + b^2 = c^2$ for a right triangle with $c$ opposite to the right angle."
>>> there, back = of_formulas([Passage("p1", "p1", text)])
>>> there.query
'Recall that FORMULA for a right triangle with $c$ opposite to the right angle.'
>>> there.document, back.query == there.document
('a ^ { 2 } + b ^ { 2 } = c ^ { 2 }', True)

Titles lead to bodies in the collection ``titles`` (:mod:`graphs.corpus.pair_sets.pair_posts`), as questions lead to
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from graphs.corpus.post import Pair, PlaceholderText
from graphs.corpus.text.latex_text import as_text
from graphs.errors import Failure
from graphs.papers.plain import formula_spans, sentences_of
from graphs.processes import batched
from graphs.stores.posts import PostTexts
from mathamr.text.knowledge_graph import KnowledgeGraph
from mathamr.text.knowledge_graph import pairs as graph_pairs
from mathamr.text.linearize import linearize
from mathamr.text.pairs import TextPair
from mathamr.text.queries import QueryGenerator
from mathamr.text.sources.papers import Paper
from mathamr.text.sources.splits import Split

HIDDEN = "FORMULA"  # replaces the formula that its sentence is to find
MIN_TOKENS = 5  # fewest of a formula; "n" is in every text
MIN_WORDS = 4  # of the sentence around it
_AT_ONCE = 256
_STATEMENTS_AT_ONCE = 64  # so that a language model is asked several questions at once


def of_answers(
    pairs: Iterable[Pair],
    texts: PostTexts,
    written: Callable[[PlaceholderText], str] = as_text,
    groups: Mapping[str, str] | None = None,
) -> Iterator[TextPair]:
    """Yield question -> answer, for each of the graph track's pairs whose posts have a text.

    A thread is a group: other answers to the same question are not its negatives.

    Args:
        groups: group of each question, where several threads are one (:func:`graphs.corpus.pairs.question_groups`).
        written: function that joins a post's sentences and formulas to one text.
    """
    for some in batched(pairs, _AT_ONCE):
        found = texts.get(list({post_id for pair in some for post_id in (pair.question_id, pair.answer_id)}))
        for pair in some:
            query, document = (
                written(found[name].text) if name in found else "" for name in (pair.question_id, pair.answer_id)
            )
            if query and document:
                group = (groups or {}).get(pair.question_id, pair.question_id)
                yield TextPair(query, document, pair.question_id, pair.answer_id, group=group)


def of_statements(
    papers: Iterable[Paper], generator: QueryGenerator, *, split_by: Split | None = None, part: str = "train"
) -> Iterator[TextPair | Failure]:
    """Yield query -> statement (ModernBERT thesis, section 3), or a failure for a statement without a query.

    Args:
        generator: source of queries for the statements of some papers at a time.
        split_by: take only the statements of ``part``.
    """
    wanted = (
        (paper, number)
        for paper in papers
        for number in range(len(paper.statements))
        if split_by is None or split_by.part(paper.paper_id, number) == part
    )
    for some in batched(wanted, _STATEMENTS_AT_ONCE):
        names = [f"{paper.paper_id}/{number}" for paper, number in some]
        answers = generator([paper.statements[number] for paper, number in some], names)
        for (paper, number), name, queries in zip(some, names, answers, strict=True):
            if isinstance(queries, Failure):
                yield queries
                continue
            text = paper.statements[number].text
            for k, query in enumerate(queries):
                yield TextPair(query, text, f"{name}/{k}", name, group=paper.paper_id, categories=paper.categories)


@dataclass(frozen=True, slots=True)
class Passage:
    """Text with formulas ``$...$``, and its thread or paper."""

    passage_id: str
    group: str
    text: str
    categories: tuple[str, ...] = ()


def of_formulas(passages: Iterable[Passage], *, linear: bool = True) -> Iterator[TextPair]:
    """Yield sentence -> formula and formula -> sentence, for each formula of some length; formula-text paper.

    In the sentence, :data:`HIDDEN` replaces each occurrence of the formula, so the formula is found only by its
    context. Each formula of a passage counts once, with its first sentence.

    Args:
        linear: write formulas by :func:`mathamr.text.linearize.linearize` (formula-text paper, section 3.1), or as
            typed (its Table 4, "Raw LaTeX").
    """
    for passage in passages:
        seen: set[str] = set()
        for number, sentence in enumerate(sentences_of(passage.text)):
            spans = [(start, end, sentence[start:end].strip("$").strip()) for start, end in formula_spans(sentence)]
            all_tokens = [linearize(typed) for _, _, typed in spans]
            for (start, _, typed), tokens in zip(spans, all_tokens, strict=True):
                if tokens in seen or len(tokens.split()) < MIN_TOKENS:
                    continue
                around = sentence
                for (begin, end, _), other in reversed(list(zip(spans, all_tokens, strict=True))):
                    if other == tokens:
                        around = around[:begin] + HIDDEN + around[end:]
                if len(around.split()) <= MIN_WORDS:
                    continue
                seen.add(tokens)
                formula = tokens if linear else typed
                of_sentence, of_formula = (f"{passage.passage_id}/{side}{number}/{start}" for side in "sf")
                yield TextPair(around, formula, of_sentence, of_formula, passage.group, passage.categories)
                yield TextPair(formula, around, of_formula, of_sentence, passage.group, passage.categories)


def of_concepts(graph: KnowledgeGraph, chunks: Mapping[str, Sequence[str]], *, seed: int = 0) -> Iterator[TextPair]:
    """Yield concept -> chunk, of the concept's own papers and over edges; knowledge-graph paper, section 5.

    A concept's name and its description count as one query, so neither's chunks are negatives of the other. Arguments
    are those of :func:`mathamr.text.knowledge_graph.pairs`.
    """
    concept_of = {anchor: one.name for one in graph.concepts for anchor in (one.description, one.name)}
    place: dict[str, tuple[str, int]] = {}
    for paper, passages in chunks.items():
        for number, passage in enumerate(passages):
            place.setdefault(passage, (paper, number))
    for anchor, chunk in graph_pairs(graph, chunks, seed=seed):
        paper, number = place[chunk]
        yield TextPair(anchor, chunk, concept_of[anchor], f"{paper}/{number}", group=paper)
