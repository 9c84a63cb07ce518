"""Encoding in shards: a stop at any moment loses nothing that was finished, and doubles nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_collection import ENCODER

from graphs.errors import StoreError
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.model.encoding_shards import encode_in_shards


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
    assert encode_in_shards(encoder, store, ids[::-1], tmp_path, identity="m", posts_a_shard=4).resumed == 0
    assert encode_in_shards(encoder, store, ids[::-1], tmp_path, identity="n", posts_a_shard=4).resumed == 0


def test_nothing_to_encode_is_refused(tmp_path: Path, store: GraphStore, encoder: Encoder) -> None:
    with pytest.raises(StoreError, match="no post to encode"):
        encode_in_shards(encoder, store, [], tmp_path, identity="m")
