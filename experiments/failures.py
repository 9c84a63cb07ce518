r"""What a model finds for some topics, why, and what it misses (``experiment.analyses=[failures]``): ``failures.md``.

    outputs/quality/jobs/base-seed42/failures.md

    ## A.28: nDCG' 0.48, 34 vectors, 2 relevant posts
    If $\sin(18^\circ)=\frac{a + \sqrt{b}}{c}$, then what is $a+b+c$? ...
    1. 0.85, grade 0, 495 vectors: There are some proofs at link and a generalization ...
       - +0.57 to 0.91: `\cos(18) = \frac{y}{z}` finds `=\dfrac{c^{2}+a^{2}-b^{2}}{2ca}`
    Missed, at 531: ...

Twenty judged topics are drawn, the same ones of every model. Under each of the first five posts stand the three vectors
of the topic whose match there is furthest above their mean over all posts: what lifts the post. Missed are the two
relevant posts (grade 2 and 3) that come last. Posts are ranked by MaxSim, whatever the job searches with; of a large
collection the judged ones and others drawn at random (``geometry.posts``), which is what their ranks then count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig

from experiments.exhibits import natural
from experiments.geometry import sampler
from experiments.tracks.track import Encoded, Question, Space, Track
from graphs.corpus.placeholders import extract
from graphs.corpus.post import Topic
from mathamr.evaluation.metrics import RELEVANT, evaluate
from mathamr.evaluation.runs import Qrels, Run
from mathamr.retrieval.explanation import VirtualNode, as_text

FILE = "failures.md"
TOPICS, FIRST, LIFTS, MISSED = 20, 5, 3, 2
_SHOWN = 200  # characters of a post


def look(track: Track, config: DictConfig, encoded: Encoded, question: Question, qrels: Qrels, run: Run) -> str:
    """The content of ``failures.md``; empty of a track without sets of vectors."""
    judged = {topic: dict.fromkeys(grades, RELEVANT) for topic, grades in qrels.items()}
    space = track.space(config, encoded, question, sampler(judged, config.geometry.posts).choose)
    if space is None or len(space.documents.vectors) == len(space.documents):
        return ""
    scores = evaluate(run, qrels).per_topic
    topics = {topic.topic_id: topic for topic in question.topics}
    known = sorted((name for name in space.topics if name in scores), key=natural)
    drawn = np.random.default_rng(0).permutation(len(known))[:TOPICS]
    parts = []
    for name in sorted((known[place] for place in drawn), key=natural):
        grades = qrels[name]
        relevant = sum(grade >= RELEVANT for grade in grades.values())
        best = best_matches(space, name)
        head = f"## {name}: nDCG' {scores[name]['ndcg_prime']:.2f}, {len(best)} vectors, {relevant} relevant posts"
        lines = _of_topic(track, config, encoded, topics[name], space, best, grades)
        parts.append("\n".join([head, "", _cut(as_text(extract(topics[name].post))), "", *lines]))
    return "\n\n".join(parts) + "\n"


def best_matches(space: Space, topic: str) -> NDArray[np.floating]:
    """The best match of each of a topic's vectors in each post, (vectors, posts)."""
    query = space.queries.select(torch.tensor([space.topics.index(topic)])).vectors.float().numpy()
    starts = space.documents.ptr[:-1].numpy()
    matches: NDArray[np.floating] = np.maximum.reduceat(
        query @ space.documents.vectors.float().numpy().T, starts, axis=1
    )
    return matches


def _of_topic(
    track: Track,
    config: DictConfig,
    encoded: Encoded,
    topic: Topic,
    space: Space,
    best: NDArray[np.floating],
    grades: dict[str, int],
) -> Iterator[str]:
    order = np.argsort(-best.mean(0), kind="stable")
    sizes = [end - begin for begin, end in pairwise(space.documents.ptr.tolist())]
    ranks = {space.posts[place]: rank for rank, place in enumerate(order.tolist(), start=1)}
    missed = sorted((p for p, g in grades.items() if g >= RELEVANT and p in ranks), key=lambda p: ranks[p])[-MISSED:]
    first = [space.posts[place] for place in order[:FIRST].tolist()]
    texts = {post: as_text(shown.text) for post, shown in track.texts([*first, *missed]).items()}
    for number, place in enumerate(order[:FIRST].tolist(), start=1):
        post = space.posts[place]
        grade = f"grade {grades[post]}" if post in grades else "not judged"
        score = best[:, place].mean()
        yield f"{number}. {score:.2f}, {grade}, {sizes[place]} vectors: {_cut(texts.get(post, ''))}"
        yield from _lifts(track, config, encoded, topic, post, best[:, place], best.mean(1))
    for post in missed:
        if ranks[post] > FIRST:
            size = sizes[space.posts.index(post)]
            yield f"\nMissed, at {ranks[post]}, {size} vectors: {_cut(texts.get(post, ''))}"


def _lifts(
    track: Track,
    config: DictConfig,
    encoded: Encoded,
    topic: Topic,
    post: str,
    here: NDArray[np.floating],
    mean: NDArray[np.floating],
) -> Iterator[str]:
    why = track.explain(config, encoded, topic, post)
    if why is None:
        return
    matches = why.matches
    for vector in np.argsort(mean - here, kind="stable")[:LIFTS].tolist():
        lift = f"{here[vector] - mean[vector]:+.2f} to {here[vector]:.2f}"
        yield f"   - {lift}: {_node(matches[vector].query)} finds {_node(matches[vector].document)}"


def _node(node: VirtualNode) -> str:
    text = " ".join(node.text.split())[:60]
    return f"`{text}`" if node.kind == "formula" else f"the {node.kind}" + (f' "{text}"' if text else "")


def _cut(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
