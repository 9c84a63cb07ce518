"""Posts -> vectors in shards on disk, so that a killed job resumes with the next shard.

    encoded = encode_in_shards(encoder, store, post_ids, Path("index/encoding"), identity=weights_hash)
    encoded.sets, encoded.resumed       # VectorSets, and the number of posts encoded by earlier runs

Shard ``i`` holds the posts ``[i * n, (i + 1) * n)``. Its vectors follow those of shard ``i - 1`` in ``vectors.f32``, so
each vector is on disk once. ``NNNNN.safetensors`` has the number of vectors of each post. It is written atomically
after the vectors, so its presence shows that the shard is complete. A shard of another model, other graphs or other
posts is not used, and neither are the shards after it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from graphs import digests
from graphs.errors import StoreError
from graphs.stores.store import GraphStore
from graphs.whole_file import whole_file
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import MAX_EDGES, MAX_NODES, encode

POSTS_A_SHARD = 10_000
_VECTORS = "vectors.f32"  # float32, a row a vector


@dataclass(frozen=True, slots=True)
class EncodedShards:
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
) -> EncodedShards:
    """Return the vectors of the posts, from existing shards in ``folder`` or from new ones.

    Args:
        identity: hash of the model that encodes (:func:`mathamr.training.checkpoint.weights_hash`).
        progress: function called with the number of posts done since its last call, earlier runs included.
    """
    if not post_ids:
        raise StoreError("no post to encode; check that preprocessed.db belongs to the collection", path=store.path)
    report = progress or (lambda count: None)
    encode_some = partial(encode, encoder, store, max_nodes=max_nodes, max_edges=max_edges, progress=report)
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
) -> EncodedShards:
    """Encode posts with ``encode_some``, a shard at a time; existing shards are reused.

    ``identity`` is a hash of all that the vectors depend on. ``resumed`` is called with the number of posts of each
    existing shard.
    """
    shard_sizes: list[torch.Tensor] = []
    written = end = width = 0  # `end`: bytes of the shards so far
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / _VECTORS
        path.touch()
        with path.open("r+b") as file:
            for number, begin in enumerate(range(0, len(post_ids), posts_a_shard)):
                ids = post_ids[begin : begin + posts_a_shard]
                name = folder / f"{number:05}.safetensors"
                who = digests.of_json([identity, list(ids)])
                sizes, width, content = _kept(name, who)
                after = end + 4 * width * int(sizes.sum())
                if width and after <= path.stat().st_size and _content(file, end, after) == content:
                    written += len(ids)
                    resumed(len(ids))
                else:
                    for old in folder.glob("*.safetensors"):
                        if int(old.stem) >= number:  # their vectors are overwritten
                            old.unlink()
                    encoded = encode_some(ids).to("cpu")
                    sizes, width = encoded.sizes.contiguous(), encoded.vectors.shape[1]
                    file.seek(end)
                    vectors = encoded.vectors.float().contiguous().numpy()
                    vectors.tofile(file)
                    after = file.tell()
                    file.truncate()
                    os.fsync(file.fileno())
                    with whole_file(name) as partial:
                        content = hashlib.sha256(vectors.tobytes()).hexdigest()
                        metadata = {"identity": who, "width": str(width), "sha256": content}
                        safetensors.torch.save_file({"sizes": sizes}, partial, metadata=metadata)
                shard_sizes.append(sizes)
                end = after
        all_sizes = torch.cat(shard_sizes)
        shape = (int(all_sizes.sum()), width)
        # "c": pages are shared with the file and never written back; torch takes no read-only array.
        mapped = np.memmap(path, dtype=np.float32, mode="c", shape=shape)
    except (OSError, SafetensorError) as error:  # the latter of a full disk
        raise StoreError(f"the vectors cannot be written: {error}; make room, and run it again", path=folder) from error
    return EncodedShards(VectorSets.of_sizes(torch.from_numpy(mapped), all_sizes), written)


def remove(folder: Path) -> None:
    """Delete the shards; vectors in use stay readable until they are released."""
    shutil.rmtree(folder, ignore_errors=True)


def _content(file: BinaryIO, begin: int, end: int) -> str:
    """Return the SHA-256 of a part of a file."""
    file.seek(begin)
    digest = hashlib.sha256()
    while begin < end and (part := file.read(min(end - begin, 1 << 24))):
        digest.update(part)
        begin += len(part)
    return digest.hexdigest()


def _kept(name: Path, who: str) -> tuple[torch.Tensor, int, str]:
    """Return numbers of vectors of the posts of a shard, their width and SHA-256; 0 where another one is there."""
    try:
        with safe_open(name, "pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("identity") == who:
                return file.get_tensor("sizes"), int(metadata.get("width", 0)), metadata.get("sha256", "")
    except (OSError, SafetensorError, ValueError):  # none yet, or what a full disk or a power cut has left
        pass
    return torch.zeros(0, dtype=torch.int64), 0, ""
