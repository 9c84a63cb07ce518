"""MaxSim of codes in 16-bit integers: compiled by numba where it is installed, else by torch, with equal results.

Codes lie by block and position (:mod:`mathamr.retrieval.exact.layout`). Such a slab is cut into tiles of 512 vectors.
In a tile codes lie by number: the first number of all vectors, then the second, and so on. A processor thus multiplies
many vectors by one number at a time, and reads memory in order.

>>> from mathamr.retrieval.exact.layout import blocks
>>> slabs = Slabs.of(list(blocks(np.array([2, 1]), block=2048)))               # documents of two vectors and of one
>>> codes = torch.tensor([127, 0, 0, 127, 76, 102], dtype=torch.int8)  # (127, 0), (0, 127) | (76, 102)
>>> query = np.array([[100, 0], [0, 100]], dtype=np.int16)
>>> weights, owners = np.array([0.01, 0.01], dtype=np.float32), np.array([0, 0])  # both vectors belong to query 0
>>> scores_reference([codes], slabs, query, weights, owners)
array([[229., 127.]], dtype=float32)
>>> np.array_equal(scores([codes], slabs, query, weights, owners), _)
True

Products must fit 16 bits with a sign; sums on the way may wrap around. :mod:`mathamr.retrieval.exact.codes` sees to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from mathamr.compiled import compiled
from mathamr.retrieval.exact.layout import Block

LANES = 512  # vectors of a tile: their numbers, 16 bits each, stay in the nearest cache
UNROLLED = 8  # numbers that one expression multiplies and adds up
COMPILED_VECTORS = 1 << 16  # of a collection; smaller ones are searched before a compiler has started
PARTS = 8  # of the work for each thread, so that threads end at about the same time
SHARED = 1 << 14  # vectors; for fewer, other threads would start too late
SIGNATURE = (
    "void(int8[::1], int8[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64, "
    "int16[:, ::1], float32[::1], int64[::1], float32[:, ::1], int64, int64)"
)


@dataclass(frozen=True, slots=True)
class Slabs:
    """Layout of vectors as arrays. Slab ``s`` holds ``counts[s]`` vectors from ``starts[s]``.

    Shapes: ``bounds`` (B + 1,): block ``b`` has slabs ``bounds[b]`` to ``bounds[b + 1]``; ``firsts`` (B,), the place of
    its first document.
    """

    starts: np.ndarray
    counts: np.ndarray
    bounds: np.ndarray
    firsts: np.ndarray
    documents: int
    vectors: int

    @classmethod
    def of(cls, layout: Sequence[Block]) -> Slabs:
        """Return the arrays of a layout."""
        starts = np.concatenate([[0], *(block.starts for block in layout)])[1:].astype(np.int64)
        counts = np.concatenate([[0], *(block.counts for block in layout)])[1:].astype(np.int64)
        bounds = np.cumsum([0] + [len(block.starts) for block in layout])
        firsts = np.array([block.first for block in layout], dtype=np.int64)
        return cls(starts, counts, bounds, firsts, sum(block.counts[0] for block in layout), int(counts.sum()))

    def tiles(self, codes: Tensor, slab: int) -> list[Tensor]:
        """Return the codes of a slab, :data:`LANES` vectors at a time -> (r, n) each, views of ``codes`` (V * r,)."""
        start, count = int(self.starts[slab]), int(self.counts[slab])
        dim = len(codes) // self.vectors
        sizes = [min(LANES, count - first) for first in range(0, count, LANES)]
        tiles = codes[start * dim : (start + count) * dim].split([size * dim for size in sizes])
        return [tile.view(dim, size) for tile, size in zip(tiles, sizes, strict=True)]


def scores(
    parts: Sequence[Tensor], slabs: Slabs, query: np.ndarray, weights: np.ndarray, owners: np.ndarray
) -> np.ndarray:
    """Return the weighted maxima of products, added up for each query -> (num_queries, N) float32.

    Blocks are shared out to ``torch.get_num_threads()`` threads. Code for small collections is not compiled.

    Args:
        parts: one or two parts of the codes of all vectors, (V * r,) and (V * s,) int8.
        query: codes of query vectors, (v, r + s) int16, or (v, r) for one part.
        weights: of the maxima, (v,) float32.
        owners: query of each query vector, (v,) int64, ascending from 0.
    """
    function = compiled(_kernel, SIGNATURE) if slabs.vectors >= COMPILED_VECTORS else None
    if function is None:
        return scores_reference(parts, slabs, query, weights, owners)
    vectors, dim = query.shape
    padded = np.zeros((vectors + vectors % 2, -(-dim // UNROLLED) * UNROLLED), np.int16)
    padded[:vectors, :dim] = query
    first, rest = (part.numpy() for part in (*parts, parts[0][:0])[:2])
    out = np.zeros((int(owners[-1]) + 1, slabs.documents), np.float32)
    arrays = (first, rest, slabs.starts, slabs.counts, slabs.bounds, slabs.firsts)
    given = (padded, weights, owners, out)
    ends = np.cumsum(slabs.counts)[slabs.bounds[1:] - 1]  # vectors up to the end of each block
    shared(lambda begin, end: function(*arrays, int(ends[-1]), *given, begin, end), ends)
    return out


def scores_reference(
    parts: Sequence[Tensor], slabs: Slabs, query: np.ndarray, weights: np.ndarray, owners: np.ndarray
) -> np.ndarray:
    """Compute :func:`scores` in float32, which is exact for integers of this size."""
    out = np.zeros((int(owners[-1]) + 1, slabs.documents), np.float32)
    numbers = torch.from_numpy(query).float()
    for block, first in enumerate(slabs.firsts.tolist()):
        best = torch.empty(0)
        for slab in range(slabs.bounds[block], slabs.bounds[block + 1]):
            rows = torch.cat([torch.cat(slabs.tiles(part, slab), dim=1) for part in parts])  # (r + s, count)
            reached, count = numbers @ rows.float(), rows.shape[1]  # (v, count)
            if slab == slabs.bounds[block]:
                best = reached
            else:
                torch.maximum(best[:, :count], reached, out=best[:, :count])
        for row, weight, owner in zip(best.numpy(), weights, owners.tolist(), strict=True):
            out[owner, first : first + best.shape[1]] += row * weight
    return out


def shared(run: Callable[[int, int], None], ends: np.ndarray) -> None:
    """Call ``run(first, last)`` for ranges of items that together are all, in ``torch.get_num_threads()`` threads.

    This thread is one of them. If others start late because the processors are busy, it does their part.

    Args:
        run: does the work of a range, without the lock of the interpreter.
        ends: work up to the end of each item, ascending, (n,); ranges have about the same work.
    """
    threads = torch.get_num_threads() if ends[-1] >= SHARED else 1
    parts = threads * PARTS if threads > 1 else 1
    cuts = np.searchsorted(ends, np.arange(1, parts) * (ends[-1] / parts)) + 1
    left = deque(pairwise(np.unique([0, *np.minimum(cuts, len(ends)), len(ends)]).tolist()))

    def work() -> None:
        while left:
            try:
                part = left.popleft()
            except IndexError:  # another thread was faster
                return
            run(*part)

    if threads == 1:
        work()
        return
    pool = ThreadPoolExecutor(threads - 1)
    others = [pool.submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        pool.shutdown(wait=False)
        for other in others:
            if not other.cancel():
                other.result()


def _kernel(first, rest, starts, counts, bounds, firsts, total, query, weights, owners, out, begin, end):  # noqa: C901
    """Add up the scores of blocks ``begin`` to ``end``; ``total`` is the number of vectors of all blocks.

    LLVM turns the loops over ``i`` into 16-bit vector instructions because every array in them is a contiguous slice
    and every sum is cut to 16 bits. Two query vectors, p and q, share what is read. Numbers and vectors that a query
    has too much are 0.
    """
    dim, more = len(first) // total, len(rest) // total
    vectors, width = query.shape
    wide = np.zeros((width, LANES), np.int16)
    of_p, of_q = np.empty(LANES, np.int16), np.empty(LANES, np.int16)
    largest = 0
    for block in range(begin, end):
        largest = max(largest, counts[bounds[block]])
    best = np.empty((vectors, largest), np.int16)
    for block in range(begin, end):
        documents = counts[bounds[block]]
        best[:, :documents] = -32768
        for slab in range(bounds[block], bounds[block + 1]):
            count = counts[slab]
            for tile in range(0, count, LANES):
                lanes = min(LANES, count - tile)
                for d in range(dim + more):
                    w0 = wide[d]
                    if d < dim:
                        start = (starts[slab] + tile) * dim + d * lanes
                        row = first[start : start + lanes]
                    else:
                        start = (starts[slab] + tile) * more + (d - dim) * lanes
                        row = rest[start : start + lanes]
                    for i in range(lanes):
                        w0[i] = row[i]
                for v in range(0, vectors, 2):
                    for d in range(0, width, 8):
                        w0, w1, w2, w3 = wide[d], wide[d + 1], wide[d + 2], wide[d + 3]
                        w4, w5, w6, w7 = wide[d + 4], wide[d + 5], wide[d + 6], wide[d + 7]
                        p0, p1, p2, p3 = query[v, d], query[v, d + 1], query[v, d + 2], query[v, d + 3]
                        p4, p5, p6, p7 = query[v, d + 4], query[v, d + 5], query[v, d + 6], query[v, d + 7]
                        q0, q1, q2, q3 = query[v + 1, d], query[v + 1, d + 1], query[v + 1, d + 2], query[v + 1, d + 3]
                        q4, q5, q6 = query[v + 1, d + 4], query[v + 1, d + 5], query[v + 1, d + 6]
                        q7 = query[v + 1, d + 7]
                        if d == 0:
                            for i in range(lanes):
                                of_p[i] = np.int16(
                                    p0 * w0[i] + p1 * w1[i] + p2 * w2[i] + p3 * w3[i]
                                    + p4 * w4[i] + p5 * w5[i] + p6 * w6[i] + p7 * w7[i]
                                )  # fmt: skip
                                of_q[i] = np.int16(
                                    q0 * w0[i] + q1 * w1[i] + q2 * w2[i] + q3 * w3[i]
                                    + q4 * w4[i] + q5 * w5[i] + q6 * w6[i] + q7 * w7[i]
                                )  # fmt: skip
                        else:
                            for i in range(lanes):
                                of_p[i] = np.int16(
                                    of_p[i] + p0 * w0[i] + p1 * w1[i] + p2 * w2[i] + p3 * w3[i]
                                    + p4 * w4[i] + p5 * w5[i] + p6 * w6[i] + p7 * w7[i]
                                )  # fmt: skip
                                of_q[i] = np.int16(
                                    of_q[i] + q0 * w0[i] + q1 * w1[i] + q2 * w2[i] + q3 * w3[i]
                                    + q4 * w4[i] + q5 * w5[i] + q6 * w6[i] + q7 * w7[i]
                                )  # fmt: skip
                    best_p, best_q = best[v, tile : tile + lanes], best[v + 1, tile : tile + lanes]
                    for i in range(lanes):
                        best_p[i] = max(of_p[i], best_p[i])
                        best_q[i] = max(of_q[i], best_q[i])
        for v in range(len(weights)):
            reached, weight = best[v, :documents], weights[v]
            score = out[owners[v], firsts[block] : firsts[block] + documents]
            for i in range(documents):
                score[i] += np.float32(reached[i]) * weight
