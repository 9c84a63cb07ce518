"""Queries against documents: every similarity once, in blocks of rows, and what the measures need of it.

Two queries, three documents; the right answers are document 0 and document 2:

>>> queries, documents = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[4.0, 3.0], [0.0, 1.0], [-3.0, 4.0]])
>>> found = survey(cosine(queries, documents), correct=[[0], [2]], k=2)
>>> found.top  # each query's k largest similarities, largest first (Q, k)
array([[0.8, 0. ],
       [1. , 0.8]], dtype=float32)
>>> found.correct  # similarity of the right answer (Q,)
array([0.8, 0.8], dtype=float32)
>>> found.rank  # where the right answer stands, from 1 (Q,)
array([1, 2])

Similarities are cosines: vectors of any length are brought to unit length first, and a zero vector has none, which is
an error. For sets of vectors a similarity is MaxSim divided by the number of query vectors, so that it lies in [-1, 1]
as well (thesis Eq. 3.7); :func:`of_kind` leaves the vectors of one kind of virtual node in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError
from mathamr.maxsim import VectorSets, scores

Floats = NDArray[np.floating[Any]]
BLOCK = 8_000_000  # similarities held at once: 32 MB


class Similarities(Protocol):
    """Similarities of Q queries to N documents, made a block of rows at a time."""

    num_queries: int
    num_documents: int

    def rows(self, start: int, stop: int) -> Floats:
        """Similarities of the queries ``start`` to ``stop`` with all documents (stop - start, N), float32."""


@dataclass(frozen=True)
class Hits:
    """Where right documents stand among the results. Shapes: Q queries, K results a query.

    ``hits`` (Q, K) whether a result is right; ``rank`` (Q,) the place of the best right document, from 1;
    ``num_correct`` (Q,) how many right documents a query has.
    """

    hits: NDArray[np.bool_]
    rank: NDArray[Any]
    num_correct: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True)
class Survey(Hits):
    """What the measures need of all similarities.

    ``top`` (Q, K) similarities, largest first, and ``results`` (Q, K) the documents they belong to; ``correct`` (Q,)
    the similarity of the right answer (of several the most similar one); ``random`` (Q,) the similarity to a document
    drawn at random, right ones among them. A wrong document stands before a right one that is exactly as similar, so
    that a model to which all are alike finds nothing.
    """

    top: Floats
    results: NDArray[np.int64]
    correct: Floats
    random: Floats


def unit_vectors(vectors: ArrayLike, name: str = "vectors") -> Floats:
    """The rows of ``vectors`` (n, d) at unit length, as float32.

    Raises:
        AnalysisError: not a matrix, no row, a NaN or infinite value, or a row of zeros, which has no direction.
    """
    array = checked(vectors, name)
    lengths = np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64))  # large float32 values would overflow
    if (zero := np.flatnonzero(lengths == 0)).size:
        raise AnalysisError(f"row {zero[0]} of the {name} is zero and has no direction; leave out such rows")
    unit: Floats = (array / lengths[:, None].astype(array.dtype)).astype(np.float32)
    return unit


def checked(vectors: ArrayLike, name: str = "vectors") -> Floats:
    """``vectors`` as a matrix (n, d) of finite numbers with at least one row and one column.

    Raises:
        AnalysisError: naming the first row that is not finite, or the shape.
    """
    array = np.asarray(vectors)
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    elif array.dtype.itemsize < 4:
        array = array.astype(np.float32)  # half precision is for files, not for sums
    if array.ndim != 2 or 0 in array.shape:
        raise AnalysisError(f"the {name} must be of shape (n, d) with n, d > 0, not {array.shape}")
    if (bad := np.flatnonzero(~np.isfinite(array).all(axis=1))).size:
        raise AnalysisError(f"row {bad[0]} of the {name} has a NaN or infinite value ({bad.size} rows have)")
    return array


class _Cosine:
    def __init__(self, queries: Floats, documents: Floats) -> None:
        self._queries, self._documents = queries, documents
        self.num_queries, self.num_documents = len(queries), len(documents)

    def rows(self, start: int, stop: int) -> Floats:
        block: Floats = self._queries[start:stop] @ self._documents.T
        return block


class _MaxSim:
    def __init__(self, queries: VectorSets, documents: VectorSets) -> None:
        self._queries, self._documents = queries, documents
        self.num_queries, self.num_documents = len(queries), len(documents)

    def rows(self, start: int, stop: int) -> Floats:
        with torch.no_grad():
            some = self._queries.select(torch.arange(start, stop))
            block: Floats = scores(some, self._documents, normalize=True).numpy()
        return block


def cosine(queries: ArrayLike, documents: ArrayLike) -> Similarities:
    """Cosine similarity of single vectors.

    Args:
        queries: (Q, d), of any length.
        documents: (N, d).

    Raises:
        AnalysisError: as :func:`unit_vectors`, or where the dimensions differ.
    """
    a, b = unit_vectors(queries, "queries"), unit_vectors(documents, "documents")
    if a.shape[1] != b.shape[1]:
        raise AnalysisError(f"queries have {a.shape[1]} dimensions and documents {b.shape[1]}; are they of one model?")
    return _Cosine(a, b)


def maxsim(queries: VectorSets, documents: VectorSets) -> Similarities:
    """MaxSim of sets of vectors over the number of query vectors (thesis Eq. 3.7).

    Raises:
        AnalysisError: as :func:`unit_vectors`; rows are counted over all sets.
    """
    sets = [
        VectorSets(torch.from_numpy(unit_vectors(one.vectors.numpy(), name)), one.ptr)
        for one, name in ((queries, "queries"), (documents, "documents"))
    ]
    return _MaxSim(*sets)


def of_kind(sets: VectorSets, kinds: NDArray[np.integer], kind: int) -> tuple[VectorSets, NDArray[np.int64]]:
    """The vectors of one kind, and which of the sets have any.

    A set of a formula (0) and a document (2), and one of a document:

    >>> sets = VectorSets.of([torch.eye(2), torch.ones(1, 2)])
    >>> some, which = of_kind(sets, np.array([0, 2, 2]), 0)
    >>> some.vectors, which
    (tensor([[1., 0.]]), array([0]))

    Args:
        kinds: (V,) of all vectors, as :data:`mathamr.analysis.collapse.KINDS` numbers them.

    Raises:
        AnalysisError: not one kind a vector, or no vector of this kind.
    """
    if len(kinds) != len(sets.vectors):
        raise AnalysisError(f"{len(kinds)} kinds for {len(sets.vectors)} vectors")
    among = np.asarray(kinds) == kind
    if not among.any():
        raise AnalysisError(f"no vector is of kind {kind}")
    counts = np.diff(np.concatenate([[0], np.cumsum(among)])[sets.ptr.numpy()])  # of each set
    which = np.flatnonzero(counts)
    ptr = torch.from_numpy(np.concatenate([[0], np.cumsum(counts[which])]))
    return VectorSets(sets.vectors[torch.from_numpy(np.flatnonzero(among))], ptr), which


def blocks(similarities: Similarities) -> Iterator[tuple[int, Floats]]:
    """All rows, block by block: the number of its first query, and the block."""
    step = max(1, BLOCK // similarities.num_documents)
    for start in range(0, similarities.num_queries, step):
        yield start, similarities.rows(start, min(start + step, similarities.num_queries))


def survey(similarities: Similarities, correct: Sequence[Sequence[int]], k: int, *, seed: int = 0) -> Survey:
    """Pass once over all similarities.

    Args:
        correct: for each query the numbers of its right documents, at least one.
        k: results a query; of a collection smaller than that all documents are results.
        seed: of the random documents.

    Raises:
        AnalysisError: ``k`` below 1, a query without a right document, or a number that is no document's.
    """
    count, size = similarities.num_queries, similarities.num_documents
    _check(correct, count, size, k)
    k = min(k, size)
    drawn = np.random.default_rng(seed).integers(size, size=count)
    top, results = np.empty((count, k), np.float32), np.empty((count, k), np.int64)
    right, random = np.empty(count, np.float32), np.empty(count, np.float32)
    rank, hits = np.empty(count, np.int64), np.empty((count, k), np.bool_)
    for start, block in blocks(similarities):
        random[start : start + len(block)] = block[np.arange(len(block)), drawn[start : start + len(block)]]
        for row, line in enumerate(block, start):
            answers = np.unique(np.asarray(correct[row], dtype=np.int64))
            right[row] = line[answers].max()
            rank[row] = 1 + (line >= right[row]).sum() - (line[answers] >= right[row]).sum()
            behind = -line
            behind[answers] = np.nextafter(behind[answers], np.inf, dtype=behind.dtype)  # behind equally similar ones
            found = np.argpartition(behind, k - 1)[:k]
            results[row] = found[np.argsort(behind[found], kind="stable")]
            top[row], hits[row] = line[results[row]], np.isin(results[row], answers)
    counts = np.array([len(set(answers)) for answers in correct])
    return Survey(hits, rank, counts, top, results, right, random)


def _check(correct: Sequence[Sequence[int]], count: int, size: int, k: int) -> None:
    if k < 1:
        raise AnalysisError(f"k={k} must be at least 1")
    if len(correct) != count:
        raise AnalysisError(f"{len(correct)} lists of right documents for {count} queries")
    for query, answers in enumerate(correct):
        if not len(answers):
            raise AnalysisError(f"query {query} has no right document; leave out such queries")
        if not all(0 <= answer < size for answer in answers):
            raise AnalysisError(f"query {query}: right document {list(answers)} is not among the {size} documents")
