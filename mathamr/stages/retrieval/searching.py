"""Posts and topics as vectors: the index and the search of every track that has some.

options = index_options(settings, folder, model_hash)                # of mathamr.retrieval.build
indexed = index_posts(settings, vectors, post_ids, folder, {})       # vectors: mathamr.stages.vectors.EncodedPosts
found = search_posts(settings, vectors, indexed, topics)             # Retrieved, with the queries a second
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphs.corpus.post import Topic
from graphs.errors import ConfigError
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.maxsim import VectorSets
from mathamr.retrieval import Strategy, search
from mathamr.retrieval import build as build_index
from mathamr.retrieval.backends import check as check_index
from mathamr.retrieval.index import Hnsw, Index
from mathamr.stages.settings import RetrievalConfig, SearchSettings
from mathamr.stages.topic_sets import Indexed, Retrieved, speed
from mathamr.stages.vectors import EncodedPosts


def check_search(settings: SearchSettings) -> Strategy:
    """Return the strategy of a job; raise a ``MathAMRError`` for a search that cannot be."""
    strategy = strategy_of(settings.retrieval)
    if settings.retrieval.k < 1:
        raise ConfigError(f"retrieval.k={settings.retrieval.k} must be at least 1")
    if strategy.name == "doc_vn_maxsim" and (settings.thread.depth or 0) > strategy.pool:
        raise ConfigError(
            f"thread.depth={settings.thread.depth} is above retrieval.pool={strategy.pool}, the most results that "
            "doc_vn_maxsim finds; raise retrieval.pool, or use retrieval.strategy=maxsim"
        )
    check_index(settings.index.backend, strategy, location=settings.index.location, hnsw=hnsw_of(settings))
    return strategy


def strategy_of(config: RetrievalConfig) -> Strategy:
    """Return how the index is searched."""
    return Strategy(config.strategy, exact=config.exact, pool=config.pool, ef=config.ef)


def hnsw_of(settings: SearchSettings) -> Hnsw:
    """Return the graphs that are searched: none for an exact search, unless the index is kept for others."""
    if settings.retrieval.exact and not settings.index.keep:
        return Hnsw(m=0)
    index = settings.index
    given = {"m": index.m, "m_all": index.m_all, "ef_construct": index.ef_construct}
    return Hnsw(**{name: value for name, value in given.items() if value is not None})


def index_options(settings: SearchSettings, folder: Path, model_hash: str) -> dict[str, Any]:
    """Arguments of :func:`mathamr.retrieval.build`; files go to ``folder``, on a server each job has its own name."""
    index = settings.index
    return {
        "backend": index.backend,
        # An exact index of posts is made over the encoded ones; one of formulas lies in memory.
        "path": folder if index.backend != "exact" or index.keep else None,
        "location": index.location,
        "name": f"{settings.experiment}-{folder.parent.name}-{folder.name}-{model_hash[:8]}",
        "temporary": not index.keep,
        "hnsw": hnsw_of(settings),
        "model_hash": model_hash,
    }


def index_posts(
    settings: SearchSettings, vectors: EncodedPosts, post_ids: Sequence[str], folder: Path, questions: Mapping[str, str]
) -> Indexed:
    """Return an index of the posts, which all have vectors.

    Args:
        folder: place of the index, where it lies on disk.
        questions: question of each post that is in one set of vectors with its question.
    """
    options = index_options(settings, folder, vectors.model_hash)
    shares = options["backend"] == "exact" and options["path"] is None and not questions
    documents = None if shares else with_question_vectors(vectors, post_ids, questions)
    with Stopwatch() as watch:
        index: Index
        if documents is None:
            index = vectors.index(post_ids)
        else:
            index = build_index(post_ids=post_ids, documents=documents, **options)
    costs = {"index_seconds": watch.seconds, "index_bytes": index.nbytes, "vectors": index.num_vectors}
    return Indexed(index, costs)


def with_question_vectors(vectors: EncodedPosts, post_ids: Sequence[str], questions: Mapping[str, str]) -> VectorSets:
    """Return one set of vectors a post: those of its question, if it has vectors, and then its own.

    MaxSim takes for each vector of a topic the best of both posts. The last vector stays that of the post itself.
    """
    sets = vectors.sets(post_ids)
    question_of = {post_id: questions[post_id] for post_id in post_ids if post_id in questions}
    read = vectors.encoded(sorted(set(question_of.values())))
    if not read:
        return sets
    of_question = dict(zip(read, vectors.sets(read), strict=True))
    together = [
        torch.cat([of_question[question_of[post_id]], one]) if question_of.get(post_id) in of_question else one
        for post_id, one in zip(post_ids, sets, strict=True)
    ]
    return VectorSets.of(together)


def search_posts(
    settings: SearchSettings, vectors: EncodedPosts, indexed: Indexed, topics: Sequence[Topic]
) -> Retrieved:
    """Return the best posts for each topic, which all have vectors; ``queries_per_second`` is of the search alone."""
    queries = vectors.sets([topic.post.post_id for topic in topics])
    strategy, k = strategy_of(settings.retrieval), settings.thread.results(settings.retrieval.k)
    search_once(lambda few: search(indexed.index, queries.select(few), strategy, k), len(queries))
    with Stopwatch() as watch:
        rankings = search(indexed.index, queries, strategy, k, model_hash=vectors.model_hash)
    results = {topic.topic_id: ranking for topic, ranking in zip(topics, rankings, strict=True)}
    return Retrieved(results, speed(len(topics), watch.seconds))


def search_once(search_some: Callable[[Tensor], object], queries: int) -> None:
    """Search once, unmeasured: the first search opens files and allocates buffers."""
    if queries:
        search_some(torch.tensor([0]))
