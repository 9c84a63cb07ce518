"""Eight-bit codes of vectors: a first pass over all documents, with a bound on its error.

Vectors are first turned to their principal axes, so that their first numbers are the most important: approximate search
reads only these. Then each number x is rounded to an integer code c with x = scale * c, -127 <= c <= 127. Query vectors
are turned and rounded in the same way, to 16 bits and with a scale for each:

>>> slabs = Slabs.of(list(blocks(np.array([1, 1]), block=2048)), dim=2)
>>> codes = Codes.of(torch.tensor([[1.0, 0.0], [0.6, 0.8]]), slabs)
>>> codes.rows.view(2, 2).T.tolist(), round(codes.scale * 127, 6)            # (1, 0) and (0.6, 0.8), turned
([[-114, 57], [-114, -57]], 1.0)
>>> query = codes.query(torch.tensor([[0.8, 0.6]]))
>>> (query.codes.float() @ codes.rows.view(2, 2).float() * query.weights).round(decimals=2)    # 0.8 and 0.96
tensor([[0.8000, 0.9600]])

By the inequality of Cauchy and Schwarz, the error of a product is at most ``|q - q'| * length + |q| * error``, where q'
is the rounded query, ``length`` the longest rounded vector and ``error`` the longest rounding error of a vector. MaxSim
adds up maxima of products, and a maximum moves by no more than the errors of its products. So the sum of
:attr:`CodedQuery.errors` over the vectors of a query bounds the error of its MaxSim with every document. Exact search
uses this bound to leave out documents that cannot be among the best.

By the same inequality, a product of codes is at most the product of their lengths. Query vectors are scaled so that it
fits the 16 bits of :mod:`mathamr.retrieval.exact.kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mathamr.retrieval.exact.kernel import Slabs
from mathamr.retrieval.exact.layout import blocks

__all__ = ["CodedQuery", "Codes", "blocks", "principal_axes"]

LARGEST = 127
LARGEST_PRODUCT = 32767
SAMPLE = 1 << 20  # vectors that principal axes are computed from, at most about twice as many
ROWS = 1 << 18  # vectors that are converted at a time: 32 MiB of 32 numbers
ROUNDING = 2.0**-19  # for each number of a vector of length 1: what turning and sums in float32 add to the error
LAYOUT = "slabs"  # name of the layout in headers; codes of another are made anew


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """Rounded query vectors.

    Shapes: ``codes`` (v, r) int16; ``weights`` (v,), of products of codes; ``errors`` (v,), bounds of their errors, if
    r is the dimension.
    """

    codes: Tensor
    weights: Tensor
    errors: Tensor


@dataclass(frozen=True, slots=True)
class Codes:
    """Rounded vectors. ``error`` is the longest difference of a vector and its code, ``length`` the longest code.

    Shapes: ``rows`` (V * p,) int8, by block, position, number and document; ``axes`` (p, p) float32.
    """

    rows: Tensor
    axes: Tensor
    slabs: Slabs
    scale: float
    error: float
    length: float

    @classmethod
    def of(cls, vectors: Tensor, slabs: Slabs, out: Tensor | None = None) -> Codes:
        """Round ``vectors`` (V, p), of any floating type, that lie in ``slabs``.

        ``out`` (V * p,) int8 receives the codes; without it they take new memory.
        """
        count, dim = vectors.shape
        axes = principal_axes(vectors)
        rows = torch.empty(count * dim, dtype=torch.int8) if out is None else out
        longest = max((float(part.float().norm(dim=1).max()) for part in vectors.split(ROWS) if len(part)), default=0.0)
        scale = max(longest, 1e-12) / LARGEST
        error = length = 0.0
        for start, size in zip(slabs.starts.tolist(), slabs.counts.tolist(), strict=True):
            turned = vectors[start : start + size].float() @ axes
            codes = torch.round(turned / scale).clamp_(-LARGEST, LARGEST)
            rows[start * dim : (start + size) * dim].view(dim, size).copy_(codes.T)
            codes *= scale
            length = max(length, float(codes.norm(dim=1).max()))
            error = max(error, float(turned.sub_(codes).norm(dim=1).max()))
        return cls(rows, axes, slabs, scale, error, length)

    @classmethod
    def written(cls, folder: Path, vectors: Tensor, slabs: Slabs) -> dict[str, object]:
        """Round ``vectors`` as :meth:`of` does, into files of ``folder``; return their header."""
        rows = np.lib.format.open_memmap(folder / "codes.npy", mode="w+", dtype=np.int8, shape=(vectors.numel(),))
        codes = cls.of(vectors, slabs, torch.from_numpy(rows))
        rows.flush()
        np.save(folder / "axes.npy", codes.axes.numpy())
        return {"layout": LAYOUT, "scale": codes.scale, "error": codes.error, "length": codes.length}

    @classmethod
    def read(cls, folder: Path, header: Mapping[str, object] | None, slabs: Slabs) -> Codes | None:
        """Map the files of :meth:`written`; None if there are none, or of an earlier layout.

        Raises OSError or ValueError for files that do not fit.
        """
        if not header or header.get("layout") != LAYOUT:
            return None
        rows = np.load(folder / "codes.npy", mmap_mode="c", allow_pickle=False)
        axes = np.load(folder / "axes.npy", allow_pickle=False)
        dim = slabs.dim
        if rows.dtype != np.int8 or rows.shape != (slabs.counts.sum() * dim,):
            raise ValueError("codes.npy does not fit the vectors")
        if axes.dtype != np.float32 or axes.shape != (dim, dim):
            raise ValueError("axes.npy does not fit the vectors")
        scale, error, length = (float(str(header[name])) for name in ("scale", "error", "length"))
        return cls(torch.from_numpy(rows), torch.from_numpy(axes), slabs, scale, error, length)

    def query(self, vectors: Tensor, used: int | None = None) -> CodedQuery:
        """Round the first ``used`` numbers of query vectors (v, p), turned; by default all."""
        turned = (vectors.double() @ self.axes.double())[:, :used]
        used = turned.shape[1]
        # A rounded query vector is longer than the vector by at most half the diagonal of a unit cube.
        room = LARGEST_PRODUCT / max(self.length / self.scale, 1.0) - 0.5 * used**0.5 - 1
        lengths = turned.norm(dim=1)
        scales = lengths.clamp_min(1e-30) / room
        codes = torch.round(turned / scales.unsqueeze(1))
        lost = (turned - codes * scales.unsqueeze(1)).norm(dim=1)
        errors = lost * self.length + lengths * (self.error + ROUNDING * used * self.length)
        return CodedQuery(codes.to(torch.int16), (scales * self.scale).float(), errors.float())


def principal_axes(vectors: Tensor) -> Tensor:
    """Return the principal axes of ``vectors`` (V, p), without subtracting their mean -> (p, p) float32.

    For any r, products of the first r coordinates keep as much of products as r orthogonal axes can on average. Of many
    vectors, every n-th is used.
    """
    dim = int(vectors.shape[1])
    moment = torch.zeros(dim, dim, dtype=torch.float64)
    for part in vectors[:: max(1, len(vectors) // SAMPLE)].split(ROWS):
        rows = part.float()
        moment += (rows.T @ rows).double()
    return torch.linalg.eigh(moment).eigenvectors.flip(1).float().contiguous()  # largest first
