"""Run of an index: the topics of a collection -> vectors -> rankings.

run, seconds = search_index(Path("index"), topics, IndexSearch(task=1), Console())
write_run(run, Path("task1.tsv"))
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from graphs.corpus.post import Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import Failure, RetrievalError, StoreError
from graphs.stores.collection import Collection
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run, Task, check_k
from mathamr.maxsim import VectorSets
from mathamr.model.encoding import device_of
from mathamr.retrieval.folder import open_current
from mathamr.retrieval.formulas import query_vectors, rerank_by_context
from mathamr.retrieval.index import Ranking, Strategy
from mathamr.retrieval.strategies import search
from mathamr.search.catalog import Catalog
from mathamr.search.query import EncodedQuery, QueryEncoder, is_same_parser, query_sets
from mathamr.stages.console import Console
from mathamr.training import checkpoint

if TYPE_CHECKING:
    from mathamr.model.encoder import Encoder


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """Settings for searching an index.

    Args:
        task: 1 finds answers, 2 formulas.
        strategy: strategy of Task 1; Task 2 takes its ``exact`` alone.
        k: results a topic.
        context: weight of the posts around the formulas, in Task 2.
        model: checkpoint that must be the one of the index; None: any.
        formulas_db: trees of the topics' formulas; None: trees are made from LaTeX.
        topic_graphs: collection.db with graphs of topics; None: topics are parsed.
        device: device of the encoder; ``auto``: a GPU where there is one.
        name: last column of the run.

    Raises:
        ConfigError: k out of range.
    """

    task: Task = 1
    strategy: Strategy = field(default_factory=Strategy)
    k: int = MAX_PER_TOPIC
    context: float = 0.0
    model: Path | None = None
    formulas_db: Path | None = None
    topic_graphs: Path | None = None
    device: str = "auto"
    name: str = "mathamr-plus"

    def __post_init__(self) -> None:
        check_k(self.k)


def search_index(index: Path, topics: Sequence[Topic], settings: IndexSearch, console: Console) -> tuple[Run, float]:
    """Search with every topic that has a graph; say which have none, and which parser differs from the index's.

    Returns the run, and the seconds of the search alone.

    Args:
        index: folder that :func:`mathamr.stages.retrieval.indexing.build_search_index` has written.

    Raises:
        RetrievalError: no topic has a graph, or in Task 2 a query formula.
        StoreError: an index of another model, or graphs of other texts than those of the topics.
    """
    wanted = None if settings.model is None else checkpoint.weights_hash(settings.model)
    catalog, encoder = open_current(index, lambda: _open_catalog(index, wanted, settings))
    reader = QueryEncoder(encoder, catalog.vocabulary, catalog.spec, formulas_db=settings.formulas_db)
    encoded_topics, queries = _encoded(reader, topics, settings.topic_graphs, catalog.parser, console)
    start = time.perf_counter()
    results: dict[str, list[tuple[str, float]]] | dict[str, list[Hit]]
    if settings.task == 1:
        rankings = _answers(catalog, query_sets(queries), settings, console)
        results = dict(zip([topic.topic_id for topic in encoded_topics], rankings, strict=True))
    else:
        results = _formulas(catalog, encoded_topics, queries, settings, console)
    seconds = time.perf_counter() - start
    catalog.close()
    return Run.from_results(settings.name, results, task=settings.task), seconds


def _open_catalog(index: Path, model_hash: str | None, settings: IndexSearch) -> tuple[Catalog, Encoder]:
    """Return all of an index that the search reads: an update removes files that are opened later."""
    catalog = Catalog.open(index, model_hash=model_hash)
    device = device_of(settings.device)
    encoder = checkpoint.load_encoder(catalog.model, config_hash=catalog.config_hash, device=device)
    if settings.task == 2:
        _ = catalog.formulas
    return catalog, encoder


def _encoded(
    reader: QueryEncoder, topics: Sequence[Topic], graphs: Path | None, parser: str, console: Console
) -> tuple[list[Topic], list[EncodedQuery]]:
    """Return the topics that have a graph, and their vectors; ``parser`` is the one of the index."""
    if not topics:
        raise RetrievalError("there are no topics: do the years fit the collection?")
    posts = [topic.post for topic in topics]
    if graphs is None:
        _say_other_parsers(parser, [reader.parser], console)
        encoded = reader.encode_posts(posts)
    else:
        with Collection(graphs) as source:
            _check_same_formulas(source, [topic for topic in topics if topic.post.post_id in source])
            used = [str(source.meta.get("parser", ""))]
            used += [reader.parser] if any(post.post_id not in source for post in posts) else []
            _say_other_parsers(parser, used, console)
            encoded = reader.encode_posts(posts, source)
    encoded_topics, queries = [], []
    for topic, query in zip(topics, encoded, strict=True):
        if isinstance(query, Failure):
            console.say(f"topic {topic.topic_id} has no graph and scores 0: {query.message}")
        else:
            encoded_topics.append(topic)
            queries.append(query)
    if not encoded_topics:
        raise RetrievalError(f"no graph for any of the {len(topics)} topics; the lines above say why")
    return encoded_topics, queries


def _say_other_parsers(parser: str, used: Sequence[str], console: Console) -> None:
    """Print the parsers ``used`` for topics that differ from ``parser``, which read the posts of the index."""
    for other in dict.fromkeys(used):
        if other and not is_same_parser(parser, other):
            console.say(
                f"note: the posts of the index were parsed by {parser}, but topics by {other}; give graphs of the "
                "topics by the parser of the posts (--graphs-db)"
            )


def _check_same_formulas(graphs: Collection, topics: Sequence[Topic]) -> None:
    """Check that stored graphs have the formulas of these topics.

    A collection of an earlier version does not record its topics, so an earlier text of a topic is known by the ids of
    its formulas; other words, or other LaTeX under the same ids, are not noticed. Imported graphs are not checked.
    """
    if str(graphs.meta.get("source", "")).startswith("import "):
        return
    for topic in topics:
        has = set(graphs.get(topic.post.post_id).formula_map.values())
        if other := has.symmetric_difference(formula.formula_id for formula in extract(topic.post).formulas):
            raise StoreError(
                f"the graph of topic {topic.topic_id} was made from another text: formula {min(other)} is in only one "
                "of them; build the graphs of the topics again",
                path=graphs.path,
            )


def _answers(catalog: Catalog, queries: VectorSets, settings: IndexSearch, console: Console) -> list[Ranking]:
    """Return the best answers for each query; of an index without answers, the best posts."""
    strategy, k = settings.strategy, settings.k
    indexed = catalog.vectors.post_ids()
    questions = frozenset(catalog.texts.post_ids("question")).intersection(indexed)
    if len(questions) in (0, len(indexed)):
        return catalog.search(queries, strategy, k)
    console.say(f"note: a run of Task 1 has answers alone; questions of the index are left out: {len(questions):,}")
    if catalog.index is catalog.vectors:
        answers = [post_id for post_id in indexed if post_id not in questions]
        return search(catalog.vectors.only(answers), queries, strategy, k)
    depth = k
    while True:
        found = catalog.search(queries, strategy, depth)
        kept = [[one for one in ranking if one[0] not in questions][:k] for ranking in found]
        if all(len(own) == k or len(whole) < depth for own, whole in zip(kept, found, strict=True)):
            return kept
        depth *= 2


def _formulas(
    catalog: Catalog, topics: Sequence[Topic], queries: Sequence[EncodedQuery], settings: IndexSearch, console: Console
) -> dict[str, list[Hit]]:
    """Return the formulas most like the query formula of each topic."""
    formulas = catalog.formulas
    if not any(topic.formula_id for topic in topics):
        raise RetrievalError("the topics name no query formula; Task 2 needs one in each")
    kept = []
    for topic, query in zip(topics, queries, strict=True):
        if topic.formula_id in query.formula_ids:
            kept.append((topic, query))
        elif topic.formula_id:
            console.say(f"topic {topic.topic_id}: formula {topic.formula_id} is not in its post; scores 0")
        else:
            console.say(f"topic {topic.topic_id} names no query formula; scores 0")
    if not kept:
        raise RetrievalError("no topic has its query formula in its post; Task 2 needs one in each")
    vectors = query_vectors(
        query_sets([query for _, query in kept]),
        [query.formula_ids for _, query in kept],
        [topic.formula_id or "" for topic, _ in kept],
    )
    rankings = formulas.search(vectors, settings.k, exact=settings.strategy.exact)
    if settings.context:
        rankings = [
            rerank_by_context(hits, query.vectors, catalog.vectors.vectors_of, settings.context)
            for hits, (_, query) in zip(rankings, kept, strict=True)
        ]
    return {topic.topic_id: hits for (topic, _), hits in zip(kept, rankings, strict=True)}
