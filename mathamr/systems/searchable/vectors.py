"""Vectors kept for search: an exact index of posts, and what makes the vectors of a query.

record = keep_vectors(settings, vectors, post_ids, {}, Path("index/text"))
open_vectors(record, Path("index/text"), encode).rank(topic)            # [("540", 0.71), ...]
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphs.corpus.post import Post, Topic
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.index import Ranking, Strategy
from mathamr.retrieval.strategies import search
from mathamr.stages.retrieval.searching import strategy_of, with_question_vectors
from mathamr.stages.settings import SearchSettings
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.searchable.kept import entry

_VECTORS = "vectors"
EncodeQuery = Callable[[Post], VectorSets | None]
"""Returns the vectors of a query as one set; None where nothing in it can be read."""


@dataclass(frozen=True)
class VectorSearch:
    """Exact search of posts by vectors."""

    index: ExactIndex
    strategy: Strategy
    results: int
    encode: EncodeQuery

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts whose vectors are nearest; none for a query without vectors."""
        query = self.encode(topic.post)
        if query is None:
            return []
        (ranking,) = search(self.index, query, self.strategy, self.results)
        return ranking

    def close(self) -> None:
        """Close the vectors."""
        self.index.close()


def keep_vectors(
    settings: SearchSettings, vectors: EncodedPosts, post_ids: Sequence[str], questions: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """Write an exact index to ``folder``; return the record that :func:`open_vectors` reads.

    Args:
        settings: settings of the job; an approximate search becomes exact.
        post_ids: posts that are searched, which all have vectors.
        questions: question of each post that is in one set of vectors with its question.
    """
    documents = with_question_vectors(vectors, post_ids, questions)
    ExactIndex.build(post_ids, documents, path=folder / _VECTORS, model_hash=vectors.model_hash).close()
    return {
        "model": vectors.model_hash,
        "strategy": asdict(replace(strategy_of(settings.retrieval), exact=True)),
        "results": settings.thread.results(settings.retrieval.k),
    }


def copy_vectors(folder: Path, model: Path) -> None:
    """Copy the vectors that :func:`keep_vectors` has written to the folder of their model, if there are any."""
    if (folder / _VECTORS).is_dir():
        shutil.copytree(folder / _VECTORS, model / "encoded", dirs_exist_ok=True)


def open_vectors(record: Mapping[str, Any], folder: Path, encode: EncodeQuery) -> VectorSearch:
    """Open what :func:`keep_vectors` has written; raise StoreError if it is missing, damaged or of another model."""
    strategy, results = Strategy(**entry(record, "strategy")), entry(record, "results")
    index = ExactIndex.open(folder / _VECTORS, model_hash=entry(record, "model"))
    return VectorSearch(index, strategy, results, encode)
