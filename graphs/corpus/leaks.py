"""Training pairs that would tell a model the answers to its own test: of topics, or with an answer to a topic.

>>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("8", "answer"), Post("9", "question", title="And $y$?")]
>>> topic = Topic("t1", Post("query:t1", "topic", title="is $x$ odd"))
>>> pairs = [Pair("7", "8"), Pair("9", "8")]
>>> pairs_without_topics(pairs, posts, [topic])
([Pair(question_id='9', answer_id='8')], [Pair(question_id='7', answer_id='8')])

A question is a topic if the topic names it (``topic_of``), or if title, body, or both together are the same words and
symbols, without regard to tags, punctuation and case. Ids of topics and of posts are two name spaces. An answer belongs
to its question, also where it is paired with a duplicate of that:

>>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("8", "answer", parent_id="7")]
>>> pairs_without_topics([Pair("9", "8")], posts, [topic])
([], [Pair(question_id='9', answer_id='8')])
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from graphs.corpus.post import Pair, Post, Topic
from graphs.corpus.sources import comparable
from graphs.errors import Failure


def pairs_without_topics(
    pairs: Iterable[Pair], posts: Iterable[Post | Failure], topics: Iterable[Topic]
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs without a topic and without an answer to one, and those left out.

    Args:
        pairs: training pairs of the collection.
        posts: all posts of the collection, streamed.
        topics: all topics that the experiment is measured on.
    """
    return pairs_apart(pairs, ((post, digests(post)) for post in posts if isinstance(post, Post)), topics)


def pairs_apart(
    pairs: Iterable[Pair], posts: Iterable[tuple[Post, Collection[bytes]]], topics: Iterable[Topic]
) -> tuple[list[Pair], list[Pair]]:
    """Return what :func:`pairs_without_topics` does.

    Args:
        posts: all posts of the collection, with or without texts, and the :func:`digests` of each.
    """
    topics = list(topics)
    ids = {topic.post.parent_id for topic in topics if topic.post.parent_id}  # what topic_of names
    texts = {digest for topic in topics for digest in digests_of_text(topic.post)}
    pairs = list(pairs)
    paired = {pair.answer_id for pair in pairs}
    held: set[str] = set()
    answers: set[str] = set()
    parents: dict[str, str] = {}  # an answer may come before its question
    for post, known in posts:
        if post.kind == "question":
            if post.post_id in ids or not texts.isdisjoint(known):
                held.add(post.post_id)
                answers |= {post.accepted_answer_id} if post.accepted_answer_id else set()
        elif post.parent_id is not None and post.post_id in paired:
            parents[post.post_id] = post.parent_id
    answers |= {answer for answer, parent in parents.items() if parent in held}
    kept: list[Pair] = []
    left_out: list[Pair] = []
    for pair in pairs:
        (left_out if pair.question_id in held or pair.answer_id in answers else kept).append(pair)
    return kept, left_out


def questions_of_topics(
    posts: Iterable[tuple[Post, Collection[bytes]]], topics: Iterable[Topic]
) -> dict[str, frozenset[str]]:
    """Return the questions that are a topic, by the id of the topic; topics without one are left out.

    >>> posts = [Post("7", "question", title="Is $x$ odd?"), Post("9", "question", title="And $y$?")]
    >>> topic = Topic("t1", Post("query:t1", "topic", title="is $x$ odd"))
    >>> questions_of_topics([(post, digests(post)) for post in posts], [topic])
    {'t1': frozenset({'7'})}

    Args:
        posts: all posts of the collection, with or without texts, and the :func:`digests` of each.
        topics: topics that the experiment is measured on.
    """
    by_text: dict[bytes, set[str]] = {}
    by_id: dict[str, set[str]] = {}
    for topic in topics:
        for digest in digests_of_text(topic.post):
            by_text.setdefault(digest, set()).add(topic.topic_id)
        if topic.post.parent_id:
            by_id.setdefault(topic.post.parent_id, set()).add(topic.topic_id)
    found: dict[str, set[str]] = {}
    for post, known in posts:
        if post.kind == "question":
            own = by_id.get(post.post_id, set()).union(*(by_text.get(digest, ()) for digest in known))
            for topic_id in own:
                found.setdefault(topic_id, set()).add(post.post_id)
    return {topic_id: frozenset(questions) for topic_id, questions in found.items()}


DIGEST_BYTES = 16


def digests(post: Post) -> list[bytes]:
    """Return hashes of the texts that tell a topic among questions; none of other posts.

    >>> question = Post("7", "question", title="Is $x$ odd?")
    >>> digests(question) == digests(Post("8", "question", title="is x <b>odd</b>")), digests(Post("9", "answer"))
    (True, [])
    """
    return digests_of_text(post) if post.kind == "question" else []


def digests_of_text(post: Post) -> list[bytes]:
    """Return hashes of the comparable texts of a post: title, body, and both together."""
    title, body = comparable(post.title), comparable(post.body)
    texts = dict.fromkeys(text for text in (title, body, f"{title} {body}".strip()) if text)
    return [hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=DIGEST_BYTES).digest() for text in texts]
