"""Formulas of posts as vectors: their index and their search, for Task 2.

formulas = read_formulas(prepared.collection, prepared.formulas)               # ids by post, and visual ids
indexed = index_formulas(settings, vectors, post_ids, formulas, folder)        # a vector for each formula
found = search_formulas(settings.retrieval, vectors, indexed, topics, topic_maps, formulas)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.corpus.post import Topic
from graphs.formulas.store import FormulaStore
from graphs.ids import Ids
from graphs.stores.collection import Collection
from mathamr.evaluation.efficiency import Stopwatch, bytes_on_disk
from mathamr.retrieval.formulas import FormulaIndex, formula_points, query_vectors
from mathamr.stages.retrieval.searching import index_options, search_once
from mathamr.stages.settings import RetrievalConfig, SearchSettings
from mathamr.stages.topic_sets import Indexed, Retrieved, TopicSet, speed
from mathamr.stages.vectors import EncodedPosts


@dataclass(frozen=True)
class Formulas:
    """Formula ids of each post by FORMULA_i, and the visual id of each formula."""

    of_post: dict[str, list[str]]
    visual_ids: dict[str, str]

    def by_post(self) -> dict[str, list[str]]:
        """Return the visual ids of each post by FORMULA_i, "" without one."""
        return {post_id: [self.visual_ids.get(name, "") for name in names] for post_id, names in self.of_post.items()}


def read_formulas(collection: Path, formulas_db: Path | None) -> Formulas:
    """Return the formulas of all posts of a collection.db.

    Args:
        formulas_db: formulas.db with visual ids; None: the collection publishes none, so the id of a formula serves.
    """
    with Collection(collection) as source:
        of_post = dict(source.formula_ids("question", "answer"))
    names = [name for own in of_post.values() for name in own]
    if formulas_db is None:
        return Formulas(of_post, {name: name for name in names})
    with FormulaStore.open(formulas_db) as published:
        return Formulas(of_post, published.visual_ids(names))


def searched_posts(collection: Path, topic_set: TopicSet, formulas: Callable[[], Formulas]) -> Ids:
    """Return the posts of one kind that are searched, or all for their formulas; in the regime judged the judged."""
    with Collection(collection) as source:
        posts = Ids(source.ids(topic_set.kind) if topic_set.task == 1 else source.ids("question", "answer"))
    if topic_set.regime != "judged":
        return posts
    judged = {judgment.doc_id for judgment in topic_set.judgments}
    if topic_set.task == 1:
        return Ids(post_id for post_id in posts if post_id in judged)
    of_post, visual_ids = formulas().of_post, formulas().visual_ids
    return Ids(post_id for post_id in posts if any(visual_ids.get(name) in judged for name in of_post[post_id]))


def index_formulas(
    settings: SearchSettings, vectors: EncodedPosts, post_ids: Sequence[str], formulas: Formulas, folder: Path
) -> Indexed:
    """Index the formulas of posts, which all have vectors."""
    options = index_options(settings, folder, vectors.model_hash)
    documents = vectors.sets(post_ids)
    with Stopwatch() as watch:
        names = [formulas.of_post[post_id] for post_id in post_ids]
        points = formula_points(post_ids, documents, names, formulas.visual_ids)
        index = FormulaIndex.build(points, **options)
        size = points.vectors.nbytes if options["path"] is None else bytes_on_disk(options["path"])
    return Indexed(index, {"index_seconds": watch.seconds, "index_bytes": size, "formulas": len(points)})


def search_formulas(
    retrieval: RetrievalConfig,
    vectors: EncodedPosts,
    indexed: Indexed,
    topics: Sequence[Topic],
    maps: Mapping[str, Sequence[str]],
    formulas: Formulas,
) -> Retrieved:
    """Return the best formulas for each topic; ``queries_per_second`` is of the search alone.

    Args:
        vectors: vectors of the topics.
        topics: topics whose graphs have their query formula.
        maps: formula ids of each topic by FORMULA_i.
    """
    queries = query_vectors(
        vectors.sets([topic.post.post_id for topic in topics]),
        [list(maps[topic.topic_id]) for topic in topics],
        [str(topic.formula_id) for topic in topics],
    )
    k, exact, index = retrieval.k, retrieval.exact, indexed.index
    search_once(lambda few: index.search(queries[few], k, exact=exact), len(queries))
    with Stopwatch() as watch:
        hits = index.search(queries, k, exact=exact)
    results = {topic.topic_id: found for topic, found in zip(topics, hits, strict=True)}
    return Retrieved(results, speed(len(topics), watch.seconds), formulas.visual_ids)
