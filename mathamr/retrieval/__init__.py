"""Search: vectors in an index, BM25 over text, fusion of runs.

Names are imported on first use: a module of this package may be imported without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mathamr.retrieval.backends import build, open_index
    from mathamr.retrieval.index import Index, Ranking, Strategy
    from mathamr.retrieval.strategies import search

__all__ = ["Index", "Ranking", "Strategy", "build", "open_index", "search"]

_MODULES = {
    "Index": "index",
    "Ranking": "index",
    "Strategy": "index",
    "build": "backends",
    "open_index": "backends",
    "search": "strategies",
}


def __getattr__(name: str) -> object:
    """Import a name of ``__all__`` on its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
