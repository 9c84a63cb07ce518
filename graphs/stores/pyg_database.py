"""preprocessed.db as a ``torch_geometric.data.Database``, for code written against PyTorch Geometric.

    database = GraphDatabase("both-full.db")
    database[0]                         # Data(x=[156], edge_index=[2, 660], edge_attr=[660], ..., post_id='255')
    database[10:20]                     # a list of ten

Indices count from 0 in the order in which the file was built. Reading only: files are made by
``graphs.stores.store.build``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, Database

from graphs.errors import StoreError
from graphs.stores.store import GraphStore


class GraphDatabase(Database):
    """A :class:`~graphs.stores.store.GraphStore` behind PyTorch Geometric's interface, indexed by number."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.store = GraphStore(path)
        self._post_ids = self.store.post_ids()

    def connect(self) -> None:
        """Do nothing: every process and thread connects at its first read."""

    def close(self) -> None:
        """Close the file."""
        self.store.close()

    def insert(self, index: int, data: Any) -> None:
        """Refuse to write: the database is read-only."""
        raise StoreError("read only; graphs.stores.store.build makes such files", path=self.store.path)

    def get(self, index: int) -> Data:
        """Return the graph with this number."""
        return self.store.get(self._post_ids[index])

    def _multi_get(self, indices: Sequence[int] | Tensor) -> list[Data]:
        return [self.get(int(index)) for index in indices]

    def __len__(self) -> int:
        return len(self._post_ids)
