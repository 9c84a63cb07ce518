"""Frozen encoder that marks false negatives of a batch (GISTEmbed).

    known = GuidedPairs(pairs, open_guide("mpnet", 128, torch.device("cpu")))
    known.mask(queries, documents)      # pairs (B,) and (C,) -> bool (B, C)

In-batch negatives are drawn by chance, and some of them answer the query although no pair says so. A document that the
guide scores above the query's own document is not used as a negative (Solatorio 2024, arXiv:2402.16829, section 3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from mathamr.text.encoder import Side, TextEncoder, open_encoder
from mathamr.text.pairs import PairFile
from mathamr.text.training.adapting import limit_length
from mathamr.text.training.batches import KnownPairs, Rows

_ROUNDING = 1e-5  # a text has slightly different vectors in different batches
_TEXTS = 10_000  # whose vectors are kept: a loss over several dimensions or directions uses those of a batch again


def open_guide(name: str, max_length: int | None, device: torch.device) -> TextEncoder:
    """Open the encoder ``name``, whose texts are cut at ``max_length`` tokens if its own limit is not lower."""
    guide = open_encoder(name, device=str(device))
    limits = [limit for limit in (guide.model.max_seq_length, max_length) if limit is not None]
    limit_length(guide, min(limits, default=None))
    return guide


class GuidedPairs(KnownPairs):
    """Known answers, and documents that the guide scores above the query's own document."""

    def __init__(self, pairs: PairFile, guide: TextEncoder) -> None:
        super().__init__(pairs.keys, pairs.groups)
        self._pairs, self._guide = pairs, guide
        self._vectors: dict[tuple[int, Side], npt.NDArray[np.float32]] = {}

    def mask(self, queries: Rows, documents: Rows) -> npt.NDArray[np.bool_]:
        """Return a mask of false negatives, bool (B, C), for queries of pairs (B,) and documents of pairs (C,)."""
        if len(self._vectors) > _TEXTS:
            self._vectors.clear()
        self._encode(queries, "query")
        self._encode(np.union1d(queries, documents), "document")
        asking, own = self._stacked(queries, "query"), self._stacked(queries, "document")
        above = asking @ self._stacked(documents, "document").T > (asking * own).sum(axis=1, keepdims=True) + _ROUNDING
        return super().mask(queries, documents) | above

    def _encode(self, rows: Rows, side: Side) -> None:
        missing = [row for row in rows.tolist() if (row, side) not in self._vectors]
        vectors = self._guide.encode([getattr(self._pairs[row], side) for row in missing], side)
        self._vectors |= {(row, side): vector for row, vector in zip(missing, vectors, strict=True)}

    def _stacked(self, rows: Rows, side: Side) -> npt.NDArray[np.float32]:
        return np.stack([self._vectors[row, side] for row in rows.tolist()])
