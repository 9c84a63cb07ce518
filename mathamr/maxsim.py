"""MaxSim between sets of vectors: the one definition that training and retrieval share.

A query of two vectors is compared with two documents, of one and of two vectors. Each query vector takes its best match
in a document, and these similarities are added up (thesis Eq. 3.4):

>>> import torch
>>> queries = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> scores(queries, documents)
tensor([[1.0000, 1.8000]])
>>> scores(queries, documents, normalize=True)  # divided by the number of query vectors, Eq. 3.7
tensor([[0.5000, 0.9000]])

Sets differ in size, and for short vectors padding costs more than arithmetic. Documents are therefore grouped into
chunks of similar size. The similarities of a chunk are computed, reduced and dropped; the backward pass computes them
again. Memory stays bounded for any number of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import GraphError

# Largest numbers of document slots and query vectors in a chunk: 2 Mi similarities, 8 MiB, on a CPU, where they should
# stay in the cache; 64 Mi, 256 MiB, on a GPU.
CPU_CHUNK = (8_192, 256)
GPU_CHUNK = (65_536, 1_024)
SMALL_CHUNK = 4_096  # up to this size one padded chunk is faster than several chunks without padding


@dataclass(frozen=True, slots=True)
class VectorSets:
    """B sets of vectors, one after the other; the last vector of each set represents the whole document.

    Shapes: ``vectors`` (V, p), of unit length if an encoder made them; ``ptr`` (B + 1,) int64, set ``i`` is
    ``vectors[ptr[i]:ptr[i + 1]]``. No set is empty.
    """

    vectors: Tensor
    ptr: Tensor

    def __post_init__(self) -> None:
        if self.vectors.dim() != 2 or self.ptr.dim() != 1 or self.ptr.numel() == 0:
            raise GraphError(
                f"vector sets need vectors of shape (V, p) and ptr of shape (B + 1,), "
                f"not {tuple(self.vectors.shape)} and {tuple(self.ptr.shape)}"
            )

    def __repr__(self) -> str:
        """Return the sizes.

        >>> VectorSets.of([torch.eye(3), torch.ones(1, 3)])
        VectorSets(2 sets, 4 vectors of length 3)
        """
        count, length = self.vectors.shape
        return f"VectorSets({len(self):,} sets, {count:,} vectors of length {length})"

    @classmethod
    def of(cls, sets: Sequence[Tensor]) -> VectorSets:
        """Return one set for each tensor (V_i, p)."""
        if not sets:
            raise GraphError("no sets of vectors were given; at least one is needed to know the dimension")
        sizes = torch.tensor([len(vectors) for vectors in sets], device=sets[0].device)
        return cls.of_sizes(torch.cat(list(sets)), sizes)

    @classmethod
    def of_sizes(cls, vectors: Tensor, sizes: Tensor) -> VectorSets:
        """Return vectors (V, p) as sets of ``sizes`` (B,) on the same device, without a copy.

        >>> VectorSets.of_sizes(torch.eye(3), torch.tensor([2, 1])).ptr
        tensor([0, 2, 3])
        """
        return cls(vectors, _bounds(sizes))

    @classmethod
    def concatenated(cls, parts: Sequence[VectorSets]) -> VectorSets:
        """Join the sets of ``parts``, in order, on their common device; a single part is returned unchanged.

        >>> first, second = VectorSets.of([torch.eye(2)]), VectorSets.of([torch.ones(1, 2), torch.ones(3, 2)])
        >>> VectorSets.concatenated([first, second]).sizes
        tensor([2, 1, 3])
        """
        if not parts:
            raise GraphError("no vector sets were given to concatenate; at least one is needed to know the dimension")
        if len(parts) == 1:
            return parts[0]
        vectors = torch.cat([part.vectors for part in parts])
        return cls.of_sizes(vectors, torch.cat([part.sizes for part in parts]))

    def __len__(self) -> int:
        return self.ptr.numel() - 1

    def __iter__(self) -> Iterator[Tensor]:
        """Return the sets, each of shape (V_i, p)."""
        bounds = self.ptr.tolist()
        return (self.vectors[start:end] for start, end in pairwise(bounds))

    def __getitem__(self, place: int) -> Tensor:
        """Return the set at one position, of shape (V_i, p)."""
        return self.vectors.split(self.sizes.tolist())[place]

    @property
    def sizes(self) -> Tensor:
        """Number of vectors in each set, (B,)."""
        return self.ptr.diff()

    def document_vectors(self) -> Tensor:
        """Return the last vector of each set, (B, p)."""
        return self.vectors[self.ptr[1:] - 1]

    def documents_only(self) -> VectorSets:
        """Return sets with only the document's vector: MaxSim over them is single-vector similarity."""
        return VectorSets(self.document_vectors(), torch.arange(len(self) + 1, device=self.ptr.device))

    def select(self, sets: Tensor) -> VectorSets:
        """Return the sets at the positions ``sets`` (K,), in that order."""
        sizes = self.sizes[sets]
        ptr = _bounds(sizes)
        shift = (self.ptr[sets] - ptr[:-1]).repeat_interleave(sizes)
        return VectorSets(self.vectors[shift + torch.arange(shift.numel(), device=shift.device)], ptr)

    def to(self, device: torch.device | str) -> VectorSets:
        return VectorSets(self.vectors.to(device), self.ptr.to(device))


def _bounds(sizes: Tensor) -> Tensor:
    """Return the bounds (B + 1,) int64 of sets of ``sizes`` (B,) in the sequence of all their vectors."""
    return functional.pad(sizes.cumsum(0), (1, 0))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Documents of similar size: ``sets`` (n,); ``slots`` (L * n,), their vectors by position in the set and then by
    set; and ``padding`` (K,), the slots without a vector."""

    sets: Tensor
    slots: Tensor
    padding: Tensor


def scores(queries: VectorSets, documents: VectorSets, *, normalize: bool = False) -> Tensor:
    """Return the MaxSim of every query with every document (thesis Eq. 3.5), (num_queries, num_documents) float32.

    Differentiable in both arguments. If several document vectors reach a maximum, they share its gradient evenly. The
    computation is in float32, even under autocast and with half-precision vectors. With ``normalize``, a query's scores
    are divided by the number of its vectors (Eq. 3.7).

    Raises :class:`GraphError` for a set without vectors, or for two different dimensions.
    """
    if queries.vectors.shape[1] != documents.vectors.shape[1]:
        raise GraphError(
            f"queries have vectors of dimension {queries.vectors.shape[1]}, documents of dimension "
            f"{documents.vectors.shape[1]}; were they encoded by the same model?"
        )
    query_ptr = _checked_ptr("query", queries)
    chunks = _lay_out(documents)
    result: Tensor = _MaxSim.apply(
        queries.vectors.float(), documents.vectors.float(), query_ptr, len(documents), chunks
    )
    return result / queries.sizes.unsqueeze(1) if normalize else result


def scores_reference(queries: VectorSets, documents: VectorSets, *, normalize: bool = False) -> Tensor:
    """Compute :func:`scores` pair by pair, as a reference."""
    rows = []
    for query in queries:
        row = [(query @ document.T).amax(1).sum() for document in documents]
        rows.append(torch.stack(row) / (len(query) if normalize else 1))
    return torch.stack(rows)


def _checked_ptr(name: str, sets: VectorSets) -> np.ndarray:
    """Return the bounds of the sets on the host; refuse bounds that are out of order or leave a set empty."""
    ptr = sets.ptr.cpu().numpy()
    if ptr[0] != 0 or ptr[-1] != len(sets.vectors) or np.any(np.diff(ptr) < 0):
        raise GraphError(f"the bounds of the {name} sets do not rise from 0 to the {len(sets.vectors)} vectors")
    empty = np.flatnonzero(np.diff(ptr) == 0)
    if empty.size:
        raise GraphError(
            f"{name} {empty[0]} of {len(sets)} has no vectors; MaxSim needs at least one in every set "
            f"({empty.size} such); was the graph built without representatives?"
        )
    return ptr


def _lay_out(documents: VectorSets) -> tuple[Chunk, ...]:
    """Chunks of documents in the order of their sizes; within a chunk sizes differ by a quarter at most."""
    ptr = _checked_ptr("document", documents)
    device = documents.ptr.device
    max_slots = _chunk_shape(device)[0]
    order = np.argsort(np.diff(ptr), kind="stable")
    sizes = np.diff(ptr)[order]
    chunks, begin = [], 0
    while begin < order.size:
        end = order.size
        if (end - begin) * sizes[-1] > SMALL_CHUNK:
            end = int(np.searchsorted(sizes, sizes[begin] * 5 // 4, side="right"))
            end = min(end, begin + max(1, max_slots // int(sizes[end - 1])))
        length = int(sizes[end - 1])
        position = np.arange(length)[:, None]  # (L, 1)
        slots = ptr[order[begin:end]] + position  # (L, n)
        padding = position >= sizes[begin:end]
        slots[padding] = 0
        chunks.append(
            Chunk(
                sets=torch.from_numpy(order[begin:end]).to(device),
                slots=torch.from_numpy(slots.ravel()).to(device),
                padding=torch.from_numpy(np.flatnonzero(padding)).to(device),
            )
        )
        begin = end
    return tuple(chunks)


def _chunk_shape(device: torch.device) -> tuple[int, int]:
    return CPU_CHUNK if device.type == "cpu" else GPU_CHUNK


def _query_groups(ptr: np.ndarray, device: torch.device) -> list[tuple[int, int]]:
    """Ranges of queries with at most a chunk's number of vectors, or a single query."""
    limit = _chunk_shape(device)[1]
    groups, begin = [], 0
    while begin < ptr.size - 1:
        end = max(begin + 1, int(np.searchsorted(ptr, ptr[begin] + limit, side="right")) - 1)
        groups.append((begin, end))
        begin = end
    return groups


def _workspace(ptr: np.ndarray, chunks: tuple[Chunk, ...], device: torch.device) -> Tensor:
    """Memory for the similarities of any chunk with any group of queries; new memory for each would cost more."""
    rows = max((chunk.slots.numel() for chunk in chunks), default=0)
    columns = max((int(ptr[end] - ptr[begin]) for begin, end in _query_groups(ptr, device)), default=0)
    return torch.empty(rows * columns, dtype=torch.float32, device=device)


def _similarities(matrix: Tensor, queries: Tensor, chunk: Chunk, workspace: Tensor) -> tuple[Tensor, Tensor]:
    """Compare a chunk's vectors (L * n, p) with queries (v, p): all (L, n, v), padding at -inf, and the best (n, v).

    The first result is a view of ``workspace``; the next call overwrites it.
    """
    similarity = workspace[: len(matrix) * len(queries)].view(len(matrix), len(queries))
    with torch.autocast(matrix.device.type, enabled=False):
        torch.mm(matrix, queries.T, out=similarity)  # (L * n, v)
    similarity.index_fill_(0, chunk.padding, float("-inf"))
    similarity = similarity.view(-1, chunk.sets.numel(), len(queries))  # (L, n, v)
    return similarity, similarity.amax(0)


class _MaxSim(torch.autograd.Function):
    """Scores that keep only their arguments; the backward pass computes the similarities again, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, documents: Tensor, query_ptr: np.ndarray, num_sets: int, chunks: tuple[Chunk, ...]
    ) -> Tensor:
        ctx.save_for_backward(queries, documents)
        ctx.query_ptr, ctx.chunks = query_ptr, chunks
        result = queries.new_empty(query_ptr.size - 1, num_sets)
        bounds = torch.from_numpy(query_ptr).to(queries.device)
        rows = torch.arange(int(query_ptr[-1]), device=queries.device)
        workspace = _workspace(query_ptr, chunks, queries.device)
        for chunk in chunks:
            matrix = documents[chunk.slots]  # (L * n, p)
            for begin, end in _query_groups(query_ptr, queries.device):
                first, last = int(query_ptr[begin]), int(query_ptr[end])
                _, best = _similarities(matrix, queries[first:last], chunk, workspace)
                offsets = bounds[begin : end + 1] - first
                result[begin:end, chunk.sets] = functional.embedding_bag(
                    rows[: last - first], best.T.contiguous(), offsets, mode="sum", include_last_offset=True
                )  # (end - begin, n)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        queries, documents = ctx.saved_tensors
        grad_queries, grad_documents = torch.zeros_like(queries), torch.zeros_like(documents)
        owner = torch.from_numpy(np.repeat(np.arange(ctx.query_ptr.size - 1), np.diff(ctx.query_ptr)))
        owner = owner.to(queries.device)  # the query of each query vector
        workspace = _workspace(ctx.query_ptr, ctx.chunks, queries.device)
        for chunk in ctx.chunks:
            matrix = documents[chunk.slots]  # (L * n, p)
            grad_matrix = torch.zeros_like(matrix)
            grad_sets = grads[0][:, chunk.sets].T.contiguous()  # (n, num_queries)
            for begin, end in _query_groups(ctx.query_ptr, queries.device):
                vectors = slice(int(ctx.query_ptr[begin]), int(ctx.query_ptr[end]))
                similarity, best = _similarities(matrix, queries[vectors], chunk, workspace)
                reached = similarity.eq_(best)  # (L, n, v), 1 at a maximum, else 0
                share = grad_sets[:, owner[vectors]] / reached.sum(0)  # (n, v)
                flow = reached.mul_(share).view(len(matrix), -1)  # (L * n, v)
                grad_queries[vectors].addmm_(flow.T, matrix)
                grad_matrix.addmm_(flow, queries[vectors])
            grad_matrix.index_fill_(0, chunk.padding, 0.0)
            grad_documents.index_add_(0, chunk.slots, grad_matrix)
        return grad_queries, grad_documents, None, None, None
