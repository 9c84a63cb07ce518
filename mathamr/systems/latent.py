"""Formulas by dense vectors of their symbol pairs (:mod:`mathamr.structure.latent`). Task 2 alone.

The vectors are made of the formulas that are searched, without judgments; they are the same for every seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import check_k
from mathamr.stages.retrieval.indexed_formulas import IndexedFormulas
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, speed
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
        formulas = IndexedFormulas(FormulaTrees(self._formulas_db))
        posts, wanted = self.posts_for(topic_set), topic_set.indexed
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("reading formula trees", unit="posts") as advance:
            read = formulas.read(posts, self._formulas_db, wanted=wanted, progress=advance)
            index = LatentIndex.build(read, settings.latent)
        costs = {"index_seconds": watch.seconds, "index_bytes": index.nbytes, "peak_memory_bytes": peak_memory()}
        return Indexed((formulas, index), {**costs, "formulas": len(index)})

    def retrieve(self, settings: LatentSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the query formulas; ``queries_per_second`` is of vectors and search."""
        formulas, index = indexed.index
        found, k = formulas.queries(topic_set, self.console), settings.retrieval.k
        with Stopwatch() as watch:
            rankings = {name: index.search(query, k, names=formulas.names) for name, query in found.items()}
        return Retrieved(formulas.hits(rankings), speed(len(found), watch.seconds), formulas.visual_ids)
