"""Interfaces of search: systems that rank posts for a query, and engines that answer typed queries.

>>> from graphs.corpus.post import Post
>>> class Newest:
...     def rank(self, topic: Topic) -> Ranking:
...         return [("540", 2.0), ("7", 1.0)]
...     def close(self) -> None: ...
>>> system: Searchable = Newest()
>>> system.rank(Topic("query", Post("query", "topic", body="Is $x$ odd?", markup="text")))
[('540', 2.0), ('7', 1.0)]

The scores of a system are those of its run file. mathamr search and the web page use a :class:`SearchEngine`:
:class:`mathamr.search.engine.Engine` for graph models, :class:`mathamr.search.system_engine.SystemEngine` for every
other system.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphs.corpus.post import Topic
from mathamr.retrieval.index import Ranking

if TYPE_CHECKING:
    from graphs.stores.posts import PostText
    from mathamr.retrieval.index import Strategy
    from mathamr.search.answer import Answer
    from mathamr.search.selection import Selection


class Searchable(Protocol):
    """System that ranks posts for one query at a time."""

    def rank(self, topic: Topic) -> Ranking:
        """Return ids and scores of posts, best first (:mod:`mathamr.evaluation.order`).

        Args:
            topic: query; for a topic of the experiment, the ranking equals its run file.
        """

    def close(self) -> None:
        """Close all files; a system without open files inherits this method."""
        return


class SearchEngine(Protocol):
    """An opened index that answers queries typed by a person."""

    @property
    def note(self) -> str:
        """Warning about the index to show to users, or ""."""

    def __len__(self) -> int: ...

    def about(self) -> dict[str, Any]:
        """Return the searched index and its search options, as JSON (``GET /api/index``)."""

    def answer(
        self,
        text: str,
        *,
        task: str = ...,
        strategy: Strategy | None = ...,
        k: int = ...,
        selection: Selection = ...,
        explained: int | None = ...,
    ) -> Answer:
        """Return at most ``k`` results of a selection for a query; ``explained`` of them, or all, are explained."""

    def explain(self, text: str, post_id: str) -> Answer:
        """Return an answer with one post and its explanation."""

    def post(self, post_id: str) -> PostText:
        """Return a post by its id."""

    def close(self) -> None:
        """Close all files."""
