"""Similarities of queries and documents: each computed once, in blocks of rows, and summarised for the measures.

Two queries, three documents; the right answers are document 0 and document 2:

>>> queries, documents = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[4.0, 3.0], [0.0, 1.0], [-3.0, 4.0]])
>>> found = survey(cosine(queries, documents), correct=[[0], [2]], k=2)
>>> found.top  # each query's k largest similarities, largest first (Q, k)
array([[0.8, 0. ],
       [1. , 0.8]], dtype=float32)
>>> found.correct  # similarity of the right answer (Q,)
array([0.8, 0.8], dtype=float32)
>>> found.rank  # rank of the right answer, from 1 (Q,)
array([1, 2])

Similarities are cosines: vectors of any length are brought to unit length first. A zero vector is an error. For sets
of vectors the similarity is MaxSim divided by the number of query vectors, so it also lies in [-1, 1] (thesis
Eq. 3.7). :func:`of_kind` keeps the vectors of one kind of virtual node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError

if TYPE_CHECKING:  # torch takes a second, and reports need single vectors only
    from mathamr.maxsim import VectorSets

Floats = NDArray[np.floating[Any]]
BLOCK = 8_000_000  # similarities held at once: 32 MB


@dataclass(frozen=True)
class Similarities:
    """Similarities of Q queries to N documents, computed a block of rows at a time.

    ``rows(start, stop)`` are those of some queries with all documents (stop - start, N), float32.
    """

    num_queries: int
    num_documents: int
    rows: Callable[[int, int], Floats]


@dataclass(frozen=True)
class Hits:
    """Ranks of right documents among the results. Shapes: Q queries, K results for each query.

    ``hits`` (Q, K) marks right results; ``rank`` (Q,) is the rank of the best right document, from 1;
    ``num_correct`` (Q,) is the number of right documents of a query.
    """

    hits: NDArray[np.bool_]
    rank: NDArray[Any]
    num_correct: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True)
class Survey(Hits):
    """Summary of all similarities, as the measures need it.

    ``top`` (Q, K) holds similarities, largest first, and ``results`` (Q, K) their documents. ``correct`` (Q,) is the
    similarity of the right answer (of several, the most similar one); ``random`` (Q,) that of a document drawn at
    random, right ones included. Of equally similar documents the wrong one ranks first, so a model with equal
    similarities finds nothing.
    """

    top: Floats
    results: NDArray[np.int64]
    correct: Floats
    random: Floats


def unit_vectors(vectors: ArrayLike, name: str = "vectors") -> Floats:
    """Return the rows of ``vectors`` (n, d) at unit length, as float32.

    Raises:
        AnalysisError: not a matrix, no rows, a NaN or infinite value, or a row of zeros.
    """
    array = checked(vectors, name)
    lengths = np.sqrt(np.einsum("ij,ij->i", array, array, dtype=np.float64))  # large float32 values would overflow
    if (zero := np.flatnonzero(lengths == 0)).size:
        raise AnalysisError(f"row {zero[0]} of the {name} is zero and has no direction; remove such rows")
    return (array / lengths[:, None].astype(array.dtype)).astype(np.float32)


def checked(vectors: ArrayLike, name: str = "vectors") -> Floats:
    """Return ``vectors`` as a matrix (n, d) of finite numbers with at least one row and one column.

    Raises:
        AnalysisError: names the first row with an infinite value, or the shape.
    """
    array = np.asarray(vectors)
    if not np.issubdtype(array.dtype, np.floating):
        array = array.astype(np.float64)
    elif array.dtype.itemsize < 4:
        array = array.astype(np.float32)  # half precision is for files, not for sums
    if array.ndim != 2 or 0 in array.shape:
        raise AnalysisError(f"the {name} must be of shape (n, d) with n, d > 0, not {array.shape}")
    if (bad := np.flatnonzero(~np.isfinite(array).all(axis=1))).size:
        raise AnalysisError(f"row {bad[0]} of the {name} has a NaN or infinite value ({bad.size} such rows)")
    return array


def cosine(queries: ArrayLike, documents: ArrayLike) -> Similarities:
    """Return cosine similarities of single vectors of any length, queries (Q, d) and documents (N, d).

    Raises:
        AnalysisError: the errors of :func:`unit_vectors`, or different dimensions.
    """
    a, b = unit_vectors(queries, "queries"), unit_vectors(documents, "documents")
    if a.shape[1] != b.shape[1]:
        raise AnalysisError(
            f"queries have {a.shape[1]} dimensions and documents {b.shape[1]}; encode both with the same model"
        )
    return Similarities(len(a), len(b), lambda start, stop: a[start:stop] @ b.T)


def maxsim(queries: VectorSets, documents: VectorSets) -> Similarities:
    """Return MaxSim of sets of vectors, divided by the number of query vectors (thesis Eq. 3.7).

    Raises:
        AnalysisError: the errors of :func:`unit_vectors`; rows are counted over all sets.
    """
    import torch

    from mathamr.maxsim import VectorSets, scores

    unit_queries, unit_documents = (
        VectorSets(torch.from_numpy(unit_vectors(one.vectors.numpy(), name)), one.ptr)
        for one, name in ((queries, "queries"), (documents, "documents"))
    )

    @torch.no_grad()
    def rows(start: int, stop: int) -> Floats:
        return scores(unit_queries.select(torch.arange(start, stop)), unit_documents, normalize=True).numpy()

    return Similarities(len(unit_queries), len(unit_documents), rows)


def of_kind(sets: VectorSets, kinds: NDArray[np.integer], kind: int) -> tuple[VectorSets, NDArray[np.int64]]:
    """Return the vectors of one kind, and the positions of the sets that have any.

    A set with a formula (0) and a document (2), and one with a document:

    >>> import torch
    >>> from mathamr.maxsim import VectorSets
    >>> sets = VectorSets.of([torch.eye(2), torch.ones(1, 2)])
    >>> some, which = of_kind(sets, np.array([0, 2, 2]), 0)
    >>> some.vectors, which
    (tensor([[1., 0.]]), array([0]))

    Args:
        kinds: kind of each vector (V,), numbered as in :data:`mathamr.analysis.collapse.KINDS`.

    Raises:
        AnalysisError: missing kinds, or no vector of this kind.
    """
    import torch

    from mathamr.maxsim import VectorSets

    if len(kinds) != len(sets.vectors):
        raise AnalysisError(f"{len(kinds)} kinds for {len(sets.vectors)} vectors; give each vector one kind")
    among = np.asarray(kinds) == kind
    if not among.any():
        raise AnalysisError(f"no vector is of kind {kind}")
    counts = np.diff(np.concatenate([[0], np.cumsum(among)])[sets.ptr.numpy()])  # vectors of this kind in each set
    which = np.flatnonzero(counts)
    ptr = torch.from_numpy(np.concatenate([[0], np.cumsum(counts[which])]))
    return VectorSets(sets.vectors[torch.from_numpy(np.flatnonzero(among))], ptr), which


def blocks(similarities: Similarities) -> Iterator[tuple[int, Floats]]:
    """Yield all rows, block by block: the number of the first query, and the block."""
    step = max(1, BLOCK // similarities.num_documents)
    for start in range(0, similarities.num_queries, step):
        yield start, similarities.rows(start, min(start + step, similarities.num_queries))


def survey(similarities: Similarities, correct: Sequence[Sequence[int]], k: int, *, seed: int = 0) -> Survey:
    """Summarise all similarities in one pass.

    Args:
        correct: numbers of the right documents of each query, at least one.
        k: number of results for each query; at most the number of documents.
        seed: seed of the random documents.

    Raises:
        AnalysisError: ``k`` below 1, a query without a right document, or an unknown document number.
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
            found = np.flatnonzero(line >= np.partition(line, size - k)[size - k])  # first k, and ties with the last
            order = np.lexsort((np.isin(found, answers), -line[found]))  # of equally similar ones the wrong first
            results[row] = found[order[:k]]
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
            raise AnalysisError(f"query {query} has no right document; remove such queries")
        if not all(0 <= answer < size for answer in answers):
            raise AnalysisError(f"query {query}: right document {list(answers)} is not among the {size} documents")
