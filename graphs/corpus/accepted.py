"""Training pairs of a forum: a question with its accepted answer.

>>> posts = [Post("q", "question", accepted_answer_id="b"), Post("a", "answer", parent_id="q"), Post("b", "answer")]
>>> list(accepted_pairs(lambda: posts))
[Pair(question_id='q', answer_id='b')]
>>> list(accepted_pairs(lambda: [Post("q", "question"), *posts[1:]]))  # nothing is accepted
[Pair(question_id='q', answer_id='a')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from graphs.corpus.post import Pair, Post
from graphs.errors import Failure

Posts = Callable[[], Iterable[Post | Failure]]
"""Gives the posts of a collection in its order, each time from the first one; their texts may be left out."""


def accepted_pairs(posts: Posts) -> Iterator[Pair]:
    """Yield (question, accepted answer) if any question has one, else (question, answer) for every answer.

    Pairs come in the order of the answers; both posts of a pair are among ``posts``.
    """
    accepted: dict[str, str] = {}
    questions: set[str] = set()  # needed only as long as nothing is accepted
    for post in posts():
        if isinstance(post, Post) and post.kind == "question":
            if post.accepted_answer_id:
                accepted[post.accepted_answer_id] = post.post_id
                questions.clear()
            elif not accepted:
                questions.add(post.post_id)
    for post in posts():
        if isinstance(post, Post) and post.kind == "answer":
            question = accepted.get(post.post_id) if accepted else post.parent_id
            if question is not None and (accepted or question in questions):
                yield Pair(question, post.post_id)
