"""Posts -> vectors in shards on disk, so that a killed job goes on with the next shard.

    encoded = encode_in_shards(encoder, store, post_ids, Path("index/encoding"), identity=weights_hash)
    encoded.sets, encoded.resumed       # VectorSets, and how many posts an earlier run had encoded

Shard ``i`` holds the posts ``[i * n, (i + 1) * n)``. A shard is written beside its place and renamed, so it is there
whole or not at all; one that does not fit what is asked for (another model, other graphs, other posts) is not used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from graphs.errors import StoreError
from graphs.stores.store import GraphStore
from graphs.whole_file import whole_file
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import MAX_EDGES, MAX_NODES, encode

POSTS_A_SHARD = 10_000
_PACKED = "vectors.npy"


@dataclass(frozen=True, slots=True)
class Encoded:
    """``sets``, one a post, on the CPU, memory-mapped; ``resumed`` of them were there from an earlier run."""

    sets: VectorSets
    resumed: int


def encode_in_shards(
    encoder: Encoder,
    store: GraphStore,
    post_ids: Sequence[str],
    folder: Path,
    *,
    identity: str,
    posts_a_shard: int = POSTS_A_SHARD,
    max_nodes: int = MAX_NODES,
    max_edges: int = MAX_EDGES,
    progress: Callable[[int], None] | None = None,
) -> Encoded:
    """The vectors of the posts, from shards in ``folder`` that are there, or are made.

    Args:
        identity: the model that encodes (:func:`mathamr.training.checkpoint.weights_hash`).
        progress: called with the number of posts done since the last call, those of earlier runs included.
    """
    if not post_ids:
        raise StoreError("there is no post to encode; does preprocessed.db belong to the collection?", path=store.path)
    report = progress or (lambda count: None)

    def encode_some(ids: Sequence[str]) -> VectorSets:
        return encode(encoder, store, ids, max_nodes=max_nodes, max_edges=max_edges, progress=report)

    identity = json.dumps([identity, store.config_hash, store.source])
    return in_shards(encode_some, post_ids, folder, identity=identity, posts_a_shard=posts_a_shard, resumed=report)


def in_shards(
    encode_some: Callable[[Sequence[str]], VectorSets],
    post_ids: Sequence[str],
    folder: Path,
    *,
    identity: str,
    posts_a_shard: int = POSTS_A_SHARD,
    resumed: Callable[[int], None] = lambda count: None,
) -> Encoded:
    """What ``encode_some`` makes of one or more posts, a shard at a time, from shards that are there or are made.

    ``identity`` is of all that the vectors depend on; ``resumed`` is called with the number of posts of each shard that
    was there.
    """
    names: list[Path] = []
    shard_sizes: list[torch.Tensor] = []
    widths: set[int] = set()
    there = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, begin in enumerate(range(0, len(post_ids), posts_a_shard)):
            ids = post_ids[begin : begin + posts_a_shard]
            name = folder / f"{number:05}.safetensors"
            who = _digest(identity, ids)
            if _is_of(name, who):
                there += len(ids)
                resumed(len(ids))
            else:
                made = encode_some(ids).to("cpu")
                tensors = {"vectors": made.vectors.float().contiguous(), "sizes": made.sizes.contiguous()}
                with whole_file(name) as partial:
                    known = {"identity": who, "sha256": _content(tensors)}
                    safetensors.torch.save_file(tensors, partial, metadata=known)
            with safe_open(name, "pt") as file:
                shard_sizes.append(file.get_tensor("sizes"))
                widths.add(file.get_slice("vectors").get_shape()[1])
            names.append(name)
        (width,) = widths
        sizes = torch.cat(shard_sizes)
        shape = (int(sizes.sum()), width)
        packed = np.lib.format.open_memmap(folder / _PACKED, mode="w+", dtype=np.dtype("float32"), shape=shape)
        row = 0
        for name in names:
            vectors = safetensors.torch.load_file(name)["vectors"]
            packed[row : row + len(vectors)] = vectors.numpy()
            row += len(vectors)
    except (OSError, SafetensorError) as error:  # the latter of a full disk
        raise StoreError(f"the vectors cannot be written: {error}; make room, and run it again", path=folder) from error
    return Encoded(VectorSets.of_sizes(torch.from_numpy(packed), sizes), there)


def remove(folder: Path) -> None:
    """Delete the shards; their vectors, where still in use, stay readable until they are let go of."""
    shutil.rmtree(folder, ignore_errors=True)


def _digest(identity: str, post_ids: Sequence[str]) -> str:
    content = json.dumps([identity, list(post_ids)])
    return hashlib.sha256(content.encode()).hexdigest()


def _content(tensors: Mapping[str, torch.Tensor]) -> str:
    digest = hashlib.sha256()
    for name in ("vectors", "sizes"):
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()


def _is_of(name: Path, who: str) -> bool:
    """Return whether a shard is there, undamaged, and holds what is asked for."""
    try:
        with safe_open(name, "pt") as file:
            known = file.metadata() or {}
        return known.get("identity") == who and known.get("sha256") == _content(safetensors.torch.load_file(name))
    except (
        OSError,
        SafetensorError,
        KeyError,
        ValueError,
    ):
        return False  # none yet, or what a full disk or a power cut has left: it is made again
