"""Search: vectors in an index, BM25 over text, fusion of runs."""

from mathamr.retrieval.backends import build, open_index
from mathamr.retrieval.index import Index, Ranking, Strategy
from mathamr.retrieval.strategies import search

__all__ = ["Index", "Ranking", "Strategy", "build", "open_index", "search"]
