"""Guide: an encoder that is not trained and tells which documents of a batch are no negatives (GISTEmbed).

    known = GuidedPairs(pairs, open_encoder("mpnet"))
    known.mask(queries, documents)      # pairs (B,) and (C,) -> bool (B, C)

In-batch negatives are drawn by chance, and some of them answer the query although no pair says so. The guide finds
those nearer to the query than the query's own document (Solatorio 2024, arXiv:2402.16829, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mathamr.text.encoder import Side, TextEncoder
from mathamr.text.pairs import PairFile
from mathamr.text.training.batches import KnownPairs, Rows

_ROUNDING = 1e-5  # a text has slightly different vectors in different batches
_BATCHES = 4  # whose vectors are kept: a loss over several dimensions or directions uses them again


class GuidedPairs(KnownPairs):
    """Known answers of queries, and documents that the guide finds nearer to a query than its own document."""

    def __init__(self, pairs: PairFile, guide: TextEncoder) -> None:
        super().__init__(pairs.keys, pairs.groups)
        self._pairs, self._guide = pairs, guide
        self._vectors = lru_cache(_BATCHES)(self._encoded)

    def mask(self, queries: Rows, documents: Rows) -> npt.NDArray[np.bool_]:
        """Mark the pairs whose document is no negative of the query of a pair: of pairs (B,) and (C,), bool (B, C)."""
        asking = self._vectors(tuple(queries.tolist()), "query")
        own = self._vectors(tuple(queries.tolist()), "document")
        others = self._vectors(tuple(documents.tolist()), "document")
        nearer = asking @ others.T > (asking * own).sum(axis=1, keepdims=True) + _ROUNDING
        return super().mask(queries, documents) | nearer

    def _encoded(self, rows: Sequence[int], side: Side) -> npt.NDArray[np.float32]:
        texts = [getattr(self._pairs[row], side) for row in rows]
        distinct = list(dict.fromkeys(texts))
        vectors = self._guide.encode(distinct, side)
        place = {text: i for i, text in enumerate(distinct)}
        return vectors[[place[text] for text in texts]]
