"""Formulas of an index by their numbers: queries from topics, and results with the ids of formulas and posts.

formulas = IndexedFormulas(FormulaTrees(None))
index = StructureIndex.build(formulas.read(posts, None), rules)
queries = formulas.queries(topic_set, console)                    # {'B.1': the query formula, ...}
formulas.hits({"B.1": [(1, 0.5)]})                                # {'B.1': [Hit('f2', 0.5, 'p2')]}
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import PlaceholderText, Post
from graphs.errors import Failure
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.runs import Hit
from mathamr.retrieval.lexical import distinct_formulas, query_formula
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import TopicSet


@dataclass(frozen=True)
class IndexedFormulas:
    """Formulas of an index, without the index.

    Attributes:
        trees: source of the trees of posts and topics.
        places: id of each formula and of its post, by number.
        visual_ids: visual ids by formula id.
    """

    trees: FormulaTrees
    places: list[tuple[str, str]] = field(default_factory=list)
    visual_ids: dict[str, str] = field(default_factory=dict)

    def read(
        self,
        posts: Iterable[Post | Failure],
        formulas_db: Path | None,
        *,
        wanted: Container[str] | None = None,
        note: Callable[[str, PlaceholderText], None] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[ParsedFormula]:
        """Yield the formulas of posts to be indexed, as :func:`distinct_formulas`, and note their places."""
        read, visual_ids = self.trees.of, self.visual_ids
        found = distinct_formulas(posts, read, visual_ids, formulas_db, wanted=wanted, note=note, progress=progress)
        for formula_id, post_id, formula in found:
            self.places.append((formula_id, post_id))
            yield formula

    @cached_property
    def names(self) -> npt.NDArray[np.str_]:
        """Ids of the formulas, by which equal scores are ordered (F,)."""
        return np.array([formula_id for formula_id, _ in self.places], dtype=np.str_)

    def queries(self, topic_set: TopicSet, console: Console) -> dict[str, ParsedFormula]:
        """Return the query formula of each topic that has one; the console names the others."""
        queries = {topic.topic_id: query_formula(topic, self.trees.of) for topic in topic_set.topics}
        found = {topic_id: query for topic_id, query in queries.items() if query is not None}
        topic_set.say_lost(
            console, [one for one in topic_set.topics if one.topic_id in found], "lack the query formula"
        )
        return found

    def hits(self, rankings: Mapping[str, Sequence[tuple[int, float]]]) -> dict[str, list[Hit]]:
        """Return the formulas that numbers stand for, with their scores and posts."""
        return {
            topic_id: [Hit(self.places[number][0], score, self.places[number][1]) for number, score in ranking]
            for topic_id, ranking in rankings.items()
        }
