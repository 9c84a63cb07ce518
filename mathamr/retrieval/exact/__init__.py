"""Exact search: an index that compares every query with every vector, its layout, and a fast first pass over codes.

Names are imported on first use: a module of this package may be imported without torch.
"""

from typing import TYPE_CHECKING

from graphs.lazy_names import on_first_use

if TYPE_CHECKING:
    from mathamr.retrieval.exact.index import DType, ExactIndex

__all__ = ["DType", "ExactIndex"]

__getattr__ = on_first_use(
    __name__, {"DType": "mathamr.retrieval.exact.index", "ExactIndex": "mathamr.retrieval.exact.index"}
)
