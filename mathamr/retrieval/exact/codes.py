"""Eight-bit codes of vectors: a first pass over all documents, with a bound on its error.

Vectors are first turned to their principal axes, so that their first numbers are the most important. Approximate search
reads only the first half of them, at least 16, which is stored apart from the rest. Then each number x is rounded to an
integer code c with x = scale * c, -127 <= c <= 127. Query vectors are turned and rounded in the same way, to 16 bits
and with a scale for each:

>>> from mathamr.retrieval.exact.layout import blocks
>>> slabs = Slabs.of(list(blocks(np.array([1, 1]), block=2048)))
>>> codes = Codes.of(torch.tensor([[1.0, 0.0], [0.6, 0.8]]), slabs)
>>> codes.first.view(2, 2).T.tolist(), round(codes.scale * 127, 6)            # (1, 0) and (0.6, 0.8), turned
([[-114, 57], [-114, -57]], 1.0)
>>> query = codes.query(torch.tensor([[0.8, 0.6]]))
>>> (query.codes @ codes.first.view(2, 2).int().numpy() * query.weights).round(2)             # 0.8 and 0.96
array([[0.8 , 0.96]])
>>> scores, errors = codes.scores(VectorSets.of([torch.tensor([[0.8, 0.6], [1.0, 0.0]])]))            # with two vectors
>>> scores.round(2), errors.round(2)
(array([[1.8 , 1.56]], dtype=float32), array([0.01]))

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

from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import kernel
from mathamr.retrieval.exact.kernel import LANES, Slabs
from mathamr.retrieval.exact.mapped import mapped, read_array

LARGEST = 127
LARGEST_PRODUCT = 32767
SAMPLE = 1 << 20  # vectors that principal axes are computed from, at most about twice as many
ROWS = 1 << 18  # vectors that are converted at a time: 32 MiB of 32 numbers
ROUNDING = 2.0**-19  # for each number of a vector of length 1: what turning and sums in float32 add to the error
LEAST_NUMBERS = 16  # of the first part, which is otherwise half
FILES = ("codes.npy", "codes-rest.npy")
LAYOUT = "tiles"  # name of the layout in headers; codes of another are made anew


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """Rounded query vectors.

    Shapes: ``codes`` (v, p) int16, or (v, r); ``weights`` (v,), of products of codes; ``errors`` (v,), bounds of their
    errors, if all p numbers are multiplied.
    """

    codes: np.ndarray
    weights: np.ndarray
    errors: np.ndarray


@dataclass(frozen=True, slots=True)
class Codes:
    """Rounded vectors. ``error`` is the longest difference of a vector and its code, ``length`` the longest code.

    Shapes: ``first`` (V * r,) and ``rest`` (V * (p - r),) int8, in the layout of
    :mod:`mathamr.retrieval.exact.kernel`; ``axes`` (p, p) float32.
    """

    first: Tensor
    rest: Tensor
    axes: Tensor
    slabs: Slabs
    scale: float
    error: float
    length: float

    @classmethod
    def of(cls, vectors: Tensor, slabs: Slabs, out: tuple[Tensor, Tensor] | None = None) -> Codes:
        """Round ``vectors`` (V, p), of any floating type, that lie in ``slabs``.

        ``out`` (V * r,) and (V * (p - r),) int8 receive the codes; without it they take new memory.
        """
        axes = principal_axes(vectors)
        sizes = _sizes(vectors)
        first, rest = out or (torch.empty(sizes[0], dtype=torch.int8), torch.empty(sizes[1], dtype=torch.int8))
        used = first_numbers(vectors.shape[1])
        longest = max((float(part.float().norm(dim=1).max()) for part in vectors.split(ROWS) if len(part)), default=0.0)
        scale = max(longest, 1e-12) / LARGEST
        error = length = 0.0
        for slab, (start, size) in enumerate(zip(slabs.starts.tolist(), slabs.counts.tolist(), strict=True)):
            rotated = vectors[start : start + size].float() @ axes
            codes = torch.round(rotated / scale).clamp_(-LARGEST, LARGEST)
            for part, numbers in ((first, codes[:, :used]), (rest, codes[:, used:])):
                for tile, some in zip(slabs.tiles(part, slab), numbers.split(LANES), strict=True):
                    tile.copy_(some.T)
            codes *= scale
            length = max(length, float(codes.norm(dim=1).max()))
            error = max(error, float(rotated.sub_(codes).norm(dim=1).max()))
        return cls(first, rest, axes, slabs, scale, error, length)

    @classmethod
    def written(cls, folder: Path, vectors: Tensor, slabs: Slabs) -> dict[str, object]:
        """Round ``vectors`` as :meth:`of` does, into files of ``folder``; return their header."""
        sizes = zip(FILES, _sizes(vectors), strict=True)
        maps = [mapped(folder / name, np.int8, (size,)) for name, size in sizes if size]
        tensors = [torch.from_numpy(part) for part in maps]
        codes = cls.of(vectors, slabs, (tensors[0], tensors[1] if len(tensors) > 1 else tensors[0][:0]))
        for part in maps:
            part.flush()
        np.save(folder / "axes.npy", codes.axes.numpy())
        return {"layout": LAYOUT, "scale": codes.scale, "error": codes.error, "length": codes.length}

    @classmethod
    def read(cls, folder: Path, header: Mapping[str, object] | None, vectors: Tensor, slabs: Slabs) -> Codes | None:
        """Map the files of :meth:`written`; None if they are missing or of an earlier layout.

        Raises :class:`graphs.errors.StoreError` for files that cannot be read, ValueError for those that do not fit.
        """
        if not header or header.get("layout") != LAYOUT:
            return None
        parts = []
        for name, size in zip(FILES, _sizes(vectors), strict=True):
            part = read_array(folder / name, "c") if size else np.empty(0, np.int8)
            if part.dtype != np.int8 or part.shape != (size,):
                raise ValueError(f"{name} does not fit the vectors")
            parts.append(torch.from_numpy(part))
        axes = read_array(folder / "axes.npy", "c")
        if axes.dtype != np.float32 or axes.shape != (vectors.shape[1], vectors.shape[1]):
            raise ValueError("axes.npy does not fit the vectors")
        scale, error, length = (float(str(header[name])) for name in ("scale", "error", "length"))
        return cls(parts[0], parts[1], torch.from_numpy(axes), slabs, scale, error, length)

    def query(self, vectors: Tensor, whole: bool = True) -> CodedQuery:
        """Round query vectors (v, p), turned: all their numbers, or only the first."""
        # In numpy: for products as small as these, torch would wake its threads, which then spin beside the scan.
        dim = len(self.axes) if whole else first_numbers(len(self.axes))
        rotated = vectors.numpy().astype(np.float64) @ self.axes.numpy()[:, :dim].astype(np.float64)
        # A rounded query vector is longer than the vector by at most half the diagonal of a unit cube.
        room = LARGEST_PRODUCT / max(self.length / self.scale, 1.0) - 0.5 * dim**0.5 - 1
        lengths = np.linalg.norm(rotated, axis=1)
        scales = np.maximum(lengths, 1e-30) / room
        codes = np.rint(rotated / scales[:, None])
        lost = np.linalg.norm(rotated - codes * scales[:, None], axis=1)
        errors = lost * self.length + lengths * (self.error + ROUNDING * dim * self.length)
        return CodedQuery(codes.astype(np.int16), (scales * self.scale).astype(np.float32), errors)

    def scores(self, queries: VectorSets, whole: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return MaxSim of queries with all documents (num_queries, N), and bounds of its error (num_queries,).

        Without ``whole``, only the first numbers of each code are compared, and there is no bound.
        """
        query = self.query(queries.vectors, whole)
        owners = np.repeat(np.arange(len(queries)), queries.sizes.numpy())
        parts = [self.first, self.rest] if query.codes.shape[1] > first_numbers(len(self.axes)) else [self.first]
        scores = kernel.scores(parts, self.slabs, query.codes, query.weights, owners)
        return scores, np.bincount(owners, weights=query.errors)


def first_numbers(dim: int) -> int:
    """Return how many numbers of a code of ``dim`` numbers approximate search reads.

    >>> first_numbers(8), first_numbers(32), first_numbers(128)
    (8, 16, 64)
    """
    return min(dim, max(LEAST_NUMBERS, dim // 2))


def _sizes(vectors: Tensor) -> tuple[int, int]:
    """Return the sizes of both parts of the codes."""
    count, dim = vectors.shape
    return count * first_numbers(dim), count * (dim - first_numbers(dim))


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
