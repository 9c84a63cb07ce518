"""Encoding of posts in shards on disk; a killed job resumes with the next shard.

    encoded = encode_in_shards(encoder, store, post_ids, Path("index/encoding"), identity=weights_hash)
    encoded.sets, encoded.resumed       # VectorSets, and the number of posts encoded by earlier runs

Shard ``i`` holds the posts ``[i * n, (i + 1) * n)``. A shard is written under another name and renamed, so it is either
complete or absent. A shard of another model, other graphs or other posts is not used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
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
    """Encoded posts: ``sets``, one for each post, memory-mapped; ``resumed`` of them are from earlier runs."""

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
    """Return the vectors of the posts, from existing shards in ``folder`` or from new ones.

    Args:
        identity: hash of the model that encodes (:func:`mathamr.training.checkpoint.weights_hash`).
        progress: function called with the number of posts done since its last call, earlier runs included.
    """
    if not post_ids:
        raise StoreError("no post to encode; check that preprocessed.db belongs to the collection", path=store.path)
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
    """Encode posts with ``encode_some``, a shard at a time; existing shards are reused.

    ``identity`` is a hash of all that the vectors depend on. ``resumed`` is called with the number of posts of each
    existing shard.
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
                    safetensors.torch.save_file(tensors, partial, metadata={"identity": who})
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
    except OSError as error:
        raise StoreError(
            f"the vectors cannot be written: {error}; free disk space and run the command again", path=folder
        ) from error
    return Encoded(VectorSets.of_sizes(torch.from_numpy(packed), sizes), there)


def remove(folder: Path) -> None:
    """Delete the shards; vectors in use stay readable until they are released."""
    shutil.rmtree(folder, ignore_errors=True)


def _digest(identity: str, post_ids: Sequence[str]) -> str:
    content = json.dumps([identity, list(post_ids)])
    return hashlib.sha256(content.encode()).hexdigest()


def _is_of(name: Path, who: str) -> bool:
    """Return whether a shard exists, is readable, and holds the requested vectors."""
    try:
        with safe_open(name, "pt") as file:
            return bool((file.metadata() or {}).get("identity") == who)
    except (OSError, SafetensorError):  # absent, or damaged by a full disk or a power cut: made again
        return False
