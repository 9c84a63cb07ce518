"""Vectors of posts and topics beside their model: what is added later joins what is there, through a file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import StoreError
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.stages.vectors import EncodedPosts, _on_disk


def sets(*sizes: int) -> VectorSets:
    generator = torch.Generator().manual_seed(sum(sizes))
    return VectorSets.of([torch.nn.functional.normalize(torch.randn(n, 4, generator=generator), dim=-1) for n in sizes])


def encoding(some: VectorSets, ids: list[str]) -> Callable[[Path], encoding_shards.Encoded]:
    def encode(folder: Path) -> encoding_shards.Encoded:
        return encoding_shards.in_shards(lambda _: some, ids, folder, identity="hash")

    return encode


def test_sets_in_a_file_are_those_in_memory(tmp_path: Path) -> None:
    parts = [sets(1, 3), sets(2), sets(4, 1)]
    together, reference = _on_disk(parts, tmp_path / "together.npy"), VectorSets.concatenated(parts)
    assert torch.equal(together.vectors, reference.vectors)
    assert torch.equal(together.ptr, reference.ptr)
    assert np.array_equal(np.load(tmp_path / "together.npy"), reference.vectors.numpy())


def test_vectors_of_a_stopped_call_are_not_taken_for_those_of_the_content_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(place: EncodedPosts, content: str) -> None:
        place.forget_changed({"t1": content})
        place.extend(encoding(sets(2), ["t1"]), ["t1"], "topics")

    add(EncodedPosts(tmp_path, "hash"), "old")

    built = ExactIndex.build

    def stopped(*given: Any, **options: Any) -> None:
        built(*given, **options).close()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ExactIndex, "build", stopped)
        with pytest.raises(KeyboardInterrupt):
            add(EncodedPosts(tmp_path, "hash"), "new")
    place = EncodedPosts(tmp_path, "hash")
    place.forget_changed({"t1": "old"})
    assert list(place.missing(["t1"])) == ["t1"]


def test_a_full_disk_is_a_message_and_the_vectors_before_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without reserved room, the process would be killed by SIGBUS."""
    place = EncodedPosts(tmp_path, "hash")
    place.extend(encoding(sets(2, 1), ["p1", "p2"]), ["p1", "p2"], "posts")

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(StoreError, match=r"cannot be written: .*No space left on device; make room"):
            place.extend(encoding(sets(3), ["p3"]), ["p3"], "posts")
    assert list(EncodedPosts(tmp_path, "hash").missing(["p1", "p2", "p3"])) == ["p3"]


def test_topics_and_posts_share_an_index_whatever_came_first(tmp_path: Path) -> None:
    topics, posts = sets(2, 1), sets(3, 1, 2)
    place = EncodedPosts(tmp_path, "hash")
    place.extend(encoding(topics, ["t1", "t2"]), ["t1", "t2"], "topics")
    place.extend(encoding(posts, ["p1", "p2", "p3"]), ["p1", "p2", "p3"], "posts")
    for opened in (place, EncodedPosts(tmp_path, "hash")):
        assert torch.equal(opened.sets(["t1", "t2"]).vectors, topics.vectors)
        assert torch.equal(opened.sets(["p1", "p2", "p3"]).vectors, posts.vectors)
    assert not list(tmp_path.glob("encoding-*"))


def test_posts_without_vectors_or_with_others_are_missing(tmp_path: Path) -> None:
    place = EncodedPosts(tmp_path, "hash")
    assert list(place.missing(["p1", "p2"])) == ["p1", "p2"]
    place.forget_changed({"p1": "before"})
    place.extend(encoding(sets(2, 1), ["p1", "p2"]), ["p1", "p2"], "posts")
    for opened in (place, EncodedPosts(tmp_path, "hash")):
        opened.forget_changed({"p1": "before", "p3": "new"})
        assert list(opened.encoded(["p3", "p2", "p1"])) == ["p2", "p1"]
        opened.forget_changed({"p1": "after"})
        assert list(opened.missing(["p3", "p2", "p1"])) == ["p3", "p1"]
    new = sets(3)
    place.extend(encoding(new, ["p1"]), ["p1"], "posts")
    assert list(place.missing(["p2", "p1"])) == []
    assert torch.equal(place.sets(["p1"]).vectors, new.vectors)


def test_posts_that_are_added_leave_the_contents_of_earlier_ones(tmp_path: Path) -> None:
    def added(name: str, content: str) -> list[str]:
        place = EncodedPosts(tmp_path, "hash")
        place.forget_changed({name: content})
        missing = list(place.missing([name]))
        place.extend(encoding(sets(2), missing), missing, "topics")
        return missing

    given = [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("b", "1")]
    assert [added(*one) for one in given] == [["a"], ["b"], [], ["a"], []]
