"""Sparse: a learned sparse encoder weights the words of its vocabulary; posts are found as by BM25, by their words.

    track=sparse sparse.encoder=FOLDER

The encoder, such as SPLADE, is taken as it is. A score is the dot product of the weights of topic and post. The same in
every process and for every seed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphs.corpus.post import Topic
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, RetrievalError, StoreError, faults_as
from graphs.processes import batched
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.order import best_numbers
from mathamr.evaluation.runs import check_k
from mathamr.model.encoding import device_of
from mathamr.ranking.text_models import Encode, open_sparse_encoder
from mathamr.retrieval.index import Ranking
from mathamr.search.searchable import Searchable
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet, speed
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, entry
from mathamr.systems.settings.ranking import SparseSettings
from mathamr.systems.system import System
from mathamr.text.encoder import identity

_IDS, _WEIGHTS = "post_ids.npy", "weights.npz"  # files of an index that is kept
_AT_ONCE = 512  # posts


@system("sparse")
class SparseSystem(System[SparseSettings]):
    """Search by the words of a learned sparse encoder."""

    tasks = frozenset({1})
    reads = frozenset({"answer", "question"})

    def check(self, settings: SparseSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check ``retrieval.k``, and that there is such an encoder."""
        check_k(settings.retrieval.k, "retrieval.k")
        self._open(settings)

    def index(self, settings: SparseSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Encode the posts that are searched; ``index_seconds`` is of that as well."""
        encode = self._open(settings)
        kept: dict[str, None] = {}
        parts: list[sparse.csr_array] = []
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("encoding", unit="posts") as advance:
            for some in batched(self.searched_posts(topic_set), _AT_ONCE):
                new = {post.post_id: as_text(extract(post)) for post in some if post.post_id not in kept}
                if new:
                    parts.append(encode(list(new.values()), "document"))
                    kept |= dict.fromkeys(new)
                advance(len(some))
            if not parts:
                raise RetrievalError(f"the collection has no {topic_set.kind} to index")
            index = SparseIndex(np.array(list(kept)), sparse.csc_array(sparse.vstack(parts)))
        costs = {"index_seconds": watch.seconds, "index_bytes": index.nbytes, "peak_memory_bytes": peak_memory()}
        return Indexed(index, costs)

    def retrieve(self, settings: SparseSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the topics; ``queries_per_second`` is of encoding and search."""
        encode, count = self._open(settings), settings.thread.results(settings.retrieval.k)
        texts = {topic.topic_id: as_text(extract(topic.post)) for topic in topic_set.topics}
        with Stopwatch() as watch:
            queries = encode(list(texts.values()), "query")
            results = {topic: indexed.index.search(queries[[place]], count) for place, topic in enumerate(texts)}
        return Retrieved(results, speed(len(texts), watch.seconds))

    def keep(self, job: FinishedSearch[SparseSettings], folder: Path) -> Mapping[str, Any]:
        """Keep the weights of the posts, and the name of the encoder, which stays in its folder."""
        own = job.settings.sparse
        job.indexed.index.write(folder)
        return {
            "encoder": own.encoder,
            "identity": identity(str(own.encoder)),
            "max_length": own.max_length,
            "most_words": own.most_words,
            "results": job.settings.thread.results(job.settings.retrieval.k),
        }

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the weights of the posts, and the encoder.

        Raises:
            ConfigError: the encoder cannot be opened.
            StoreError: the encoder has other weights than the one of the posts, or a file is missing or damaged.
        """
        names = ("encoder", "identity", "max_length", "most_words", "results")
        name, expected, max_length, most_words, results = (entry(kept.record, key) for key in names)
        if (found := identity(name)) != expected:
            raise StoreError(
                f"the encoder {name} is {found}, and the posts were read by {expected}; give that encoder back its "
                "place, or build the index again",
                path=kept.folder,
            )
        device = device_of(kept.device)
        encode = open_sparse_encoder(name, max_length=max_length, device=device, most_words=most_words)
        return SparseSearch(encode, SparseIndex.open(kept.folder), results)

    def _open(self, settings: SparseSettings) -> Encode:
        own = settings.sparse
        if own.encoder is None:
            raise ConfigError("track=sparse needs sparse.encoder, the folder of a SparseEncoder")
        return open_sparse_encoder(
            own.encoder,
            max_length=own.max_length,
            device=device_of(own.device),
            batch_size=own.batch_size,
            most_words=own.most_words,
        )


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
        """Open what :meth:`write` has written; raise StoreError for a file that is missing or damaged."""
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
class SparseSearch(Searchable):
    """Search by the words of a learned sparse encoder."""

    encode: Encode
    index: SparseIndex
    results: int

    def rank(self, topic: Topic) -> Ranking:
        """Return the posts that share a word with the query."""
        return self.index.search(self.encode([as_text(extract(topic.post))], "query"), self.results)
