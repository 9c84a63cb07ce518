"""The vectors of the text encoder that a graph model is trained to follow (``train.teacher=minilm``).

They lie in ``outputs/shared/COLLECTION/teachers/IDENTITY``, are made as far as they are missing, by one process while
others wait, and go on where that was interrupted. A fine-tuned encoder is named by its folder, such as the ``best`` of
a model of the text track.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import torch

from experiments.outputs import locked
from experiments.progress import Console
from experiments.tracks.encoded import EncodedPosts
from mathamr.maxsim import VectorSets
from mathamr.retrieval import shards
from mathamr.text.encoder import Side, identity, open_encoder
from mathamr.training.distillation import Teacher

Read = Callable[[Sequence[str]], list[str]]

_POSTS_A_SHARD = 500  # some minutes of a laptop's work


def teacher(
    name: str,
    questions: Iterable[str],
    documents: Iterable[str],
    read: Read,
    folder: Path,
    device: str,
    console: Console,
) -> Teacher:
    """The teacher called ``name``, with vectors of these posts.

    Args:
        read: gives the texts of posts.
        folder: of the collection.
    """
    known = identity(name)
    place = folder / "teachers" / known
    place.mkdir(parents=True, exist_ok=True)
    sides: dict[Side, list[str]] = {"query": sorted(set(questions)), "document": sorted(set(documents))}
    with locked(place / ".lock", wait=True):
        vectors = EncodedPosts(place, known)
        missing = {side: vectors.lacks(post_ids) for side, post_ids in sides.items()}
        if any(missing.values()):
            encoder = open_encoder(name, device=device)
            with console.stage(f"vectors of {name}", sum(map(len, missing.values())), "posts") as advance:

                def encode(side: Side, working: Path) -> shards.Encoded:
                    def some(post_ids: Sequence[str]) -> VectorSets:
                        made = torch.from_numpy(encoder.encode(read(post_ids), side, progress=advance))
                        return VectorSets.of_sizes(made, torch.ones(len(made), dtype=torch.int64))

                    return shards.in_shards(
                        some,
                        missing[side],
                        working,
                        identity=f"{known} {side}",
                        posts_a_shard=_POSTS_A_SHARD,
                        resumed=advance,
                    )

                for side, post_ids in missing.items():
                    vectors.extend(partial(encode, side), post_ids, "posts")
    return Teacher(known, vectors.sets)
