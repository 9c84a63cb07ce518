"""MaxSim of codes in 16-bit integers: compiled by numba where it is installed, else by torch, with equal results.

Codes lie by block and position (:mod:`mathamr.retrieval.exact.layout`), and in such a slab by number: the first number
of all vectors, then the second, and so on. A processor thus multiplies many vectors by one number at a time.

>>> layout = Slabs.of(list(blocks(np.array([2, 1]), block=2048)), dim=2)       # documents of two vectors and of one
>>> codes = torch.tensor([127, 0, 0, 127, 76, 102], dtype=torch.int8)  # (127, 0), (0, 127) | (76, 102)
>>> query = torch.tensor([[100, 0], [0, 100]], dtype=torch.int16)
>>> weights, owners = torch.tensor([0.01, 0.01]), torch.tensor([0, 0])  # both vectors belong to query 0
>>> scores_reference(codes, layout, query, weights, owners)
tensor([[229., 127.]])
>>> torch.equal(scores(codes, layout, query, weights, owners), scores_reference(codes, layout, query, weights, owners))
True

Products must fit 16 bits with a sign; sums on the way may wrap around. :mod:`mathamr.retrieval.exact.codes` sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mathamr.retrieval.exact.layout import Block, blocks

__all__ = ["Slabs", "blocks", "compiled", "scores", "scores_reference", "shared"]

LANES = 256  # documents that are multiplied at a time: their numbers, 16 bits each, stay in the nearest cache
UNROLLED = 8  # numbers that one expression multiplies and adds up
PARTS = 8  # of the work for each thread, so that threads end at about the same time
SIGNATURE = (
    "void(int8[::1], int64, int64, int64[::1], int64[::1], int64[::1], int64[::1], "
    "int16[:, ::1], float32[::1], int64[::1], float32[:, ::1], int64, int64)"
)


@dataclass(frozen=True, slots=True)
class Slabs:
    """Layout of codes as arrays. Slab ``s`` holds ``counts[s]`` vectors from ``starts[s]``, ``dim`` numbers each.

    Shapes: ``bounds`` (B + 1,): block ``b`` has slabs ``bounds[b]`` to ``bounds[b + 1]``; ``firsts`` (B,), the place of
    its first document.
    """

    starts: np.ndarray
    counts: np.ndarray
    bounds: np.ndarray
    firsts: np.ndarray
    dim: int
    documents: int

    @classmethod
    def of(cls, layout: Sequence[Block], dim: int) -> Slabs:
        """Return the arrays of a layout, for vectors of ``dim`` numbers."""
        starts = np.concatenate([[0], *(block.starts for block in layout)])[1:].astype(np.int64)
        counts = np.concatenate([[0], *(block.counts for block in layout)])[1:].astype(np.int64)
        bounds = np.cumsum([0] + [len(block.starts) for block in layout])
        firsts = np.array([block.first for block in layout], dtype=np.int64)
        return cls(starts, counts, bounds, firsts, dim, sum(block.counts[0] for block in layout))


def scores(codes: Tensor, slabs: Slabs, query: Tensor, weights: Tensor, owners: Tensor) -> Tensor:
    """Return the weighted maxima of products, added up for each query -> (num_queries, N) float32.

    Blocks are shared out to ``torch.get_num_threads()`` threads.

    Args:
        codes: codes of all vectors, (V * p,) int8.
        slabs: their layout.
        query: codes of query vectors, (v, r) int16; r <= p, and only the first r numbers of each code are read.
        weights: of the maxima, (v,) float32.
        owners: query of each query vector, (v,) int64, ascending from 0.
    """
    function = compiled(_kernel, SIGNATURE)
    if function is None:
        return scores_reference(codes, slabs, query, weights, owners)
    vectors, used = query.shape
    padded = np.zeros((vectors, -(-used // UNROLLED) * UNROLLED), np.int16)
    padded[:, :used] = query.numpy()
    out = torch.zeros(int(owners[-1]) + 1, slabs.documents)
    arrays = (codes.numpy(), slabs.dim, used, slabs.starts, slabs.counts, slabs.bounds, slabs.firsts)
    rest = (padded, weights.numpy(), owners.numpy(), out.numpy())
    ends = np.cumsum(slabs.counts)[slabs.bounds[1:] - 1]  # vectors up to the end of each block
    shared(lambda first, last: function(*arrays, *rest, first, last), ends)
    return out


def scores_reference(codes: Tensor, slabs: Slabs, query: Tensor, weights: Tensor, owners: Tensor) -> Tensor:
    """Compute :func:`scores` in float32, which is exact for integers of this size."""
    out = torch.zeros(int(owners[-1]) + 1, slabs.documents)
    numbers = query.float()
    for block, first in enumerate(slabs.firsts.tolist()):
        best = torch.empty(0)
        for slab in range(slabs.bounds[block], slabs.bounds[block + 1]):
            start, count = int(slabs.starts[slab]), int(slabs.counts[slab])
            rows = codes[start * slabs.dim : (start + count) * slabs.dim].view(slabs.dim, count)[: query.shape[1]]
            reached = numbers @ rows.float()  # (v, count)
            if slab == slabs.bounds[block]:
                best = reached
            else:
                torch.maximum(best[:, :count], reached, out=best[:, :count])
        for row, weight, owner in zip(best, weights, owners.tolist(), strict=True):
            out[owner, first : first + best.shape[1]] += row * weight
    return out


@cache
def compiled(function: Callable[..., None], signature: str) -> Callable[..., None] | None:
    """Return a function compiled by numba, or None without numba. Compiled code is kept in a cache folder if possible.

    Compiled functions run beside other threads of Python.
    """
    try:
        import numba
    except ImportError:
        return None
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder for compiled code can be written
        return numba.njit(signature, **options)(function)


def shared(run: Callable[[int, int], None], ends: np.ndarray) -> None:
    """Call ``run(first, last)`` for ranges of items that together are all, in ``torch.get_num_threads()`` threads.

    ``ends`` (n,) is the work up to the end of each item, ascending; ranges have about the same work.
    """
    threads = torch.get_num_threads()
    parts = threads * PARTS if threads > 1 else 1
    cuts = np.searchsorted(ends, np.arange(1, parts) * (ends[-1] / parts)) + 1
    ranges = list(pairwise(np.unique([0, *np.minimum(cuts, len(ends)), len(ends)]).tolist()))
    if threads == 1:
        run(*ranges[0])
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, *part) for part in ranges]:
            done.result()


def _kernel(codes, dim, used, starts, counts, bounds, firsts, query, weights, owners, out, begin, end):  # type: ignore
    """Add up the scores of blocks ``begin`` to ``end``.

    LLVM turns the loops over ``i`` into 16-bit vector instructions because every array in them is a contiguous slice
    and every sum is cut to 16 bits. Numbers of a query beyond ``used`` are 0.
    """
    vectors, width = query.shape
    wide = np.zeros((width, LANES), np.int16)
    sums = np.empty(LANES, np.int16)
    largest = 0
    for block in range(begin, end):
        largest = max(largest, counts[bounds[block]])
    best = np.empty((vectors, largest), np.int16)
    for block in range(begin, end):
        documents = counts[bounds[block]]
        best[:, :documents] = -32768
        for slab in range(bounds[block], bounds[block + 1]):
            count = counts[slab]
            for first in range(0, count, LANES):
                lanes = min(LANES, count - first)
                for d in range(used):
                    start = starts[slab] * dim + d * count + first
                    row, w0 = codes[start : start + lanes], wide[d]
                    for i in range(lanes):
                        w0[i] = row[i]
                for v in range(vectors):
                    reached = best[v, first : first + lanes]
                    for d in range(0, width, 8):
                        w0, w1, w2, w3 = wide[d], wide[d + 1], wide[d + 2], wide[d + 3]
                        w4, w5, w6, w7 = wide[d + 4], wide[d + 5], wide[d + 6], wide[d + 7]
                        q0, q1, q2, q3 = query[v, d], query[v, d + 1], query[v, d + 2], query[v, d + 3]
                        q4, q5, q6, q7 = query[v, d + 4], query[v, d + 5], query[v, d + 6], query[v, d + 7]
                        if d == 0:
                            for i in range(lanes):
                                sums[i] = np.int16(
                                    q0 * w0[i] + q1 * w1[i] + q2 * w2[i] + q3 * w3[i]
                                    + q4 * w4[i] + q5 * w5[i] + q6 * w6[i] + q7 * w7[i]
                                )  # fmt: skip
                        else:
                            for i in range(lanes):
                                sums[i] = np.int16(
                                    sums[i] + q0 * w0[i] + q1 * w1[i] + q2 * w2[i] + q3 * w3[i]
                                    + q4 * w4[i] + q5 * w5[i] + q6 * w6[i] + q7 * w7[i]
                                )  # fmt: skip
                    for i in range(lanes):
                        reached[i] = max(sums[i], reached[i])
        for v in range(vectors):
            reached, weight = best[v, :documents], weights[v]
            total = out[owners[v], firsts[block] : firsts[block] + documents]
            for i in range(documents):
                total[i] += np.float32(reached[i]) * weight
