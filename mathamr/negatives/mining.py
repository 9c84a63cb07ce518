"""Hard negatives of questions: posts of a collection that resemble answers and do not answer.

    negatives = negatives_of(config, store, pairs, posts=corpus.posts, report=print)
    train(config, store, pairs, encoder_config, out="model", negatives=negatives)

``train.negative_source`` chooses the ranking of the answers for a question:

========  ===========================================  ==========================================================
source    score                                        what is dropped, beside known answers and their siblings
========  ===========================================  ==========================================================
bm25      BM25 of words and LaTeX                      scores above ``negative_closest`` times the own answer's
tags      tags shared with the question                nothing: the own answer shares all tags
model     MaxSim under the model as it is, ranked      scores above ``negative_closest`` times the own answer's
          anew every ``negative_refresh`` epochs
========  ===========================================  ==========================================================

An answer is known if a pair names it; its siblings are all other answers of the same question. A record of the kind
``negatives`` reports what happened to the ranked posts:

>>> mined = MinedNegatives({"q": ("a3", "a4")}, {"kept": 2, "known answer": 1}, without=0)
>>> record_of("bm25", mined)
{'kind': 'negatives', 'source': 'bm25', 'questions': 1, 'without': 0, 'posts': {'kept': 2, 'known answer': 1}}
>>> as_text(record_of("bm25", mined))
'hard negatives by bm25: of 1 questions, 0 have none; posts: 2 kept, 1 known answer'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np

from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, Failure
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.retrieval.bm25 import BM25Index, tokens_of_post
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.index import Ranking, Strategy
from mathamr.training.config import TrainConfig
from mathamr.training.graph.checks import Negatives
from mathamr.training.loop import Log
from mathamr.training.pairs import answers_of


def negatives_of(
    config: TrainConfig,
    store: GraphStore,
    pairs: Sequence[Pair],
    *,
    known: Iterable[Pair] = (),
    posts: Callable[[], Iterable[Post | Failure]] | None = None,
    report: Log | None = None,
) -> Negatives | None:
    """Return the ``negatives`` of ``train``; None if ``config.negatives`` is 0.

    Args:
        known: pairs that ``pairs`` were sampled from; their answers are no negatives of their questions either.
        posts: function that streams the collection, whose answers with graphs are ranked; not needed for ``model``,
            which ranks the answers of ``pairs``.
        report: function that receives a record of what was kept and why, once or whenever the model ranks again.

    Raises:
        ConfigError: no posts for a source that needs them, or no negatives left.
    """
    if not config.negatives:
        return None
    tell = report or (lambda record: None)
    source = config.negative_source
    answers = answers_of(pairs, known)
    if source == "model":

        def under(encoder: Encoder) -> dict[str, tuple[str, ...]]:
            found = model_negatives(encoder, store, answers, config)
            tell(record_of(source, found))
            return found.by_question

        return under
    if posts is None:
        raise ConfigError(
            f"train.negative_source={source} ranks the posts of a collection; give posts, or hard negatives "
            "directly, or use train.negative_source=model"
        )
    mined = _mined(config, frozenset(store.post_ids()), answers, posts())
    tell(record_of(source, mined))
    if not mined.by_question:
        fates = ", ".join(f"{count:,} {fate}" for fate, count in mined.counts.items()) or "nothing was ranked"
        raise ConfigError(
            f"train.negative_source={source} leaves {mined.without:,} questions without hard negatives ({fates}); rank "
            "more with train.negative_candidates, or set train.negative_closest=null"
        )
    return mined.by_question


def record_of(source: str, mined: MinedNegatives) -> dict[str, Any]:
    """Return the log record: ``questions`` with negatives, those ``without``, ``posts`` by their fate."""
    return {
        "kind": "negatives",
        "source": source,
        "questions": len(mined.by_question),
        "without": mined.without,
        "posts": mined.counts,
    }


def as_text(record: Mapping[str, Any]) -> str:
    """Return the record as one line."""
    questions = record["questions"] + record["without"]
    posts = ", ".join(f"{count:,} {fate}" for fate, count in record["posts"].items())
    having = f"of {questions:,} questions, {record['without']:,} have none"
    return f"hard negatives by {record['source']}: {having}; posts: {posts}"


def _mined(
    config: TrainConfig, available: frozenset[str], known: Mapping[str, frozenset[str]], posts: Iterable[Post | Failure]
) -> MinedNegatives:
    by_tags = config.negative_source == "tags"
    features = (lambda post: post.tags) if by_tags else tokens_of_post
    questions: dict[str, Sequence[str]] = {}
    answers: dict[str, Sequence[str]] = {}
    parents: dict[str, str] = {}
    for post in posts:
        if isinstance(post, Failure):
            continue
        if post.kind == "answer" and post.post_id in available:
            answers[post.post_id] = features(post)
            if post.parent_id is not None:
                parents[post.post_id] = post.parent_id
        elif post.kind == "question" and (by_tags or (post.post_id in known and post.post_id in available)):
            questions[post.post_id] = features(post)
    if by_tags:  # an answer has the tags of its question
        tagged = {answer: questions.get(parents.get(answer, ""), own) for answer, own in answers.items()}
        usable = {question: tags for question, tags in questions.items() if question in known and question in available}
        rankings = shared_tag_rankings(usable, tagged, k=config.negative_candidates, seed=config.seed)
    else:
        index = BM25Index.build(list(answers), answers.values())
        found = index.search(questions.values(), config.negative_candidates)
        rankings = dict(zip(questions, found, strict=True))
    siblings: dict[str, set[str]] = {}
    for answer, question in parents.items():
        siblings.setdefault(question, set()).add(answer)
    return mine(
        rankings.items(),
        known,
        available=available,
        keep=config.negative_pool,
        closest=None if by_tags else config.negative_closest,
        siblings=siblings,
    )


FATES = KEPT, KNOWN, SIBLING, CLOSE, UNRANKED, NO_GRAPH, BEYOND = (
    "kept",
    "known answer",
    "answers the same question",
    "too close to the answer",
    "answer not ranked",
    "no graph",
    "beyond the first kept",
)


@dataclass(frozen=True)
class MinedNegatives:
    """Kept negatives, best ranked first, and reasons for dropping the others.

    Attributes:
        by_question: negatives of each question that has any.
        counts: number of ranked posts by reason.
        without: number of questions without negatives.
    """

    by_question: dict[str, tuple[str, ...]]
    counts: dict[str, int]
    without: int


def mine(
    rankings: Iterable[tuple[str, Ranking]],
    positives: Mapping[str, frozenset[str]],
    *,
    available: Container[str],
    keep: int,
    closest: float | None,
    siblings: Mapping[str, Container[str]] = MappingProxyType({}),
) -> MinedNegatives:
    """Keep the best ranked posts that are safe to count as wrong.

    Posts with nearly the score of the question's own answer may be unmarked answers (Moreira et al. 2024,
    "NV-Retriever: Improving text embedding models with effective hard-negative mining", TopK-PercPos with 95 %).

    >>> rankings = [("q", [("a7", 9.8), ("a1", 10.0), ("a3", 9.0), ("gone", 8.0), ("a4", 7.0), ("a5", 6.0)])]
    >>> mined = mine(rankings, {"q": frozenset({"a1"})}, available={"a1", "a3", "a4", "a5", "a7"}, keep=2, closest=0.95)
    >>> mined.by_question
    {'q': ('a3', 'a4')}
    >>> mined.counts
    {'kept': 2, 'known answer': 1, 'too close to the answer': 1, 'no graph': 1, 'beyond the first kept': 1}

    Args:
        rankings: each question with its ranked answers.
        positives: known answers of each question.
        keep: largest number for each question.
        closest: drop candidates that score above ``closest`` times the question's best ranked known answer (for a score
            below 0, candidates nearer to it by the same share). If no known answer is ranked, all candidates score
            above it and are dropped. None filters nothing.
        siblings: other answers of a question that are not among its known answers; they are dropped.
    """
    counts: Counter[str] = Counter()
    by_question, without = {}, 0
    for question, ranking in rankings:
        known, beside = positives.get(question, frozenset()), siblings.get(question, ())
        own = [score for post_id, score in ranking if post_id in known]
        bound = np.inf if closest is None else max(own) - (1 - closest) * abs(max(own)) if own else None
        kept: list[str] = []
        for post_id, score in ranking:
            if post_id in known:
                fate = KNOWN
            elif post_id in beside:
                fate = SIBLING
            elif post_id not in available:
                fate = NO_GRAPH
            elif bound is None:
                fate = UNRANKED
            elif score > bound:
                fate = CLOSE
            elif len(kept) == keep:
                fate = BEYOND
            else:
                fate = KEPT
                kept.append(post_id)
            counts[fate] += 1
        if kept:
            by_question[question] = tuple(kept)
        else:
            without += 1
    in_order = {fate: counts[fate] for fate in FATES if counts[fate]}
    return MinedNegatives(by_question, in_order, without)


def shared_tag_rankings(
    questions: Mapping[str, Iterable[str]], answers: Mapping[str, Iterable[str]], *, k: int, seed: int
) -> dict[str, Ranking]:
    """Rank answers by the number of tags they share with a question, equal ones in random order.

    Use it with ``closest=None``: a question's own answer shares all tags, so its score is no bound.

    >>> tags = {"a1": ["algebra", "groups"], "a2": ["algebra"], "a3": ["analysis"]}
    >>> shared_tag_rankings({"q": ["groups", "algebra"]}, tags, k=10, seed=0)
    {'q': [('a1', 2.0), ('a2', 1.0)]}
    """
    rng = np.random.default_rng(seed)
    by_tag: dict[str, list[str]] = {}
    for post_id, tags in answers.items():
        for tag in tags:
            by_tag.setdefault(tag, []).append(post_id)
    rankings = {}
    for question, tags in questions.items():
        shared = Counter(post_id for tag in set(tags) for post_id in by_tag.get(tag, ()))
        shuffled = [list(shared)[i] for i in rng.permutation(len(shared))]
        best = sorted(shuffled, key=lambda post_id: -shared[post_id])[:k]
        rankings[question] = [(post_id, float(shared[post_id])) for post_id in best]
    return rankings


def model_rankings(
    encoder: Encoder, store: GraphStore, questions: Sequence[str], answers: Sequence[str], *, k: int
) -> dict[str, Ranking]:
    """Rank answers by exact MaxSim under ``encoder``, divided by the number of query vectors: cosines, at most 1.

    Where graphs are threads, no answer is read with one of the questions: its score would be that of the question.
    """
    documents = encode(encoder, store, answers, hidden=frozenset(questions))
    index = ExactIndex.build(answers, documents, device=documents.vectors.device)
    queries = encode(encoder, store, questions)
    found = index.search(queries, Strategy("maxsim"), k)
    sizes = queries.sizes.tolist()
    return {
        question: [(post_id, score / size) for post_id, score in ranking]
        for question, ranking, size in zip(questions, found, sizes, strict=True)
    }


def model_negatives(
    encoder: Encoder, store: GraphStore, positives: Mapping[str, frozenset[str]], config: TrainConfig
) -> MinedNegatives:
    """Mine the negatives of questions under ``encoder`` as ``config`` says; all answers in ``positives`` are ranked."""
    known = frozenset(chain.from_iterable(positives.values()))
    available = frozenset(store.having({*positives, *known}))
    answers = sorted(available & known)
    k = min(config.negative_candidates, len(answers))
    found = model_rankings(encoder, store, sorted(available & positives.keys()), answers, k=k)
    keep, closest = config.negative_pool, config.negative_closest
    return mine(found.items(), positives, available=available, keep=keep, closest=closest)
