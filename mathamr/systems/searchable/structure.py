"""Structure search kept for search: the formulas of a query against the stored trees of the formulas of posts.

record = keep_structure(None, search, Path("index/structure"))
open_structure(record, Path("index/structure")).rank(topic)       # [("540", 0.87), ...]

Files: the trees (:mod:`mathamr.structure.storage`), ``posts.npz`` with the posts of each formula, and the published
trees of topics, where there are any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import StoreError, faults_as
from graphs.formulas.tree import ParsedFormula
from graphs.graph.graph_maker import FormulaTrees
from mathamr.evaluation.order import best_first
from mathamr.retrieval.index import Ranking
from mathamr.structure.index import StructureIndex
from mathamr.structure.posts import FormulasOfPosts, searched_formulas
from mathamr.structure.storage import read_index, write_index
from mathamr.systems.searchable.formulas import keep_formulas
from mathamr.systems.searchable.kept import entry

_FORMULAS, _POSTS = "formulas.db", "posts.npz"


@dataclass(frozen=True)
class StructureSearch:
    """Posts by the structure of their formulas.

    Attributes:
        trees: source of the trees of a query's formulas.
        index: trees of the formulas of posts.
        posts: posts of each formula.
        names: ids of the posts, by number.
        results: most results of a query.
    """

    trees: FormulaTrees
    index: StructureIndex
    posts: FormulasOfPosts
    names: Sequence[str]
    results: int

    def formulas(self, topic: Topic) -> list[ParsedFormula]:
        """Return the formulas of a query that are searched with."""
        return searched_formulas(self.trees.of(extract(topic.post).formulas))

    def ranked(self, formulas: Sequence[ParsedFormula]) -> Ranking:
        """Return the posts that share a part of a formula; none without formulas."""
        scores = self.posts.scores(self.index, formulas)
        places = np.flatnonzero(scores > 0)
        names, values = [self.names[place] for place in places.tolist()], scores[places].tolist()
        return [(names[place], values[place]) for place in best_first(names, values)[: self.results].tolist()]

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a part of a formula with the query."""
        return self.ranked(self.formulas(topic))

    def close(self) -> None:
        """Do nothing: no file is open."""


def keep_structure(
    formulas_db: Path | None, search: StructureSearch, folder: Path, *, topics: Sequence[Topic] = ()
) -> dict[str, Any]:
    """Write a search to ``folder``; return the record that :func:`open_structure` reads.

    Args:
        formulas_db: published trees of the formulas of topics; None: trees come from LaTeX.
        search: the search.
        folder: new folder.
        topics: topics whose published trees are kept.
    """
    write_index(search.index, folder)
    names = np.array(search.names, dtype=np.str_)
    np.savez(folder / _POSTS, starts=search.posts.starts, places=search.posts.places, names=names)
    if formulas_db is not None:
        keep_formulas(formulas_db, topics, folder / _FORMULAS)
    return {"published": formulas_db is not None, "results": search.results}


def open_structure(record: Mapping[str, Any], folder: Path) -> StructureSearch:
    """Open what :func:`keep_structure` has written.

    Raises:
        StoreError: a file is missing or damaged.
    """
    trees = FormulaTrees(folder / _FORMULAS if entry(record, "published") else None)
    results, index = entry(record, "results"), read_index(folder)
    fault = "cannot be read as the posts of formulas: {}; build the index again"
    with faults_as(StoreError, fault, folder / _POSTS):
        with np.load(folder / _POSTS, allow_pickle=False) as arrays:
            starts, places, names = arrays["starts"], arrays["places"], arrays["names"]
        _check(starts, places, names, len(index))
    return StructureSearch(trees, index, FormulasOfPosts(starts, places, len(names)), names.tolist(), results)


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
