"""Ranked lists of several systems for one query, side by side.

>>> lists = {"bm25": ["8", "5", "2"], "text": ["5", "9", "8"]}
>>> ranks_elsewhere(lists, k=2)
{'bm25': [{'text': 3}, {'text': 1}], 'text': [{'bm25': 2}, {'bm25': None}]}
>>> shared(lists, k=2)
1

A rank of None means that the other list does not have the result; lists are :data:`DEPTH` results deep or ``k``,
whichever is more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphs.errors import ConfigError, MathAMRError, RetrievalError
from mathamr.retrieval.index import Strategy
from mathamr.search.answer import TASKS, Answer, Result, check
from mathamr.search.searchable import SearchEngine
from mathamr.search.selection import EVERYTHING, Selection

DEPTH = 100  # results of each list in which a result of another list is looked for
Ranks = list[dict[str, int | None]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lists of several systems for one query.

    Attributes:
        answers: first ``k`` results of each system, by its name.
        ranks: rank of each of these results in every other list, from 1, or None.
        shared: number of results among the first ``k`` of every list.
        depth: number of results of each list that were compared.
    """

    answers: dict[str, Answer]
    ranks: dict[str, Ranks]
    shared: int
    depth: int


def compare(
    systems: Mapping[str, SearchEngine],
    text: str,
    *,
    task: str = TASKS[0],
    strategy: Strategy | None = None,
    k: int,
    selection: Selection = EVERYTHING,
) -> Comparison:
    """Search several systems with one query and compare the ranks of their first ``k`` results.

    Raises:
        ConfigError: fewer than two systems, a first result other than 0, an unknown task, or ``k`` out of range.
        RetrievalError: a query that one of the systems refuses; the message names the system.
    """
    check(task, k)
    if len(systems) < 2:
        raise ConfigError(f"a comparison needs two different systems; given: {', '.join(systems) or 'none'}")
    if selection.start:
        raise ConfigError(f"start={selection.start}: a comparison shows the first results; leave start out")
    depth = max(DEPTH, k)
    answers = {}
    for name, engine in systems.items():
        try:
            answers[name] = engine.answer(text, task=task, strategy=strategy, k=depth, selection=selection, explained=k)
        except MathAMRError as error:
            raise RetrievalError(f"index {name}: {error}") from error
    lists = {name: [_id(result) for result in answer.results] for name, answer in answers.items()}
    first = {name: _first(answer, k) for name, answer in answers.items()}
    return Comparison(first, ranks_elsewhere(lists, k), shared(lists, k), depth)


def ranks_elsewhere(lists: Mapping[str, Sequence[str]], k: int) -> dict[str, Ranks]:
    """Return the ranks of the first ``k`` results of each list in every other list."""
    places = {name: {one: rank for rank, one in enumerate(ids, 1)} for name, ids in lists.items()}
    return {
        name: [{other: places[other].get(one) for other in lists if other != name} for one in ids[:k]]
        for name, ids in lists.items()
    }


def shared(lists: Mapping[str, Sequence[str]], k: int) -> int:
    """Return the number of results that are among the first ``k`` of every list."""
    return len(set.intersection(*(set(ids[:k]) for ids in lists.values())))


def _id(result: Result) -> str:
    return result.post.post_id if result.formula is None else result.formula.formula_id


def _first(answer: Answer, k: int) -> Answer:
    page = answer.page
    more = page.more or len(page.results) > k
    return replace(answer, page=replace(page, results=page.results[:k], more=more))
