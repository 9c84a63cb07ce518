"""MaxSim of queries with every document of some blocks, by a running maximum over positions.

>>> from mathamr.retrieval.exact.layout import blocks
>>> layout = list(blocks(np.array([2, 1]), block=2048))       # documents of two vectors and of one
>>> rows = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
>>> query = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> scores(query, rows, layout).round(decimals=2)
tensor([[2.0000, 1.4000]])

One product covers several positions, up to a number of similarities. All results go into memory that is allocated once:
new memory for each block would cost more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import gpu
from mathamr.retrieval.exact.layout import Block, products

# Similarities that are computed before they are reduced: 2 MiB stay in the caches; a GPU wants large products (1 GiB).
CPU_SIMILARITIES = 1 << 19
GPU_SIMILARITIES = 1 << 28
SAMPLED = 64  # every so many numbers, one tells where the largest begin


def scores(queries: VectorSets, vectors: Tensor, blocks: Sequence[Block]) -> Tensor:
    """Return MaxSim of each query with the documents of the blocks, one block after the other -> (num_queries, N).

    Args:
        queries: queries in float32, on the device of the vectors.
        vectors: rows of the layout (V, p), in float32 or float16.
        blocks: blocks of the layout.
    """
    transposed = queries.vectors.T.contiguous()  # (p, v)
    width = transposed.shape[1]
    member = _member(queries)
    found = queries.vectors.new_empty(len(queries), sum(block.counts[0] for block in blocks))
    if gpu.usable(vectors):
        parts = found.split([block.counts[0] for block in blocks], dim=1)
        for part, reached in zip(parts, gpu.largest(queries.vectors, vectors, blocks), strict=True):
            torch.mm(member, reached.T, out=part)
        return found
    most = max((block.counts[0] for block in blocks), default=0)
    limit = CPU_SIMILARITIES if vectors.device.type == "cpu" else GPU_SIMILARITIES
    rows = max(most, min(limit // width, max((sum(block.counts) for block in blocks), default=0)))
    space = queries.vectors.new_empty(rows, vectors.shape[1])
    similarities = queries.vectors.new_empty(rows, width)
    highest = queries.vectors.new_empty(most, width)
    best = queries.vectors.new_empty(most, width)
    done = 0
    for block in blocks:
        for start, runs in products(block, rows):
            total = sum(count * run for count, run in runs)
            part = vectors[start : start + total]
            part = part if part.dtype == torch.float32 else space[:total].copy_(part)
            torch.mm(part, transposed, out=similarities[:total])  # (rows, v)
            row = 0
            for count, run in runs:
                slab = similarities[row : row + count * run].view(run, count, width)
                if start + row == block.starts[0]:  # every document has a vector here
                    torch.amax(slab, 0, out=best[:count])
                else:
                    reached = slab[0] if run == 1 else torch.amax(slab, 0, out=highest[:count])
                    torch.maximum(best[:count], reached, out=best[:count])
                row += count * run
        count = block.counts[0]
        torch.mm(member, best[:count].T, out=found[:, done : done + count])
        done += count
    return found


def largest(row: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the ``count`` largest numbers of ``row`` (N,), ascending.

    A part of the row tells which numbers are too small. The others are selected from what is left.

    >>> largest(np.array([0.5, 2.0, 1.0, 3.0]), 2).tolist()
    [1, 3]
    """
    places = np.arange(len(row))
    part = row[::SAMPLED]
    wanted = 2 * count // SAMPLED + 16
    if wanted < len(part):
        above = np.flatnonzero(row >= np.partition(part, -wanted)[-wanted])
        places = above if len(above) >= count else places
    if len(places) <= count:
        return places
    return np.sort(places[np.argpartition(row[places], -count)[-count:]])


def best(scores: Tensor, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return, for each row of ``scores`` (num_queries, N), places and scores of the k best and all ties."""
    if scores.device.type == "cpu" or k >= scores.shape[1]:
        values = scores.cpu().numpy()
        for row in values:  # numpy selects several times as fast as torch
            bound = np.partition(row, -k)[-k] if k < len(row) else row.min()
            places = np.flatnonzero(row >= bound)
            yield places, row[places]
        return
    rows, columns = (scores >= torch.topk(scores, k, dim=1).values[:, -1:]).nonzero(as_tuple=True)
    ends = torch.bincount(rows, minlength=len(scores)).cumsum(0).cpu().numpy()[:-1]
    yield from zip(
        np.split(columns.cpu().numpy(), ends), np.split(scores[rows, columns].cpu().numpy(), ends), strict=True
    )


def _member(queries: VectorSets) -> Tensor:
    """1 where a vector belongs to a query, else 0 -> (num_queries, v)."""
    owner = torch.arange(len(queries), device=queries.ptr.device).repeat_interleave(queries.sizes)
    return functional.one_hot(owner, len(queries)).float().T
