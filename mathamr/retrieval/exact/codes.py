"""Eight-bit codes of vectors: a first pass over all documents, with a bound on its error.

Each number x of a vector is rounded to an integer code c with x = scale * c, -127 <= c <= 127. A query is rounded in
the same way, with a scale for each vector, and products of codes are exact integers:

>>> codes = Codes.of(torch.tensor([[1.0, 0.0], [0.6, 0.8]]))
>>> codes.rows.tolist(), round(codes.scale * 127, 6)
([[127, 0], [76, 102]], 1.0)
>>> query = codes.query(torch.tensor([[0.8, 0.6]]))
>>> (products_reference(query.codes, codes.rows) * query.scales).round(decimals=3)       # exactly 0.8 and 0.96
tensor([[0.8000, 0.9590]])

By the inequality of Cauchy and Schwarz, the error of a product is at most ``|q - q'| * length + |q| * error``, where q'
is the rounded query, ``length`` the longest rounded vector and ``error`` the longest rounding error of a vector. MaxSim
adds up maxima of products, and a maximum moves by no more than the errors of its products. So the sum of
:attr:`CodedQuery.errors` over the vectors of a query bounds the error of its MaxSim with every document. Exact search
uses this bound to leave out documents that cannot be among the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

LARGEST = 127
ROWS = 1 << 18  # vectors that are converted at a time: 32 MiB of 32 numbers
ROUNDING = 1e-5  # what sums in float32 add to the bound, for a query vector


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """Rounded query vectors.

    Shapes: ``codes`` (v, p) int8; ``scales`` (v, 1), of a product of codes; ``errors`` (v,), bounds of their errors.
    """

    codes: Tensor
    scales: Tensor
    errors: Tensor


@dataclass(frozen=True, slots=True)
class Codes:
    """Rounded vectors. ``error`` is the longest difference of a vector and its code, ``length`` the longest code.

    Shapes: ``rows`` (V, p) int8.
    """

    rows: Tensor
    scale: float
    error: float
    length: float

    @classmethod
    def of(cls, vectors: Tensor, axes: Tensor | None = None, out: Tensor | None = None) -> Codes:
        """Round ``vectors`` (V, p), of any floating type, or their coordinates on ``axes`` (p, r).

        ``out`` (V, r) int8 receives the codes; without it they take new memory.
        """
        shape = (len(vectors), vectors.shape[1] if axes is None else axes.shape[1])
        rows = torch.empty(shape, dtype=torch.int8) if out is None else out
        largest = max((float(_on(axes, part).abs().max()) for part in vectors.split(ROWS) if len(part)), default=0.0)
        scale = max(largest, 1e-12) / LARGEST
        error = length = 0.0
        for part, into in zip(vectors.split(ROWS), rows.split(ROWS), strict=True):
            part = _on(axes, part)
            into.copy_(torch.round(part / scale).clamp_(-LARGEST, LARGEST))
            rounded = into.float().mul_(scale)
            if len(part):
                length = max(length, float(rounded.norm(dim=1).max()))
                error = max(error, float((part - rounded).norm(dim=1).max()))
        return cls(rows, scale, error, length)

    @classmethod
    def written(cls, file: Path, vectors: Tensor, axes: Tensor | None = None) -> Codes:
        """Round ``vectors`` as :meth:`of` does, into a new memory-mapped file."""
        shape = (len(vectors), vectors.shape[1] if axes is None else axes.shape[1])
        rows = np.lib.format.open_memmap(file, mode="w+", dtype=np.int8, shape=shape)
        codes = cls.of(vectors, axes, torch.from_numpy(rows))
        rows.flush()
        return codes

    @classmethod
    def read(cls, file: Path, header: Mapping[str, float]) -> Codes:
        """Map the file of :meth:`written`; ``header`` is :meth:`header`. OSError or ValueError for another file."""
        rows = np.load(file, mmap_mode="c", allow_pickle=False)
        if rows.dtype != np.int8 or rows.ndim != 2:
            raise ValueError(f"{file.name} holds no codes")
        return cls(torch.from_numpy(rows), **header)

    def header(self) -> dict[str, float]:
        """Return all that is not in the file."""
        return {"scale": self.scale, "error": self.error, "length": self.length}

    def query(self, vectors: Tensor) -> CodedQuery:
        """Round query vectors (v, p) float32."""
        scales = vectors.abs().amax(1, keepdim=True).clamp_min_(1e-12) / LARGEST  # (v, 1)
        codes = torch.round(vectors / scales)
        lost = (vectors - codes * scales).norm(dim=1)
        errors = lost * self.length + vectors.norm(dim=1) * self.error + ROUNDING
        return CodedQuery(codes.to(torch.int8), scales * self.scale, errors)


def _on(axes: Tensor | None, vectors: Tensor) -> Tensor:
    """Coordinates (n, r) of ``vectors`` (n, p) on ``axes``, in float32."""
    return vectors.float() if axes is None else vectors.float() @ axes


def products(query: Tensor, rows: Tensor, out: Tensor) -> Tensor:
    """Multiply codes (v, p) and (n, p) int8 into ``out`` (v, n) int32.

    ``torch._int_mm`` uses the 8-bit instructions of the processor; torch has no public name for it. Without them
    (:func:`has_products`) codes are multiplied as floating-point numbers, which hold the integers exactly.
    """
    if has_products():
        return torch._int_mm(query, rows.T, out=out)
    exact = torch.float32 if query.shape[1] * LARGEST**2 < 1 << 24 else torch.float64
    return out.copy_(query.to(exact) @ rows.to(exact).T)


@cache
def has_products() -> bool:
    """Return whether this processor has instructions for products of codes, and they are exact.

    On other processors ``torch._int_mm`` is a plain loop, slower than products of floating-point numbers. Under
    ``ONEDNN_MAX_CPU_ISA=AVX2`` it is wrong: sums of 16 bits overflow without an error.
    """
    if not torch.cpu._is_vnni_supported():
        return False
    codes = torch.randint(-LARGEST, LARGEST + 1, (64, 64), generator=torch.Generator().manual_seed(0)).to(torch.int8)
    codes[0], codes[1] = LARGEST, -LARGEST
    return torch.equal(torch._int_mm(codes, codes.T), products_reference(codes, codes))


def products_reference(query: Tensor, rows: Tensor) -> Tensor:
    """Compute :func:`products` in 32-bit integers, as a reference."""
    return query.int() @ rows.int().T
