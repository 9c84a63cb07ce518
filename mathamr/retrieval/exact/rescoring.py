"""MaxSim of a query with some sets of vectors, whose rows are scattered over an array.

>>> vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], dtype=torch.float16)
>>> rows, ptr = np.array([2, 1, 0]), np.array([0, 2, 3])               # sets of rows 2 and 1, and of row 0
>>> query = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
>>> scores(vectors, rows, ptr, query)
array([1.6000977, 1.       ], dtype=float32)

Scores are computed in float64, so that equal sets have equal scores in float32, wherever they are in a product. Scores
computed in float32 are cheaper, and differ by at most :func:`margin`. Both are used together to find the best sets:

>>> best(vectors, rows, ptr, query, k=1)
(array([0]), array([1.6000977], dtype=float32))
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from mathamr.retrieval.exact.kernel import compiled, shared

ROWS = 64  # that are read before they are multiplied, so that one read from memory need not wait for another
LANES = 16  # numbers in a register of 512 bits
ROUNDING = 2.0**-22  # error of a product in float32, for each number of unit vectors, with a reserve
SINGLE = "void(uint16[:, ::1], boolean, int64[::1], int64[::1], float32[:, ::1], float32[::1], int64, int64)"
DOUBLE = SINGLE.replace("float32[:, ::1]", "float64[:, ::1]")


def scores(
    vectors: Tensor, rows: np.ndarray, ptr: np.ndarray, query: Tensor, dtype: torch.dtype = torch.float64
) -> np.ndarray:
    """Return MaxSim of ``query`` (v, p) with n sets -> (n,) float32.

    Args:
        vectors: all vectors (V, p), float32 or float16.
        rows: rows of the vectors of all sets.
        ptr: set i has ``rows[ptr[i]:ptr[i + 1]]``, (n + 1,).
        query: query vectors in float32.
        dtype: precision of the arithmetic.
    """
    on_cpu = vectors.device.type == "cpu"
    function = compiled(_kernel, DOUBLE if dtype == torch.float64 else SINGLE) if on_cpu else None
    if function is None:
        return scores_reference(vectors, rows, ptr, query, dtype)
    count, dim = query.shape
    turned = torch.zeros(-(-dim // 4) * 4, -(-count // LANES) * LANES, dtype=dtype)
    turned[:dim, :count] = query.T
    out = np.empty(len(ptr) - 1, np.float32)
    arrays = (vectors.numpy().view(np.uint16), vectors.dtype == torch.float16, rows, ptr, turned.numpy(), out)
    shared(lambda first, last: function(*arrays, first, last), ptr[1:])
    return out


def scores_reference(
    vectors: Tensor, rows: np.ndarray, ptr: np.ndarray, query: Tensor, dtype: torch.dtype = torch.float64
) -> np.ndarray:
    """Compute :func:`scores` with torch, on any device."""
    chosen = vectors.index_select(0, torch.from_numpy(rows).to(vectors.device)).to(dtype)
    similarities = chosen @ query.T.to(dtype)  # (rows, v)
    lengths = torch.from_numpy(np.diff(ptr)).to(vectors.device)
    return np.asarray(torch.segment_reduce(similarities, "max", lengths=lengths, axis=0).sum(1).float().cpu())


def margin(query: Tensor) -> float:
    """Return a bound of the difference of two scores in float32 and in float64, for unit vectors."""
    return query.shape[1] * ROUNDING * float(query.norm(dim=1).sum())


def best(vectors: Tensor, rows: np.ndarray, ptr: np.ndarray, query: Tensor, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and :func:`scores` of all sets that can be among the best ``k``."""
    numbers = np.arange(len(ptr) - 1)
    if len(numbers) > k:
        rough = scores(vectors, rows, ptr, query, torch.float32)
        numbers = np.flatnonzero(rough >= np.partition(rough, -k)[-k] - margin(query))
        sizes = np.diff(ptr)
        rows = rows[np.repeat(np.isin(np.arange(len(sizes)), numbers, assume_unique=True), sizes)]
        ptr = np.concatenate([[0], np.cumsum(sizes[numbers])])
    return numbers, scores(vectors, rows, ptr, query)


def _kernel(vectors, half, rows, ptr, query, out, begin, end):  # type: ignore
    """Compute the scores of sets ``begin`` to ``end`` in the precision of ``query``.

    ``vectors`` are the bits of float16 (V, p), or pairs of 16 bits of float32 (V, 2 p). A float16 has its exponent and
    fraction at the place of a float32 after a shift by 13 bits; its exponent is then 112 too small.
    """
    dim = vectors.shape[1] if half else vectors.shape[1] // 2
    padded, width = query.shape
    bits = np.zeros((ROWS, padded), np.int32)
    numbers = bits.view(np.float32)
    sums, maxima = np.empty(width, query.dtype), np.empty(width, query.dtype)
    for number in range(begin, end):
        maxima[:] = -np.inf
        for first in range(ptr[number], ptr[number + 1], ROWS):
            count = min(ROWS, ptr[number + 1] - first)
            for place in range(count):
                row, into, scaled = vectors[rows[first + place]], bits[place], numbers[place]
                if half:
                    for d in range(dim):
                        x = np.int32(row[d])
                        into[d] = np.int32(((x & 0x8000) << 16) | ((x & 0x7FFF) << 13))
                    for d in range(dim):
                        scaled[d] *= np.float32(2.0**112)
                else:
                    for d in range(dim):
                        into[d] = np.int32(row[2 * d]) | (np.int32(row[2 * d + 1]) << 16)
            for place in range(count):
                sums[:] = 0
                for d in range(0, padded, 4):
                    x0, x1 = numbers[place, d], numbers[place, d + 1]
                    x2, x3 = numbers[place, d + 2], numbers[place, d + 3]
                    q0, q1, q2, q3 = query[d], query[d + 1], query[d + 2], query[d + 3]
                    for i in range(width):
                        sums[i] += x0 * q0[i] + x1 * q1[i] + x2 * q2[i] + x3 * q3[i]
                for i in range(width):
                    maxima[i] = max(maxima[i], sums[i])
        total = 0.0
        for i in range(width):
            total += maxima[i]
        out[number] = total
