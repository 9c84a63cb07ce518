"""Examples of a job: the similarities of a topic and a post, and the first results of a few topics.

``heat_map.json`` (thesis Figure 4.1) has the part of the post that each vector represents, and the cosine of each pair:

>>> import torch
>>> from mathamr.retrieval.explanation import VirtualNode
>>> query, post = [VirtualNode("formula", 0, "x^2")], [VirtualNode("formula", 0, "y^2"), VirtualNode("document", 0, "")]
>>> shown = heat_map("A.1", "255", 3, Explanation(query, post, torch.tensor([[0.91, 0.25]])))
>>> shown["queries"], shown["documents"]
([{'kind': 'formula', 'text': 'x^2'}], [{'kind': 'formula', 'text': 'y^2'}, {'kind': 'document', 'text': ''}])
>>> shown["topic"], shown["post"], shown["grade"], shown["score"], shown["scores"]
('A.1', '255', 3, 0.91, [[0.91, 0.25]])

``examples.json`` (thesis Appendices B and C) has for each topic the best results, as text with formulas between
dollars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.plan import Job
from graphs.corpus.post import Post, Topic
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.shared_files import write_json
from graphs.stores.posts import PostText
from mathamr.evaluation.runs import Qrels, Run, qrels_of
from mathamr.retrieval.explanation import Explanation
from mathamr.stages.topic_sets import Encoded, TopicSet
from mathamr.systems.judging import judged
from mathamr.systems.system import System

EXAMPLE_TOPICS = 3
EXAMPLE_RESULTS = 3


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts numbers in ids by value.

    >>> sorted(["A.10", "A.9", "B.1"], key=natural)
    ['A.9', 'A.10', 'B.1']
    """
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|\D+", name))


def candidates(qrels: Qrels, topic: str | None, post: str | None) -> Iterator[tuple[str, str]]:
    """Yield the named topic and post of the heat map, or else judged topics in order, with their posts by grade.

    The first pair with graphs is shown, so all conditions show the same.

    >>> qrels = {"A.10": {"1": 3}, "A.9": {"1": 1, "20": 2, "3": 2, "4": 3}}
    >>> list(candidates(qrels, None, None))
    [('A.9', '4'), ('A.9', '3'), ('A.9', '20'), ('A.9', '1'), ('A.10', '1')]
    >>> list(candidates(qrels, "A.10", "4")), list(candidates(qrels, None, "4"))
    ([('A.10', '4')], [('A.9', '4'), ('A.10', '4')])
    """
    for topic_id in [topic] if topic else sorted(qrels, key=natural):
        grades = qrels.get(topic_id, {})
        for post_id in [post] if post else sorted(grades, key=lambda name: (-grades[name], natural(name))):
            yield topic_id, post_id


def heat_map(topic_id: str, post_id: str, grade: int | None, explanation: Explanation) -> dict[str, Any]:
    """Return the content of ``heat_map.json``; ``score`` is MaxSim, ``grade`` null without a judgment."""
    return {
        "topic": topic_id,
        "post": post_id,
        "grade": grade,
        "score": round(explanation.score, 4),
        "queries": [{"kind": node.kind, "text": node.text} for node in explanation.query],
        "documents": [{"kind": node.kind, "text": node.text} for node in explanation.document],
        "scores": [[round(value, 4) for value in row] for row in explanation.similarities.tolist()],
    }


def examples(
    topic_set: TopicSet,
    topic_ids: Sequence[str],
    qrels: Qrels,
    results: Mapping[str, Sequence[tuple[str, float]]],
    texts: Callable[[Sequence[str]], Mapping[str, PostText]],
) -> list[dict[str, Any]]:
    """Return the content of ``examples.json``: the first results of some topics."""
    by_id = {topic.topic_id: topic for topic in topic_set.topics}
    first = {topic_id: list(results.get(topic_id, ()))[:EXAMPLE_RESULTS] for topic_id in topic_ids}
    shown = texts([post_id for found in first.values() for post_id, _ in found])
    return [
        {
            "topic": topic_id,
            **_topic_text(by_id[topic_id]),
            "results": [
                {
                    "rank": rank,
                    "post": post_id,
                    "score": round(score, 4),
                    "grade": qrels.get(topic_id, {}).get(post_id),
                    "title": shown[post_id].title if post_id in shown else "",
                    "body": as_text(shown[post_id].text) if post_id in shown else "",
                }
                for rank, (post_id, score) in enumerate(found, 1)
            ],
        }
        for topic_id, found in first.items()
    ]


def formula_examples(
    topic_set: TopicSet,
    run: Run,
    visual_ids: Mapping[str, str],
    texts: Callable[[Sequence[str]], Mapping[str, PostText]],
) -> list[dict[str, Any]]:
    """Return the content of ``examples-task2.json``: the first formulas for some topics, with their LaTeX."""
    qrels = qrels_of(topic_set.judgments)
    topics = {topic.topic_id: topic for topic in topic_set.topics}
    first = sorted((name for name in qrels if name in topics), key=natural)[:EXAMPLE_TOPICS]
    hits = {name: run.rankings.get(name, [])[:EXAMPLE_RESULTS] for name in first}
    shown = texts([str(hit.post_id) for found in hits.values() for hit in found])
    latex = {formula.formula_id: formula.latex for post in shown.values() for formula in post.text.formulas}
    return [
        {
            "topic": name,
            "title": "",
            "body": _query_formula(topics[name]),
            "results": [
                {
                    "rank": rank,
                    "post": f"{hit.doc_id} in post {hit.post_id}",
                    "score": round(hit.score, 4),
                    "grade": qrels[name].get(visual_ids.get(hit.doc_id, "")),
                    "title": "",
                    "body": f"${latex[hit.doc_id]}$" if hit.doc_id in latex else "",
                }
                for rank, hit in enumerate(hits[name], 1)
            ],
        }
        for name in first
    ]


def _query_formula(topic: Topic) -> str:
    formulas = (one for one in extract(topic.post).formulas if one.formula_id == topic.formula_id)
    return "".join(f"${formula.latex}$" for formula in formulas)


def _topic_text(topic: Topic) -> dict[str, str]:
    title: Post = replace(topic.post, body="")
    body: Post = replace(topic.post, title="")
    return {"title": as_text(extract(title)), "body": as_text(extract(body))}


def write(job: Job, place: Path, system: System[Any], encoded: Encoded, topic_set: TopicSet, run: Run) -> None:
    """Write ``examples.json``, and ``heat_map.json`` if the system compares part by part.

    Neither where no judged topic has an answer in the collection.
    """
    topics = {topic.topic_id: topic for topic in topic_set.topics}
    qrels = {topic_id: grades for topic_id, grades in judged(topic_set).items() if topic_id in topics}
    wanted = job.settings.example
    shown: list[str] = []
    for topic_id, post_id in candidates(qrels, wanted.topic, wanted.post):
        shown = shown or [topic_id]
        explanation = system.explain(job.settings, encoded, topics[topic_id], post_id)
        if explanation is not None:
            shown = [topic_id]
            grade = qrels.get(topic_id, {}).get(post_id)
            write_json(place / "heat_map.json", heat_map(topic_id, post_id, grade, explanation))
            break
    if not shown:
        return
    first = list(dict.fromkeys([*shown, *sorted(qrels, key=natural)]))[:EXAMPLE_TOPICS]
    results = {name: [(hit.doc_id, hit.score) for hit in run.rankings.get(name, ())] for name in first}
    write_json(place / "examples.json", examples(topic_set, first, qrels, results, system.texts))
