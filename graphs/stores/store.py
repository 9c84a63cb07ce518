"""preprocessed.db: the graphs of a collection as packed arrays, for one configuration of virtual nodes and vocabulary.

    build("both-full.db", collection.rows(), mathamr_plus.decode, VirtualNodeSpec(), vocabulary, workers=8)
    store = GraphStore("both-full.db", vocabulary_hash=vocabulary.hash)
    store.load(["255", "1940278"])      # GraphBatch of two graphs
    store.get("255")                    # torch_geometric Data(x=[156], edge_index=[2, 660], edge_attr=[660], ...)

Another configuration (formula mode, connectivity ...) is another file, from the same collection, without parsing again.
Tables: ``graph(idx, post_id, num_nodes, num_edges)``, small enough to read whole; ``arrays(idx, blob)``, the packed
form of :mod:`graphs.graph.tensors`; ``failure`` (posts without tensors, with the reason); ``meta`` (vocabulary, virtual
node configuration, their hashes). ``idx`` counts from 0 in the order of the rows the file was built from.

A build may be killed at any moment; the next one goes on behind the last batch and ends with the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from graphs import database
from graphs.errors import Failure, GraphError, StoreError
from graphs.graph.batching import GraphBatch, collate_packed
from graphs.graph.tensors import Convert, GraphArrays, decode, worker_died
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec, check_structure
from graphs.graph.vocabulary import Decode, Row, Vocabulary, batched
from graphs.processes import ordered_map

if TYPE_CHECKING:
    from torch_geometric.data import Data

PURPOSE = "graph tensors"

_FORMAT = 1
_ROWS_PER_TASK = 256
_IDS_PER_QUERY = 512  # below every SQLite's limit of host parameters
_PAGE_BYTES = 16384  # graphs of 2 KB leave a fifth of the default pages of 4 KB empty

_SCHEMA = """
CREATE TABLE IF NOT EXISTS graph(
    idx INTEGER PRIMARY KEY, post_id TEXT NOT NULL UNIQUE, num_nodes INTEGER NOT NULL, num_edges INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS arrays(idx INTEGER PRIMARY KEY, blob BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS failure(post_id TEXT PRIMARY KEY, stage TEXT, kind TEXT, message TEXT) WITHOUT ROWID;
"""


def config_hash(spec: VirtualNodeSpec, vocabulary: Vocabulary) -> str:
    """Identifies the tensors made of a graph: virtual nodes, formula mode, vocabulary, format."""
    content = {"format": _FORMAT, "virtual_nodes": asdict(spec), "vocabulary": vocabulary.hash}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def build(
    path: str | os.PathLike[str],
    rows: Iterable[Row],
    decode: Decode,
    spec: VirtualNodeSpec,
    vocabulary: Vocabulary,
    *,
    source: str = "",
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Convert every row that ``path`` does not hold yet; returns how many graphs the file then has.

    Args:
        rows: post id, Penman text and formula map (JSON) of each graph, streamed.
        decode: importable function, Penman text and formula map to graph.
        source: identifies the collection (its fingerprint).
        workers: processes that convert, beside the one that reads and writes.
        progress: called with the number of rows done since the last call.

    Raises:
        StoreError: when another process writes to the file, or it was begun with another configuration or source.
    """
    report = progress or (lambda count: None)
    with database.writer(path, _SCHEMA, purpose=PURPOSE) as connection:
        _begin(connection, path, spec, vocabulary, source)
        batches = _pending(connection, rows, report)
        converted = ordered_map(Convert, (decode, spec, vocabulary), batches, workers=workers, give_up=worker_died)
        (size,) = connection.execute("SELECT count(*) FROM graph").fetchone()
        complete = bool(database.read_meta(connection).get("complete"))
        for results in converted:
            if complete:  # readers of a finished file are not sent away before there is more to come
                database.write_meta(connection, complete=False)
                complete = False
            for result in results:
                if isinstance(result, Failure):
                    record = (result.post_id, result.stage, result.kind, result.message)
                    connection.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?)", record)
                    continue
                post_id, num_nodes, num_edges, blob = result
                try:
                    connection.execute("INSERT INTO graph VALUES (?, ?, ?, ?)", (size, post_id, num_nodes, num_edges))
                except sqlite3.IntegrityError as error:
                    raise StoreError(
                        f"post {post_id} comes twice in the rows; post ids are unique", path=path
                    ) from error
                connection.execute("INSERT INTO arrays VALUES (?, ?)", (size, blob))
                size += 1
            connection.commit()
            report(len(results))
        if not complete:
            database.write_meta(connection, complete=True)
            connection.commit()
    return int(size)


def _begin(
    connection: sqlite3.Connection,
    path: str | os.PathLike[str],
    spec: VirtualNodeSpec,
    vocabulary: Vocabulary,
    source: str,
) -> None:
    wanted = {"config_hash": config_hash(spec, vocabulary), "source": source}
    meta = database.read_meta(connection)
    for key, value in wanted.items():
        if meta.get(key, value) != value:
            message = f"begun with {key} {meta[key]!r}, now asked to go on with {value!r}; build into another file"
            raise StoreError(message, path=path)
    if "config_hash" in meta:
        return
    connection.commit()
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("VACUUM")
    database.write_meta(
        connection,
        vocabulary=vocabulary.to_json(),
        vocabulary_hash=vocabulary.hash,
        virtual_nodes=asdict(spec),
        complete=False,
        **wanted,
    )
    connection.commit()


def _pending(
    connection: sqlite3.Connection, rows: Iterable[Row], skipped: Callable[[int], None]
) -> Iterator[list[Row]]:
    """Batches of the rows in neither table; ``skipped`` hears how many others went by."""
    for batch in batched(rows, _ROWS_PER_TASK):
        ids = [row[0] for row in batch]
        marks = ",".join("?" * len(ids))
        query = " UNION ".join(
            f"SELECT post_id FROM {name} WHERE post_id IN ({marks})" for name in ("graph", "failure")
        )
        done = {post_id for (post_id,) in connection.execute(query, ids + ids)}
        if done:
            batch = [row for row in batch if row[0] not in done]
            skipped(len(ids) - len(batch))
        if batch:
            yield batch


class SentenceNodeVectors(Protocol):
    """Vectors of sentence nodes by the text encoder ``encoder``, each of length ``dimension``."""

    encoder: str
    dimension: int

    def of(self, post_ids: Sequence[str], counts: Sequence[int]) -> torch.Tensor:
        """Return float32 (sum(counts), dimension): vectors of the ``counts[i]`` sentence nodes of each graph."""

    def close(self) -> None:
        """Let go of the files in this thread."""


class GraphStore:
    """Reads preprocessed.db. Any number of processes and threads may; each opens the file at its first read.

    An instance can be handed to worker processes, forked or spawned.

    Args:
        path: a finished file.
        vocabulary_hash: refuse a file with another vocabulary.
        config_hash: refuse a file with another configuration.
        sentence_vectors: of the posts; batches then have those of their sentence nodes.

    Raises:
        StoreError: when the file is missing, unfinished, or made with something else.
        ConfigError: sentence vectors for graphs without sentence nodes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        vocabulary_hash: str | None = None,
        config_hash: str | None = None,
        sentence_vectors: SentenceNodeVectors | None = None,
    ) -> None:
        self.path = Path(path)
        self.sentence_vectors = sentence_vectors
        self._file = database.Reader(path, purpose=PURPOSE)
        meta: dict[str, Any] = database.read_meta(self._connection)
        for name, wanted in (("vocabulary_hash", vocabulary_hash), ("config_hash", config_hash)):
            if wanted is not None and meta.get(name) != wanted:
                message = f"{name} is {meta.get(name)}, {wanted} is needed; preprocess with the configuration in use"
                raise StoreError(message, path=path)
        if not meta.get("complete"):
            raise StoreError("preprocessing did not finish; run it again, it goes on where it stopped", path=path)
        try:
            self.vocabulary = Vocabulary.from_json(meta["vocabulary"])
            self.spec = VirtualNodeSpec(**meta["virtual_nodes"])
            self.config_hash: str = meta["config_hash"]
            self.source: str = meta["source"]
        except (KeyError, TypeError, ValueError, GraphError) as error:
            message = f"damaged (its meta table: {error!r}); delete it and preprocess again"
            raise StoreError(message, path=path) from error
        self._refuse_damage()
        if sentence_vectors is not None:
            check_structure(self.spec.structure)

    def _refuse_damage(self) -> None:
        if config_hash(self.spec, self.vocabulary) != self.config_hash:
            raise StoreError("damaged (its vocabulary); delete it and preprocess again", path=self.path)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._file.connection

    def close(self) -> None:
        """Let go of the file in this thread; the next read opens it again."""
        self._file.close()
        if self.sentence_vectors is not None:
            self.sentence_vectors.close()

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM graph").fetchone()[0])

    def __contains__(self, post_id: object) -> bool:
        return self._connection.execute("SELECT 1 FROM graph WHERE post_id = ?", (post_id,)).fetchone() is not None

    def post_ids(self) -> list[str]:
        """Ids of all graphs, by ``idx``."""
        return [post_id for (post_id,) in self._connection.execute("SELECT post_id FROM graph ORDER BY idx")]

    def sizes(self, post_ids: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Numbers of nodes and of edges (inverses included) of each graph, both (len(post_ids),); reads no graph."""
        rows = self._select("g.num_nodes, g.num_edges", post_ids)
        sizes = np.array([rows[post_id] for post_id in post_ids], dtype=np.int64).reshape(-1, 2)
        return sizes[:, 0].copy(), sizes[:, 1].copy()

    def get_blobs(self, post_ids: Sequence[str]) -> list[bytes]:
        """The graphs in their packed form."""
        rows = self._select("a.blob", post_ids, " JOIN arrays a ON a.idx = g.idx")
        return [rows[post_id][0] for post_id in post_ids]

    def get_arrays(self, post_ids: Sequence[str]) -> list[GraphArrays]:
        """The graphs as arrays.

        Raises:
            GraphError: when a stored graph is cut off or damaged.
            StoreError: when a post has no graph here.
        """
        return [decode(blob, post_id) for blob, post_id in zip(self.get_blobs(post_ids), post_ids, strict=True)]

    def load(self, post_ids: Sequence[str]) -> GraphBatch:
        """The graphs as one batch, in the order of ``post_ids``; raises as :meth:`get_arrays`."""
        batch = collate_packed(
            self.get_blobs(post_ids),
            post_ids=post_ids,
            num_labels=self.vocabulary.num_labels,
            num_relations=self.vocabulary.num_relations,
        )
        if self.sentence_vectors is None:
            return batch
        graph_of = batch.node_graph[batch.virtual_kind == VirtualKind.SENTENCE]  # ascending
        counts = torch.bincount(graph_of, minlength=batch.num_graphs).tolist()
        return replace(batch, sentence_vectors=self.sentence_vectors.of(post_ids, counts))

    def get(self, post_id: str) -> Data:
        """One graph for exploration, as PyTorch Geometric's ``Data``.

        ``x`` (N,) are labels and ``edge_attr`` (E,) relations (names: ``vocabulary.label_name``, ``relation_name``).
        """
        from torch_geometric.data import Data  # takes seconds to import, and training never needs it

        (arrays,) = self.get_arrays([post_id])
        return Data(
            x=torch.from_numpy(arrays.labels).long(),
            edge_index=torch.from_numpy(arrays.edge_index).long(),
            edge_attr=torch.from_numpy(arrays.relations).long(),
            representatives=torch.from_numpy(arrays.representatives.astype(np.int64)),
            representative_kind=torch.from_numpy(arrays.representative_kinds.astype(np.int64)),
            num_virtual=arrays.num_virtual,
            post_id=post_id,
        )

    def failures(self) -> Iterator[Failure]:
        """Posts whose graph could not be converted."""
        for row in self._connection.execute("SELECT post_id, stage, kind, message FROM failure ORDER BY post_id"):
            yield Failure(*row)

    def _select(self, columns: str, post_ids: Sequence[str], join: str = "") -> dict[str, tuple[Any, ...]]:
        rows: dict[str, tuple[Any, ...]] = {}
        for start in range(0, len(post_ids), _IDS_PER_QUERY):
            ids = post_ids[start : start + _IDS_PER_QUERY]
            query = f"SELECT g.post_id, {columns} FROM graph g{join} WHERE g.post_id IN ({','.join('?' * len(ids))})"
            rows.update((row[0], row[1:]) for row in self._connection.execute(query, ids))
        for post_id in post_ids:
            if post_id not in rows:
                raise StoreError(self._why_missing(post_id), path=self.path)
        return rows

    def _why_missing(self, post_id: str) -> str:
        failure = self._connection.execute("SELECT message FROM failure WHERE post_id = ?", (post_id,)).fetchone()
        why = f": {failure[0]}" if failure else ", nor a record of why; was it built from another collection?"
        return f"no graph of post {post_id}{why}"
