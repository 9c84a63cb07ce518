r"""Engine of any system: the posts that it ranks, shown with their questions.

>>> import tempfile
>>> from pathlib import Path
>>> from graphs.corpus.post import Post
>>> from graphs.stores import posts
>>> path = Path(tempfile.mkdtemp()) / "posts.db"
>>> answer = Post("8", "answer", body="Yes, $x$ is.", markup="text", parent_id="7")
>>> _ = posts.build(path, [Post("7", "question", title="Is $x$ odd?", markup="text"), answer], [])
>>> class Newest:
...     def rank(self, topic): return [("8", 2.0)]
...     def close(self): ...
>>> engine = SystemEngine(Newest(), PostTexts(path), system="newest", posts=1)
>>> (result,) = engine.answer("odd?").results
>>> result.score, result.post.title, result.post.snippet()
(2.0, 'Is $x$ odd?', 'Yes, $x$ is.')
>>> engine.answer("Is $x$?").results[0].overlap.formulas[0].match
'1 of 1 symbols'
"""

from __future__ import annotations

import time
from itertools import zip_longest
from operator import itemgetter
from typing import Any

from graphs.corpus.post import Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, RetrievalError, StoreError
from graphs.stores.posts import PostText, PostTexts
from mathamr.retrieval.index import Strategy
from mathamr.search.answer import RESULTS, TASKS, Answer, Result, check, post_of
from mathamr.search.overlap import overlaps
from mathamr.search.searchable import Searchable
from mathamr.search.selection import EVERYTHING, Selection
from mathamr.search.structured import StructuredFormulas
from mathamr.search.typed_query import TypedQuery, typed_post
from mathamr.search.words import QueryWords

MAX_EXPLAINED = 20  # results with their overlap, if no other number is asked for


class SystemEngine:
    """Engine of an opened system and the texts of its posts. Only one thread at a time may search.

    Args:
        texts: texts of the posts that it finds, and of their questions.
        system: name of the system, as shown to users.
        posts: number of posts that it searches.
        structured: formulas of the posts; None: the task ``formulas`` is refused.
        note: warning about the index to show to users.
        outdated: reason for which an index of formulas has none.
    """

    def __init__(
        self,
        searchable: Searchable,
        texts: PostTexts,
        *,
        system: str,
        posts: int,
        structured: StructuredFormulas | None = None,
        note: str = "",
        outdated: str = "",
    ) -> None:
        self.searchable = searchable
        self._structured = structured
        self._texts = texts
        self._system = system
        self._posts = posts
        self.note = note
        self._outdated = outdated

    def __len__(self) -> int:
        return self._posts

    def about(self) -> dict[str, Any]:
        """Return the searched index and its search options, as JSON."""
        return {
            "system": self._system,
            "posts": self._posts,
            "formulas": 0 if self._structured is None else len(self._structured),
            "backend": self._system,
            "note": self.note,
            "tasks": list(TASKS[:1] if self._structured is None else TASKS),
            "formulas_by": "structure",
            "strategies": [],
            "explains": False,
        }

    def answer(
        self,
        text: str,
        *,
        task: str = TASKS[0],
        strategy: Strategy | None = None,
        k: int = RESULTS,
        selection: Selection = EVERYTHING,
        explained: int | None = None,
    ) -> Answer:
        """Return at most ``k`` posts that answer ``text``, the first ``explained`` with their overlap, or formulas.

        ``strategy`` has no effect here.

        Raises:
            ConfigError: formulas of an index without any, or ``k`` out of range.
            RetrievalError: a query that cannot be read.
            StoreError: a post without its text.
        """
        check(task, k)
        if task != TASKS[0] and self._structured is None:
            raise ConfigError(
                self._outdated
                or f"task={task} needs the index of a graph model, or of track=structure alone or as a part, but this "
                f"one is of {self._system}; use task={TASKS[0]}"
            )
        start = time.perf_counter()
        post = typed_post(text)
        read = extract(post)
        query = TypedQuery(read, QueryWords((), (), len(read.formulas)))
        typed = time.perf_counter()
        if task != TASKS[0] and self._structured is not None:
            return self._structured.answer(query, self._texts, k, selection, typed - start)
        page = selection.page(self.searchable.rank(Topic(post.post_id, post)), k, itemgetter(0), self._texts)
        ranking = page.results
        searched = time.perf_counter()
        shown = self._texts.get([post_id for post_id, _ in ranking])
        if missing := [post_id for post_id, _ in ranking if post_id not in shown]:
            raise StoreError(f"the index finds post {missing[0]} but has no text for it; build the index again")
        explained = MAX_EXPLAINED if explained is None else explained
        common = overlaps(read, [shown[post_id].text for post_id, _ in ranking[:explained]])
        results = [
            Result(shown[post_id], score, overlap=overlap) for (post_id, score), overlap in zip_longest(ranking, common)
        ]
        seconds = {"query": typed - start, "search": searched - typed, "explanation": time.perf_counter() - searched}
        return Answer(query, page.with_results(results), None, seconds)

    def explain(self, text: str, post_id: str) -> Answer:
        """Raise RetrievalError: the vectors of this system have no named parts."""
        raise RetrievalError(
            f"an index of {self._system} cannot explain results; heat maps need the index of a graph model"
        )

    def post(self, post_id: str) -> PostText:
        """Return a post by its id; raise :class:`UnknownPostError` if the index has none."""
        return post_of(self._texts, post_id)

    def close(self) -> None:
        """Close all files."""
        self.searchable.close()
        self._texts.close()
