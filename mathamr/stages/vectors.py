"""Vectors of posts and topics, kept beside their model and encoded on request.

    place = EncodedPosts(model_folder, model_hash)
    place.extend(encode, place.missing(post_ids), "posts")
    place.sets(post_ids)                  # VectorSets, one a post; memory-mapped
    place.costs(2863)                     # {'encode_docs_per_second': 310.2, 'encode_seconds': 9.2, ...}

So strategies, tasks and experiments that search with one model encode each post once. In the model's folder lie

    encoded/          an exact index (:mod:`mathamr.retrieval.exact`) of all of them, replaced whole when more come
    encoded.digests.json  what the vectors of topics, and of posts that are only searched, were made of
    encoded.json      how many posts and topics were encoded, and in how long
    encoding-posts/   shards of an encoding that is not finished; it goes on from them. Topics have encoding-topics/

One process adds at a time (:mod:`experiments.models` sees to it); others read on what they have open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from graphs.errors import StoreError
from graphs.ids import Ids
from graphs.processes import batched
from graphs.shared_files import key, read_json, write_json
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import MAX_EDGES, MAX_NODES
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.retrieval.exact.mapped import mapped
from mathamr.retrieval.folder import unwritten
from mathamr.stages.console import Console

_AT_ONCE = 10_000  # ids
_DIGESTS = "encoded.digests.json"
_RATES = {"posts": "encode_docs_per_second", "topics": "encode_queries_per_second"}


class EncodedPosts:
    """Vectors of posts and topics under one model, in ``folder``."""

    def __init__(self, folder: Path, model_hash: str) -> None:
        self.model_hash = model_hash
        self.folder = folder
        self._index: ExactIndex | None = None
        self._changed: frozenset[str] = frozenset()  # their vectors are of another content
        measured = read_json(folder / "encoded.json") or {}
        if measured.get("model_hash") != model_hash:
            measured = {"model_hash": model_hash}
        self._measured: dict[str, Any] = measured
        kept = read_json(folder / _DIGESTS) or {}
        self._digests: dict[str, str] = kept.get("digests", {}) if kept.get("model_hash") == model_hash else {}
        self._current: Mapping[str, str] = {}
        with suppress(StoreError):  # none yet, of another model, or damaged: it is made anew
            self._index = ExactIndex.open(folder / "encoded", model_hash=model_hash)

    def encoded(self, post_ids: Iterable[str]) -> Ids:
        """Return the given posts that have vectors here."""
        return Ids(post_id for post_id, here in self._looked_up(post_ids) if here)

    def missing(self, post_ids: Iterable[str]) -> Ids:
        """Return the given posts without vectors; each must be given only once."""
        return Ids(post_id for post_id, here in self._looked_up(post_ids) if not here)

    def _looked_up(self, post_ids: Iterable[str]) -> Iterator[tuple[str, bool]]:
        """Yield each post, and whether it has vectors here."""
        for some in batched(post_ids, _AT_ONCE):
            held = [False] * len(some) if self._index is None else self._index.holds(some).tolist()
            yield from ((name, here and name not in self._changed) for name, here in zip(some, held, strict=True))

    def forget_changed(self, digests: Mapping[str, str]) -> None:
        """Forget the vectors of posts and topics whose content has another hash, by id, than when they were encoded."""
        self._current = digests
        self._changed |= {name for name, digest in digests.items() if self._digests.get(name) != digest}

    def sets(self, post_ids: Sequence[str]) -> VectorSets:
        """Return one set of vectors for each of ``post_ids``, in this order; all must be :meth:`encoded`."""
        assert self._index is not None
        return self._index.vectors_of(post_ids)

    def index(self, post_ids: Sequence[str]) -> ExactIndex:
        """Return an exact index of encoded posts, over the vectors on disk if most of them are wanted.

        Such an index compares every vector with a query; for few posts a copy in memory is faster.
        """
        assert self._index is not None
        part = self._index.only(post_ids)
        if 2 * part.num_vectors >= self._index.num_vectors:
            return part
        return ExactIndex.build(post_ids, self.sets(post_ids), model_hash=self.model_hash)

    def count_cut(self, cut: int, texts: int) -> None:
        """Count encoded texts, and encoded texts that were too long and were cut."""
        self._measured["texts"] = self._measured.get("texts", 0) + texts
        self._measured["texts_cut"] = self._measured.get("texts_cut", 0) + cut

    def costs(self, posts: int) -> dict[str, float]:
        """Return columns of the results: posts and topics encoded a second, and the seconds for ``posts``.

        Each vector is made once, so all rows that use it have the same rates. Empty if a kill lost the times. With
        a text encoder ``texts_cut`` is the share of texts that are longer than it reads.
        """
        costs = {}
        if self._measured.get("texts"):
            costs["texts_cut"] = self._measured["texts_cut"] / self._measured["texts"]
        for kind, column in _RATES.items():
            count, seconds = self._measured.get(kind, 0), self._measured.get(f"{kind}_seconds", 0.0)
            if count and seconds:
                costs[column] = count / seconds
        if rate := costs.get(_RATES["posts"]):
            costs["encode_seconds"] = posts / rate
        return costs

    def identity(self, post_ids: Iterable[str]) -> str:
        """Return the identity of vectors to be made: of the model, and of the content that may change under it."""
        return self._identity(post_ids, self._current)

    def kept_identity(self, post_ids: Iterable[str]) -> str:
        """Return the identity of the vectors that these posts have here; posts without vectors do not count."""
        return self._identity(post_ids, self._digests)

    def _identity(self, post_ids: Iterable[str], digests: Mapping[str, str]) -> str:
        content = sorted((name, digests[name]) for name in post_ids if name in digests)
        return f"{self.model_hash} {key(content)}" if content else self.model_hash

    def extend(
        self,
        encode: Callable[[Path], encoding_shards.EncodedShards],
        post_ids: Sequence[str],
        kind: Literal["posts", "topics"],
    ) -> None:
        """Add posts without vectors; ``encode`` writes their vectors to a folder of shards."""
        if not post_ids:
            return
        working = self.folder / f"encoding-{kind}"
        start = time.perf_counter()
        new_sets = encode(working)
        # Before the vectors are in place: what a kill makes happen twice is measured twice, and the rate stays.
        self._measured[kind] = self._measured.get(kind, 0) + len(post_ids) - new_sets.resumed
        self._measured[f"{kind}_seconds"] = self._measured.get(f"{kind}_seconds", 0.0) + time.perf_counter() - start
        write_json(self.folder / "encoded.json", self._measured)
        before = Ids([]) if self._index is None else self.encoded(self._index.post_ids())
        together = _on_disk([self.sets(before), new_sets.sets], working / "together.npy") if before else new_sets.sets
        path = self.folder / "encoded"
        names = Ids(chain(before, post_ids))
        new = {name: self._current[name] for name in post_ids if name in self._current}
        # Without new ones until the vectors are in place: what a kill leaves without a digest is encoded again.
        self._write_digests({name: digest for name, digest in self._digests.items() if name not in new})
        self._index = ExactIndex.build(names, together, path=path, model_hash=self.model_hash)
        self._changed = self._changed.difference(post_ids)
        self._write_digests(self._digests | new)
        encoding_shards.remove(working)

    def _write_digests(self, digests: dict[str, str]) -> None:
        write_json(self.folder / _DIGESTS, {"model_hash": self.model_hash, "digests": digests})
        self._digests = digests


def encode_missing(
    place: EncodedPosts,
    encoder: Callable[[], Encoder],
    stores: Sequence[GraphStore],
    posts: Sequence[str],
    topic_store: GraphStore,
    topics: Sequence[str],
    console: Console,
    *,
    node_budget: int,
    edge_budget: int,
) -> int:
    """Encode the posts and topics that ``place`` does not have; returns how many of the posts have tensors.

    Args:
        encoder: opens the encoder; not called where nothing is missing.
        stores: tensors of the posts, file by file; a post has them in one file at most.
        posts: ids of posts, each once; those without tensors are left out.
        topic_store: tensors of the topics.
        topics: ids of topics that have tensors.
        node_budget: nodes encoded at once, as in training, which fit the memory of the device.
        edge_budget: edges encoded at once. Batches are also limited by the largest useful batch of encoding.
    """
    in_stores = [Ids(store.having(posts)) for store in stores]
    num_posts = sum(map(len, in_stores))
    new_posts, new_topics = [place.missing(ids) for ids in in_stores], place.missing(dict.fromkeys(topics))
    del in_stores  # of a large collection the memory is needed for encoding
    if not (any(new_posts) or new_topics):
        return num_posts
    model = encoder()
    budgets = {"max_nodes": min(node_budget, MAX_NODES), "max_edges": min(edge_budget, MAX_EDGES)}
    with console.stage("encoding", sum(map(len, new_posts)) + len(new_topics), "posts") as advance:

        def add(store: GraphStore, ids: Ids, kind: Literal["posts", "topics"]) -> None:
            def encode(working: Path) -> encoding_shards.EncodedShards:
                identity = place.identity(ids)
                return encoding_shards.encode_in_shards(
                    model, store, ids, working, identity=identity, progress=advance, **budgets
                )

            place.extend(encode, ids, kind)

        add(topic_store, new_topics, "topics")  # first: what is added to is read into memory
        for store, ids in zip(stores, new_posts, strict=True):
            add(store, ids, "posts")
    return num_posts


def _on_disk(parts: Sequence[VectorSets], path: Path) -> VectorSets:
    """Return :meth:`VectorSets.concatenated`, with the vectors in a file: those of many posts need no memory."""
    vectors = [part.vectors for part in parts]
    shape = (sum(map(len, vectors)), vectors[0].shape[1])
    try:
        together = torch.from_numpy(mapped(path, np.float32, shape))
    except OSError as error:
        raise unwritten(error, path) from error
    return VectorSets.of_sizes(torch.cat(vectors, out=together), torch.cat([part.sizes for part in parts]))


def kinds_of(stores: Sequence[GraphStore], post_ids: Sequence[str]) -> NDArray[np.integer]:
    """Return the kind of part of each vector (:data:`mathamr.analysis.collapse.KINDS`), post after post."""
    kinds: dict[str, NDArray[np.integer]] = {}
    for graphs in stores:
        some = [post_id for post_id in graphs.having(post_ids) if post_id not in kinds]
        for part in batched(some, 1000):
            arrays = graphs.get_arrays(part)
            kinds |= {post_id: one.representative_kinds for post_id, one in zip(part, arrays, strict=True)}
    return np.concatenate([kinds[post_id] for post_id in post_ids])
