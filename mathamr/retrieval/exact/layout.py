"""Layout of sets of vectors for exact search: blocks of documents, and in a block the vectors by their position.

Sets of vectors differ in size, and padding them to one size would cost more than the arithmetic. Documents are sorted
by size, largest first, and cut into blocks. In a block the vectors lie by their position in the set, and then by
document: position 0 of all documents, position 1 of those that have one, and so on. As the documents of a block
descend in size, those that have a position j are its first ``counts[j]``, so that a running maximum needs neither
padding nor an index:

    sizes 3 2 1:   a0 b0 c0 | a1 b1 | a2       best[:3] = a0 b0 c0;  best[:2] = max(best[:2], a1 b1);  best[:1] = ...

Position 0 is the document's vector (the last of its set), so that a single-vector search reads the head of each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np


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
