"""Rankings of a job -> scores, and the numbers of topics and judgments that they are of. Checks of rankings.

scores = judge(run, topic_set)                                # Evaluation: means, and each topic's own
whole = completed(system, encoded, topic_set, run, None, search.searchable)   # counts of what takes part
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphs.corpus.post import PostKind
from graphs.errors import ConfigError, RetrievalError
from mathamr.evaluation.completeness import completeness
from mathamr.evaluation.metrics import Evaluation, evaluate, restrict
from mathamr.evaluation.runs import Hit, Qrels, Run, Task, qrels_of
from mathamr.stages.topic_sets import Encoded, Retrieved, TopicSet
from mathamr.systems.system import System


def judge(run: Run, topic_set: TopicSet, visual_ids: Mapping[str, str] | None = None) -> Evaluation:
    """Score a run on the topics. ``visual_ids`` (Task 2) are those of all formulas of the collection."""
    return evaluate(
        run,
        qrels_of(topic_set.judgments),
        task=topic_set.task,
        collection=_searched(topic_set, visual_ids),
        visual_ids=visual_ids,
        measures=topic_set.measures,
        relevant=topic_set.relevant,
    )


def check_searched(system: System[Any], encoded: Encoded, topic_set: TopicSet) -> None:
    """Raise ConfigError if only some answers are searched, e.g. the judged ones, and none is in the collection."""
    if topic_set.task != 1 or not topic_set.indexed:
        return
    wanted = sorted(topic_set.indexed)
    if not system.searchable(encoded, wanted):
        what = "judged posts" if topic_set.regime == "judged" else "answers of the test"
        raise ConfigError(
            f"none of the {len(wanted):,} {what} is in the collection, e.g. {wanted[0]}; are the judgments of this "
            "collection?"
        )


def check_results(track: str, retrieved: Retrieved, task: Task) -> None:
    """Raise ConfigError if a topic's results are no list of (id, score) or of hits; in Task 2, of hits alone."""
    if not isinstance(retrieved.results, Mapping):
        raise ConfigError(f"track={track}: results are a {type(retrieved.results).__name__}; map topic ids to lists")
    for topic_id, found in retrieved.results.items():
        wrong = [hit for hit in found if not _is_hit(hit, task)] if isinstance(found, Sequence) else [found]
        if wrong:
            form = "(post id, score), with strings as ids and numbers as scores"
            raise ConfigError(
                f"track={track}: retrieve() returned {wrong[0]!r:.60} for the topic {topic_id!r}; return a list of "
                f"{form if task == 1 else 'mathamr.evaluation.runs.Hit(formula id, score, post id)'}"
            )


def _is_hit(hit: Any, task: Task) -> bool:
    pair = isinstance(hit, tuple | list) and len(hit) == 2 and isinstance(hit[0], str)
    return isinstance(hit, Hit) or (task == 1 and pair and hasattr(hit[1], "__float__"))


def check_found(system: System[Any], retrieved: Retrieved, topic_set: TopicSet) -> None:
    """Raise RetrievalError for results that the collection lacks; in Task 1, say how many are of the wrong kind."""
    found = {
        hit.post_id or hit.doc_id if isinstance(hit, Hit) else hit[0]: topic_id
        for topic_id, hits in retrieved.results.items()
        for hit in hits
    }
    with system.post_files.headers() as headers:
        unknown = found.keys() - headers.known(frozenset(found))
        wrong: PostKind = "question" if topic_set.kind == "answer" else "answer"
        others = headers.known(frozenset(found), wrong) if topic_set.task == 1 else ()
    if unknown:
        first = min(unknown)
        raise RetrievalError(
            f"track={system.name}: retrieve() returned {len(found):,} posts, of which {len(unknown):,} are not in "
            f"the collection, e.g. {first!r} for the topic {found[first]}; return values of post_id"
        )
    if topic_set.task == 2:
        ids = {hit.doc_id for hits in retrieved.results.values() for hit in hits if isinstance(hit, Hit)}
        if strange := ids - (retrieved.visual_ids or {}).keys():
            raise RetrievalError(
                f"track={system.name}: retrieve() returned {len(ids):,} formulas, of which {len(strange):,} have no "
                f"visual id, e.g. {min(strange)!r}; return values of formula_id"
            )
    if others:
        first = min(others)
        system.console.say(
            f"track={system.name}: retrieve() returned {wrong}s, which count as unjudged: {len(others):,}, e.g. "
            f"{first!r} for the topic {found[first]}; return {topic_set.kind}s"
        )


def judged(topic_set: TopicSet, visual_ids: Mapping[str, str] | None = None) -> Qrels:
    """Return the judgments that count. ``visual_ids`` (Task 2) are those of all formulas of the collection."""
    qrels, collection = qrels_of(topic_set.judgments), _searched(topic_set, visual_ids)
    return qrels if collection is None else restrict(qrels, collection, topic_set.relevant)


def _searched(topic_set: TopicSet, visual_ids: Mapping[str, str] | None) -> frozenset[str] | None:
    """Return the documents that judgments are restricted to in the regime ``mini``; None: judgments of all count."""
    if visual_ids is not None and topic_set.regime == "mini":
        return frozenset(visual_ids.values())
    return topic_set.collection


def completed(
    system: System[Any],
    encoded: Encoded,
    topic_set: TopicSet,
    run: Run,
    visual_ids: Mapping[str, str] | None,
    searchable: Callable[[System[Any], Encoded, Sequence[str]], Sequence[str]],
) -> dict[str, int | list[str]]:
    """Count the topics and judged documents that take part in a result.

    Args:
        visual_ids: those of all formulas of the collection, in Task 2.
        searchable: returns those of some answers that can be found.
    """
    qrels = judged(topic_set, visual_ids)
    documents = sorted({document for grades in qrels.values() for document in grades})
    found = {hit.doc_id for hits in run.rankings.values() for hit in hits}  # given runs find posts that no index has
    indexed = found.union(searchable(system, encoded, documents) if visual_ids is None else visual_ids.values())
    posts = {topic.post.post_id: topic.topic_id for topic in topic_set.topics}
    read = {posts[post_id] for post_id in system.readable(encoded, list(posts))}
    answered = {topic_id for topic_id, hits in run.rankings.items() if hits}
    return completeness(qrels, read=read, found=answered, indexed=indexed, relevant=topic_set.relevant)
