"""Training pairs of a forum: a question with its accepted answer.

>>> posts = [Post("q", "question", accepted_answer_id="b"), Post("a", "answer", parent_id="q"), Post("b", "answer")]
>>> list(accepted_pairs(lambda: posts))
[Pair(question_id='q', answer_id='b')]
>>> list(accepted_pairs(lambda: [Post("q", "question"), *posts[1:]]))  # nothing is accepted
[Pair(question_id='q', answer_id='a')]
>>> list(accepted_pairs(lambda: posts[:2]))  # the accepted answer is not in the collection
[Pair(question_id='q', answer_id='a')]
>>> list(accepted_pairs(lambda: [*posts, Post("r", "question", accepted_answer_id="b")]))  # accepted by two questions
[Pair(question_id='q', answer_id='b'), Pair(question_id='r', answer_id='b')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from graphs.corpus.post import Pair, Post, PostKind
from graphs.errors import Failure

Posts = Callable[[], Iterable[Post | Failure]]
"""Gives the posts of a collection in its order, each time from the first one; their texts may be left out."""


def accepted_pairs(posts: Posts) -> Iterator[Pair]:
    """Yield (question, accepted answer) if any such answer is here, else (question, answer) for every answer.

    Pairs come in the order of the answers, and those of one answer in the order of its questions; both posts of a pair
    are among ``posts``.
    """
    first: dict[str, str] = {}  # accepted answer -> question
    further: dict[str, list[str]] = {}  # most answers are accepted by one question, so few lists are kept
    questions: set[str] = set()  # needed only as long as nothing is accepted
    for post in _of_kind("question", posts):
        answer = post.accepted_answer_id
        if answer:
            questions.clear()
            if first.setdefault(answer, post.post_id) != post.post_id:
                further.setdefault(answer, []).append(post.post_id)
        elif not first:
            questions.add(post.post_id)
    if first:
        is_here = False
        for post in _of_kind("answer", posts):
            if post.post_id in first:
                is_here = True
                for question in dict.fromkeys([first[post.post_id], *further.get(post.post_id, ())]):
                    yield Pair(question, post.post_id)
        if is_here:
            return
        questions = {post.post_id for post in _of_kind("question", posts)}
    for post in _of_kind("answer", posts):
        if post.parent_id in questions:
            yield Pair(post.parent_id, post.post_id)


def _of_kind(kind: PostKind, posts: Posts) -> Iterator[Post]:
    return (post for post in posts() if isinstance(post, Post) and post.kind == kind)
