"""Vectors of sentences by the text encoder that a configuration names (``model.sentence_vectors=minilm``), of posts and
topics.

    text = SentenceText(console)
    text.make("minilm", {"": parsed, "math": parsed_problems}, topics, "cpu")
    text("minilm", {"": parsed, "math": parsed_problems})      # SentenceVectors, for GraphStore
    text.digest(topic)                                         # its vectors are made again when this changes

Those of each collection lie in its own folder, ``outputs/shared/COLLECTION/sentence_vectors/IDENTITY.db``, also those
of a source that is learned from, and all graphs of the collection share them (:mod:`mathamr.text.sentence_vectors`).
They are made as far as they are missing, by one process while others wait, and go on where that was interrupted. The
texts of posts do not change in a collection; those of topics may, so ``IDENTITY.topics.json`` has their hashes. A
sentence is encoded as a document, whether it is a query's or not: in training, questions are both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from graphs import database
from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.latex_text import with_latex
from graphs.corpus.text.placeholders import extract
from graphs.processes import batched
from graphs.shared_files import key, locked, read_json, write_json
from graphs.stores.posts import PostTexts
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.text import sentence_vectors
from mathamr.text.encoder import identity, open_encoder
from mathamr.text.sentence_vectors import SentenceVectors

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
        for source, parsed in collections.items():
            parsed.folder.mkdir(parents=True, exist_ok=True)
            with locked(parsed.folder / ".sentence_vectors.lock", wait=True):
                self._make(name, parsed, {} if source else {post.post_id: post for post in topics}, device)

    def _make(self, name: str, parsed: ParsedCollection, topics: Mapping[str, Post], device: str) -> None:
        known = identity(name)
        path = _path(parsed, known)
        digests_file = path.with_suffix(".topics.json")
        kept, digests = read_json(digests_file) or {}, {name: self.digest(topic) for name, topic in topics.items()}
        with parsed.alone():
            texts = parsed.texts()
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


def _path(parsed: ParsedCollection, known: str) -> Path:
    return parsed.folder / "sentence_vectors" / f"{known}.db"


def _sentences(posts: PostTexts, post_ids: Sequence[str], topics: Iterable[Post]) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of posts and topics, formulas as LaTeX between dollars."""
    for some in batched(post_ids, database.IDS_PER_QUERY):
        for post_id, post in posts.get(some).items():
            yield post_id, _with_formulas(post.text)
    for topic in topics:
        yield topic.post_id, _with_formulas(extract(topic))


def _with_formulas(text: PlaceholderText) -> list[str]:
    return [with_latex(sentence, text) for sentence in text.sentences]
