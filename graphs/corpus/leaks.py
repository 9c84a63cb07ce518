"""Training pairs that would tell a model the answers to its own test: of topics, or with an answer to a topic.

>>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("8", "answer"), Post("9", "question", title="And $y$?")]
>>> topic = Topic("t1", Post("query:t1", "topic", title="is $x$ odd"))
>>> apart = pairs_without_topics([Pair("7", "8"), Pair("9", "8")], posts, [topic])
>>> list(apart.kept), apart.left_out
([Pair(question_id='9', answer_id='8')], [Pair(question_id='7', answer_id='8')])
>>> apart.leaks
[Leak(question_id='7', topic_id='t1', reason='equal', similarity=1.0)]

A question is a topic if the topic names it (``topic_of``); if title, body, or both together are the same words and
symbols, without regard to tags, punctuation and case; or if both together are nearly so
(:mod:`graphs.corpus.text.near_text`). Ids of topics and of posts are two name spaces. An answer belongs to its
question, also where it is paired with a duplicate of that:

>>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("8", "answer", parent_id="7")]
>>> pairs_without_topics([Pair("9", "8")], posts, [topic]).left_out
[Pair(question_id='9', answer_id='8')]

Posts are streamed: of a post a few hashes and a signature are looked at. Of millions of pairs and answers only ids are
held (:mod:`graphs.ids`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from typing import Literal, NamedTuple

from graphs.corpus.post import IdPairs, Pair, Post, Topic
from graphs.corpus.sources import comparable
from graphs.corpus.text.near_text import NearTexts, signature
from graphs.errors import Failure

DIGEST_BYTES = 16
Reason = Literal["named", "equal", "near"]


@dataclass(frozen=True, slots=True)
class QuestionMarks:
    """Marks by which the text of a question is compared with topics.

    Attributes:
        digests: hashes of title, body, and both together, as far as there is text; the last is that of both.
        signature: of both together (:func:`graphs.corpus.text.near_text.signature`).
    """

    digests: tuple[bytes, ...] = ()
    signature: bytes = b""


@dataclass(frozen=True, slots=True)
class Leak:
    """A question that asks what a topic asks.

    Attributes:
        reason: the topic names it, or it has an equal text, or a near-identical one.
        similarity: share of runs of words that both texts have; 1.0 of other reasons.
    """

    question_id: str
    topic_id: str
    reason: Reason
    similarity: float = 1.0


class PairsApart(NamedTuple):
    """Training pairs, those left out since they would tell the answer to a topic, and the questions that would."""

    kept: Sequence[Pair]
    left_out: Sequence[Pair]
    leaks: Sequence[Leak]


def pairs_without_topics(
    pairs: Iterable[Pair], posts: Iterable[Post | Failure], topics: Iterable[Topic], *, answers: bool = False
) -> PairsApart:
    """Return the pairs without a topic and without an answer to one, and those left out.

    Args:
        pairs: training pairs of the collection.
        posts: all posts of the collection, streamed.
        topics: all topics that the experiment is measured on.
        answers: the text of an answer may be a topic, too (:func:`graphs.corpus.corpus.answers_ask`).
    """
    known = ((post, marks(post, answers=answers)) for post in posts if isinstance(post, Post))
    return pairs_apart(pairs, known, topics)


def pairs_apart(
    pairs: Iterable[Pair], posts: Iterable[tuple[Post, QuestionMarks]], topics: Iterable[Topic], *, parts: bool = True
) -> PairsApart:
    """Return what :func:`pairs_without_topics` does.

    Args:
        posts: all posts of the collection, with or without texts, and the :func:`marks` of each.
        parts: an equal title, or an equal body, makes a question a topic.
    """
    topic_texts = _Topics(topics, parts=parts)
    pairs = IdPairs(pairs)
    leaks: dict[str, Leak] = {}
    answers: set[str] = set()

    def read() -> Iterator[Pair]:
        """Yield every answer with its question, and note which posts leak."""
        for post, known in posts:
            if post.kind != "question" and post.parent_id is not None:
                yield Pair(post.parent_id, post.post_id)
            leak = next(topic_texts.by(post, known), None)
            if leak is not None:
                leaks[post.post_id] = leak
                answers.update([post.accepted_answer_id] if post.accepted_answer_id else [])

    answered = IdPairs(read())  # an answer may come before its question
    answers |= {pair.answer_id for pair in answered if pair.question_id in leaks}

    def is_leaking(pair: Pair) -> bool:
        return pair.question_id in leaks or pair.answer_id in answers or pair.answer_id in leaks

    left_out = list(filter(is_leaking, pairs))
    kept = IdPairs(filterfalse(is_leaking, pairs)) if left_out else pairs
    guilty = {post_id for pair in left_out for post_id in (pair.question_id, pair.answer_id)}
    guilty |= {pair.question_id for pair in answered if pair.answer_id in guilty}
    return PairsApart(kept, left_out, [leak for leak in leaks.values() if leak.question_id in guilty])


def questions_of_topics(
    posts: Iterable[tuple[Post, QuestionMarks]], topics: Iterable[Topic]
) -> dict[str, frozenset[str]]:
    """Return the questions that are a topic, by the id of the topic; topics without one are left out.

    A question may be several topics: all that it is equal or near-identical to. So a question that someone asked again
    in the same words is taken for the topic too.

    >>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("9", "question", title="And $y$?")]
    >>> topic = Topic("t1", Post("query:t1", "topic", title="is $x$ odd"))
    >>> questions_of_topics([(post, marks(post)) for post in posts], [topic])
    {'t1': frozenset({'7'})}

    Args:
        posts: all posts of the collection, with or without texts, and the :func:`marks` of each.
        topics: topics that the experiment is measured on.
    """
    topic_texts = _Topics(topics)
    found: dict[str, set[str]] = {}
    for post, known in posts:
        if post.kind == "question":
            for leak in topic_texts.by(post, known):
                found.setdefault(leak.topic_id, set()).add(post.post_id)
    return {topic_id: frozenset(questions) for topic_id, questions in found.items()}


class _Topics:
    """Topics by what a post is compared with: the question that each names, its digests, its signature."""

    def __init__(self, topics: Iterable[Topic], *, parts: bool = True) -> None:
        self._named: dict[str, list[str]] = {}
        self._equal: dict[bytes, list[str]] = {}
        texts: dict[str, str] = {}
        for topic in topics:
            if topic.post.parent_id:  # what topic_of names
                self._named.setdefault(topic.post.parent_id, []).append(topic.topic_id)
            for digest in _digests(topic.post)[0 if parts else -1 :]:
                self._equal.setdefault(digest, []).append(topic.topic_id)
            texts[topic.topic_id] = _text(topic.post)
        self._near_texts = NearTexts(texts)

    def by(self, post: Post, known: QuestionMarks) -> Iterator[Leak]:
        """Yield the topics that a post asks, the surest first; a topic may come for several reasons."""
        if post.kind == "question":
            yield from (Leak(post.post_id, topic_id, "named") for topic_id in self._named.get(post.post_id, ()))
        for digest in known.digests:
            yield from (Leak(post.post_id, topic_id, "equal") for topic_id in self._equal.get(digest, ()))
        for topic_id, similarity in self._near_texts.similar(known.signature):
            yield Leak(post.post_id, topic_id, "near", round(similarity, 3))


def marks(post: Post, *, answers: bool = False) -> QuestionMarks:
    """Return the marks of a question, with ``answers`` of any post; none of others.

    >>> question = Post("7", "question", title="Is $x$ odd?")
    >>> marks(question) == marks(Post("8", "question", title="is x <b>odd</b>")), marks(Post("9", "answer"))
    (True, QuestionMarks(digests=(), signature=b''))
    """
    if post.kind != "question" and not answers:
        return QuestionMarks()
    return QuestionMarks(_digests(post), signature(_text(post)))


def _text(post: Post) -> str:
    return f"{post.title} {post.body}"


def _digests(post: Post) -> tuple[bytes, ...]:
    """Hashes of the comparable texts of a post: title, body, and both together."""
    title, body = comparable(post.title), comparable(post.body)
    texts = dict.fromkeys(text for text in (title, body, f"{title} {body}".strip()) if text)
    return tuple(
        hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest() for text in texts
    )
