"""Formulas by dense vectors of their symbol pairs (:mod:`mathamr.structure.latent`). Task 2 alone.

The vectors are made of the formulas that are searched, without judgments; they are the same for every seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.formulas.store import FormulaStore
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import check_k
from mathamr.retrieval.lexical import distinct_formulas
from mathamr.stages.retrieval.indexed_formulas import IndexedFormulas
from mathamr.stages.retrieval.searching import speed
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.structure.latent import LatentIndex
from mathamr.systems.registry import system
from mathamr.systems.settings.ranking import LatentSettings
from mathamr.systems.system import System


@system("latent")
class LatentSystem(System[LatentSettings]):
    """Search formulas by the cosine of dense vectors."""

    tasks = frozenset({2})

    def check(self, settings: LatentSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check the settings of vectors and ``retrieval.k``."""
        settings.latent.check()
        check_k(settings.retrieval.k, "retrieval.k")

    def index(self, settings: LatentSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Read the posts of the collection and make vectors; ``index_seconds`` is of both."""
        trees = FormulaTrees(self._formulas_db)
        store = None if self._formulas_db is None else FormulaStore.open(self._formulas_db)
        posts, visual_ids = self.posts_for(topic_set), dict[str, str]()
        places: list[tuple[str, str]] = []
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("reading", unit="posts") as advance:
            found = distinct_formulas(
                posts, trees.of, visual_ids, store=store, wanted=topic_set.indexed, progress=advance
            )

            def formulas() -> Iterator[ParsedFormula]:
                for formula_id, post_id, formula in found:
                    places.append((formula_id, post_id))
                    yield formula

            made = LatentIndex.build(formulas(), settings.latent)
        costs = {"index_seconds": watch.seconds, "index_bytes": made.nbytes, "peak_memory_bytes": peak_memory()}
        searchable = _Searchable(made=made, places=places, visual_ids=visual_ids, trees=trees)
        return Indexed(searchable, {**costs, "formulas": len(made)})

    def retrieve(self, settings: LatentSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the query formulas; ``queries_per_second`` is of vectors and search."""
        searchable: _Searchable = indexed.index
        found = searchable.queries(topic_set, self.console)
        with Stopwatch() as watch:
            rankings = {
                name: searchable.made.search(query, settings.retrieval.k, names=searchable.names)
                for name, query in found.items()
            }
        return Retrieved(searchable.hits(rankings), speed(len(found), watch.seconds), searchable.visual_ids)


@dataclass(frozen=True, kw_only=True)
class _Searchable(IndexedFormulas):
    """Vectors of formulas, with their ids."""

    made: LatentIndex
