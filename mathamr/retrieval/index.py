"""Index of documents as sets of vectors, searched by one of three strategies, behind one protocol.

>>> Strategy("doc_vn_maxsim", pool=200)
Strategy(name='doc_vn_maxsim', exact=True, pool=200, ef=128)

The strategies (thesis 3.5.2): ``single_vector`` compares the document vectors; ``doc_vn_maxsim`` takes the ``pool``
best of these and ranks them by exact MaxSim; ``maxsim`` ranks by MaxSim alone. Each is exact (every document is
compared) or approximate. Qdrant approximates by HNSW with the breadth ``ef``; the backend ``approximate`` computes
approximate MaxSim of all documents, then exact MaxSim of the ``pool`` best. For ``doc_vn_maxsim`` only the first stage
can be approximate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphs.errors import RetrievalError
from graphs.ids import first_places
from mathamr.evaluation.order import best_first

if TYPE_CHECKING:
    from mathamr.maxsim import VectorSets

STRATEGIES = ("single_vector", "doc_vn_maxsim", "maxsim")
BackendName = Literal["exact", "approximate", "qdrant"]
Ranking = list[tuple[str, float]]
"""``(post_id, score)``, best first; equal scores by post id, descending, as trec_eval orders them."""


def ranked(names: Sequence[str], scores: Sequence[float] | NDArray[np.floating], k: int | None = None) -> Ranking:
    """Return the best ``k`` documents, or all, best first; equal scores by id, descending.

    >>> ranked(["9", "7", "10"], [0.5, 1.0, 1.0])
    [('7', 1.0), ('10', 1.0), ('9', 0.5)]
    """
    return [(names[place], float(scores[place])) for place in best_first(names, scores)[:k]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """Search strategy. A first stage selects ``pool`` candidates for MaxSim; ``ef`` is the search breadth of HNSW."""

    name: str = "maxsim"
    exact: bool = True
    pool: int = 1000
    ef: int = 128

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise RetrievalError(f"unknown strategy {self.name!r}; choose from: {', '.join(STRATEGIES)}")
        for name, value in (("pool", self.pool), ("ef", self.ef)):
            if value < 1:
                raise RetrievalError(f"{name}={value}; at least 1 is needed")

    def __str__(self) -> str:
        return f"{'exact' if self.exact else 'approximate'} {self.name}"

    def not_in(self, backend: str) -> RetrievalError:
        """Return the error for a strategy of :data:`STRATEGIES` that a backend does not know."""
        return RetrievalError(
            f"the backend {backend} has no strategy {self.name}; docs/extending.md says how to add one"
        )


@dataclass(frozen=True, slots=True)
class Hnsw:
    """HNSW graphs: ``m`` edges per node on ``doc``, ``m_all`` on the multivector (0: none); ``ef_construct`` to build.

    16 and 100 are Qdrant's defaults; the thesis names no others. ``threshold`` (KB) is the size from which a graph is
    built and used; Qdrant's own, 10,000, would silently make every approximate search of a small collection exact.
    """

    m: int = 16
    m_all: int = 0
    ef_construct: int = 100
    threshold: int = 10

    def __post_init__(self) -> None:
        for name, value, least in (("m", self.m, 0), ("m_all", self.m_all, 0), ("ef_construct", self.ef_construct, 1)):
            if value < least:
                raise RetrievalError(f"{name}={value} of an HNSW graph; it is {least} or more")


def refuse_missing_graph(strategy: Strategy, hnsw: Hnsw) -> None:
    """Refuse an approximate search over vectors without an HNSW graph, and say what can be done instead."""
    if not strategy.exact and (hnsw.m_all if strategy.name == "maxsim" else hnsw.m) == 0:
        number, other = ("m_all", ", use strategy=doc_vn_maxsim") if strategy.name == "maxsim" else ("m", "")
        raise RetrievalError(
            f"this qdrant index cannot do {strategy}: its vectors have no HNSW graph; search with exact=true{other}, "
            f"or build it in Python with {number}=16 (class Hnsw)"
        )


class Index(Protocol):
    """Searchable collection of documents. ``model_hash`` identifies the model of the vectors; "" if unknown."""

    backend: BackendName
    model_hash: str
    dim: int

    def __len__(self) -> int:
        """Number of documents."""

    @property
    def num_vectors(self) -> int:
        """Number of vectors of all documents."""

    @property
    def nbytes(self) -> int:
        """Size of the index in bytes, on disk if it has a folder, else in memory; 0 on a server."""

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return at most ``k`` documents for each query; :class:`RetrievalError` for what this backend cannot do."""

    def close(self) -> None:
        """Release files and locks; the index cannot be searched afterwards."""


def check_documents(post_ids: Sequence[str], documents: VectorSets) -> None:
    """Refuse what no backend can index: no document, an empty set, an id twice, a vector not of unit length."""
    import torch

    if len(post_ids) != len(documents):
        raise RetrievalError(f"{len(post_ids)} post ids for {len(documents)} sets of vectors; one is needed for each")
    if not post_ids:
        raise RetrievalError("no documents were given; an index holds at least one")
    first = first_places(post_ids)
    if len(first) < len(post_ids):
        twice = next(number for number, place in enumerate([*first, len(post_ids)]) if number != place)
        raise RetrievalError(f"post {post_ids[twice]} is given twice; an index holds a post once")
    empty = (documents.sizes == 0).nonzero().flatten().tolist()
    if empty:
        raise RetrievalError(f"post {post_ids[empty[0]]} has no vectors ({len(empty)} such); leave it out")
    for begin in range(0, len(documents.vectors), 1 << 20):
        lengths = documents.vectors[begin : begin + (1 << 20)].float().norm(dim=1)
        # The zero vector stands for a graph without any signal: it scores 0 with everything, also under cosine.
        wrong = ~(((lengths - 1).abs() < 1e-2) | (lengths == 0))
        if wrong.any():
            row = int(wrong.nonzero()[0])
            post = int(torch.searchsorted(documents.ptr, begin + row, right=True)) - 1
            raise RetrievalError(
                f"a vector of post {post_ids[post]} has length {float(lengths[row]):.4g}; scores are cosines, "
                "and vectors must have unit length"
            )


def check_search(index: Index, queries: VectorSets, k: int) -> None:
    """Raise for a search that has no answer; the message names the query."""
    if k < 1:
        raise RetrievalError(f"k={k}; at least 1 result must be asked for")
    if queries.vectors.shape[1] != index.dim:
        raise RetrievalError(
            f"queries have vectors of dimension {queries.vectors.shape[1]}, the index of dimension {index.dim}; "
            "were they encoded by the same model?"
        )
    if len(queries) and int(queries.sizes.min()) == 0:
        empty = int((queries.sizes == 0).nonzero()[0])
        raise RetrievalError(f"query {empty} of {len(queries)} is empty: it has no vectors to search with")
    if not math.isfinite(float(queries.vectors.sum())):  # which it is not where one of them is not
        raise RetrievalError("a query vector is not finite; did the model diverge?")
