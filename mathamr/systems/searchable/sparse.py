"""Sparse encoder kept for search: weights of words in posts, and the encoder of queries by its folder.

record = keep_sparse(settings, index, Path("index/splade"))
open_sparse(record, Path("index/splade"), "cpu").rank(topic)            # [("540", 21.7), ...]

The encoder stays in its folder. Another one in that folder is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphs.corpus.post import Topic
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import StoreError, faults_as
from mathamr.evaluation.order import best_numbers
from mathamr.model.encoding import device_of
from mathamr.ranking.sparse_encoder import Encode, open_sparse_encoder
from mathamr.retrieval.index import Ranking
from mathamr.systems.searchable.kept import entry
from mathamr.systems.settings.ranking import SparseSettings
from mathamr.text.encoder import identity

_IDS, _WEIGHTS = "post_ids.npy", "weights.npz"


class SparseIndex:
    """Weights of posts, by word.

    Args:
        names: ids of the posts, (posts,).
        weights: weight of each word of the vocabulary in each post, (posts, vocabulary).
    """

    def __init__(self, names: npt.NDArray[np.str_], weights: sparse.csc_array) -> None:
        self._names, self._weights = names, weights

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and the ids in memory."""
        arrays = (self._names, self._weights.data, self._weights.indices, self._weights.indptr)
        return sum(int(array.nbytes) for array in arrays)

    def search(self, query: sparse.csr_array, count: int) -> Ranking:
        """Return at most ``count`` posts that share a word with the query (1, vocabulary), best first."""
        scores = (self._weights[:, query.indices] @ query.data).astype(np.float32)
        found = np.flatnonzero(scores > 0)
        best = best_numbers(found, scores[found], count, self._names)
        return [(str(self._names[number]), score) for number, score in best]

    def write(self, folder: Path) -> None:
        """Write the weights and the ids to ``folder``, without pickle and without compression."""
        np.save(folder / _IDS, self._names, allow_pickle=False)
        sparse.save_npz(folder / _WEIGHTS, self._weights, compressed=False)

    @classmethod
    def open(cls, folder: Path) -> SparseIndex:
        """Open what :meth:`write` has written.

        Raises:
            StoreError: a file is missing or damaged.
        """
        with faults_as(StoreError, "cannot be read as weights of words: {}; build the index again", folder):
            names = np.load(folder / _IDS, allow_pickle=False)
            with zipfile.ZipFile(folder / _WEIGHTS) as archive:
                if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                    raise ValueError("its parts are compressed")  # they may be of any size
            weights = sparse.csc_array(sparse.load_npz(folder / _WEIGHTS))
            weights.check_format(full_check=True)  # the product does not check places
        if names.shape != weights.shape[:1]:
            raise StoreError("damaged: not as many ids as posts; build the index again", path=folder)
        return cls(names, weights)


@dataclass(frozen=True)
class SparseSearch:
    """Search by the words of a learned sparse encoder.

    Attributes:
        encode: encoder of queries.
        index: weights of the posts.
        results: number of results of a query.
    """

    encode: Encode
    index: SparseIndex
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a word with the query."""
        return self.index.search(self.encode([as_text(extract(topic.post))], "query"), self.results)

    def close(self) -> None:
        """Do nothing: no file is open."""


def keep_sparse(settings: SparseSettings, index: SparseIndex, folder: Path) -> dict[str, Any]:
    """Write an index to ``folder``; return the record that :func:`open_sparse` reads.

    Args:
        settings: settings of the job.
        index: weights of the posts.
        folder: folder of the system.
    """
    index.write(folder)
    own = settings.sparse
    return {
        "encoder": own.encoder,
        "identity": identity(str(own.encoder)),
        "max_length": own.max_length,
        "most_words": own.most_words,
        "results": settings.thread.results(settings.retrieval.k),
    }


def open_sparse(record: Mapping[str, Any], folder: Path, device: str) -> SparseSearch:
    """Open what :func:`keep_sparse` has written.

    Raises:
        ConfigError: the encoder cannot be opened.
        StoreError: the encoder has other weights than the one of the posts, or a file is missing or damaged.
    """
    name, expected = entry(record, "encoder"), entry(record, "identity")
    if (found := identity(name)) != expected:
        raise StoreError(
            f"the encoder {name} is {found}, and the posts were read by {expected}; give that encoder back its place, "
            "or build the index again",
            path=folder,
        )
    max_length, most_words, results = (entry(record, key) for key in ("max_length", "most_words", "results"))
    encode = open_sparse_encoder(name, max_length=max_length, device=device_of(device), most_words=most_words)
    return SparseSearch(encode, SparseIndex.open(folder), results)
