"""What an index is: documents as sets of vectors, searched by one of three strategies, behind one protocol.

>>> import torch
>>> from mathamr.maxsim import VectorSets
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = build("exact", ["154", "255"], documents)
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> index.search(question, Strategy("maxsim"), k=10)
[[('255', 1.7999999523162842), ('154', 1.0)]]
>>> index.search(question, Strategy("single_vector"), k=1)  # the last vector of a set is the document's
[[('154', 1.0)]]

The strategies (thesis 3.5.2): ``single_vector`` compares the document vectors; ``doc_vn_maxsim`` takes the ``pool``
best of these and ranks them by exact MaxSim; ``maxsim`` ranks by MaxSim alone. Each is exact (every document is
looked at) or approximate (HNSW, breadth ``ef``); for ``doc_vn_maxsim`` this is about the first stage only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

import torch

from graphs.errors import ConfigError, RetrievalError
from mathamr.maxsim import VectorSets

STRATEGIES = ("single_vector", "doc_vn_maxsim", "maxsim")
BackendName = Literal["exact", "qdrant"]
Ranking = list[tuple[str, float]]
"""``(post_id, score)``, best first; equal scores by post id, ascending."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How to search, by name. ``pool`` candidates are reranked by ``doc_vn_maxsim``; ``ef`` is HNSW's breadth."""

    name: str = "maxsim"
    exact: bool = True
    pool: int = 1000
    ef: int = 128

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise RetrievalError(f"strategy {self.name!r} is not known; there are {', '.join(STRATEGIES)}")
        for name, value in (("pool", self.pool), ("ef", self.ef)):
            if value < 1:
                raise RetrievalError(f"{name}={value}; at least 1 is needed")

    def __str__(self) -> str:
        return f"{'exact' if self.exact else 'approximate'} {self.name}"


class Index(Protocol):
    """A searchable collection of documents. ``model_hash`` tells which model made the vectors, "" if unknown."""

    backend: BackendName
    model_hash: str
    dim: int

    def __len__(self) -> int:
        """Number of documents."""

    @property
    def num_vectors(self) -> int:
        """Number of vectors, those of all documents together."""

    @property
    def nbytes(self) -> int:
        """Bytes that the index takes, on disk where it lies there, else in memory; 0 where a server keeps it."""

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """At most ``k`` documents for each query; :class:`RetrievalError` for what this backend cannot do."""

    def close(self) -> None:
        """Release files and locks; the index cannot be searched afterwards."""


def build(
    backend: str,
    post_ids: Sequence[str],
    documents: VectorSets,
    *,
    path: Path | None = None,
    location: str | None = None,
    model_hash: str = "",
) -> Index:
    """An index of ``documents``, one set of unit vectors a post id, in the backend's default form.

    ``path`` is the folder that it is kept in; ``exact`` without one lives in memory. ``location`` is for ``qdrant``:
    ``embedded`` (the default), ``:memory:`` or a server's URL. The backends' own ``build`` take more options.
    """
    if backend == "exact":
        from mathamr.retrieval.exact import ExactIndex

        if location is not None:
            raise ConfigError(f"location={location} belongs to the backend qdrant; exact takes only a path")
        return ExactIndex.build(post_ids, documents, path=path, model_hash=model_hash)
    if backend == "qdrant":
        if location in (None, "embedded"):
            from mathamr.retrieval.qdrant import EmbeddedIndex

            return EmbeddedIndex.build(post_ids, documents, path=path, model_hash=model_hash)
        from mathamr.retrieval.qdrant_server import ServerIndex

        return ServerIndex.build(post_ids, documents, location=str(location), model_hash=model_hash)
    raise ConfigError(f"backend {backend!r} is not known; there are {', '.join(get_args(BackendName))}")


def open_index(
    backend: str, *, path: Path | None = None, location: str | None = None, model_hash: str | None = None
) -> Index:
    """Open an index that :func:`build` has made, with the same ``path`` or ``location``.

    With ``model_hash``, an index of another model is refused. Raises :class:`StoreError` where there is none.
    """
    if backend == "qdrant" and location not in (None, "embedded"):
        from mathamr.retrieval.qdrant_server import ServerIndex

        return ServerIndex.open(location=str(location), model_hash=model_hash)
    if path is None:
        raise ConfigError(f"no path was given; the backend {backend} keeps its index in a folder")
    if backend == "exact":
        from mathamr.retrieval.exact import ExactIndex

        return ExactIndex.open(path, model_hash=model_hash)
    if backend == "qdrant":
        from mathamr.retrieval.qdrant import EmbeddedIndex

        return EmbeddedIndex.open(path, model_hash=model_hash)
    raise ConfigError(f"backend {backend!r} is not known; there are {', '.join(get_args(BackendName))}")


def check_documents(post_ids: Sequence[str], documents: VectorSets) -> None:
    """Refuse what no backend can index: nothing at all, an empty set, an id twice, a vector not of unit length."""
    if len(post_ids) != len(documents):
        raise RetrievalError(f"{len(post_ids)} post ids for {len(documents)} sets of vectors; one is needed for each")
    if not post_ids:
        raise RetrievalError("no documents were given; an index holds at least one")
    if len(set(post_ids)) != len(post_ids):
        seen: set[str] = set()
        twice = next(post_id for post_id in post_ids if post_id in seen or seen.add(post_id))  # type: ignore[func-returns-value]
        raise RetrievalError(f"post {twice} is given twice; an index holds a post once")
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
    """Refuse a search that has no answer, naming the query."""
    if k < 1:
        raise RetrievalError(f"k={k}; at least 1 result must be asked for")
    if queries.vectors.shape[1] != index.dim:
        raise RetrievalError(
            f"queries have vectors of dimension {queries.vectors.shape[1]}, the index of dimension {index.dim}; "
            "were they encoded by the same model?"
        )
    empty = (queries.sizes == 0).nonzero().flatten().tolist()
    if empty:
        raise RetrievalError(f"query {empty[0]} of {len(queries)} is empty: it has no vectors to search with")
    if not bool(torch.isfinite(queries.vectors).all()):
        raise RetrievalError("a query vector is not finite; did the model diverge?")
