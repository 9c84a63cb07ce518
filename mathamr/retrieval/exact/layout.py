"""Layout of sets of vectors for exact search: blocks of documents, in a block the vectors by position; places by id.

Sets of vectors differ in size, and padding them to one size would cost more than the arithmetic. Documents are sorted
by size, largest first, and cut into blocks. In a block the vectors lie by their position in the set, and then by
document: position 0 of all documents, position 1 of those that have one, and so on. As the documents of a block
descend in size, those that have a position j are its first ``counts[j]``, so that a running maximum needs neither
padding nor an index:

    sizes 3 2 1:   a0 b0 c0 | a1 b1 | a2       best[:3] = a0 b0 c0;  best[:2] = max(best[:2], a1 b1);  best[:1] = ...

Position 0 is the document's vector (the last of its set), so that a single-vector search reads the head of each block.

A block of 2,048 documents keeps their similarities with 128 query vectors in the caches of a core. A GPU would take
longer to start the products of such blocks than to compute them, so there vectors are moved into larger blocks:

>>> moves = list(moved(np.array([2, 1, 1, 1]), block=2, larger=4))       # of a0 b0 a1 | c0 d0
>>> [(start, rows.tolist()) for start, rows in moves]                    # to a0 b0 c0 d0 a1
[(0, [0, 1, 3, 4, 2])]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from graphs.errors import UnknownPostError
from graphs.ids import array_of

GPU_BLOCK_DOCUMENTS = 32_768


@dataclass(frozen=True, slots=True)
class Block:
    """``counts[j]`` documents have a vector at position j: rows ``starts[j]`` to ``starts[j] + counts[j]``."""

    first: int  # place of the first document of the block in the index
    starts: list[int]
    counts: list[int]


def blocks(sizes: np.ndarray, block: int) -> Iterator[Block]:
    """Return the layout for descending sizes (N,)."""
    row = 0
    for first in range(0, len(sizes), block):
        part = sizes[first : first + block]
        counts = np.searchsorted(-part, -np.arange(part[0]), side="left")  # sizes greater than each position
        starts = row + np.concatenate([[0], np.cumsum(counts)[:-1]])
        yield Block(first, starts.tolist(), counts.tolist())
        row += int(part.sum())


def is_layout(sizes: np.ndarray, block: object) -> bool:
    """Return whether sizes (N,) from a file and a number of documents in a block have a layout."""
    if not isinstance(block, int) or not 1 <= block < 1 << 63 or sizes.dtype != np.int32 or sizes.ndim != 1:
        return False
    return bool(len(sizes) and sizes[-1] >= 1 and (sizes[1:] <= sizes[:-1]).all())


def moved(sizes: np.ndarray, block: int, larger: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield, for each block of ``larger`` documents, its first row, and where its vectors are in blocks of ``block``.

    These rows are counted from the first one. ``larger`` is a multiple of ``block``, so both layouts have the same
    vectors in the rows of a larger block.
    """
    before = list(blocks(sizes, block))
    for after in blocks(sizes, larger):
        first = after.starts[0]
        parts = before[after.first // block : (after.first + larger) // block]
        rows = [
            np.arange(part.starts[position] - first, part.starts[position] - first + part.counts[position])
            for position in range(len(after.counts))
            for part in parts
            if position < len(part.counts)
        ]
        yield first, np.concatenate(rows)


def on_device(vectors: Tensor, sizes: np.ndarray, block: int, device: torch.device | str) -> tuple[Tensor, int]:
    """Return the vectors (V, p) on a device, and the number of documents in a block there: larger blocks on a GPU."""
    vectors = vectors.to(device)
    if vectors.device.type == "cpu":
        return vectors, block
    larger = block * max(1, GPU_BLOCK_DOCUMENTS // block)
    for first, rows in moved(sizes, block, larger):
        part = vectors[first : first + len(rows)]
        part.copy_(part.index_select(0, torch.from_numpy(rows).to(vectors.device)))
    return vectors, larger


def products(block: Block, rows: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Positions of a block in groups of at most ``rows`` vectors: where a group starts, and its runs of positions
    that have equal counts, ``(count, positions)``.

    >>> list(products(Block(0, starts=[0, 4, 8, 12, 14, 15], counts=[4, 4, 4, 2, 1, 1]), rows=8))
    [(0, [(4, 2)]), (8, [(4, 1), (2, 1), (1, 2)])]
    """
    first = 0
    while first < len(block.counts):
        last, total = first, 0
        while last < len(block.counts) and total + block.counts[last] <= rows:
            total += block.counts[last]
            last += 1
        yield block.starts[first], [(count, len(list(same))) for count, same in groupby(block.counts[first:last])]
        first = last


class Places:
    """Places by id; ``post_ids`` (N,) has at least one document, and each once. They are sorted when first asked for.

    No dictionary: one of a million ids takes more memory than a model.

    >>> places = Places(np.array(["154", "255", "7"]))
    >>> places.of(["7", "154"]), places.find(["9", "255", "2551"])[1]
    (array([2, 0]), array([False,  True, False]))
    """

    def __init__(self, post_ids: np.ndarray) -> None:
        self._post_ids = post_ids
        self._by_id: np.ndarray | None = None  # places by ascending id

    def find(self, post_ids: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of documents, and whether they are there; any place for one that is not."""
        if self._by_id is None:
            self._by_id = np.argsort(self._post_ids, kind="stable")
        wanted = array_of(post_ids)
        # Of ids longer than any here the beginning is searched for: else numpy would copy all ids to make them as wide.
        sorted_places = np.searchsorted(self._post_ids, wanted.astype(self._post_ids.dtype), sorter=self._by_id)
        places = self._by_id[np.minimum(sorted_places, len(self._post_ids) - 1)]
        return places, self._post_ids[places] == wanted

    def of(self, post_ids: Sequence[str]) -> np.ndarray:
        """Return the places of documents; :class:`UnknownPostError` for one that is not there."""
        places, found = self.find(post_ids)
        if not found.all():
            missing = np.flatnonzero(~found)
            raise UnknownPostError(f"the index holds no post {post_ids[missing[0]]} ({len(missing)} such)")
        return places
