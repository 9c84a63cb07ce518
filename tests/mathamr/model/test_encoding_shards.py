"""Encoding in shards: a stop at any moment loses nothing that was finished, and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny_collection import ENCODER

from graphs.errors import StoreError
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.model.encoding_shards import encode_in_shards


def killed_after(posts: int) -> Callable[[int], None]:
    """Raise once more than a number of posts are done."""
    done = 0

    def progress(count: int) -> None:
        nonlocal done
        done += count
        if done > posts:
            raise Killed

    return progress


class Killed(BaseException):
    pass


@pytest.fixture
def encoder(store: GraphStore) -> Encoder:
    torch.manual_seed(0)
    return Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations).eval()


def test_a_stopped_job_goes_on_with_the_next_shard(tmp_path: Path, store: GraphStore, encoder: Encoder) -> None:
    ids = store.post_ids()[:25]
    done = 0

    def stop(count: int) -> None:
        nonlocal done
        done += count
        if done > 14:
            raise Killed

    with pytest.raises(Killed):
        encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4, progress=stop)
    counts: list[int] = []
    encoded = encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4, progress=counts.append)
    assert encoded.resumed == 12
    assert sum(counts) == 25
    whole = encode(encoder, store, ids)
    torch.testing.assert_close(encoded.sets.vectors, whole.vectors)
    assert torch.equal(encoded.sets.ptr, whole.ptr)


def test_shards_of_another_model_or_damaged_ones_are_made_again(
    tmp_path: Path, store: GraphStore, encoder: Encoder
) -> None:
    ids = store.post_ids()[:8]
    encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4)
    assert encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4).resumed == 8
    (tmp_path / "00001.safetensors").write_bytes(b"cut off")
    assert encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4).resumed == 4
    with (tmp_path / "vectors.f32").open("r+b") as file:
        file.truncate(100)  # within the vectors of the first shard
    again = encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4)
    assert again.resumed == 0
    torch.testing.assert_close(again.sets.vectors, encode(encoder, store, ids).vectors)
    assert encode_in_shards(encoder, store, ids[::-1], tmp_path, identity="m", posts_a_shard=4).resumed == 0
    assert encode_in_shards(encoder, store, ids[::-1], tmp_path, identity="n", posts_a_shard=4).resumed == 0


def test_nothing_to_encode_is_refused(tmp_path: Path, store: GraphStore, encoder: Encoder) -> None:
    with pytest.raises(StoreError, match="no post to encode"):
        encode_in_shards(encoder, store, [], tmp_path, identity="m")


def test_each_vector_is_on_disk_once(tmp_path: Path, store: GraphStore, encoder: Encoder) -> None:
    ids = store.post_ids()[:25]
    encoded = encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4)
    assert (tmp_path / "vectors.f32").stat().st_size == encoded.sets.vectors.nbytes
    others = sum(file.stat().st_size for file in tmp_path.glob("*.safetensors"))
    assert others < 7 * 400  # numbers of vectors, and who the shards are
    fewer = encode_in_shards(encoder, store, ids[:10], tmp_path, identity="m", posts_a_shard=4)  # the last one differs
    assert fewer.resumed == 8
    assert (tmp_path / "vectors.f32").stat().st_size == fewer.sets.vectors.nbytes


def test_a_shard_that_changed_leaves_none_after_it(tmp_path: Path, store: GraphStore, encoder: Encoder) -> None:
    ids = store.post_ids()[:12]
    encode_in_shards(encoder, store, ids, tmp_path, identity="m", posts_a_shard=4)
    changed = [*ids[:4], *ids[7:3:-1], *ids[8:]]
    with pytest.raises(Killed):  # while the second shard is made
        encode_in_shards(encoder, store, changed, tmp_path, identity="m", posts_a_shard=4, progress=killed_after(4))
    again = encode_in_shards(encoder, store, changed, tmp_path, identity="m", posts_a_shard=4)
    assert again.resumed == 4
    torch.testing.assert_close(again.sets.vectors, encode(encoder, store, changed).vectors)
