"""Graphs of threads from preprocessed.db: each post is loaded as one graph with the posts of its thread.

    threads = ThreadPosts({"a1": "q", "a2": "q"}, "question")
    store = ThreadStore("both.db", VirtualNodeSpec(thread="question"), threads=threads)
    store.load(["a1", "q"])                 # two graphs: a1 with q, and q
    store.load(["a1", "q"], hidden={"q"})   # two graphs: a1, and q

The file is that of posts without threads: posts are joined when they are loaded (:mod:`graphs.graph.threads`).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from graphs.graph.batching import GraphBatch
from graphs.graph.threads import NUM_THREAD_LABELS, NUM_THREAD_RELATIONS, Thread, ThreadPosts, in_threads
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore, SentenceNodeVectors


class ThreadStore(GraphStore):
    """Reader of preprocessed.db whose batches are graphs of threads; posts without a graph in the file are left out."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: VirtualNodeSpec,
        threads: ThreadPosts,
        *,
        sentence_vectors: SentenceNodeVectors | None = None,
    ) -> None:
        super().__init__(path, spec, sentence_vectors=sentence_vectors)
        self.thread_posts = threads

    @property
    def num_labels(self) -> int:
        """Number of label ids in batches: those of the vocabulary, and those of threads."""
        return super().num_labels + NUM_THREAD_LABELS

    @property
    def num_relations(self) -> int:
        """Number of relation ids in batches, inverses included: those of the vocabulary, and those of threads."""
        return super().num_relations + NUM_THREAD_RELATIONS

    @cached_property
    def _stored(self) -> frozenset[str]:
        return frozenset(self.post_ids())

    def threads(self, post_ids: Sequence[str], hidden: Collection[str] = ()) -> list[Thread]:
        """Return the thread of each post; posts that are ``hidden`` are in no thread of another post."""
        threads_of_posts = [self.thread_posts.of(post_id, hidden) for post_id in post_ids]
        return [[thread[0], *(one for one in thread[1:] if one[0] in self._stored)] for thread in threads_of_posts]

    def sizes(
        self, post_ids: Sequence[str], hidden: Collection[str] = ()
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of nodes and of edges (inverses included) of each thread, both (len(post_ids),)."""
        threads = self.threads(post_ids, hidden)
        nodes, edges = super().sizes([name for thread in threads for name, _ in thread])
        if not threads:
            return nodes, edges
        counts = np.array([len(thread) for thread in threads], dtype=np.int64)
        starts = np.cumsum(counts) - counts
        return np.add.reduceat(nodes, starts) + 1, np.add.reduceat(edges, starts) + 2 * counts

    def load(self, post_ids: Sequence[str], hidden: Collection[str] = ()) -> GraphBatch:
        """Return the :meth:`threads` of posts as one batch, in their order; raises as :meth:`get_arrays`."""
        threads = self.threads(post_ids, hidden)
        posts = self.load_posts([name for thread in threads for name, _ in thread])
        roles = [[role for _, role in thread] for thread in threads]
        return in_threads(posts, roles, self.vocabulary.num_labels, self.vocabulary.num_relations)
