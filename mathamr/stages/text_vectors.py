"""Vectors of posts and topics by a text encoder, one a text or one a token, kept by :mod:`mathamr.stages.vectors`.

posts = TextsToEncode({"7": "document"}, read=lambda post_ids: ["Let $x$ be given."])
topics = TextsToEncode({"A.1": "query"}, read=lambda post_ids: ["What is $x$?"])
encode_texts(place, lambda: open_encoder("minilm"), posts, topics, Console(), tokens=False)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from mathamr.maxsim import VectorSets
from mathamr.memory import giving_back_memory
from mathamr.model import encoding_shards
from mathamr.stages.console import Console
from mathamr.stages.vectors import EncodedPosts
from mathamr.text.encoder import SIDES, Side, TextEncoder

_POSTS_A_SHARD = {False: 10_000, True: 1_000}  # by late interaction: a text has a hundred tokens


@dataclass(frozen=True)
class TextsToEncode:
    """Posts or topics.

    Attributes:
        sides: side of the encoder for each id, query or document.
        read: returns the texts of some ids, in order.
    """

    sides: Mapping[str, Side]
    read: Callable[[Sequence[str]], list[str]]


def encode_texts(
    place: EncodedPosts,
    encoder: Callable[[], TextEncoder],
    posts: TextsToEncode,
    topics: TextsToEncode,
    console: Console,
    *,
    tokens: bool,
    devices: Sequence[str] = (),
) -> None:
    """Encode the posts and topics that ``place`` does not have; resumes where a killed call stopped.

    Args:
        encoder: opens the encoder; not called where nothing is missing.
        tokens: a vector for each token, instead of one for each text.
        devices: devices that share the work, each in a process; fewer than two: the device of the encoder. Vectors of
            tokens are made on that one alone.
    """
    new_posts, new_topics = place.missing(posts.sides), place.missing(topics.sides)
    if not (new_posts or new_topics):
        return
    opened, cut = encoder(), 0
    with console.stage("encoding", len(new_posts) + len(new_topics), "posts") as shown:
        advance = giving_back_memory(shown)

        def encode(texts: TextsToEncode, side: Side, ids: Sequence[str]) -> VectorSets:
            nonlocal cut
            some = texts.read(ids)
            own = opened.cut(some, side)
            place.count_cut(own, len(some))
            cut += own
            if tokens:
                return opened.encode_tokens(some, side, progress=advance)
            vectors = torch.from_numpy(opened.encode(some, side, progress=advance))
            return VectorSets.of_sizes(vectors, torch.ones(len(some), dtype=torch.int64))

        def in_shards(texts: TextsToEncode, side: Side, ids: Sequence[str], working: Path) -> encoding_shards.Encoded:
            return encoding_shards.in_shards(
                partial(encode, texts, side),
                ids,
                working,
                identity=f"{place.identity(ids)} {side}",
                posts_a_shard=_POSTS_A_SHARD[tokens],
                resumed=advance,
            )

        def add(texts: TextsToEncode, new: Sequence[str], kind: Literal["posts", "topics"]) -> None:
            for side in SIDES:
                ids = [name for name in place.missing(new) if texts.sides[name] == side]
                place.extend(partial(in_shards, texts, side, ids), ids, kind)

        with opened.spread([] if tokens else devices):
            add(topics, new_topics, "topics")  # first: what is added to is read into memory
            add(posts, new_posts, "posts")
    if cut:
        console.say(
            f"  {cut:,} texts are longer than text.max_length={opened.model.max_seq_length} tokens; the rest "
            "is not read"
        )
