"""Posts and topics as vectors: the index and the search of every track that has some.

options = index_options(config, folder, model_hash)        # of mathamr.retrieval.build, for posts or formulas
indexed = index_posts(config, vectors, post_ids, folder)   # vectors: mathamr.stages.vectors.EncodedPosts
found = search_posts(config, vectors, indexed, topics)     # Retrieved, with the queries a second
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor

from graphs.corpus.post import Topic
from graphs.errors import ConfigError
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.result_names import title
from mathamr.retrieval import Strategy, search
from mathamr.retrieval import build as build_index
from mathamr.retrieval.backends import check as check_index
from mathamr.retrieval.index import Hnsw, Index
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import Indexed, Question, Retrieved
from mathamr.stages.vectors import EncodedPosts


def check_search(config: DictConfig) -> Strategy:
    """The strategy of a configuration; raises a ``MathAMRError`` for a search that cannot be."""
    strategy = strategy_of(config)
    if config.retrieval.k < 1:
        raise ConfigError(f"retrieval.k={config.retrieval.k} must be at least 1")
    check_index(config.index.backend, strategy, location=config.index.location, hnsw=hnsw_of(config))
    return strategy


def strategy_of(config: DictConfig) -> Strategy:
    """How the index is searched."""
    chosen = config.retrieval
    return Strategy(chosen.strategy, exact=chosen.exact, pool=chosen.pool, ef=chosen.ef)


def hnsw_of(config: DictConfig) -> Hnsw:
    """The graphs that are searched: none for an exact search, unless the index is to be kept for others."""
    if config.retrieval.exact and not config.index.keep:
        return Hnsw(m=0)
    names = ("m", "m_all", "ef_construct")
    return Hnsw(**{name: config.index[name] for name in names if config.index[name] is not None})


def device_of(config: DictConfig) -> str:
    """Where models are trained, and encode."""
    if config.train.device != "auto":
        return str(config.train.device)
    return "cuda" if torch.cuda.is_available() else "cpu"


def index_options(config: DictConfig, folder: Path, model_hash: str) -> dict[str, Any]:
    """Arguments of :func:`mathamr.retrieval.build`; files go to ``folder``, on a server a job has a name of its own."""
    return {
        "backend": config.index.backend,
        # An exact index of posts is made over the encoded ones; one of formulas lies in memory.
        "path": folder if config.index.backend != "exact" or config.index.keep else None,
        "location": config.index.location,
        "name": f"{config.experiment.name}-{folder.parent.name}-{folder.name}-{model_hash[:8]}",
        "temporary": not config.index.keep,
        "hnsw": hnsw_of(config),
        "model_hash": model_hash,
    }


def index_posts(config: DictConfig, vectors: EncodedPosts, post_ids: Sequence[str], folder: Path) -> Indexed:
    """An index of the posts, which all have vectors."""
    options = index_options(config, folder, vectors.model_hash)
    shares = options["backend"] == "exact" and options["path"] is None
    documents = None if shares else vectors.sets(post_ids)
    with Stopwatch() as watch:
        index: Index
        if documents is None:
            index = vectors.index(post_ids)
        else:
            index = build_index(post_ids=post_ids, documents=documents, **options)
    costs = {"index_seconds": watch.seconds, "index_bytes": index.nbytes, "vectors": index.num_vectors}
    return Indexed(index, costs)


def search_posts(config: DictConfig, vectors: EncodedPosts, indexed: Indexed, topics: Sequence[Topic]) -> Retrieved:
    """The best posts for each topic, which all have vectors; ``queries_per_second`` is of the search alone."""
    queries = vectors.sets([topic.post.post_id for topic in topics])
    strategy, k = strategy_of(config), config.retrieval.k
    search_once(lambda few: search(indexed.index, queries.select(few), strategy, k), len(queries))
    with Stopwatch() as watch:
        rankings = search(indexed.index, queries, strategy, k, model_hash=vectors.model_hash)
    results = {topic.topic_id: ranking for topic, ranking in zip(topics, rankings, strict=True)}
    return Retrieved(results, speed(len(topics), watch))


def search_once(search_some: Callable[[Tensor], object], queries: int) -> None:
    """The first search opens files and allocates buffers: it is not what a query costs."""
    if queries:
        search_some(torch.tensor([0]))


def speed(topics: int, watch: Stopwatch) -> dict[str, float]:
    """The cost of a search."""
    return {"queries_per_second": topics / max(watch.seconds, 1e-9)}


def say_lost(console: Console, question: Question, found: Sequence[Topic], why: str) -> None:
    """Which topics of a question cannot be searched with."""
    lost = sorted({topic.topic_id for topic in question.topics} - {topic.topic_id for topic in found})
    if lost:
        console.say(f"  {title(question.asked)}: {len(lost)} topics {why} and score 0: {', '.join(lost)}")
