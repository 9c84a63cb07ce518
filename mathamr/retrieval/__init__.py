"""Search: vectors in an index, BM25 over text, fusion of runs.

Names are imported on first use, so modules that do not need torch can be imported without it.
"""

from typing import TYPE_CHECKING

from graphs.lazy_names import on_first_use

if TYPE_CHECKING:
    from mathamr.retrieval.backends import build, open_index
    from mathamr.retrieval.index import Index, Ranking, Strategy
    from mathamr.retrieval.strategies import search

__all__ = ["Index", "Ranking", "Strategy", "build", "open_index", "search"]

__getattr__ = on_first_use(
    __name__,
    {
        "Index": "mathamr.retrieval.index",
        "Ranking": "mathamr.retrieval.index",
        "Strategy": "mathamr.retrieval.index",
        "build": "mathamr.retrieval.backends",
        "open_index": "mathamr.retrieval.backends",
        "search": "mathamr.retrieval.strategies",
    },
)
