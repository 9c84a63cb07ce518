"""Search: vectors in an index, BM25 over text, fusion of runs."""

from mathamr.retrieval.index import Index, Ranking, Strategy, build
from mathamr.retrieval.strategies import search

__all__ = ["Index", "Ranking", "Strategy", "build", "search"]
