"""Vectors of posts' sentences by a text encoder, which a hybrid model reads in addition to graphs.

A text encoder here is any function from texts to vectors, one for each. This one counts letters:

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "letters.db"
>>> def letters(texts):
...     return np.array([[len(text), text.count("s")] for text in texts])
>>> add(path, [("255", ["Solve $x=1$.", "Is it so?"]), ("256", [])], letters, encoder="letters", dimension=2)
>>> missing(path, ["254", "255"])
['254']
>>> vectors = SentenceVectors({"": path}, encoder="letters")
>>> vectors.of(["255", "256"], [2, 1]).tolist()
[[12.0, 0.0], [9.0, 2.0], [0.0, 0.0]]

An SQLite file holds the vectors of posts as float16. They do not depend on graphs, so graphs of all configurations
share it. A graph and its post may differ in the number of sentences, if a parser failed on one or split it. The
assignment is then unknown, and each node gets the mean of the post's vectors:

>>> vectors.of(["255"], [1]).tolist()
[[10.5, 1.0]]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphs import database
from graphs.errors import ConfigError, StoreError
from graphs.processes import batched
from graphs.row_digests import check_row, row_digest

PURPOSE = "vectors of sentences"

_SCHEMA = "CREATE TABLE IF NOT EXISTS sentences(post_id TEXT PRIMARY KEY, vectors BLOB NOT NULL, digest INTEGER)"
_SELECT = "SELECT post_id, vectors, digest FROM sentences WHERE post_id IN"
_POSTS_AT_ONCE = 128  # most that a kill can cost; some thousand sentences, sorted by length


def missing(path: Path, post_ids: Iterable[str]) -> list[str]:
    """Return the posts without vectors in the file, each once; all of them if the file is missing."""
    known: set[str] = set()
    if path.exists():
        with closing(database.connect_read_only(path, purpose=PURPOSE)) as connection:
            known = {post_id for (post_id,) in connection.execute("SELECT post_id FROM sentences")}
    return [post_id for post_id in dict.fromkeys(post_ids) if post_id not in known]


def add(
    path: Path,
    posts: Iterable[tuple[str, Sequence[str]]],
    encode: Callable[[list[str]], npt.ArrayLike],
    *,
    encoder: str,
    dimension: int,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Add the vectors of posts to the file, which is created if missing; a kill leaves only complete posts.

    Args:
        posts: ids and sentences, streamed.
        encode: function from texts to their vectors (len(texts), dimension).
        encoder: identity of the encoder; a file holds vectors of one.
        progress: function called with the number of posts done since its last call.

    Raises:
        ConfigError: vectors of another shape, or not finite.
        StoreError: a file of another encoder, or another process that writes to it.
    """
    with database.writer(path, _SCHEMA, purpose=PURPOSE) as connection:
        meta = database.read_meta(connection)
        _check_encoder(path, meta.get("encoder", encoder), encoder)
        database.write_meta(connection, encoder=encoder, dimension=dimension)
        connection.commit()
        for batch in batched(posts, _POSTS_AT_ONCE):
            texts = [text for _, sentences in batch for text in sentences]
            vectors = np.asarray(encode(texts) if texts else np.zeros((0, dimension)), dtype="<f2")
            if vectors.shape != (len(texts), dimension) or not np.isfinite(vectors).all():
                raise ConfigError(
                    f"the text encoder {encoder} gave an array of shape {vectors.shape} for {len(texts)} sentences, "
                    f"which must be ({len(texts)}, {dimension}) and finite"
                )
            ends = np.cumsum([len(sentences) for _, sentences in batch])
            parts = np.split(vectors, ends[:-1])
            blobs = [(post_id, part.tobytes()) for (post_id, _), part in zip(batch, parts, strict=True)]
            rows = [(post_id, blob, row_digest(post_id, blob=blob)) for post_id, blob in blobs]
            insert = "INSERT OR REPLACE INTO sentences(post_id, vectors, digest) VALUES (?, ?, ?)"
            connection.executemany(insert, rows)
            connection.commit()
            if progress is not None:
                progress(len(batch))


class SentenceVectors:
    """Reader of files of vectors; any number of processes and threads may use one.

    Args:
        files: files by collection: ``""``, and the names of sources, which prefix the ids of their posts, as in
            ``math/train-1``.
        encoder: identity of the encoder; files of another are refused.

    Raises:
        StoreError: a missing file, or one of another encoder.
    """

    def __init__(self, files: Mapping[str, Path], *, encoder: str) -> None:
        self.encoder = encoder
        self._files = {name: database.Reader(path, purpose=PURPOSE) for name, path in files.items()}
        for reader in self._files.values():
            meta = database.read_meta(reader.connection)
            _check_encoder(reader.path, meta.get("encoder"), encoder)
            self.dimension = int(str(meta["dimension"]))

    def of(self, post_ids: Sequence[str], counts: Sequence[int]) -> Tensor:
        """Return vectors of the sentence nodes of some graphs; graph ``i`` has ``counts[i]`` of them.

        Nodes of a post without a sentence get zeros.

        Raises:
            StoreError: a post without vectors.

        Shapes:
            float32 (sum(counts), dimension), graph by graph.
        """
        places: dict[str, dict[str, str]] = {name: {} for name in self._files}
        for post_id in post_ids:
            name, slash, own = post_id.partition("/")
            source = name if slash and name in self._files else ""
            places[source][own if source else post_id] = post_id
        blobs: dict[str, bytes] = {}
        for name, ids in places.items():
            reader = self._files[name]
            for own, blob, known in database.rows_of_ids(reader.connection, _SELECT, list(ids)):
                check_row(known, own, own, blob=blob, path=reader.path)
                blobs[ids[own]] = blob
        for post_id in post_ids:
            if post_id not in blobs:
                raise StoreError(
                    f"no vectors of the sentences of post {post_id}, of {self.encoder}; run the experiment again, "
                    "which makes missing ones at its start",
                    path=self._files[""].path,
                )
        parts = [self._fitted(blobs[post_id], count) for post_id, count in zip(post_ids, counts, strict=True)]
        return torch.from_numpy(np.concatenate([np.zeros((0, self.dimension), np.float32), *parts]))

    def _fitted(self, blob: bytes, count: int) -> npt.NDArray[np.float32]:
        """Return the vectors of one post for ``count`` nodes, (count, dimension)."""
        own = np.frombuffer(blob, "<f2").reshape(-1, self.dimension).astype(np.float32)
        if len(own) == count:
            return own
        mean = own.mean(axis=0) if len(own) else np.zeros(self.dimension, np.float32)
        return np.broadcast_to(mean, (count, self.dimension))

    def close(self) -> None:
        """Close the files in this thread; the next read opens them again."""
        for reader in self._files.values():
            reader.close()


def _check_encoder(path: str | os.PathLike[str], found: object, wanted: str) -> None:
    if found != wanted:
        message = f"the file has vectors of {found}, not of {wanted}; name another file"
        raise StoreError(message, path=path)
