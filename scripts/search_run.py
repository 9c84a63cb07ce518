"""Search an index with the topics of a collection and write a run file, which scripts/evaluate.py scores.

    python scripts/search_run.py --index index --corpus arqmath --root /data/ARQMath --task 1 --years 2020 2021 \\
        --formulas formulas.db --out task1.tsv
    python scripts/search_run.py ... --task 2 --out task2.tsv
    python scripts/evaluate.py --task 2 --qrels qrels/qrel_task2_2020_visual_id.tsv --run task2.tsv --visual-ids ...

Task 1 finds answers. Task 2 finds formulas: the query is the vector of the topic's formula among those of its whole
post; at most 1,000 a topic, of formulas that look alike the best. ``--context 0.2`` adds a fifth of how similar the
posts around the two formulas are.

The model, its vocabulary and the AMR parser are those of the index. Topics are parsed here, the trees of their formulas
taken from ``--formulas`` where they are published; graphs that ``--collection`` has are taken from there.

Exit codes: 0 written; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.post import Topic
from graphs.errors import Failure, MathAMRError, RetrievalError
from graphs.stores.collection import Collection
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run, write_run
from mathamr.retrieval.formulas import query_vectors, rerank_by_context
from mathamr.retrieval.index import STRATEGIES, Strategy
from mathamr.search.catalog import Catalog
from mathamr.search.query import EncodedQuery, QueryEncoder, query_sets
from mathamr.training import checkpoint


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--index", type=Path, required=True, help="folder that scripts/index.py has written")
    parser.add_argument("--model", type=Path, help="insist on this checkpoint; without it, the one of the index")
    parser.add_argument("--corpus", required=True, choices=sorted(NAMES), help="where the topics are")
    parser.add_argument("--root", type=Path, help="folder of the corpus")
    parser.add_argument("--task", type=int, choices=(1, 2), default=1)
    parser.add_argument("--years", type=int, nargs="*", default=[], help="of the topics, e.g. 2020 2021")
    parser.add_argument("--formulas", type=Path, help="formulas.db: trees of the topics' formulas")
    parser.add_argument("--collection", type=Path, help="collection.db: graphs of topics made before")
    parser.add_argument("--strategy", default="maxsim", help=f"Task 1: {', '.join(STRATEGIES)}")
    parser.add_argument("--approximate", action="store_true", help="through HNSW, which the backend qdrant has")
    parser.add_argument("--pool", type=int, default=1000, help="candidates that doc_vn_maxsim reranks")
    parser.add_argument("--k", type=int, default=MAX_PER_TOPIC, help="results a topic")
    parser.add_argument("--context", type=float, default=0.0, help="Task 2: weight of the posts around the formulas")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--name", default="mathamr-plus", help="last column of the run")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        run, seconds = search_topics(given)
        write_run(run, given.out)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    results = sum(map(len, run.rankings.values()))
    topics = len(run.rankings)
    print(
        f"{given.out}: Task {given.task}, {topics} topics, {results:,} results; search "
        f"{seconds:.2f} s, {topics / max(seconds, 1e-9):,.0f} queries/s"
    )
    return 0


def search_topics(given: argparse.Namespace) -> tuple[Run, float]:
    """The run, and the seconds that the search took without the encoding of the topics."""
    strategy = Strategy(given.strategy, exact=not given.approximate, pool=given.pool)
    if not 1 <= given.k <= MAX_PER_TOPIC:
        raise RetrievalError(f"k={given.k}; a run has from 1 to {MAX_PER_TOPIC:,} results a topic")
    wanted = None if given.model is None else checkpoint.weights_hash(given.model)
    catalog = Catalog.open(given.index, model_hash=wanted)
    topics = open_corpus(given.corpus, given.root).topics(given.task, given.years)
    encoder = checkpoint.load_encoder(catalog.model, config_hash=catalog.config_hash, device=given.device)
    reader = QueryEncoder(encoder, catalog.vocabulary, catalog.spec, formulas_db=given.formulas)
    found, queries = _encoded(reader, topics, given.collection)
    start = time.perf_counter()
    results: dict[str, list[tuple[str, float]]] | dict[str, list[Hit]]
    if given.task == 1:
        rankings = catalog.search(query_sets(queries), strategy, given.k)
        results = dict(zip([topic.topic_id for topic in found], rankings, strict=True))
    else:
        results = _formulas(catalog, found, queries, given)
    seconds = time.perf_counter() - start
    catalog.close()
    return Run.from_results(given.name, results, task=given.task), seconds


def _encoded(
    reader: QueryEncoder, topics: Sequence[Topic], collection: Path | None
) -> tuple[list[Topic], list[EncodedQuery]]:
    """The topics that have a graph, and their vectors; says which have none."""
    if not topics:
        raise RetrievalError("there are no topics: do the years fit the collection?")
    posts = [topic.post for topic in topics]
    if collection is None:
        encoded = reader.encode_posts(posts)
    else:
        with Collection(collection) as source:
            encoded = reader.encode_posts(posts, source)
    found, queries = [], []
    for topic, query in zip(topics, encoded, strict=True):
        if isinstance(query, Failure):
            print(f"topic {topic.topic_id} has no graph and scores 0: {query.message}", file=sys.stderr)
        else:
            found.append(topic)
            queries.append(query)
    if not found:
        raise RetrievalError(f"none of the {len(topics)} topics has a graph")
    return found, queries


def _formulas(
    catalog: Catalog, topics: Sequence[Topic], queries: Sequence[EncodedQuery], given: argparse.Namespace
) -> dict[str, list[Hit]]:
    """Task 2: the formulas most like the query formula of each topic."""
    kept = [(topic, query) for topic, query in zip(topics, queries, strict=True) if topic.formula_id]
    if not kept:
        raise RetrievalError("the topics name no query formula; Task 2 needs one in each")
    for topic, query in kept:
        if topic.formula_id not in query.formula_ids:
            print(f"topic {topic.topic_id}: formula {topic.formula_id} is not in its post; scores 0", file=sys.stderr)
    kept = [(topic, query) for topic, query in kept if topic.formula_id in query.formula_ids]
    vectors = query_vectors(
        query_sets([query for _, query in kept]),
        [query.formula_ids for _, query in kept],
        [topic.formula_id or "" for topic, _ in kept],
    )
    rankings = catalog.formulas.search(vectors, given.k, exact=not given.approximate)
    if given.context:
        rankings = [
            rerank_by_context(hits, query.vectors, catalog.vectors.vectors_of, given.context)
            for hits, (_, query) in zip(rankings, kept, strict=True)
        ]
    return {topic.topic_id: hits for (topic, _), hits in zip(kept, rankings, strict=True)}


if __name__ == "__main__":
    sys.exit(main())
