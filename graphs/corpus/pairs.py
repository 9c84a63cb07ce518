"""Training pairs by what counts as an answer: the accepted one, every one with votes, those of duplicates.

The corpus here has one question with three answers, and a duplicate of it with one:

>>> posts = [
...     Post("q1", "question", accepted_answer_id="a1"), Post("a1", "answer", parent_id="q1", score=0),
...     Post("a2", "answer", parent_id="q1", score=4), Post("a3", "answer", parent_id="q1", score=-1),
...     Post("q2", "question", accepted_answer_id="a4"), Post("a4", "answer", parent_id="q2", score=2)]
>>> accepted, duplicates = [Pair("q1", "a1"), Pair("q2", "a4")], [("q2", "q1")]
>>> def pairs(positives):
...     found = select_pairs(posts, accepted, duplicates, positives, least_score=1)
...     return [(pair.question_id, pair.answer_id) for pair in found]
>>> pairs("accepted")
[('q1', 'a1'), ('q2', 'a4')]
>>> pairs("answers")  # also a2, for its votes
[('q1', 'a1'), ('q2', 'a4'), ('q1', 'a2')]
>>> pairs("duplicates")  # an answer of one question answers the other
[('q1', 'a1'), ('q2', 'a4'), ('q1', 'a4'), ('q2', 'a1')]
>>> pairs("all")
[('q1', 'a1'), ('q2', 'a4'), ('q1', 'a2'), ('q1', 'a4'), ('q2', 'a1'), ('q2', 'a2')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

from graphs.corpus.accepted import Posts
from graphs.corpus.arqmath import PostLink
from graphs.corpus.corpus import Corpus, PairsOfPosts, TrainingPairs
from graphs.corpus.post import IdPairs, Pair, Post
from graphs.corpus.record_ids import identified
from graphs.errors import ConfigError, Failure

#: What may be an answer of a question; the first is the thesis's (3.4).
POSITIVES = ("accepted", "answers", "duplicates", "all", "related")
_BORROWED = ("duplicates", "all")  # of these, several questions have an answer in common
_DUPLICATE = 3  # Stack Exchange's LinkTypeId


@runtime_checkable
class Linked(Protocol):
    """A collection that knows which of its questions are duplicates."""

    def links(self) -> Iterable[PostLink]: ...


@runtime_checkable
class Related(Protocol):
    """A collection that knows documents which are related to a query and do not answer it."""

    def related(self) -> Iterable[Pair]: ...


def training_pairs(corpus: Corpus, positives: str, least_score: int, posts: Posts | None = None) -> Sequence[Pair]:
    """Return the pairs of ``corpus``, accepted answers first, no pair twice.

    Args:
        positives: one of :data:`POSITIVES`. ``answers`` adds every answer with votes, ``duplicates`` to each question
            the answers of its duplicates, ``all`` both; ``related`` what is related to it.
        least_score: votes that an answer needs, where it is not accepted.
        posts: posts that were read before, with or without texts; None: they are read for this,
            and of those with one id the first counts.

    Raises:
        ConfigError: for duplicates of a collection without links between posts; for related pairs of one without any.
    """
    given = posts or (lambda: identified(corpus.posts(), texts=True))
    pairs = _each_once(IdPairs(given_pairs(corpus, given)))
    if positives == "accepted":
        return pairs
    if positives == "related":
        if not isinstance(corpus, Related):
            raise ConfigError(
                f"train.positives=related: collection {corpus.name!r} has no related pairs; use accepted ones"
            )
        return _each_once(IdPairs(chain(pairs, corpus.related())))
    duplicates: list[tuple[str, str]] = []
    if positives != "answers":
        if not isinstance(corpus, Linked):
            raise ConfigError(
                f"train.positives={positives}: collection {corpus.name!r} has no links between duplicates; "
                "use train.positives=answers or accepted"
            )
        duplicates = [(link.post_id, link.related_id) for link in corpus.links() if link.kind == _DUPLICATE]
    return select_pairs(given(), pairs, duplicates, positives, least_score)


def given_pairs(corpus: Corpus, posts: Posts | None = None) -> Iterator[Pair]:
    """Yield the pairs that ``corpus`` gives, some possibly twice; ``posts`` as for :func:`training_pairs`."""
    if isinstance(corpus, PairsOfPosts):
        return corpus.pairs_of(posts or (lambda: identified(corpus.posts(), texts=True)))
    return corpus.pairs() if isinstance(corpus, TrainingPairs) else iter(())


def select_pairs(
    posts: Iterable[Post | Failure],
    accepted: Iterable[Pair],
    duplicates: Sequence[tuple[str, str]],
    positives: str,
    least_score: int,
) -> IdPairs:
    """Return the pairs of :func:`training_pairs`, from posts, accepted pairs and pairs of duplicate questions."""
    questions: set[str] = set()

    def with_votes() -> Iterator[Pair]:
        for post in posts:
            if isinstance(post, Failure):
                continue
            if post.kind == "question":
                questions.add(post.post_id)
            elif post.parent_id is not None and post.score is not None and post.score >= least_score:
                yield Pair(post.parent_id, post.post_id)

    voted = IdPairs(with_votes())
    pairs = dict.fromkeys(accepted)
    if positives in ("answers", "all"):
        pairs.update((pair, None) for pair in voted if pair.question_id in questions)
    if positives in _BORROWED:
        answers: dict[str, list[str]] = {question: [] for linked in duplicates for question in linked}
        for pair in pairs:
            if pair.question_id in answers:
                answers[pair.question_id].append(pair.answer_id)
        both = [*duplicates, *((other, question) for question, other in duplicates)]
        borrowed = (Pair(question, answer) for question, other in both for answer in answers[other])
        pairs |= dict.fromkeys(sorted(pair for pair in borrowed if pair.question_id in questions))
    return IdPairs(pairs)


def question_groups(pairs: Iterable[Pair], positives: str) -> dict[str, str]:
    """Return the group of each question, named by one of its questions: those that share answers, also over others.

    The pairs are those of :func:`training_pairs`; with ``positives`` that give a question no answers of another one
    there are no groups.

    >>> question_groups([Pair("p", "1"), Pair("q", "2"), Pair("r", "3"), Pair("r", "1")], "duplicates")
    {'p': 'p', 'q': 'q', 'r': 'p'}
    """
    group: dict[str, str] = {}
    first: dict[str, str] = {}  # question of each answer

    def named(question: str) -> str:
        while group[question] != question:
            group[question] = question = group[group[question]]
        return question

    for pair in pairs if positives in _BORROWED else ():
        group.setdefault(pair.question_id, pair.question_id)
        group[named(pair.question_id)] = named(first.setdefault(pair.answer_id, pair.question_id))
    return {question: named(question) for question in group}


def _each_once(pairs: IdPairs) -> IdPairs:
    """Return the pairs without repetitions; 8 bytes a pair decide whether there are any.

    >>> list(_each_once(IdPairs([Pair("q", "a"), Pair("p", "a"), Pair("q", "a")])))
    [Pair(question_id='q', answer_id='a'), Pair(question_id='p', answer_id='a')]
    """
    import numpy as np

    hashes = np.fromiter(map(hash, pairs), np.int64, len(pairs))
    hashes.sort()
    return IdPairs(dict.fromkeys(pairs)) if (hashes[1:] == hashes[:-1]).any() else pairs
