"""Hard negatives of a configuration, from the posts of a collection.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, Failure
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.negatives.ranking import MinedNegatives, bm25_rankings, mine, model_negatives, shared_tag_rankings
from mathamr.retrieval.bm25 import tokens_of_post
from mathamr.training.config import TrainConfig
from mathamr.training.graph.checks import Negatives
from mathamr.training.pairs import answers_of

Posts = Callable[[], Iterable[Post | Failure]]
Report = Callable[[dict[str, Any]], None]


def negatives_of(
    config: TrainConfig,
    store: GraphStore,
    pairs: Sequence[Pair],
    *,
    known: Iterable[Pair] = (),
    posts: Posts | None = None,
    report: Report | None = None,
) -> Negatives | None:
    """Return the ``negatives`` of ``train``; None if ``config.negatives`` is 0.

    Args:
        pairs: training pairs; their questions get negatives.
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
        k, keep, closest = config.negative_candidates, config.negative_pool, config.negative_closest

        def under(encoder: Encoder) -> dict[str, tuple[str, ...]]:
            found = model_negatives(encoder, store, answers, k=k, keep=keep, closest=closest)
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
        asking = {question: tags for question, tags in questions.items() if question in known and question in available}
        rankings = shared_tag_rankings(asking, tagged, k=config.negative_candidates, seed=config.seed)
    else:
        rankings = bm25_rankings(questions, answers, k=config.negative_candidates)
    siblings: dict[str, set[str]] = {}
    for answer, question in parents.items():
        siblings.setdefault(question, set()).add(answer)
    return mine(
        rankings,
        known,
        available=available,
        keep=config.negative_pool,
        closest=None if by_tags else config.negative_closest,
        siblings=siblings,
    )
