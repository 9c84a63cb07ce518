"""Formulas of a catalog by their structure: an index of trees, and the formula and post of each number.

======================  ==========================================================
``arrays.npz``          trees and postings (:mod:`mathamr.structure.storage`)
``names.json``          symbols, edges and rules of scoring
``formulas.tsv``        id of each formula and of its post
======================  ==========================================================

Of the formulas with one visual id, the first is kept. Equal scores go by id, descending. The scores are those of
``track=structure`` over the same posts and trees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import Post
from graphs.errors import Failure, RetrievalError, StoreError, faults_as
from graphs.formulas.layout import BLANK
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from graphs.stores.posts import PostTexts
from graphs.whole_file import write_whole
from mathamr.evaluation.runs import Hit
from mathamr.retrieval.folder import FORMULA_TABLE
from mathamr.retrieval.lexical import distinct_formulas
from mathamr.search.answer import Answer, formula_results, no_formula, post_of_hit
from mathamr.search.selection import Selection
from mathamr.structure.index import StructureIndex
from mathamr.structure.matching import Match, match_of
from mathamr.structure.scoring import Scoring
from mathamr.structure.storage import NAMES, read_index, write_index

if TYPE_CHECKING:
    from mathamr.search.query import EncodedQuery
    from mathamr.search.typed_query import TypedQuery

MAX_DRAWN = 20_000  # symbols of all matches of a search: a query may have a thousand, and a thousand results


@dataclass(frozen=True)
class StructuredFormulas:
    """Formulas by structure; ``places`` are the ids of each formula and of its post."""

    index: StructureIndex
    places: list[tuple[str, str]]

    @classmethod
    def build(
        cls,
        posts: Iterable[Post | Failure],
        scoring: Scoring,
        *,
        formulas_db: Path | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> StructuredFormulas | None:
        """Index the formulas of posts, the first of each visual id; None where they have no formula.

        Args:
            posts: posts in the order of the collection.
            formulas_db: published trees and visual ids; None: trees come from the LaTeX, and visual ids are unknown.
        """
        trees = FormulaTrees(formulas_db)
        places: list[tuple[str, str]] = []

        def formulas() -> Iterator[ParsedFormula]:
            for formula_id, post_id, formula in distinct_formulas(posts, trees.of, {}, formulas_db, progress=progress):
                places.append((formula_id, post_id))
                yield formula

        found = formulas()
        first = next(found, None)
        return None if first is None else cls(StructureIndex.build(chain([first], found), scoring), places)

    def write(self, folder: Path) -> list[Path]:
        """Write the files to a new folder; return those that carry no checksum."""
        write_index(self.index, folder)
        lines = ["formula_id\tpost_id", *("\t".join(place) for place in self.places)]
        write_whole(folder / FORMULA_TABLE, "\n".join(lines) + "\n")
        return [folder / FORMULA_TABLE, folder / NAMES]

    @classmethod
    def open(cls, folder: Path) -> StructuredFormulas:
        """Open what :meth:`write` has written; raise StoreError for damaged files."""
        index = read_index(folder)
        with faults_as(StoreError, "cannot be read as the table of formulas: {}", folder / FORMULA_TABLE):
            rows = [line.split("\t") for line in (folder / FORMULA_TABLE).read_text(encoding="utf-8").split("\n")[1:-1]]
            places = [(formula_id, post_id) for formula_id, post_id in rows]
        if len(places) != len(index):
            message = f"{len(places):,} formulas for the trees of {len(index):,}; build the index again"
            raise StoreError(message, path=folder / FORMULA_TABLE)
        return cls(index, places)

    def __len__(self) -> int:
        return len(self.places)

    def search(self, formula: ParsedFormula, k: int) -> list[tuple[int, Hit]]:
        """Return the numbers of the best ``k`` formulas, and the formulas with their posts and scores, best first."""
        return [
            (number, Hit(self.places[number][0], score, self.places[number][1]))
            for number, score in self.index.search(formula, k, names=self._names)
        ]

    @cached_property
    def _names(self) -> npt.NDArray[np.str_]:
        return np.array([formula_id for formula_id, _ in self.places], dtype=np.str_)

    def matches(self, formula: ParsedFormula, numbers: Iterable[int]) -> list[Match | None]:
        """Return the matches of the first found formulas, up to :data:`MAX_DRAWN` symbols in total; then None.

        A formula that is too large to draw has None, too.
        """
        matches: list[Match | None] = []
        left = MAX_DRAWN
        for number in numbers:
            match = match_of(self.index, formula, number) if left > 0 else None
            left -= 0 if match is None else match.query.leaves + match.formula.leaves
            matches.append(match)
        return matches

    def answer(
        self, query: EncodedQuery | TypedQuery, texts: PostTexts, k: int, selection: Selection, encoding: float
    ) -> Answer:
        """Return formulas that share a large part with the first formula of the query, each with that part.

        Args:
            encoding: seconds that reading the query took.

        Raises:
            ConfigError: a query without a formula.
            RetrievalError: a formula that cannot be read.
            StoreError: a formula without the text of its post.
        """
        if not query.text.formulas:
            raise no_formula(query)
        start = time.perf_counter()
        (formula, *_) = FormulaTrees().of(query.text.formulas)
        if not {label for tree in (formula.slt, formula.opt) if tree for label in tree.labels} - {BLANK}:
            reason = formula.errors[0][1] if formula.errors else "it has no symbol"
            raise RetrievalError(f"the first formula of the query cannot be read: {reason}")
        found = self.search(formula, selection.depth(k))
        page = selection.page(found, k, lambda one: post_of_hit(one[1]), texts)
        searched = time.perf_counter()
        matches = self.matches(formula, [number for number, _ in page.results])
        shown = formula_results([hit for _, hit in page.results], texts)
        results = [replace(result, match=match) for result, match in zip(shown, matches, strict=True)]
        seconds = {"query": encoding, "search": searched - start, "explanation": time.perf_counter() - searched}
        return Answer(query, page.with_results(results), 1.0, seconds)
