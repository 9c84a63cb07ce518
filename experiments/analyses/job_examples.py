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
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.shared_files import write_json
from graphs.stores.posts import PostText
from mathamr.evaluation.runs import Hit, Qrels, Run, qrels_of
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
    run: Run,
    texts: Callable[[Sequence[str]], Mapping[str, PostText]],
) -> list[dict[str, Any]]:
    """Return the content of ``examples.json``: the first results of some topics."""
    posts = {topic.topic_id: topic.post for topic in topic_set.topics}
    first = {name: run.rankings.get(name, [])[:EXAMPLE_RESULTS] for name in topic_ids}
    found = texts([hit.doc_id for hits in first.values() for hit in hits])
    shown = {post_id: (post.title, as_text(post.text)) for post_id, post in found.items()}
    return [
        {
            "topic": name,
            "title": as_text(extract(replace(posts[name], body=""))),
            "body": as_text(extract(replace(posts[name], title=""))),
            "results": [
                _result(rank, hit, hit.doc_id, qrels.get(name, {}).get(hit.doc_id), *shown.get(hit.doc_id, ("", "")))
                for rank, hit in enumerate(hits, 1)
            ],
        }
        for name, hits in first.items()
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
    names = sorted((name for name in qrels if name in topics), key=natural)[:EXAMPLE_TOPICS]
    first = {name: run.rankings.get(name, [])[:EXAMPLE_RESULTS] for name in names}
    shown = texts([str(hit.post_id) for hits in first.values() for hit in hits])
    latex = {formula.formula_id: f"${formula.latex}$" for post in shown.values() for formula in post.text.formulas}
    built = []
    for name, hits in first.items():
        queries = (one for one in extract(topics[name].post).formulas if one.formula_id == topics[name].formula_id)
        results = [
            _result(
                rank,
                hit,
                f"{hit.doc_id} in post {hit.post_id}",
                qrels[name].get(visual_ids.get(hit.doc_id, "")),
                title="",
                body=latex.get(hit.doc_id, ""),
            )
            for rank, hit in enumerate(hits, 1)
        ]
        body = "".join(f"${formula.latex}$" for formula in queries)
        built.append({"topic": name, "title": "", "body": body, "results": results})
    return built


def _result(rank: int, hit: Hit, post: str, grade: int | None, title: str, body: str) -> dict[str, Any]:
    return {"rank": rank, "post": post, "score": round(hit.score, 4), "grade": grade, "title": title, "body": body}


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
    write_json(place / "examples.json", examples(topic_set, first, qrels, run, system.texts))
