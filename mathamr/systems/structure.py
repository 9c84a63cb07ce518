"""Structure search: formulas whose trees have a large part in common with the query's, up to renaming of variables.

Task 2 finds formulas, one of each visual id. Task 1 finds answers by the formulas of the whole topic
(:mod:`mathamr.structure.posts`), or by those of their questions (``thread.read=question``), for ``track=learned``:
words take no part. No model; the same for every seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import PlaceholderText, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, StoreError, faults_as
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import MAX_PER_TOPIC, check_k
from mathamr.retrieval.bm25 import tokens_of_post, tokens_of_text
from mathamr.retrieval.folder import FORMULA_TABLE
from mathamr.retrieval.index import Ranking, ranked
from mathamr.search.searchable import Searchable
from mathamr.search.structured import StructuredFormulas
from mathamr.stages.retrieval.indexed_formulas import IndexedFormulas
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, speed
from mathamr.structure.context import Context, with_similar_posts
from mathamr.structure.index import StructureIndex
from mathamr.structure.posts import FormulasOfPosts, searched_formulas
from mathamr.structure.storage import read_index
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, entry, keep_formulas
from mathamr.systems.settings.ranking import StructureSettings
from mathamr.systems.system import System

_FORMULAS, _POSTS = "formulas.db", "posts.npz"  # of a kept search: published trees of topics, and posts of formulas


@system("structure")
class StructureSystem(System[StructureSettings]):
    """Search formulas by the structure of their trees, without a model."""

    reads = frozenset({"answer", "question"})

    def check(self, settings: StructureSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check the rules of scoring and ``retrieval.k``."""
        settings.structure.check()
        if not 0 <= settings.structure.context <= MAX_PER_TOPIC:
            raise ConfigError(f"structure.context={settings.structure.context} must be from 0 to {MAX_PER_TOPIC:,}")
        check_k(settings.retrieval.k, "retrieval.k")

    def prepare(self, settings: StructureSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Make texts of the posts, and trees of their formulas."""
        self.prepare_texts(settings, topic_sets, formulas=True)

    def index(self, settings: StructureSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Read the posts of the collection; ``index_seconds`` is of that as well."""
        formulas = IndexedFormulas(FormulaTrees(self._formulas_db))
        posts, wanted = self.posts_for(topic_set), topic_set.indexed
        if topic_set.task == 1:
            posts, wanted = self.searched_posts(topic_set), None
        around = _Around(words=topic_set.task == 2)
        note = around.add if settings.structure.context or topic_set.task == 1 else None
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("reading formula trees", unit="posts") as advance:
            read = formulas.read(posts, self._formulas_db, wanted=wanted, note=note, progress=advance)
            structures = StructureIndex.build(read, settings.structure)
            context = answers = None
            if topic_set.task == 1:
                occurring = around.posts(formulas.places, formulas.visual_ids)
                results = settings.thread.results(settings.retrieval.k)
                structured = StructuredFormulas(structures, formulas.places)
                answers = StructureSearch(formulas.trees, structures, occurring, around.names, results, structured)
            elif settings.structure.context:
                context = around.context(formulas.places, formulas.visual_ids)
        costs = {"index_seconds": watch.seconds, "index_bytes": structures.nbytes, "peak_memory_bytes": peak_memory()}
        return Indexed(_Searchable(formulas, structures, context, answers), {**costs, "formulas": len(structures)})

    def retrieve(
        self, settings: StructureSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet
    ) -> Retrieved:
        """Search the index with the query formulas; ``queries_per_second`` is of the search alone."""
        searchable: _Searchable = indexed.index
        formulas, structures, context, answers = searchable
        if answers is not None:
            queries = {topic.topic_id: answers.formulas(topic) for topic in topic_set.topics}
            with Stopwatch() as watch:
                results = {topic_id: answers.of_formulas(own) for topic_id, own in queries.items()}
            return Retrieved(results, speed(len(queries), watch.seconds))
        found = formulas.queries(topic_set, self.console)
        words = {topic.topic_id: tokens_of_post(topic.post) for topic in topic_set.topics}
        k, places = settings.retrieval.k, settings.structure.context
        with Stopwatch() as watch:
            names = formulas.names
            rankings = {name: structures.search(query, k, names=names) for name, query in found.items()}
            if context is not None:
                for name, query in found.items():
                    similar = context.scores(words[name])
                    few = min(places, k)
                    rankings[name] = with_similar_posts(rankings[name], similar, structures, query, few, k, names)
        return Retrieved(formulas.hits(rankings), speed(len(found), watch.seconds), formulas.visual_ids)

    def keep(self, job: FinishedSearch[StructureSettings], folder: Path) -> Mapping[str, Any]:
        """Keep the trees of the formulas of posts, and the published trees of topics."""
        search: StructureSearch = job.indexed.index.answers
        search.write(folder)
        if self._formulas_db is not None:
            keep_formulas(self._formulas_db, job.queries.topics, folder / _FORMULAS)
        return {"published": self._formulas_db is not None, "results": search.results}

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the trees of the formulas of posts."""
        trees = FormulaTrees(kept.folder / _FORMULAS if entry(kept.record, "published") else None)
        return StructureSearch.open(kept.folder, trees, entry(kept.record, "results"))


@dataclass(frozen=True)
class StructureSearch(Searchable):
    """Posts by the structure of their formulas.

    Attributes:
        names: ids of the posts, by number.
        structured: formulas with their ids and posts; None in an index of an earlier version.
    """

    trees: FormulaTrees
    index: StructureIndex
    posts: FormulasOfPosts
    names: Sequence[str]
    results: int
    structured: StructuredFormulas | None

    def formulas(self, topic: Topic) -> list[ParsedFormula]:
        """Return the formulas of a query that are searched with."""
        return searched_formulas(self.trees.of(extract(topic.post).formulas))

    def of_formulas(self, formulas: Sequence[ParsedFormula]) -> Ranking:
        """Return the posts that share a part of a formula; none without formulas."""
        scores = self.posts.scores(self.index, formulas)
        places = np.flatnonzero(scores > 0)
        return ranked([self.names[place] for place in places.tolist()], scores[places], self.results)

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a part of a formula with the query."""
        return self.of_formulas(self.formulas(topic))

    def write(self, folder: Path) -> None:
        """Write the trees and the posts of each formula to a new folder."""
        assert self.structured is not None  # only what was opened lacks it
        self.structured.write(folder)
        names = np.array(self.names, dtype=np.str_)
        np.savez(folder / _POSTS, starts=self.posts.starts, places=self.posts.places, names=names)

    @classmethod
    def open(cls, folder: Path, trees: FormulaTrees, results: int) -> StructureSearch:
        """Open what :meth:`write` has written; raise StoreError for a file that is missing or damaged."""
        structured = StructuredFormulas.open(folder) if (folder / FORMULA_TABLE).is_file() else None
        index = read_index(folder) if structured is None else structured.index
        fault = "cannot be read as the posts of formulas: {}; build the index again"
        with faults_as(StoreError, fault, folder / _POSTS):
            with np.load(folder / _POSTS, allow_pickle=False) as arrays:
                starts, places, names = arrays["starts"], arrays["places"], arrays["names"]
            _check(starts, places, names, len(index))
        return cls(trees, index, FormulasOfPosts(starts, places, len(names)), names.tolist(), results, structured)


def _check(starts: npt.NDArray[Any], places: npt.NDArray[Any], names: npt.NDArray[Any], formulas: int) -> None:
    """Refuse arrays that do not belong together, so that no search reads beyond an array."""
    fit = (
        (starts.dtype, places.dtype, names.dtype.kind) == (np.int64, np.int64, "U")
        and (starts.shape, places.ndim, names.ndim) == ((formulas + 1,), 1, 1)
        and starts[0] == 0
        and starts[-1] == len(places)
        and not (np.diff(starts) < 0).any()
        and not ((places < 0) | (places >= len(names))).any()
    )
    if not fit:
        raise ValueError("its arrays do not belong together")


class _Searchable(NamedTuple):
    """Formulas with their ids, and their trees; in Task 1 ``answers`` finds posts by them."""

    formulas: IndexedFormulas
    structures: StructureIndex
    context: Context | None
    answers: StructureSearch | None


class _Around:
    """Formulas of the posts that are read, and with ``words`` their words."""

    def __init__(self, *, words: bool) -> None:
        self.names: list[str] = []
        self._has_words, self._words = words, list[list[str]]()
        self._formulas: list[list[str]] = []

    def add(self, post_id: str, text: PlaceholderText) -> None:
        """Keep what is needed of a post."""
        self.names.append(post_id)
        self._formulas.append([formula.formula_id for formula in text.formulas])
        if self._has_words:
            self._words.append(tokens_of_text(text))

    def context(self, places: Sequence[tuple[str, str]], visual_ids: dict[str, str]) -> Context:
        """Return the posts around the indexed formulas, wherever a formula of their visual ids occurs."""
        return Context.build(self._words, self._occurrences(places, visual_ids), len(places))

    def posts(self, places: Sequence[tuple[str, str]], visual_ids: dict[str, str]) -> FormulasOfPosts:
        """Return the formulas of the posts."""
        return FormulasOfPosts.build(self._occurrences(places, visual_ids), len(self.names))

    def _occurrences(self, places: Sequence[tuple[str, str]], visual_ids: dict[str, str]) -> list[tuple[int, int]]:
        """Return the number of the indexed formula and of the post for each formula of the posts."""
        number_of = {visual_ids.get(name, f"formula {name}"): number for number, (name, _) in enumerate(places)}
        return [
            (number_of[visual_id], post)
            for post, names in enumerate(self._formulas)
            for name in names
            if (visual_id := visual_ids.get(name, f"formula {name}")) in number_of
        ]
