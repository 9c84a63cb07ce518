"""Sparse: a learned sparse encoder weights the words of its vocabulary; posts are found as by BM25, by their words.

    track=sparse sparse.encoder=FOLDER

The encoder, such as SPLADE, is taken as it is. A score is the dot product of the weights of topic and post. The same in
every process and for every seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from graphs.corpus.post import Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, RetrievalError
from graphs.processes import batched
from mathamr.evaluation.efficiency import Stopwatch, peak_memory, reset_peak_memory
from mathamr.evaluation.runs import check_k
from mathamr.model.encoding import device_of
from mathamr.ranking.sparse_encoder import Encode, open_sparse_encoder
from mathamr.search.searchable import Searchable
from mathamr.stages.retrieval.searching import speed
from mathamr.stages.topic_sets import Encoded, Indexed, Retrieved, TopicSet
from mathamr.systems.registry import system
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch
from mathamr.systems.searchable.sparse import SparseIndex, keep_sparse, open_sparse
from mathamr.systems.settings.ranking import SparseSettings
from mathamr.systems.system import System

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
        wanted = topic_set.indexed
        kept: dict[str, None] = {}
        parts: list[sparse.csr_array] = []
        posts = (
            post
            for post in self.posts_for(topic_set)
            if isinstance(post, Post) and post.kind == topic_set.kind and (wanted is None or post.post_id in wanted)
        )
        reset_peak_memory()
        with Stopwatch() as watch, self.console.stage("encoding", unit="posts") as advance:
            for some in batched(posts, _AT_ONCE):
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

    def keep(self, job: FinishedSearch, folder: Path) -> Mapping[str, Any]:
        """Keep the weights of the posts, and the name of the encoder."""
        return keep_sparse(cast(SparseSettings, job.settings), job.indexed.index, folder)

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the weights of the posts, and the encoder."""
        return open_sparse(kept.record, kept.folder, kept.device)

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
