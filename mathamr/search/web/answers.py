r"""Answers of the engine, as JSON for the page.

Text goes out in parts, words as strings and formulas as objects, so that the page need not guess what is a formula:

>>> as_parts("Take FORMULA_0.", PlaceholderText((), (FormulaRef("7", "x^2"),)))
['Take ', {'latex': 'x^2'}, '.']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from graphs.corpus.post import FormulaRef, PlaceholderText
from graphs.corpus.text.latex_text import parts
from graphs.errors import RetrievalError
from graphs.stores.posts import PostText, beginning_of
from mathamr.retrieval.explanation import Explanation, VirtualNode
from mathamr.search.answer import Answer, Result
from mathamr.search.comparison import Comparison
from mathamr.search.overlap import Overlap
from mathamr.structure.matching import Match

Parts = list[str | dict[str, Any]]
DIGITS = 4  # of scores
MAX_CELLS = 250_000  # of a heat map: 500 virtual nodes a side
MAX_MATCHES = 100  # of a result: a query may have thousands of formulas, and a thousand results


def answer(found: Answer) -> dict[str, Any]:
    """Return an answer as JSON: ``results``, ``best`` (the highest possible score, or null) and ``seconds``.

    A result has a ``formula``, or its first :data:`MAX_MATCHES` ``matches`` and the number of further ones
    (``more_matches``); one of a system without virtual nodes has an ``overlap`` with the query. ``read`` lists the
    parts of the query that the model knows and does not know; ``start``, ``more``, ``candidates`` and ``matching`` are
    those of :class:`mathamr.search.selection.Page`.
    """
    words, text = found.query.words, found.query.text
    nodes = cache(lambda virtual: node(virtual, text))  # the same in every result
    return {
        "results": [_result(result, nodes) for result in found.results],
        "start": found.page.start,
        "more": found.page.more,
        "candidates": found.page.candidates,
        "matching": found.page.matching,
        "best": found.best,
        "formula": next(({"latex": formula.latex} for formula in text.formulas), None),
        "read": {"known": list(words.known), "unknown": list(words.unknown), "formulas": words.formulas},
        "seconds": found.seconds,
    }


def comparison(found: Comparison, systems: Mapping[str, str]) -> dict[str, Any]:
    """Return ``lists``, the answer of each index with the ``ranks`` of its results in the others, and the counts.

    Args:
        systems: name of the system of each index, as shown to users.
    """
    lists = []
    for name, one in found.answers.items():
        own = answer(one)
        for result, ranks in zip(own["results"], found.ranks[name], strict=True):
            result["ranks"] = ranks
        lists.append({"index": name, "system": systems[name], **own})
    return {"lists": lists, "shared": found.shared, "depth": found.depth}


def heat_map(found: Answer) -> dict[str, Any]:
    """``similarities`` (num_query_nodes, num_document_nodes) of ``query`` and ``document``; ``best`` of each row."""
    (result,) = found.results
    why = result.explanation
    assert why is not None
    if why.similarities.numel() > MAX_CELLS:
        raise RetrievalError(
            f"a heat map of {len(why.query):,} by {len(why.document):,} virtual nodes is too large to be shown; ask "
            "with a shorter query"
        )
    return {
        "post_id": result.post.post_id,
        "query": [node(n, found.query.text) for n in why.query],
        "document": [node(n, result.post.text) for n in why.document],
        "similarities": [[round(score, DIGITS) for score in row] for row in why.similarities.tolist()],
        "best": why.similarities.argmax(1).tolist(),
        "score": round(result.score, DIGITS),
    }


def post(found: PostText) -> dict[str, Any]:
    """Return the whole text of a post, a list of parts for each sentence."""
    return {
        "post_id": found.post_id,
        "title": _joined(found.heading.sentences, found.heading),
        "sentences": [as_parts(sentence, found.text) for sentence in found.text.sentences],
    }


def node(virtual: VirtualNode, text: PlaceholderText) -> dict[str, Any]:
    """A virtual node of ``text``: ``kind``, ``number`` within the kind, from 1, and ``text`` in parts."""
    shown: Parts = []
    if virtual.kind == "formula" and virtual.text:
        shown = [{"latex": virtual.text}]
    elif virtual.kind == "sentence" and virtual.text:
        shown = as_parts(text.sentences[virtual.number], text)
    return {"kind": virtual.kind, "number": virtual.number + 1, "text": shown}


def as_parts(sentence: str, text: PlaceholderText, found: FormulaRef | None = None) -> Parts:
    """Split a sentence into words and formulas; the formula ``found`` is marked."""
    return [
        part if isinstance(part, str) else {"latex": part.latex} | ({"found": True} if part == found else {})
        for part in parts(sentence, text)
    ]


def _result(result: Result, nodes: Callable[[VirtualNode], dict[str, Any]]) -> dict[str, Any]:
    """Return a result as JSON; ``nodes`` returns the virtual nodes of the query as JSON."""
    own = result.post
    shown: dict[str, Any] = {
        "post_id": own.post_id,
        "title": _joined(own.heading.sentences, own.heading),
        "score": round(result.score, DIGITS),
    }
    if result.formula is not None:
        formula = {"formula_id": result.formula.formula_id, "latex": result.formula.latex}
        match = {} if result.match is None else {"match": match_record(result.match)}
        return shown | {"formula": formula, "snippet": _around(result.formula, own)} | match
    why = result.explanation
    matches = [] if why is None else _matches(why, nodes, own.text)
    more = 0 if why is None else len(why.query) - len(matches)
    if own.question is not None:
        beginning = as_parts(beginning_of(own.question, own.heading), own.question)
        question = {"post_id": own.question_id, "snippet": beginning}
        shown |= {"question": question}
    overlap = {} if result.overlap is None else {"overlap": _overlap(result.overlap)}
    snippet = as_parts(own.beginning(), own.text)
    return shown | {"snippet": snippet, "matches": matches, "more_matches": more} | overlap


def _overlap(overlap: Overlap) -> dict[str, Any]:
    formulas = [
        {"query": {"latex": one.query}, "document": {"latex": one.document}, "match": one.match}
        for one in overlap.formulas
    ]
    return {"words": list(overlap.words), "formulas": formulas}


def match_record(match: Match) -> dict[str, Any]:
    """Return both formulas as MathML elements with roles, the ``renaming``, what is ``changed``, and the counts."""
    return {
        "query": match.query.record(),
        "formula": match.formula.record(),
        "renaming": [list(pair) for pair in match.renaming],
        "changed": [list(pair) for pair in match.changed],
        "matched": match.matched,
        "symbols": match.symbols,
    }


def _matches(
    why: Explanation, nodes: Callable[[VirtualNode], dict[str, Any]], document: PlaceholderText
) -> list[dict[str, Any]]:
    return [
        {"query": nodes(m.query), "document": node(m.document, document), "score": round(m.score, DIGITS)}
        for m in why.matches[:MAX_MATCHES]
    ]


def _around(formula: FormulaRef, own: PostText) -> Parts:
    """Return the sentence with ``formula``."""
    for sentence in own.text.sentences:
        if formula in parts(sentence, own.text):
            return as_parts(sentence, own.text, formula)
    return as_parts(own.beginning(), own.text)


def _joined(sentences: Sequence[str], text: PlaceholderText) -> Parts:
    return as_parts(" ".join(" ".join(sentences).split()), text)
