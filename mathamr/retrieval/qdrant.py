"""Qdrant engine in this process: named vectors ``doc`` and ``all``, HNSW, a folder, no server.

>>> import torch
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = EmbeddedIndex.build(["154", "255"], documents)  # without a path: in a temporary folder
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> [(post_id, round(score, 4)) for post_id, score in index.search(question, Strategy("maxsim"), k=10)[0]]
[('255', 1.8), ('154', 1.0)]
>>> index.close()

As in the thesis (3.5.1) a document is a point with a vector ``doc`` (its document virtual node) and a multivector
``all`` (every virtual node), compared by cosine, the latter by MaxSim. ``doc`` has an HNSW graph. ``all`` has none
unless asked (``Hnsw.m_all``): building it takes minutes at 30,000 posts, and finding 9 of 10 right answers through it
takes as long as looking at every post. Approximate ``maxsim`` is refused without it.

This is the one module that knows ``qdrant_edge``. :mod:`mathamr.retrieval.qdrant_server` is the client of a server.
Which of several documents with the score of the k-th come back is Qdrant's choice; the other backends go by post id.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import qdrant_edge

from graphs.errors import RetrievalError, StoreError
from mathamr.evaluation.efficiency import bytes_on_disk
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact.mapped import read_ids
from mathamr.retrieval.folder import building, open_current, read_header, switch
from mathamr.retrieval.index import (
    BackendName,
    Hnsw,
    Ranking,
    Strategy,
    check_documents,
    check_search,
    ranked,
    refuse_missing_graph,
)

FORMAT = "mathamr-qdrant-index"
VERSION = 1
QUERIES_A_BATCH = 16
POINTS_A_BATCH = 1000
ROOM = 4  # bytes on disk for each byte of vectors while an index is built; 3.3 were measured (log, segments, optimizer)
ROOM_AT_LEAST = 32 << 20  # bytes; of the log alone

T = TypeVar("T")


def as_lists(sets: VectorSets, begin: int, end: int) -> Iterator[list[list[float]]]:
    """Sets number ``begin`` to ``end``, or to the last one, as lists of vectors, as Qdrant takes them."""
    for start, stop in pairwise(sets.ptr[begin : end + 1].tolist()):
        yield sets.vectors[start:stop].detach().float().tolist()


class EmbeddedIndex:
    """Open Qdrant shard; no other process can open its folder meanwhile."""

    backend: BackendName = "qdrant"

    def __init__(
        self,
        shard: qdrant_edge.EdgeShard,
        header: dict[str, Any],
        data: Path,
        post_ids: np.ndarray,
        *,
        temporary: Path | None,
    ) -> None:
        self.model_hash: str = header["model_hash"]
        self.dim: int = header["dim"]
        self.hnsw = Hnsw(**header["hnsw"])
        self.num_vectors: int = header["vectors"]  # of all documents together
        self._sets: bool = header.get("sets", True)
        self._shard: qdrant_edge.EdgeShard | None = shard
        self._data = data
        self._post_ids = post_ids
        self._temporary = temporary

    @classmethod
    def build(
        cls,
        post_ids: Sequence[str],
        documents: VectorSets,
        *,
        path: Path | None = None,
        model_hash: str = "",
        hnsw: Hnsw = Hnsw(),  # noqa: B008 (frozen)
        fields: Mapping[str, Sequence[str]] | None = None,
    ) -> EmbeddedIndex:
        """Index ``documents`` in the folder ``path``, or in a temporary one that :meth:`close` removes.

        A folder that holds an index already is switched to the new one in one step. ``fields`` are the payload of the
        points, a column for each name; sets of one vector each are then stored once, as ``doc``.
        """
        check_documents(post_ids, documents)
        _check_room(Path(tempfile.gettempdir()) if path is None else path, documents)
        folder = path or Path(tempfile.mkdtemp(prefix="mathamr-qdrant-"))
        temporary = None if path else folder
        try:
            with building(folder) as data:
                dim = int(documents.vectors.shape[1])
                sets = fields is None or bool((documents.sizes > 1).any())
                _write_shard(data / "shard", documents, fields or {"post_id": post_ids}, _config(dim, hnsw, sets), sets)
                # Reading an id from the payload costs more than the search; a list beside the shard costs nothing.
                np.save(data / "post_ids.npy", np.array(post_ids, dtype=np.str_))
                header = {
                    "format": FORMAT,
                    "version": VERSION,
                    "model_hash": model_hash,
                    "documents": len(documents),
                    "vectors": len(documents.vectors),
                    "dim": dim,
                    "hnsw": asdict(hnsw),
                    "sets": sets,
                }
                switch(folder, data, header)
        except BaseException:
            if temporary is not None:
                shutil.rmtree(temporary, ignore_errors=True)
            raise
        return cls._open(folder, model_hash=model_hash, temporary=temporary)

    @classmethod
    def open(cls, path: Path, *, model_hash: str | None = None) -> EmbeddedIndex:
        """Open the index in ``path``; with ``model_hash``, an index of another model is refused.

        Raises :class:`StoreError` for a folder that is missing, damaged, or held by another process.
        """
        return open_current(path, lambda: cls._open(path, model_hash=model_hash, temporary=None))

    @classmethod
    def _open(cls, path: Path, *, model_hash: str | None, temporary: Path | None) -> EmbeddedIndex:
        header, data = read_header(path, FORMAT, VERSION, model_hash=model_hash)
        post_ids = read_ids(data / "post_ids.npy")
        shard = _call(data / "shard", lambda: qdrant_edge.EdgeShard.load(str(data / "shard")))
        try:
            index = cls(shard, header, data, post_ids, temporary=temporary)
        except (KeyError, TypeError, RetrievalError) as error:  # of a header that somebody has written by hand
            shard.close()
            raise StoreError(f"the index is damaged: {error!r}; build it again", path=data) from error
        if not len(post_ids) == header.get("documents") == shard.count(qdrant_edge.CountRequest()):
            index.close()
            raise StoreError("the index is damaged: its points do not fit its header; build it again", path=data)
        return index

    def __len__(self) -> int:
        return len(self._post_ids)

    @property
    def nbytes(self) -> int:
        """Bytes that the folder takes on disk."""
        return bytes_on_disk(self._data)

    def close(self) -> None:
        """Close the shard, so that another process can open it; a temporary index is removed."""
        if self._shard is not None:
            self._shard.close()
            self._shard = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return the top-k documents of each query; see :class:`mathamr.retrieval.index.Index`."""
        if self._shard is None:
            raise RetrievalError("the index is closed; open it again to search it")
        shard = self._shard
        refuse_missing_sets(strategy, self._sets)
        refuse_missing_graph(strategy, self.hnsw)
        check_search(self, queries, k)
        rankings = []
        for begin in range(0, len(queries), QUERIES_A_BATCH):
            some = as_lists(queries, begin, begin + QUERIES_A_BATCH)
            requests = [_request(vectors, strategy, k) for vectors in some]
            batch = qdrant_edge.QueryBatchRequest(requests)
            for points in _call(self._data, lambda batch=batch: shard.query_batch(batch)):  # type: ignore[misc]
                names = [str(self._post_ids[int(str(point.id))]) for point in points]
                rankings.append(ranked(names, [point.score for point in points]))
        return rankings


def _check_room(folder: Path, documents: VectorSets) -> None:
    """Refuse to begin where the disk is too full: the engine writes through memory maps, and a full disk then ends the
    process with SIGBUS, without a message.
    """
    place = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
    vectors = (len(documents.vectors) + len(documents)) * int(documents.vectors.shape[1]) * 4  # ``all`` and ``doc``
    needed, free = ROOM * vectors + ROOM_AT_LEAST, shutil.disk_usage(place).free
    if free < needed:
        raise StoreError(
            f"an index of {len(documents):,} documents takes up to {needed / 2**20:,.0f} MiB while it is built, "
            f"{free / 2**20:,.0f} MiB are free; make room, choose another place, or take the backend exact",
            path=folder,
        )


def _write_shard(
    path: Path, documents: VectorSets, columns: Mapping[str, Sequence[str]], config: qdrant_edge.EdgeConfig, sets: bool
) -> None:
    """Write documents with their payload, a column for each name, to a new shard in ``path``, and index them."""
    path.mkdir()
    shard = _call(path, lambda: qdrant_edge.EdgeShard.create(str(path), config))
    try:
        for begin in range(0, len(documents), POINTS_A_BATCH):
            points = [
                qdrant_edge.Point(
                    begin + i,
                    {"doc": vectors[-1], "all": vectors} if sets else {"doc": vectors[-1]},
                    {field: values[begin + i] for field, values in columns.items()},
                )
                for i, vectors in enumerate(as_lists(documents, begin, begin + POINTS_A_BATCH))
            ]
            operation = qdrant_edge.UpdateOperation.upsert_points(points)
            _call(path, lambda operation=operation: shard.update(operation))  # type: ignore[misc]
        _call(path, shard.optimize)  # nothing is indexed before
        _call(path, shard.flush)
    finally:
        shard.close()


def refuse_missing_sets(strategy: Strategy, sets: bool) -> None:
    """Raise RetrievalError for a search by sets of vectors where each point has one vector."""
    if strategy.name != "single_vector" and not sets:
        raise RetrievalError(f"this index holds one vector for each id and cannot do {strategy}; use single_vector")


def _config(dim: int, hnsw: Hnsw, sets: bool) -> qdrant_edge.EdgeConfig:
    def graph(m: int) -> qdrant_edge.HnswIndexConfig:
        return qdrant_edge.HnswIndexConfig(m=m, ef_construct=hnsw.ef_construct, full_scan_threshold=hnsw.threshold)

    cosine = qdrant_edge.Distance.Cosine
    maxsim = qdrant_edge.MultiVectorConfig(qdrant_edge.MultiVectorComparator.MaxSim)
    vectors = {"doc": qdrant_edge.EdgeVectorParams(size=dim, distance=cosine, hnsw_config=graph(hnsw.m))}
    if sets:
        vectors["all"] = qdrant_edge.EdgeVectorParams(
            size=dim, distance=cosine, multivector_config=maxsim, hnsw_config=graph(hnsw.m_all)
        )
    return qdrant_edge.EdgeConfig(
        vectors=vectors, optimizers=qdrant_edge.EdgeOptimizersConfig(indexing_threshold=hnsw.threshold)
    )


def _request(vectors: list[list[float]], strategy: Strategy, k: int) -> qdrant_edge.QueryRequest:
    exact = qdrant_edge.SearchParams(exact=True)
    params = exact if strategy.exact else qdrant_edge.SearchParams(hnsw_ef=strategy.ef)
    by_document = qdrant_edge.Query.Nearest(vectors[-1], using="doc")
    by_set = qdrant_edge.Query.Nearest(vectors, using="all")
    if strategy.name == "single_vector":
        return qdrant_edge.QueryRequest(limit=k, query=by_document, params=params)
    if strategy.name == "maxsim":
        return qdrant_edge.QueryRequest(limit=k, query=by_set, params=params)
    if strategy.name != "doc_vn_maxsim":
        raise strategy.not_in("qdrant")
    pool = qdrant_edge.Prefetch(limit=strategy.pool, query=by_document, params=params)
    return qdrant_edge.QueryRequest(limit=k, query=by_set, prefetches=[pool], params=exact)


def _call(path: Path, call: Callable[[], T]) -> T:
    """Run ``call``; the engine raises plain ``Exception``, which becomes a :class:`StoreError` that names the place."""
    try:
        return call()
    except Exception as error:
        if "WouldBlock" in str(error):
            raise StoreError(
                "the index is open elsewhere: an embedded Qdrant folder belongs to one process (or object) at a time; "
                "close the other one, or use a Qdrant server (location=http://...)",
                path=path,
            ) from error
        raise StoreError(f"Qdrant: {error}", path=path) from error
