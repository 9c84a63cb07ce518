"""Engine that reloads while it serves: the old one answers until the new one is open.

>>> class Opened:
...     note = ""
...     def __init__(self, posts): self.posts = posts
...     def __len__(self): return self.posts
...     def about(self): return {"posts": self.posts}
...     def close(self): print("closed", self.posts)
>>> indexes = iter([Opened(5), Opened(7)])
>>> engine = ReloadableEngine(lambda: next(indexes))
>>> engine.reload()
closed 5
>>> len(engine), engine.about()
(7, {'posts': 7})
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from graphs.stores.posts import PostText
from mathamr.search.answer import Answer
from mathamr.search.searchable import SearchEngine


class ReloadableEngine:
    """Engine that answers from the one opened last; a :class:`mathamr.search.searchable.SearchEngine`.

    Args:
        open_: opens the engine; called at once, and for each :meth:`reload`.
    """

    def __init__(self, open_: Callable[[], SearchEngine]) -> None:
        self._open = open_
        self._searching = Lock()
        self._reloading = Lock()
        self._engine = open_()
        self._about = self._engine.about()

    def reload(self) -> None:
        """Open the engine again and close the previous one; if opening fails, the previous one stays.

        A running search ends first. Errors of opening are raised.
        """
        with self._reloading:
            engine = self._open()
            about = engine.about()
            with self._searching:
                before, self._engine, self._about = self._engine, engine, about
            before.close()

    @property
    def note(self) -> str:
        """Warning about the index to show to users, or ""."""
        return self._engine.note

    def __len__(self) -> int:
        return len(self._engine)

    def about(self) -> dict[str, Any]:
        """Return the searched index and its search options, as JSON."""
        return self._about

    def answer(self, text: str, **options: Any) -> Answer:
        """Return results for a query, as :meth:`mathamr.search.searchable.SearchEngine.answer` with these options."""
        with self._searching:
            return self._engine.answer(text, **options)

    def explain(self, text: str, post_id: str) -> Answer:
        """Return an answer with one post and its explanation."""
        with self._searching:
            return self._engine.explain(text, post_id)

    def post(self, post_id: str) -> PostText:
        """Return a post by its id."""
        with self._searching:
            return self._engine.post(post_id)

    def close(self) -> None:
        """Close all files."""
        self._engine.close()
