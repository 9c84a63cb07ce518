"""Largest similarities on a GPU, by tensor cores: products of float16 vectors with queries in two halves.

Tensor cores multiply float16 many times as fast as a GPU multiplies float32. A query in float32 is the sum of two
numbers in float16, up to an error below 2^-22 for unit vectors:

>>> query = torch.tensor([[0.6, 0.8]])
>>> high, low = halves(query)
>>> high.dtype, float((high.double() + low.double() - query).abs().max()) < 2**-22
(torch.float16, True)

Products of float16 are exact in float32, in which they are added up, so the result is as accurate as one of float32.
:func:`mathamr.retrieval.exact.scan.scores` is the reference: without this module it gives the same scores.

Each program of the kernel has some documents and query vectors. It takes the vectors of these documents position by
position (:mod:`mathamr.retrieval.exact.layout`), and keeps the largest similarities in registers: to write all of them
to memory, and to read them again, would take longer than the products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import torch
from torch import Tensor

from mathamr.retrieval.exact.layout import Block

DOCUMENTS = 64  # of a program
QUERY_VECTORS = 64  # of a program, at most
SHORTEST = 16  # numbers that a tensor core multiplies at least


def halves(queries: Tensor) -> tuple[Tensor, Tensor]:
    """Return two float16 tensors (v, p) whose sum is ``queries`` (v, p)."""
    high = queries.half()
    return high, (queries - high.float()).half()


def usable(vectors: Tensor) -> bool:
    """Return whether :func:`largest` takes these vectors: float16, on a GPU for which Triton compiles the kernel."""
    return vectors.dtype == torch.float16 and vectors.is_cuda and _works(vectors.device, vectors.shape[1])


@cache
def _works(device: torch.device, dim: int) -> bool:
    """Try the kernel: it needs a compiler, and a GPU with tensor cores and enough memory beside them."""
    if _kernel() is None:
        return False
    one = torch.zeros(1, dim, device=device)
    with suppress(Exception):  # of Triton, of a C compiler, of the driver
        list(largest(one.expand(QUERY_VECTORS, dim), one.half(), [Block(0, starts=[0], counts=[1])]))
        return True
    return False


def largest(queries: Tensor, vectors: Tensor, blocks: Sequence[Block]) -> Iterator[Tensor]:
    """Yield, for each block, the largest similarity of each query vector with each document -> (n, v) float32.

    Args:
        queries: query vectors (v, p) float32, on the device of the vectors.
        vectors: rows of the layout (V, p) float16.
        blocks: blocks of the layout.
    """
    kernel: Any = _kernel()
    width, dim = queries.shape
    high, low = (half.contiguous() for half in halves(queries))
    rows = [[start, count] for block in blocks for start, count in zip(block.starts, block.counts, strict=True)]
    positions = torch.tensor(rows, device=vectors.device).split([len(block.starts) for block in blocks])
    at_once = min(QUERY_VECTORS, max(SHORTEST, _power(width)))
    for block, of_block in zip(blocks, positions, strict=True):
        out = queries.new_empty(block.counts[0], width)
        grid = (-(-len(out) // DOCUMENTS), -(-width // at_once))
        sizes = (len(out), width, len(of_block))
        kernel[grid](vectors, high, low, of_block, out, *sizes, dim, max(SHORTEST, _power(dim)), DOCUMENTS, at_once)
        yield out


def _power(number: int) -> int:
    """Return the next power of two."""
    return 1 << (number - 1).bit_length()


@cache
def _kernel() -> Any:
    """Return the kernel, which is compiled when it is first called, or None without Triton."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit
    def kernel(
        vectors, high, low, rows, out, documents, width, positions,
        dim: tl.constexpr, padded: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
    ):  # fmt: skip
        first = tl.program_id(0) * tall
        document = first + tl.arange(0, tall)
        query = tl.program_id(1) * wide + tl.arange(0, wide)
        number = tl.arange(0, padded)
        inside = (query < width)[None, :] & (number < dim)[:, None]
        high_part = tl.load(high + query[None, :] * dim + number[:, None], mask=inside, other=0.0)  # (padded, wide)
        low_part = tl.load(low + query[None, :] * dim + number[:, None], mask=inside, other=0.0)
        best = tl.full((tall, wide), float("-inf"), tl.float32)
        for position in range(positions):
            start = tl.load(rows + 2 * position)
            count = tl.load(rows + 2 * position + 1)
            if count > first:
                has = (document < count)[:, None]
                part = vectors + (start + document)[:, None] * dim + number[None, :]
                part = tl.load(part, mask=has & (number < dim)[None, :], other=0.0)  # (tall, padded)
                similarity = tl.dot(part, high_part, tl.dot(part, low_part))
                best = tl.where(has, tl.maximum(best, similarity), best)
        in_reach = (document < documents)[:, None] & (query < width)[None, :]
        tl.store(out + document[:, None].to(tl.int64) * width + query[None, :], best, mask=in_reach)

    return kernel
