r"""First results of some topics, why they were found, and missed posts (``experiment.analyses=[failures]``).

    outputs/quality/jobs/base-seed42/failures.md

    ## A.28: nDCG' 0.48, vectors: 34, relevant posts: 2
    If $\sin(18^\circ)=\frac{a + \sqrt{b}}{c}$, then what is $a+b+c$? ...
    1. Post 2853, 0.85, grade 0, 495 vectors: There are some proofs at link and a generalization ...
       - +0.57 to 0.91: `\cos(18) = \frac{y}{z}` finds `=\dfrac{c^{2}+a^{2}-b^{2}}{2ca}`
    Missed, at 531: post 2911, ...

Twenty judged topics are drawn, the same ones for every model. Below each of the first five posts are the three vectors
of the topic whose best match in this post is furthest above their mean over all posts: they lift the post. Missed are
the last two relevant posts of the ranking, if they come after the first five. Posts are ranked by MaxSim, also if the
job searches by another strategy. Of a large collection, only the judged posts and others drawn at random
(``geometry.posts``) are ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.analyses.job_examples import natural
from graphs.corpus.post import Topic
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.counts import counted
from graphs.stores.posts import PostText
from mathamr import maxsim
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Qrels, Run
from mathamr.maxsim import VectorSets
from mathamr.retrieval.explanation import Explanation, VirtualNode
from mathamr.stages.topic_sets import EmbeddingSpace, TopicSet

Explain = Callable[[Topic, str], Explanation | None]
Texts = Callable[[Sequence[str]], Mapping[str, PostText]]

FILE = "failures.md"
TOPICS, FIRST, LIFTS, MISSED = 20, 5, 3, 2
_SHOWN = 200  # characters of a post
_INTRODUCTION = (
    "The first posts by the mean match of a topic's vectors, and the relevant posts ranked last. Below a post: how far "
    "a match is above its mean over all posts, the match, and what of the topic finds what of the post."
)


def describe(space: EmbeddingSpace, topic_set: TopicSet, qrels: Qrels, run: Run, explain: Explain, texts: Texts) -> str:
    """Return the content of ``failures.md`` for the posts of :func:`experiments.analyses.sampling.judged_space`."""
    scores = evaluate(run, qrels, relevant=topic_set.relevant).per_topic
    topics = {topic.topic_id: topic for topic in topic_set.topics}
    known = sorted((name for name in space.topics if name in scores), key=natural)
    drawn = np.random.default_rng(0).permutation(len(known))[:TOPICS]
    parts = [_INTRODUCTION]
    for name in sorted((known[place] for place in drawn), key=natural):
        grades = qrels[name]
        relevant = sum(grade >= topic_set.relevant for grade in grades.values())
        best = best_matches(space, name)
        score = scores[name]["ndcg_prime"]
        head = f"## {name}: nDCG' {score:.2f}, vectors: {len(best)}, relevant posts: {relevant}"
        right = {post for post, grade in grades.items() if grade >= topic_set.relevant}
        lines = _of_topic(topics[name], space, best, grades, right, explain, texts)
        parts.append("\n".join([head, "", _cut(as_text(extract(topics[name].post))), "", *lines]))
    return "\n\n".join(parts) + "\n"


def best_matches(space: EmbeddingSpace, topic: str) -> NDArray[np.floating]:
    """Return the best match of each of a topic's vectors in each post, (vectors, posts)."""
    query = space.queries.select(torch.tensor([space.topics.index(topic)])).vectors
    each = VectorSets(query, torch.arange(len(query) + 1))
    return maxsim.scores(each, space.documents).numpy()


def _of_topic(
    topic: Topic,
    space: EmbeddingSpace,
    best: NDArray[np.floating],
    grades: dict[str, int],
    right: set[str],
    explain: Explain,
    texts: Texts,
) -> Iterator[str]:
    order = np.argsort(-best.mean(0), kind="stable")
    sizes = [end - begin for begin, end in pairwise(space.documents.ptr.tolist())]
    ranks = {space.posts[place]: rank for rank, place in enumerate(order.tolist(), start=1)}
    missed = sorted((p for p in right if p in ranks), key=lambda p: ranks[p])[-MISSED:]
    first = [space.posts[place] for place in order[:FIRST].tolist()]
    shown = {post: _cut(as_text(one.text)) for post, one in texts([*first, *missed]).items()}
    for number, place in enumerate(order[:FIRST].tolist(), start=1):
        post = space.posts[place]
        grade = f"grade {grades[post]}" if post in grades else "not judged"
        score = best[:, place].mean()
        yield f"{number}. Post {post}, {score:.2f}, {grade}, {counted(sizes[place], 'vector')}: {shown.get(post, '')}"
        if (why := explain(topic, post)) is not None:
            yield from _lifts(why, best[:, place], best.mean(1))
    for post in missed:
        if ranks[post] > FIRST:
            size = sizes[space.posts.index(post)]
            yield f"\nMissed, at {ranks[post]}: post {post}, {counted(size, 'vector')}: {shown.get(post, '')}"


def _lifts(why: Explanation, here: NDArray[np.floating], mean: NDArray[np.floating]) -> Iterator[str]:
    matches = why.matches
    for vector in np.argsort(mean - here, kind="stable")[:LIFTS].tolist():
        lift = f"{here[vector] - mean[vector]:+.2f} to {here[vector]:.2f}"
        yield f"   - {lift}: {_node(matches[vector].query)} finds {_node(matches[vector].document)}"


def _node(node: VirtualNode) -> str:
    text = " ".join(node.text.split())[:60]
    return f"`{text}`" if node.kind == "formula" else f"the {node.kind}" + (f' "{text}"' if text else "")


def _cut(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]
