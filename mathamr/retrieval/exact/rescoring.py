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

from mathamr.compiled import compiled
from mathamr.retrieval.exact import kernel

ROWS = 64  # vectors that are multiplied at a time
UNROLLED = 8  # numbers that one expression multiplies and adds up
ROUNDING = 2.0**-22  # error of a product in float32, for each number of unit vectors, with a reserve
SIGNATURE = "void({0}[:, ::1], boolean, int64[::1], int64[::1], {1}[:, ::1], float32[::1], int64, int64)"
BITS = {torch.float16: "uint16", torch.float32: "int32"}


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
    pays = vectors.device.type == "cpu" and len(vectors) >= kernel.COMPILED_VECTORS
    function = compiled(_kernel, SIGNATURE.format(BITS[vectors.dtype], str(dtype)[6:])) if pays else None
    if function is None:
        return scores_reference(vectors, rows, ptr, query, dtype)
    count, dim = query.shape
    padded = np.zeros((count, -(-dim // UNROLLED) * UNROLLED), np.float64 if dtype == torch.float64 else np.float32)
    padded[:, :dim] = query.numpy()
    out = np.empty(len(ptr) - 1, np.float32)
    half = vectors.dtype == torch.float16
    arrays = (vectors.numpy().view(np.uint16 if half else np.int32), half, rows, ptr, padded, out)
    kernel.shared(lambda first, last: function(*arrays, first, last), ptr[1:])
    return out


def scores_reference(
    vectors: Tensor, rows: np.ndarray, ptr: np.ndarray, query: Tensor, dtype: torch.dtype = torch.float64
) -> np.ndarray:
    """Compute :func:`scores` with torch, on any device."""
    candidates = vectors.index_select(0, torch.from_numpy(rows).to(vectors.device)).to(dtype)
    similarities = candidates @ query.T.to(dtype)  # (rows, v)
    lengths = torch.from_numpy(np.diff(ptr)).to(vectors.device)
    return np.asarray(torch.segment_reduce(similarities, "max", lengths=lengths, axis=0).sum(1).float().cpu())


def margin(query: Tensor) -> float:
    """Return a bound of the difference of two scores in float32 and in float64, for unit vectors."""
    return query.shape[1] * ROUNDING * float(np.linalg.norm(query.cpu().numpy(), axis=1).sum())


def best(vectors: Tensor, rows: np.ndarray, ptr: np.ndarray, query: Tensor, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and :func:`scores` of all sets that can be among the best ``k``."""
    numbers = np.arange(len(ptr) - 1)
    if len(numbers) > k:
        rough = scores(vectors, rows, ptr, query, torch.float32)
        possible = rough >= np.partition(rough, -k)[-k] - margin(query)
        numbers, sizes = np.flatnonzero(possible), np.diff(ptr)
        rows, ptr = rows[np.repeat(possible, sizes)], np.concatenate([[0], np.cumsum(sizes[possible])])
    return numbers, scores(vectors, rows, ptr, query)


def _kernel(vectors, half, rows, ptr, query, out, begin, end):  # noqa: C901
    """Compute the scores of sets ``begin`` to ``end`` in the precision of ``query``.

    ``vectors`` are the bits of float16 or float32. A float16 has its exponent and fraction at the place of a float32
    after a shift by 13 bits; its exponent is then 112 too small. As in
    :mod:`mathamr.retrieval.exact.kernel`, many vectors are multiplied by one number at a time.
    """
    dim = vectors.shape[1]
    count, padded = query.shape
    bits = np.zeros(padded, np.int32)
    numbers = bits.view(np.float32)
    columns = np.zeros((padded, ROWS), np.float32)
    sums = np.empty(ROWS, query.dtype)
    maxima = np.full((end - begin, count), -np.inf, query.dtype)
    owner = begin  # set of the first row
    for first in range(ptr[begin], ptr[end], ROWS):
        some = min(ROWS, ptr[end] - first)
        for place in range(some):
            row = vectors[rows[first + place]]
            if half:
                for d in range(dim):
                    x = np.int32(row[d])
                    bits[d] = np.int32(((x & 0x8000) << 16) | ((x & 0x7FFF) << 13))
                for d in range(dim):
                    numbers[d] *= np.float32(2.0**112)
            else:
                for d in range(dim):
                    bits[d] = row[d]
            for d in range(dim):
                columns[d, place] = numbers[d]
        while ptr[owner + 1] <= first:
            owner += 1
        for v in range(count):
            for d in range(0, padded, 8):
                c0, c1, c2, c3 = columns[d], columns[d + 1], columns[d + 2], columns[d + 3]
                c4, c5, c6, c7 = columns[d + 4], columns[d + 5], columns[d + 6], columns[d + 7]
                q0, q1, q2, q3 = query[v, d], query[v, d + 1], query[v, d + 2], query[v, d + 3]
                q4, q5, q6, q7 = query[v, d + 4], query[v, d + 5], query[v, d + 6], query[v, d + 7]
                for i in range(some):
                    total = q0 * c0[i] + q1 * c1[i] + q2 * c2[i] + q3 * c3[i]
                    total += q4 * c4[i] + q5 * c5[i] + q6 * c6[i] + q7 * c7[i]
                    sums[i] = total if d == 0 else sums[i] + total
            number, place = owner, 0
            while place < some:
                until = min(some, ptr[number + 1] - first)
                highest = maxima[number - begin, v]
                for i in range(place, until):
                    highest = max(highest, sums[i])
                maxima[number - begin, v] = highest
                number, place = number + 1, until
    for number in range(begin, end):
        score = 0.0
        for v in range(count):
            score += maxima[number - begin, v]
        out[number] = score
