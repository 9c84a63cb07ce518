"""Vectors by a text encoder: of posts and topics, of their sentences, and of the words of labels.

Those of posts and topics, one a text or one a token, are kept by :mod:`mathamr.stages.vectors`:

posts = TextsToEncode({"7": "document"}, read=lambda post_ids: ["Let $x$ be given."])
topics = TextsToEncode({"A.1": "query"}, read=lambda post_ids: ["What is $x$?"])
encode_texts(place, lambda: open_encoder("minilm"), posts, topics, Console(), tokens=False)

Those of sentences (``model.sentence_vectors=minilm``) lie in the folder of each collection,
``outputs/shared/COLLECTION/sentence_vectors/IDENTITY.db``, also those of a source that is learned from, and all graphs
of the collection share them (:mod:`mathamr.text.sentence_vectors`). An interrupted run resumes. The texts of posts do
not change in a collection; those of topics may, so ``IDENTITY.topics.json`` has their hashes. A sentence is encoded as
a document, whether it is a query's or not: in training, questions are both.

    text = SentenceText(console)
    text.make("minilm", {"": parsed, "math": parsed_problems}, topics, "cpu")
    text("minilm", {"": parsed, "math": parsed_problems})      # SentenceVectors, for GraphStore
    text.digest(topic)                                         # its vectors are made again when this changes

Those of the labels' words (``model.label_vectors=minilm``) are made once a vocabulary and encoder, beside
preprocessed.db (:mod:`mathamr.model.label_vectors`). One process makes the vectors of sentences and of labels, and
others wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from graphs import database
from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.latex_text import with_latex
from graphs.corpus.text.placeholders import extract
from graphs.graph.vocabulary import Counts
from graphs.processes import batched
from graphs.shared_files import key, locked, read_json, write_json
from graphs.stores.posts import PostTexts
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.memory import giving_back_memory
from mathamr.model import encoding_shards, label_vectors
from mathamr.model.label_words import full_forms
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.vectors import EncodedPosts
from mathamr.text import sentence_vectors
from mathamr.text.encoder import SIDES, Side, TextEncoder, identity, open_encoder
from mathamr.text.sentence_vectors import SentenceVectors

_POSTS_A_SHARD = {False: 10_000, True: 1_000}  # by late interaction: a text has a hundred tokens


@dataclass(frozen=True)
class TextsToEncode:
    """Posts or topics: ``sides``: query or document, by id; ``read`` returns the texts of some ids."""

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
    model, cut = encoder(), 0
    with console.stage("encoding", len(new_posts) + len(new_topics), "posts") as shown:
        advance = giving_back_memory(shown)

        def encode(texts: TextsToEncode, side: Side, ids: Sequence[str]) -> VectorSets:
            nonlocal cut
            some = texts.read(ids)
            own = model.cut(some, side)
            place.count_cut(own, len(some))
            cut += own
            if tokens:
                return model.encode_tokens(some, side, progress=advance)
            vectors = torch.from_numpy(model.encode(some, side, progress=advance))
            return VectorSets.of_sizes(vectors, torch.ones(len(some), dtype=torch.int64))

        def in_shards(
            texts: TextsToEncode, side: Side, ids: Sequence[str], working: Path
        ) -> encoding_shards.EncodedShards:
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

        with model.spread([] if tokens else devices):
            add(topics, new_topics, "topics")  # first: what is added to is read into memory
            add(posts, new_posts, "posts")
    if cut:
        console.say(
            f"  {cut:,} texts are longer than text.max_length={model.model.max_seq_length} tokens; the rest is not read"
        )


class LabelText:
    """Hashes of label vectors by encoder and vocabulary; what is missing is made."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sound: set[str] = set()
        self._kept: dict[tuple[str, Path], str] = {}

    def check(self, name: str) -> None:
        """Raise ConfigError where there is no such encoder, before anything runs."""
        if name not in self._sound:
            open_encoder(name, device="cpu")
            self._sound.add(name)

    def __call__(self, name: str, graphs: GraphStore, counts: Callable[[], Counts]) -> str:
        """Return the hash of an encoder's vectors for the vocabulary of ``graphs``, which names their folder.

        Args:
            counts: counts of the collection, by which stemmed labels become words.
        """
        folder, key = graphs.path.parent, (name, graphs.path)
        if key not in self._kept:
            with locked(folder / ".label_text.lock", wait=True):
                self._kept[key] = self._make(name, graphs, full_forms(counts()))
        return self._kept[key]

    def _make(self, name: str, graphs: GraphStore, forms: dict[str, str]) -> str:
        folder, vocabulary = graphs.path.parent, graphs.vocabulary
        source = label_vectors.source_of(vocabulary, identity(name), forms)
        found = label_vectors.made_from(folder, source)
        if found is None:
            encoder = open_encoder(name)
            with self._console.stage("label vectors", unit="texts") as advance:

                def encode(texts: list[str]) -> Any:
                    advance.expect(len(texts))
                    return encoder.encode(texts, "document", batch_size=128, progress=advance)

                vectors = label_vectors.of_labels(vocabulary, encode, forms)
            found = label_vectors.write(folder, vectors, vocabulary, source)
        return found


Collections = Mapping[str, ParsedCollection]
"""The collection under the name "", and the sources by theirs."""


class SentenceText:
    """Maker and opener of a collection's sentence vectors."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, name: str, collections: Collections) -> SentenceVectors:
        """Open the vectors of the encoder called ``name``, made by :meth:`make`."""
        known = identity(name)
        return SentenceVectors({source: _path(own, known) for source, own in collections.items()}, encoder=known)

    @staticmethod
    def digest(topic: Post) -> str:
        """Return a hash of the sentences of a topic."""
        return key(_with_formulas(extract(topic)))

    def make(self, name: str, collections: Collections, topics: Iterable[Post], device: str) -> None:
        """Make the vectors of all posts of the collections and of these topics, as far as they are missing."""
        for source, collection in collections.items():
            collection.folder.mkdir(parents=True, exist_ok=True)
            with locked(collection.folder / ".sentence_vectors.lock", wait=True):
                self._make(name, collection, {} if source else {post.post_id: post for post in topics}, device)

    def _make(self, name: str, collection: ParsedCollection, topics: Mapping[str, Post], device: str) -> None:
        known = identity(name)
        path = _path(collection, known)
        digests_file = path.with_suffix(".topics.json")
        kept, digests = read_json(digests_file) or {}, {name: self.digest(topic) for name, topic in topics.items()}
        with collection.alone():
            texts = collection.texts()
        with PostTexts(texts) as posts:
            new_posts = sentence_vectors.missing(path, posts.post_ids())
            absent = frozenset(sentence_vectors.missing(path, topics))
            new_topics = [name for name in topics if name in absent or kept.get(name) != digests[name]]
            if not new_posts and not new_topics and path.exists():
                return
            encoder = open_encoder(name, device=device)
            with self._console.stage(
                f"sentence vectors of {name}", len(new_posts) + len(new_topics), "posts"
            ) as advance:
                sentence_vectors.add(
                    path,
                    _sentences(posts, new_posts, [topics[post_id] for post_id in new_topics]),
                    lambda texts: encoder.encode(texts, "document", batch_size=128),
                    encoder=known,
                    dimension=encoder.dimension,
                    progress=advance,
                )
        write_json(digests_file, kept | digests)


def _path(collection: ParsedCollection, known: str) -> Path:
    return collection.folder / "sentence_vectors" / f"{known}.db"


def _sentences(posts: PostTexts, post_ids: Sequence[str], topics: Iterable[Post]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of posts and topics, formulas as LaTeX between dollars."""
    for some in batched(post_ids, database.IDS_PER_QUERY):
        for post_id, post in posts.get(some).items():
            yield post_id, _with_formulas(post.text)
    for topic in topics:
        yield topic.post_id, _with_formulas(extract(topic))


def _with_formulas(text: PlaceholderText) -> list[str]:
    return [with_latex(sentence, text) for sentence in text.sentences]
