"""Vectors of the text encoder that teaches a graph model (``train.teacher=minilm``).

    teacher("minilm", ["154", "math/train-1"], ["255"], {"": parsed, "math": parsed_problems}, "cpu", console)

Those of each collection lie in its own folder, ``outputs/shared/COLLECTION/teachers/IDENTITY``, also those of a source
that is learned from (:mod:`mathamr.stages.sources`): another content of the source has another folder. They are made as
far as they are missing, by one process while others wait, and go on where that was interrupted. A fine-tuned encoder is
named by its folder, such as the ``best`` of a model of the text track.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import torch

from graphs.corpus.text.latex_text import as_text
from graphs.shared_files import locked
from graphs.stores.posts import PostTexts
from mathamr.maxsim import VectorSets
from mathamr.model import encoding_shards
from mathamr.stages import sources
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.vectors import EncodedPosts
from mathamr.text.encoder import Side, TextEncoder, identity, open_encoder
from mathamr.training.graph.distillation import Teacher

_POSTS_A_SHARD = 500  # some minutes of a laptop's work


def teacher(
    name: str,
    questions: Iterable[str],
    documents: Iterable[str],
    collections: Mapping[str, ParsedCollection],
    device: str,
    console: Console,
) -> Teacher:
    """Return the teacher called ``name``, with vectors of these posts.

    Args:
        questions: ids of posts, those of a source with its name before them; likewise ``documents``.
        collections: the collection under the name "", and the sources by theirs.
    """
    known = identity(name)
    ids_by_side: dict[Side, Iterable[str]] = {"query": questions, "document": documents}
    sides: dict[str, dict[Side, list[str]]] = {source: {side: [] for side in ids_by_side} for source in collections}
    for side, post_ids in ids_by_side.items():
        for post_id in sorted(set(post_ids)):
            source, id_in_source = _placed(post_id, collections)
            sides[source][side].append(id_in_source)

    @cache
    def encoder() -> TextEncoder:
        return open_encoder(name, device=device)

    vectors = {
        source: _vectors(name, known, sides[source], collection, encoder, console)
        for source, collection in collections.items()
    }

    def vectors_of(post_ids: Sequence[str]) -> VectorSets:
        places: dict[str, list[int]] = {}
        owns: dict[str, list[str]] = {}
        for place, post_id in enumerate(post_ids):
            source, id_in_source = _placed(post_id, vectors)
            places.setdefault(source, []).append(place)
            owns.setdefault(source, []).append(id_in_source)
        together = VectorSets.concatenated([vectors[source].sets(some) for source, some in owns.items()])
        order = torch.tensor([place for some in places.values() for place in some])
        return together.select(order.argsort())

    return Teacher(known, vectors_of)


def _placed(post_id: str, collections: Mapping[str, object]) -> tuple[str, str]:
    """Return the source of a post, and its id there."""
    source = sources.source_of(post_id, collections)
    return source, post_id.removeprefix(f"{source}/") if source else post_id


def _vectors(
    name: str,
    known: str,
    sides: Mapping[Side, Sequence[str]],
    collection: ParsedCollection,
    encoder: Callable[[], TextEncoder],
    console: Console,
) -> EncodedPosts:
    """Return the vectors of some posts of one collection."""
    place = collection.folder / "teachers" / known
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / ".lock", wait=True):
        vectors = EncodedPosts(place, known)
        missing = {side: vectors.missing(post_ids) for side, post_ids in sides.items()}
        if not any(missing.values()):
            return vectors
        with collection.alone():
            path = collection.texts()
        count = sum(map(len, missing.values()))
        with PostTexts(path) as texts, console.stage(f"vectors of {name}", count, "posts") as advance:

            def encode(side: Side, working: Path) -> encoding_shards.EncodedShards:
                def some(post_ids: Sequence[str]) -> VectorSets:
                    posts = texts.get(post_ids)
                    read = [as_text(posts[post_id].text) for post_id in post_ids]
                    encoded = torch.from_numpy(encoder().encode(read, side, progress=advance))
                    return VectorSets.of_sizes(encoded, torch.ones(len(encoded), dtype=torch.int64))

                return encoding_shards.in_shards(
                    some,
                    missing[side],
                    working,
                    identity=f"{known} {side}",
                    posts_a_shard=_POSTS_A_SHARD,
                    resumed=advance,
                )

            for side, post_ids in missing.items():
                vectors.extend(partial(encode, side), post_ids, "posts")
        return vectors
