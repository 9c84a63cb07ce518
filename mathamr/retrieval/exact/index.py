"""Exact search in memory or in a memory-mapped folder, on the CPU or a GPU: the reference of all backends.

>>> import tempfile, torch
>>> from pathlib import Path
>>> folder = Path(tempfile.mkdtemp()) / "index"
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> _ = ExactIndex.build(["154", "255"], documents, path=folder, dtype="float16", model_hash="abc")
>>> index = ExactIndex.open(folder)
>>> len(index), index.num_vectors, index.model_hash
(2, 3, 'abc')
>>> index.search(documents, Strategy("maxsim"), k=1)
[[('154', 1.0)], [('255', 1.999902367591858)]]

The vectors are ordered by their position in their sets (:mod:`mathamr.retrieval.exact.layout`). A part of the documents
is searched without a copy of their vectors:

>>> index.only(["154"]).search(documents, Strategy("maxsim"), k=2)
[[('154', 1.0)], [('154', 0.800000011920929)]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from graphs.errors import RetrievalError, StoreError
from graphs.ids import Ids, array_of
from mathamr.evaluation.order import best_first
from mathamr.maxsim import VectorSets
from mathamr.retrieval.exact import rescoring, scan
from mathamr.retrieval.exact.codes import Codes
from mathamr.retrieval.exact.kernel import Slabs
from mathamr.retrieval.exact.layout import Places, blocks, is_layout, on_device
from mathamr.retrieval.exact.mapped import mapped, read_array, read_ids
from mathamr.retrieval.folder import HEADER, building, open_current, read_header, switch
from mathamr.retrieval.index import BackendName, Ranking, Strategy, check_documents, check_search

DType = Literal["float32", "float16"]

FORMAT = "mathamr-exact-index"
VERSION = 1

BLOCK_DOCUMENTS = 2048  # with 128 query vectors, their similarities stay in the caches of a core
CPU_QUERY_VECTORS = 128
GPU_QUERY_VECTORS = 1024
MAX_SCORES = 1 << 26  # scores kept at once, 256 MiB: queries x documents
# Search over codes pays from this number of vectors on, if it leaves out most documents: not for long vectors.
CODED_VECTORS = 1 << 16
CODED_NUMBERS = 64
MOST_CANDIDATES = 1 / 16


class ExactIndex:
    """Packed vectors, every one of which is compared with every query.

    :mod:`mathamr.retrieval.exact.layout` has the layout.

    Shapes: ``post_ids`` and ``sizes`` have N documents in the order of the layout, ``vectors`` is (V, p).
    """

    backend: BackendName = "exact"

    def __init__(
        self, post_ids: np.ndarray, sizes: np.ndarray, vectors: Tensor, *, block: int, model_hash: str
    ) -> None:
        self.model_hash = model_hash
        self.dim = int(vectors.shape[1])
        self._post_ids = post_ids
        self._sizes = sizes
        self._vectors = vectors
        self._block = block
        self._blocks = list(blocks(sizes, block))
        self._slabs = Slabs.of(self._blocks)
        self._codes: Codes | None = None  # of the vectors, once they are needed
        self._files: list[Path] = []
        self._places = Places(post_ids)
        self._searched: np.ndarray | None = None  # places of the documents that are searched, ascending; None: all

    @classmethod
    def build(
        cls,
        post_ids: Sequence[str],
        documents: VectorSets,
        *,
        path: Path | None = None,
        dtype: DType = "float32",
        model_hash: str = "",
        device: torch.device | str = "cpu",
        block: int = BLOCK_DOCUMENTS,
    ) -> ExactIndex:
        """Lay out ``documents``; with ``path``, write them there and open the result memory-mapped.

        An index that the folder already holds is replaced in one step; a process that has the old one open can still
        use it. ``block`` is the number of documents in a block. Raises :class:`RetrievalError` for vectors or ids that
        cannot be indexed, :class:`StoreError` for the folder.
        """
        check_documents(post_ids, documents)
        if dtype not in ("float32", "float16"):
            raise RetrievalError(f"dtype={dtype!r}; an index holds float32 or float16")
        ptr = documents.ptr.cpu().numpy()
        order = np.argsort(-np.diff(ptr), kind="stable")
        sizes = np.diff(ptr)[order].astype(np.int32)
        ids = array_of(Ids(post_ids[place] for place in order))
        last = torch.from_numpy(ptr[1:][order] - 1).to(documents.vectors.device)  # row of each document's own vector
        shape = (int(ptr[-1]), int(documents.vectors.shape[1]))

        def filled(packed: np.ndarray) -> Tensor:
            for part in blocks(sizes, block):
                for position, (start, count) in enumerate(zip(part.starts, part.counts, strict=True)):
                    rows = last[part.first : part.first + count] - position
                    packed[start : start + count] = documents.vectors.detach()[rows].float().cpu().numpy()
            return torch.from_numpy(packed)

        if path is None:
            placed, larger = on_device(filled(np.empty(shape, dtype)), sizes, block, device)
            return cls(ids, sizes, placed, block=larger, model_hash=model_hash)
        with building(path) as data:
            packed = mapped(data / "vectors.npy", dtype, shape)
            vectors = filled(packed)
            packed.flush()
            codes = None
            if len(vectors) >= CODED_VECTORS:
                codes = Codes.written(data, vectors, Slabs.of(list(blocks(sizes, block))))
            np.save(data / "post_ids.npy", ids)
            del ids  # read back mapped
            np.save(data / "sizes.npy", sizes)
            header = {
                "format": FORMAT,
                "version": VERSION,
                "model_hash": model_hash,
                "documents": len(sizes),
                "vectors": shape[0],
                "dim": shape[1],
                "dtype": dtype,
                "block": block,
                "codes": codes,
            }
            switch(path, data, header)
        return cls.open(path, device=device)

    @classmethod
    def open(cls, path: Path, *, device: torch.device | str = "cpu", model_hash: str | None = None) -> ExactIndex:
        """Open an index folder, memory-mapped on the CPU, copied to a GPU.

        With ``model_hash``, an index of another model is refused. Raises :class:`StoreError` for a folder that is
        missing, damaged or of another format.
        """
        return open_current(path, lambda: cls._open(path, device, model_hash))

    @classmethod
    def _open(cls, path: Path, device: torch.device | str, model_hash: str | None) -> ExactIndex:
        header, data = read_header(path, FORMAT, VERSION, model_hash=model_hash)
        vectors = read_array(data / "vectors.npy", "c")  # torch takes no read-only array
        post_ids, sizes = read_ids(data / "post_ids.npy"), read_array(data / "sizes.npy", "r")
        try:
            documents, shape, block = header["documents"], (header["vectors"], header["dim"]), header["block"]
        except KeyError as error:
            raise StoreError(f"the index is damaged: its header lacks {error}; build it again", path=data) from error
        fit = is_layout(sizes, block) and vectors.dtype in (np.float32, np.float16) and vectors.flags.c_contiguous
        fit = fit and (vectors.shape, len(vectors)) == (shape, sizes.sum())
        if not fit or not (post_ids.shape == sizes.shape == (documents,)):
            raise StoreError("the index is damaged: its files do not fit its header; build it again", path=data)
        placed, block = on_device(torch.from_numpy(vectors), sizes, block, device)
        index = cls(post_ids, sizes, placed, block=block, model_hash=header["model_hash"])
        if placed.device.type == "cpu":  # no search on a GPU uses codes
            try:
                index._codes = Codes.read(data, header.get("codes"), index._vectors, index._slabs)
            except (AttributeError, KeyError, ValueError) as error:
                raise StoreError(f"the index is damaged: {error}; build it again", path=data) from error
        index._files = [path / HEADER, *data.iterdir()]
        return index

    def only(self, post_ids: Sequence[str]) -> ExactIndex:
        """Return an index of only these documents, over the same vectors: all are scored, and only these are ranked.

        Raises :class:`RetrievalError` for a document that the index does not hold.
        """
        part = copy(self)
        part._searched = np.unique(self._places.of(post_ids))
        return part

    def without(self, post_ids: Sequence[str]) -> ExactIndex:
        """Return an index without these documents, over the same vectors; errors as :meth:`only`."""
        if not len(post_ids):
            return self
        part = copy(self)
        part._searched = np.setdiff1d(np.arange(self.total), self._places.of(post_ids))
        return part

    @property
    def total(self) -> int:
        """Number of documents in the layout, searched or not."""
        return len(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes) if self._searched is None else len(self._searched)

    @property
    def num_vectors(self) -> int:
        """Number of vectors, those of all documents together."""
        return len(self._vectors) if self._searched is None else int(self._sizes[self._searched].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors and the ids, on disk or in memory."""
        if self._files and self._searched is None:
            return sum(file.stat().st_size for file in self._files)
        of_vectors = self.num_vectors * self.dim * self._vectors.element_size()
        return of_vectors + len(self) * (self._post_ids.itemsize + self._sizes.itemsize)

    def close(self) -> None:
        """Release the vectors."""
        self._vectors, self._codes = self._vectors.new_empty(0, self.dim), None
        self._post_ids, self._sizes = self._post_ids[:0].copy(), self._sizes[:0].copy()
        self._blocks, self._searched = [], None
        self._places = Places(self._post_ids)

    def post_ids(self) -> list[str]:
        """Ids of all documents, in the order of the layout."""
        return list(map(str, self._post_ids if self._searched is None else self._post_ids[self._searched]))

    def holds(self, post_ids: Sequence[str]) -> np.ndarray:
        """Return which of these documents the index has: booleans, (len(post_ids),)."""
        places, found = self._places.find(post_ids)
        return found if self._searched is None else found & np.isin(places, self._searched)

    def vectors_of(self, post_ids: Sequence[str]) -> VectorSets:
        """Return the vectors of these documents in float32, as :meth:`build` received them; errors as :meth:`only`."""
        rows, ptr = self._rows_of(self._places.of(post_ids))
        device = self._vectors.device
        vectors = self._vectors.index_select(0, torch.from_numpy(rows).to(device)).float()
        return VectorSets(vectors, torch.from_numpy(ptr).to(device))

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return the top-k documents of each query; see :class:`mathamr.retrieval.index.Index`."""
        if not strategy.exact:
            raise RetrievalError(
                f"the backend exact cannot do {strategy}; the backends approximate and qdrant can, "
                "or search with exact=True"
            )
        check_search(self, queries, k)
        queries = VectorSets(queries.vectors.detach().float(), queries.ptr).to(self._vectors.device)
        if strategy.name == "maxsim":
            return self._by_codes(queries, k) if self._has_use_of_codes(k) else self._rank(queries, self._maxsim, k)
        heads = queries.documents_only()
        if strategy.name == "single_vector":
            return self._rank(heads, self._single_vector, k)
        if strategy.name != "doc_vn_maxsim":
            raise strategy.not_in("exact")
        rankings = []
        bounds = queries.ptr.tolist()
        for number, places in enumerate(self._best(heads, self._single_vector, strategy.pool)):
            start, end = bounds[number : number + 2]
            rankings.append(self._sorted(*self.rescored(queries.vectors[start:end], places, k), k))
        return rankings

    def rescored(self, query: Tensor, places: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places and MaxSim of those documents at ``places`` that can be among the best ``k``."""
        numbers, scores = rescoring.best(self._vectors, *self._rows_of(places), query, k)
        return places[numbers], scores

    def _has_use_of_codes(self, k: int) -> bool:
        pays = len(self._vectors) >= CODED_VECTORS and self.dim <= CODED_NUMBERS
        return pays and self._vectors.device.type == "cpu" and k <= MOST_CANDIDATES * len(self)

    def _by_codes(self, queries: VectorSets, k: int) -> list[Ranking]:
        """Rank as :meth:`_maxsim` does, but compute scores only of documents that can be among the best.

        The ``k`` documents with the best codes have scores, so the k-th best score of all is at least their lowest. A
        document whose codes score less than that by more than the error of codes is not among the best.
        """
        rankings = []
        for group in self._groups(queries):
            scores, errors = self.coded_scores(group)
            for query, row, error in zip(group, scores, errors.tolist(), strict=True):
                highest = scan.largest(row, k)
                lowest = rescoring.scores(self._vectors, *self._rows_of(highest), query, torch.float32).min()
                places = np.flatnonzero(row >= lowest - rescoring.margin(query) - error)
                if len(places) > MOST_CANDIDATES * len(row):
                    rankings += self._rank(VectorSets.of([query]), self._maxsim, k)
                else:
                    rankings.append(self._sorted(*self.rescored(query, places, k), k))
        return rankings

    def coded_scores(self, queries: VectorSets, whole: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return MaxSim of codes with all documents (num_queries, N), and bounds of its error (num_queries,).

        The documents are in the order of the layout; those that are not searched have the score -inf. Without
        ``whole``, only the first numbers of each code are compared, and there is no bound.
        """
        if self._codes is None:
            self._codes = Codes.of(self._vectors, self._slabs)
        scores, errors = self._codes.scores(queries, whole)
        if self._searched is not None:
            others = np.ones(self.total, dtype=np.bool_)
            others[self._searched] = False
            scores[:, others] = -np.inf
        return scores, errors

    def ids_of(self, places: np.ndarray) -> np.ndarray:
        """Return the ids of the documents at ``places`` of the layout."""
        return np.asarray(self._post_ids[places])

    def _rank(self, queries: VectorSets, scorer: Callable[[VectorSets], Tensor], k: int) -> list[Ranking]:
        """Score the queries in groups and keep the best ``k`` documents of each."""
        scored = (found for group in self._groups(queries) for found in self._scored(scorer, group, k))
        return [self._sorted(places, scores, k) for places, scores in scored]

    def _best(self, queries: VectorSets, scorer: Callable[[VectorSets], Tensor], k: int) -> Iterator[np.ndarray]:
        """Places of the best ``k`` documents of each query, ties at the end resolved by post id."""
        for group in self._groups(queries):
            for places, scores in self._scored(scorer, group, k):
                yield places[best_first(self._post_ids[places], scores)[:k]] if len(places) > k else places

    def _scored(
        self, scorer: Callable[[VectorSets], Tensor], queries: VectorSets, k: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places and scores of the best ``k`` documents of each query, and of all that equal the last."""
        scores = scorer(queries)
        if self._searched is None:
            yield from scan.best(scores, k)
            return
        searched = torch.from_numpy(self._searched).to(scores.device)
        for places, values in scan.best(scores.index_select(1, searched), k):
            yield self._searched[places], values

    def _groups(self, queries: VectorSets) -> Iterator[VectorSets]:
        """Queries in groups that bound the memory of similarities and of scores; at least one query a group."""
        limit = CPU_QUERY_VECTORS if self._vectors.device.type == "cpu" else GPU_QUERY_VECTORS
        most = max(1, MAX_SCORES // max(1, len(self._sizes)))
        ptr = queries.ptr.cpu().numpy()
        begin = 0
        while begin < len(queries):
            end = int(np.searchsorted(ptr, ptr[begin] + limit, side="right")) - 1
            end = min(max(end, begin + 1), begin + most, len(queries))
            yield VectorSets(queries.vectors[ptr[begin] : ptr[end]], queries.ptr[begin : end + 1] - ptr[begin])
            begin = end

    def _single_vector(self, queries: VectorSets) -> Tensor:
        """Similarity of each query's only vector with every document's own -> (num_queries, N)."""
        scores = queries.vectors.new_empty(len(queries), len(self._sizes))
        space = queries.vectors.new_empty(min(self._block, self.total), self.dim)
        for block in self._blocks:
            count = block.counts[0]
            heads = self._vectors[block.starts[0] : block.starts[0] + count]  # (n, p)
            heads = heads if heads.dtype == torch.float32 else space[:count].copy_(heads)
            torch.mm(queries.vectors, heads.T, out=scores[:, block.first : block.first + count])
        return scores

    def _maxsim(self, queries: VectorSets) -> Tensor:
        """MaxSim of each query with every document -> (num_queries, N)."""
        return scan.scores(queries, self._vectors, self._blocks)

    def _rows_of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the documents at ``places``, each with its document's vector last, and their bounds (n + 1,)."""
        sizes = self._sizes[places].astype(np.int64)
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        position = np.repeat(ptr[1:], sizes) - 1 - np.arange(ptr[-1])  # size - 1 ... 0 within each set
        starts = self._slabs.starts[np.repeat(self._slabs.bounds[places // self._block], sizes) + position]
        return starts + np.repeat(places % self._block, sizes), ptr

    def _sorted(self, places: np.ndarray, scores: np.ndarray, k: int) -> Ranking:
        order = best_first(self._post_ids[places], scores)[:k]
        return list(zip(self._post_ids[places[order]].tolist(), scores[order].tolist(), strict=True))
