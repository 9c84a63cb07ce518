"""Systems as a search sees them: a ranking for a query, with the scores of the system's run file.

>>> from graphs.corpus.post import Post
>>> class Newest:
...     def rank(self, topic: Topic) -> Ranking:
...         return [("540", 2.0), ("7", 1.0)]
...     def close(self) -> None: ...
>>> system: Searchable = Newest()
>>> system.rank(Topic("query", Post("query", "topic", body="Is $x$ odd?", markup="text")))
[('540', 2.0), ('7', 1.0)]

mathamr search and the page see a :class:`SearchEngine`: of graphs :class:`mathamr.search.engine.Engine`, of every other
system :class:`mathamr.search.system_engine.SystemEngine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from graphs.corpus.post import Topic
from mathamr.retrieval.index import Ranking

if TYPE_CHECKING:
    from graphs.stores.posts import PostText
    from mathamr.retrieval.index import Strategy
    from mathamr.search.engine import Answer
    from mathamr.search.selection import Selection


class Searchable(Protocol):
    """A system that ranks posts for one query after the other."""

    def rank(self, topic: Topic) -> Ranking:
        """Return ids and scores of posts, best first (:mod:`mathamr.evaluation.order`).

        Args:
            topic: query; a topic of the experiment is ranked as in its run file.
        """

    def close(self) -> None:
        """Close all files."""


class SearchEngine(Protocol):
    """An opened index that answers queries typed by a person."""

    @property
    def note(self) -> str:
        """Warning about the index for whoever searches, or ""."""

    def __len__(self) -> int: ...

    def about(self) -> dict[str, Any]:
        """Return what is searched and how, as JSON (``GET /api/index``)."""

    def answer(
        self,
        text: str,
        *,
        task: str = ...,
        strategy: Strategy | None = ...,
        k: int = ...,
        selection: Selection = ...,
    ) -> Answer:
        """Return at most ``k`` results of a selection for a query."""

    def explain(self, text: str, post_id: str) -> Answer:
        """Return an answer with one post, for its explanation."""

    def post(self, post_id: str) -> PostText:
        """Return a post by its id."""

    def close(self) -> None:
        """Close all files."""
