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
The best ``pool`` documents, or a share of all if that is more, are then scored by their vectors. Unlike a search of
clusters, the first pass reads every document. Recall thus does not depend on clusters, and an update trains nothing.

Documents that are added later form new segments, with the same axes. All other searches are exact.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import RetrievalError, StoreError
from graphs.shared_files import only_writer
from mathamr import maxsim
from mathamr.evaluation.order import best_first
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact.codes import Codes
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.folder import new_data, read_header, switch
from mathamr.retrieval.index import BackendName, Ranking, Strategy, check_documents, check_search

FORMAT = "mathamr-approximate-index"
VERSION = 1

LEAST_AXES = 16  # of which half the dimension is kept otherwise
QUERY_VECTORS = 8  # of a query in the first pass
RESCORED = 1 / 200  # share of all documents, where it is more than the pool
MOST_SEGMENTS = 8  # with more, all but the first become one
QUERIES = 16  # whose scores of all documents are in memory at a time


@dataclass(frozen=True, slots=True)
class Segment:
    """Documents that were added together, without those that were removed since; ``removed`` are their ids."""

    exact: ExactIndex
    codes: Codes
    removed: np.ndarray


class ApproximateIndex:
    """Segments with common principal axes (p, r)."""

    backend: BackendName = "approximate"

    def __init__(self, segments: Sequence[Segment], axes: Tensor, *, model_hash: str) -> None:
        self.model_hash = model_hash
        self.dim = len(axes)
        self._segments = list(segments)
        self._axes = axes
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
            axes = principal_axes(documents.vectors)
            return cls([Segment(exact, exact.coded(axes), np.array([], dtype=np.str_))], axes, model_hash=model_hash)
        check_documents(post_ids, documents)
        try:
            data = new_data(path)
        except OSError as error:
            raise StoreError(f"the index cannot be written: {error}", path=path) from error
        with _removed_if_unfinished(data, path):
            axes = principal_axes(documents.vectors)
            np.save(data / "axes.npy", axes.numpy())
            codes = _write_segment(data, 0, post_ids, documents, axes, dtype, model_hash)
            switch(path, data, _header([codes], dtype, model_hash))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, model_hash: str | None = None) -> ApproximateIndex:
        """Open an index folder, memory-mapped.

        With ``model_hash``, an index of another model is refused. Raises :class:`StoreError` for a folder that is
        missing, damaged or of another format.
        """
        header, data = read_header(path, FORMAT, VERSION, model_hash=model_hash)
        try:
            axes = torch.from_numpy(np.load(data / "axes.npy", allow_pickle=False))
            segments = []
            for number, codes in enumerate(header["segments"]):
                exact = ExactIndex.open(data / f"segment-{number}", model_hash=header["model_hash"])
                removed = np.load(data / f"removed-{number}.npy", allow_pickle=False)
                reduced = Codes.read(data / f"reduced-{number}.npy", codes)
                if reduced.rows.shape != (exact.num_vectors, axes.shape[1]) or len(axes) != exact.dim:
                    raise ValueError(f"the files of segment {number} do not fit together")
                segments.append(Segment(exact.without(removed.tolist()), reduced, removed))
        except (OSError, KeyError, TypeError, ValueError, RetrievalError) as error:
            raise StoreError(f"the index is damaged: {error}; build it again", path=data) from error
        index = cls(segments, axes, model_hash=header["model_hash"])
        index._folder_bytes = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
        return index

    @classmethod
    def update(
        cls, path: Path, *, add: tuple[Sequence[str], VectorSets] | None = None, remove: Sequence[str] = ()
    ) -> ApproximateIndex:
        """Remove documents from the index in ``path``, then add others, and open the result.

        The folder is switched in one step, as by :meth:`build`; files of the documents that stay are linked, not
        written again. To replace a document, name it in both arguments.

        Args:
            path: folder of an index.
            add: ids and vectors of new documents; None: no document.
            remove: ids of documents.

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
            data = new_data(path)
            with _removed_if_unfinished(data, path):
                np.save(data / "axes.npy", index._axes.numpy())
                codes = [header["segments"][number] for number in kept]
                for place, number in enumerate(kept):
                    _link(old / f"segment-{number}", data / f"segment-{place}")
                    _link(old / f"reduced-{number}.npy", data / f"reduced-{place}.npy")
                    np.save(data / f"removed-{place}.npy", removed[number])
                if add is not None:
                    place = len(kept)
                    if place >= MOST_SEGMENTS:
                        add = _together(add, [(index._segments[n].exact, removed[n]) for n in kept[1:]])
                        for number in range(1, place):
                            _remove_segment(data, number)
                        place, codes = 1, codes[:1]
                    dtype, model_hash = header["dtype"], header["model_hash"]
                    codes.append(_write_segment(data, place, *add, index._axes, dtype, model_hash))
                index.close()
                switch(path, data, _header(codes, header["dtype"], header["model_hash"]))
        return cls.open(path)

    def __len__(self) -> int:
        return sum(len(segment.exact) for segment in self._segments)

    @property
    def num_vectors(self) -> int:
        """Number of vectors of all documents."""
        return sum(segment.exact.num_vectors for segment in self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes of the folder, or of vectors, ids and codes in memory."""
        return self._folder_bytes or sum(one.exact.nbytes + one.codes.rows.numel() for one in self._segments)

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
        reduced = [merged(query, QUERY_VECTORS) @ self._axes for query in queries]
        count = min(len(self), max(pool, k, int(RESCORED * len(self))))
        originals = list(queries)
        rankings = []
        for begin in range(0, len(queries), QUERIES):
            group = VectorSets.of(reduced[begin : begin + QUERIES])
            parts = [segment.exact.coded_scores(group, segment.codes)[0] for segment in self._segments]
            scores = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)  # (num_queries, N)
            for query, row in zip(originals[begin:], scores, strict=False):
                numbers = torch.topk(row, count, sorted=False).indices.sort().values.numpy()
                rankings.append(self._rescored(query, numbers, k))
        return rankings

    def _rescored(self, query: Tensor, numbers: np.ndarray, k: int) -> Ranking:
        """Rank documents, numbered through all segments, by MaxSim of their vectors."""
        first, ids, scores = 0, [], []
        for segment in self._segments:
            own = numbers[(numbers >= first) & (numbers < first + len(segment.exact))] - first
            first += len(segment.exact)
            if len(own):
                ids.append(segment.exact.ids_of(own))
                scores.append(segment.exact.rescored(query, own))
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


def principal_axes(vectors: Tensor) -> Tensor:
    """Return the first principal axes of ``vectors`` (V, p), without subtracting their mean -> (p, r) float32.

    Products of vectors keep as much as r orthogonal axes can keep of them on average.
    """
    dim = int(vectors.shape[1])
    moment = torch.zeros(dim, dim, dtype=torch.float64)
    for part in vectors.split(1 << 18):
        rows = part.detach().float().cpu()
        moment += (rows.T @ rows).double()
    axes = torch.linalg.eigh(moment).eigenvectors.flip(1)  # largest first
    return axes[:, : min(dim, max(LEAST_AXES, dim // 2))].float().contiguous()


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
    similarities = query @ query.T
    chosen, nearest = [0], similarities[0]
    while len(chosen) < most:
        chosen.append(int(nearest.argmin()))
        nearest = torch.maximum(nearest, similarities[chosen[-1]])
    centres = query[chosen]
    for _ in range(4):  # Lloyd's algorithm; more steps change little
        sums = torch.zeros_like(centres).index_add_(0, (query @ centres.T).argmax(1), query)
        centres = functional.normalize(sums, dim=1)
    return sums


def _best(hits: Ranking, k: int) -> Ranking:
    order = best_first([post_id for post_id, _ in hits], [score for _, score in hits])[:k]
    return [hits[place] for place in order]


def _header(codes: Sequence[dict[str, float]], dtype: DType, model_hash: str) -> dict[str, object]:
    return {"format": FORMAT, "version": VERSION, "model_hash": model_hash, "dtype": dtype, "segments": list(codes)}


def _write_segment(
    data: Path,
    number: int,
    post_ids: Sequence[str],
    documents: VectorSets,
    axes: Tensor,
    dtype: DType,
    model_hash: str,
) -> dict[str, float]:
    """Write a segment without removed documents; return the header of its codes."""
    folder = data / f"segment-{number}"
    exact = ExactIndex.build(post_ids, documents, path=folder, dtype=dtype, model_hash=model_hash)
    codes = exact.coded(axes, data / f"reduced-{number}.npy")
    np.save(data / f"removed-{number}.npy", np.array([], dtype=np.str_))
    exact.close()
    return codes.header()


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


def _link(old: Path, new: Path) -> None:
    """Give a file, or all files of a folder, a second name; copy them where the file system has no links."""
    if old.is_dir():
        shutil.copytree(old, new, copy_function=_link_file)
    else:
        _link_file(str(old), str(new))


def _link_file(old: str, new: str) -> None:
    try:
        os.link(old, new)
    except OSError:
        shutil.copy2(old, new)


def _remove_segment(data: Path, number: int) -> None:
    shutil.rmtree(data / f"segment-{number}")
    for name in ("reduced", "removed"):
        (data / f"{name}-{number}.npy").unlink()


@contextmanager
def _removed_if_unfinished(data: Path, path: Path) -> Iterator[None]:
    """Remove ``data`` if the block fails."""
    try:
        yield
    except BaseException as error:
        shutil.rmtree(data, ignore_errors=True)
        if isinstance(error, OSError):
            raise StoreError(f"the index cannot be written: {error}", path=path) from error
        raise
