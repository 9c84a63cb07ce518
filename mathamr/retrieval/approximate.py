"""Approximate MaxSim: every document is scored roughly, and the best of them exactly.

>>> import tempfile
>>> generator = torch.Generator().manual_seed(0)
>>> vectors = torch.nn.functional.normalize(torch.randn(3000, 32, generator=generator), dim=1)
>>> documents = VectorSets.of(list(vectors.split(3)))
>>> folder = Path(tempfile.mkdtemp()) / "index"
>>> index = ApproximateIndex.build([str(i) for i in range(1000)], documents, path=folder)
>>> question = VectorSets.of([documents[7]])
>>> [post_id for post_id, score in index.search(question, Strategy("maxsim", exact=False, pool=50), k=1)[0]]
['7']
>>> index = ApproximateIndex.update(folder, add=(["new"], question), remove=["7"])
>>> [post_id for post_id, score in index.search(question, Strategy("maxsim", exact=False, pool=50), k=1)[0]]
['new']

The first pass is cheap for three reasons. Vectors are reduced to their coordinates on the first principal axes. The
coordinates are rounded to eight bits (:mod:`mathamr.retrieval.exact.codes`). Similar vectors of a query are added up.
The best ``pool`` documents are then scored by their vectors. Unlike a search of clusters, the first pass reads every
document. Recall thus does not depend on clusters, and an update trains nothing.

Documents that are added later form new segments, with their own axes. All other searches are exact.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphs.errors import RetrievalError, StoreError
from graphs.processes import batched
from graphs.shared_files import only_writer
from mathamr import maxsim
from mathamr.evaluation.order import best_first
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import scan
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.exact.mapped import read_ids
from mathamr.retrieval.folder import building, open_current, read_header, switch
from mathamr.retrieval.index import BackendName, Ranking, Strategy, check_search, ranked

FORMAT = "mathamr-approximate-index"
VERSION = 2

QUERY_VECTORS = 8  # of a query in the first pass
MOST_SEGMENTS = 8  # with more, all but the first become one
QUERIES = 16  # whose scores of all documents are in memory at a time


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents that were added together, without those that were removed since; ``removed`` are their ids."""

    exact: ExactIndex
    removed: np.ndarray


class ApproximateIndex:
    """Segments of documents, of which all but the first were added later."""

    backend: BackendName = "approximate"

    def __init__(self, segments: Sequence[Segment], *, model_hash: str) -> None:
        self.model_hash = model_hash
        self.dim = segments[0].exact.dim
        self._segments = list(segments)
        self._folder_bytes = 0

    @classmethod
    def build(
        cls,
        post_ids: Sequence[str],
        documents: VectorSets,
        *,
        path: Path | None = None,
        dtype: DType = "float32",
        model_hash: str = "",
    ) -> ApproximateIndex:
        """Index ``documents`` in memory, or in the folder ``path``, which is switched to the new index in one step.

        Raises :class:`RetrievalError` for vectors or ids that cannot be indexed, :class:`StoreError` for the folder.
        """
        if path is None:
            exact = ExactIndex.build(post_ids, documents, dtype=dtype, model_hash=model_hash)
            return cls([Segment(exact, np.array([], dtype=np.str_))], model_hash=model_hash)
        with building(path) as data:
            _write_segment(data, 0, post_ids, documents, dtype, model_hash)
            switch(path, data, _header(1, dtype, model_hash))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, model_hash: str | None = None) -> ApproximateIndex:
        """Open an index folder, memory-mapped; ``model_hash`` and errors are those of :meth:`ExactIndex.open`."""
        return open_current(path, lambda: cls._open(path, model_hash))

    @classmethod
    def _open(cls, path: Path, model_hash: str | None) -> ApproximateIndex:
        header, data = read_header(path, FORMAT, VERSION, model_hash=model_hash)
        try:
            segments = []
            for number in range(header["segments"]):
                exact = ExactIndex.open(data / f"segment-{number}", model_hash=header["model_hash"])
                removed = read_ids(data / f"removed-{number}.npy")
                segments.append(Segment(exact.without(removed.tolist()), removed))
            folder_bytes = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
        except (OSError, KeyError, TypeError, RetrievalError) as error:
            raise StoreError(f"the index is damaged: {error}; build it again", path=data) from error
        if not segments or not all(len(one.exact) and one.exact.dim == segments[0].exact.dim for one in segments):
            raise StoreError("the index is damaged: its files do not fit its header; build it again", path=data)
        index = cls(segments, model_hash=header["model_hash"])
        index._folder_bytes = folder_bytes
        return index

    @classmethod
    def update(
        cls, path: Path, *, add: tuple[Sequence[str], VectorSets] | None = None, remove: Sequence[str] = ()
    ) -> ApproximateIndex:
        """Remove documents from the index in ``path``, then add others, and open the result.

        The folder is switched in one step, as by :meth:`build`; files of the documents that stay are linked, not
        written again. To replace a document, name it in both arguments.

        Args:
            add: ids and vectors of new documents; None: no document.

        Raises:
            RetrievalError: ids that the index does not hold, or holds already; vectors of another dimension; no
                document is left.
            StoreError: the index cannot be read or written, or another process updates it.
        """
        with only_writer(path, "updating this index"):
            header, old = read_header(path, FORMAT, VERSION)
            index = cls.open(path)
            removed = index._removals(remove)
            if add is not None:
                _check_added(index, *add, remove)
            kept = [number for number, one in enumerate(index._segments) if len(removed[number]) < one.exact.total]
            if not kept and add is None:
                raise RetrievalError("no document is left in the index; remove its folder instead")
            if add is not None and len(kept) >= MOST_SEGMENTS:
                add = _together(add, [(index._segments[n].exact, removed[n]) for n in kept[1:]])
                kept = kept[:1]
            with building(path) as data:
                for place, number in enumerate(kept):
                    shutil.copytree(old / f"segment-{number}", data / f"segment-{place}", copy_function=_link)
                    np.save(data / f"removed-{place}.npy", removed[number])
                if add is not None:
                    _write_segment(data, len(kept), *add, header["dtype"], header["model_hash"])
                index.close()
                segments = len(kept) + (add is not None)
                switch(path, data, _header(segments, header["dtype"], header["model_hash"]))
        return cls.open(path)

    def __len__(self) -> int:
        return sum(len(segment.exact) for segment in self._segments)

    @property
    def num_vectors(self) -> int:
        """Number of vectors of all documents."""
        return sum(segment.exact.num_vectors for segment in self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes of the folder, or of vectors and ids in memory."""
        return self._folder_bytes or sum(segment.exact.nbytes for segment in self._segments)

    def post_ids(self) -> list[str]:
        """Ids of all documents."""
        return [post_id for segment in self._segments for post_id in segment.exact.post_ids()]

    def close(self) -> None:
        """Release the vectors."""
        for segment in self._segments:
            segment.exact.close()
        self._segments = []

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return the top-k documents of each query; see :class:`mathamr.retrieval.index.Index`."""
        check_search(self, queries, k)
        queries = VectorSets(queries.vectors.detach().float().cpu(), queries.ptr.cpu())
        if strategy.name == "maxsim" and not strategy.exact:
            return self._approximate(queries, strategy.pool, k)
        exact = Strategy(strategy.name, pool=strategy.pool)
        if len(self._segments) == 1:
            return self._segments[0].exact.search(queries, exact, k)
        if strategy.name == "doc_vn_maxsim":
            return self._two_stages(queries, strategy.pool, k)
        found = [segment.exact.search(queries, exact, k) for segment in self._segments]
        return [_best([hit for part in parts for hit in part], k) for parts in zip(*found, strict=True)]

    def _approximate(self, queries: VectorSets, pool: int, k: int) -> list[Ranking]:
        """Score all documents by their codes, and the best of them by their vectors."""
        count = min(len(self), max(pool, k))
        rankings = []
        for group in batched(queries, QUERIES):
            merging = VectorSets.of([merged(query, QUERY_VECTORS) for query in group])
            parts = [segment.exact.coded_scores(merging, whole=False)[0] for segment in self._segments]
            scores = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)  # (num_queries, N)
            rankings += [
                self._rescored(query, scan.largest(row, count), k) for query, row in zip(group, scores, strict=True)
            ]
        return rankings

    def _rescored(self, query: Tensor, places: np.ndarray, k: int) -> Ranking:
        """Rank documents at ``places`` of all segments, one after the other, by MaxSim of their vectors."""
        first, ids, scores = 0, [], []
        for segment in self._segments:
            last = first + segment.exact.total
            own = places[(places >= first) & (places < last)] - first
            first = last
            if len(own):
                best, values = segment.exact.rescored(query, own, k)
                ids.append(segment.exact.ids_of(best))
                scores.append(values)
        names, values = np.concatenate(ids), np.concatenate(scores)
        order = best_first(names, values)[:k]
        return list(zip(names[order].tolist(), values[order].tolist(), strict=True))

    def _two_stages(self, queries: VectorSets, pool: int, k: int) -> list[Ranking]:
        """Rank the documents with the ``pool`` best document vectors of all segments by MaxSim."""
        found = [segment.exact.search(queries, Strategy("single_vector"), pool) for segment in self._segments]
        rankings = []
        for query, parts in zip(queries, zip(*found, strict=True), strict=True):
            best = {post_id for post_id, _ in _best([hit for part in parts for hit in part], pool)}
            hits: Ranking = []
            for segment, part in zip(self._segments, parts, strict=True):
                own = [post_id for post_id, _ in part if post_id in best]
                if own:
                    (scores,) = maxsim.scores(VectorSets.of([query]), segment.exact.vectors_of(own)).tolist()
                    hits += zip(own, scores, strict=True)
            rankings.append(_best(hits, k))
        return rankings

    def _removals(self, remove: Sequence[str]) -> list[np.ndarray]:
        """Return the ids removed from each segment, earlier and now; refuse an id that the index does not hold."""
        wanted, removed, held = set(remove), [], set()
        for segment in self._segments:
            own = wanted.intersection(segment.exact.post_ids()) if wanted else set()
            held |= own
            removed.append(np.array(sorted({*segment.removed.tolist(), *own}), dtype=np.str_))
        missing = sorted(wanted - held)
        if missing:
            raise RetrievalError(f"the index holds no post {missing[0]} ({len(missing)} such); it cannot be removed")
        return removed


def merged(query: Tensor, most: int) -> Tensor:
    """Add up similar vectors of a query (v, p), so that at most ``most`` are left.

    If the vectors of a group have their maxima at one vector of a document, the maximum of the sum is the sum of their
    maxima; otherwise it is less. Groups start at vectors far from one another.

    >>> merged(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]), most=2)
    tensor([[1.8000, 0.6000],
            [0.0000, 1.0000]])
    """
    if len(query) <= most:
        return query
    vectors = query.numpy()  # numpy needs no threads for products as small as these
    rows, nearest = [0], vectors @ vectors[0]
    while len(rows) < most:
        rows.append(int(nearest.argmin()))
        nearest = np.maximum(nearest, vectors @ vectors[rows[-1]])
    centres = vectors[rows]
    for _ in range(4):  # Lloyd's algorithm; more steps change little
        groups = np.eye(most, dtype=np.float32)[(vectors @ centres.T).argmax(1)]  # (v, most)
        sums = groups.T @ vectors
        centres = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return torch.from_numpy(sums)


def _best(hits: Ranking, k: int) -> Ranking:
    return ranked([post_id for post_id, _ in hits], [score for _, score in hits], k)


def _header(segments: int, dtype: DType, model_hash: str) -> dict[str, object]:
    return {"format": FORMAT, "version": VERSION, "model_hash": model_hash, "dtype": dtype, "segments": segments}


def _write_segment(
    data: Path, number: int, post_ids: Sequence[str], documents: VectorSets, dtype: DType, model_hash: str
) -> None:
    """Write a segment without removed documents."""
    folder = data / f"segment-{number}"
    ExactIndex.build(post_ids, documents, path=folder, dtype=dtype, model_hash=model_hash).close()
    np.save(data / f"removed-{number}.npy", np.array([], dtype=np.str_))


def _together(
    add: tuple[Sequence[str], VectorSets], segments: Sequence[tuple[ExactIndex, np.ndarray]]
) -> tuple[list[str], VectorSets]:
    """Join new documents and those of segments, without the removed ones."""
    ids, sets = list(add[0]), [add[1]]
    for exact, removed in segments:
        gone = set(removed.tolist())
        own = [post_id for post_id in exact.post_ids() if post_id not in gone]
        if own:
            ids += own
            sets.append(exact.vectors_of(own))
    return ids, VectorSets.concatenated(sets)


def _check_added(
    index: ApproximateIndex, post_ids: Sequence[str], documents: VectorSets, remove: Sequence[str]
) -> None:
    """Refuse new documents of another dimension, or whose ids the index holds and keeps."""
    if (dim := int(documents.vectors.shape[1])) != index.dim:
        of = f"new posts have vectors of dimension {dim}, the index of dimension {index.dim}"
        raise RetrievalError(f"{of}; were they encoded by the same model?")
    known = set(index.post_ids()).difference(remove).intersection(post_ids)
    if known:
        raise RetrievalError(
            f"the index holds post {min(known)} already ({len(known)} such); name it in remove to replace it"
        )


def _link(old: str, new: str) -> None:
    """Give a file a second name; copy it where the file system has no links."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)
