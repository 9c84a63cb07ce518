"""Rankings of a job -> scores, and what of topics and judgments took part in them.

scores = judge(run, question)                                # Evaluation: means, and each topic's own
whole = completed(system, encoded, question, run, None)      # Completeness: lines of what is short
"""

from __future__ import annotations

from collections.abc import Mapping

from graphs.errors import ConfigError
from mathamr.evaluation.completeness import Completeness, completeness
from mathamr.evaluation.metrics import Evaluation, evaluate, restrict
from mathamr.evaluation.runs import Qrels, Run, qrels_of
from mathamr.stages.topic_sets import Encoded, Question
from mathamr.systems.system import System


def judge(run: Run, question: Question, visual_ids: Mapping[str, str] | None = None) -> Evaluation:
    """Score a run on the question's topics. ``visual_ids`` (Task 2) are those of all formulas of the collection."""
    collection = question.collection
    if visual_ids is not None and question.regime == "mini":
        collection = frozenset(visual_ids.values())
    return evaluate(
        run,
        qrels_of(question.judgments),
        task=question.task,
        regime=question.regime,
        collection=collection,
        visual_ids=visual_ids,
        measures=question.measures,
        relevant=question.relevant,
    )


def check_searched(system: System, encoded: Encoded, question: Question) -> None:
    """Check that some of the only answers that are searched, e.g. the judged ones, are in the collection.

    Raises:
        ConfigError: none of them is.
    """
    if question.task != 1 or not question.indexed:
        return
    wanted = sorted(question.indexed)
    if not system.there(encoded, wanted):
        what = "judged posts" if question.regime == "judged" else "answers of the test"
        raise ConfigError(
            f"none of the {len(wanted):,} {what} is in the collection, e.g. {wanted[0]}; are the judgments of this "
            "collection?"
        )


def judged(question: Question, visual_ids: Mapping[str, str] | None = None) -> Qrels:
    """The judgments that count. ``visual_ids`` (Task 2) are those of all formulas of the collection."""
    qrels, collection = qrels_of(question.judgments), question.collection
    if visual_ids is not None and question.regime == "mini":
        collection = frozenset(visual_ids.values())
    return qrels if collection is None else restrict(qrels, collection, question.relevant)


def completed(
    system: System, encoded: Encoded, question: Question, run: Run, visual_ids: Mapping[str, str] | None = None
) -> Completeness:
    """Count the topics and judged documents that take part in a result."""
    qrels = judged(question, visual_ids)
    documents = sorted({document for grades in qrels.values() for document in grades})
    indexed = frozenset(system.there(encoded, documents) if visual_ids is None else visual_ids.values())
    posts = {topic.post.post_id: topic.topic_id for topic in question.topics}
    read = {posts[post_id] for post_id in system.readable(encoded, list(posts))}
    found = {topic_id for topic_id, hits in run.rankings.items() if hits}
    return completeness(qrels, read=read, found=found, indexed=indexed, relevant=question.relevant)
