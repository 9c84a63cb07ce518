"""preprocessed.db: the graphs of a collection as packed arrays, for one formula mode and vocabulary.

    build("both.db", collection.rows(), mathamr_plus.decode, VirtualNodeSpec(), vocabulary, workers=8)
    store = GraphStore("both.db", VirtualNodeSpec(connectivity="circular"))
    store.load(["255", "1940278"])      # GraphBatch of two graphs
    store.get("255")                    # torch_geometric Data(x=[156], edge_index=[2, 660], edge_attr=[660], ...)

One file serves every structure and connectivity: virtual nodes are added when graphs are loaded
(:mod:`graphs.graph.packed`). A reader that names none gets those that the file was built with. Another formula mode is
another file, from the same collection, without parsing again.

Tables: ``graph(idx, post_id, ...)`` with the counts of :class:`graphs.graph.stored.GraphSize`, small enough to read
whole; ``arrays(idx, blob, digest)``, the packed form of :mod:`graphs.graph.stored`; ``failure`` (posts without tensors,
with the reason); ``meta`` (vocabulary, virtual nodes by default, hashes). ``idx`` counts from 0 in the order of rows.

A build may be killed at any moment; the next one resumes after the last batch and ends with the same file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from graphs import database
from graphs.errors import Failure, StoreError
from graphs.graph.batching import GraphBatch
from graphs.graph.packed import collate_packed, extended
from graphs.graph.stored import Converted, convert, worker_died
from graphs.graph.tensors import GraphArrays
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec, check_structure
from graphs.graph.vocabulary import Decode, Row, Vocabulary
from graphs.processes import batched, ordered_map
from graphs.row_digests import check_row, row_digest
from graphs.stores.graph_sizes import GraphSizes
from graphs.stores.tensor_identity import FILE_FORMAT, check_format, config_hash, file_hash, identity_of, spec_of_hash

if TYPE_CHECKING:
    from torch_geometric.data import Data

PURPOSE = "graph tensors"

_ROWS_PER_TASK = 256
_PAGE_BYTES = 16384  # graphs of 2 KB leave a fifth of the default pages of 4 KB empty

_ARRAYS = " JOIN arrays a ON a.idx = g.idx"
_COUNTS = "g.nodes, g.edges, g.formulas, g.sentences, g.roots, g.constituents"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS graph(
    idx INTEGER PRIMARY KEY, post_id TEXT NOT NULL UNIQUE, nodes INTEGER NOT NULL, edges INTEGER NOT NULL,
    formulas INTEGER NOT NULL, sentences INTEGER NOT NULL, roots INTEGER NOT NULL, constituents INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS arrays(idx INTEGER PRIMARY KEY, blob BLOB NOT NULL, digest INTEGER);
CREATE TABLE IF NOT EXISTS failure(post_id TEXT PRIMARY KEY, stage TEXT, kind TEXT, message TEXT) WITHOUT ROWID;
"""


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
        rows: post id, Penman text and formula map (JSON) of each graph.
        decode: importable function, Penman text and formula map to graph.
        spec: formula trees that are kept, and the virtual nodes that readers get by default.
        source: identifies the collection (its fingerprint).
        workers: processes that convert, beside the one that reads and writes.
        progress: called with the number of rows done since the last call.

    Raises:
        StoreError: when another process writes to the file, or it was begun with other formulas, vocabulary or source.
    """
    report = progress or (lambda count: None)
    with database.writer(path, _SCHEMA, purpose=PURPOSE) as connection:
        _begin(connection, path, spec, vocabulary, source)
        batches = _pending(connection, rows, report)
        converted: Iterator[list[Converted | Failure]] = ordered_map(
            partial, (convert, decode, spec.formulas, vocabulary), batches, workers=workers, give_up=worker_died
        )
        (size,) = connection.execute("SELECT count(*) FROM graph").fetchone()
        complete = bool(database.read_meta(connection).get("complete"))
        for results in converted:
            if complete:  # readers of a finished file are not sent away before there is more to come
                database.write_meta(connection, complete=False)
                complete = False
            for result in results:
                if isinstance(result, Failure):
                    connection.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?)", astuple(result))
                    continue
                post_id, counts, blob = result
                row = (size, post_id, *counts)
                try:
                    connection.execute("INSERT INTO graph VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                except sqlite3.IntegrityError as error:
                    message = f"post {post_id} comes twice in the rows; post ids are unique"
                    raise StoreError(message, path=path) from error
                connection.execute("INSERT INTO arrays VALUES (?, ?, ?)", (size, blob, row_digest(*row[1:], blob=blob)))
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
    wanted = {"file_hash": file_hash(spec.formulas, vocabulary), "source": source}
    meta = database.read_meta(connection)
    check_format(meta, path)
    for key, value in wanted.items():
        if meta.get(key, value) != value:
            message = f"begun with {key} {meta[key]!r}, not with {value!r}; build into another file"
            raise StoreError(message, path=path)
    if "file_hash" in meta:
        if meta["virtual_nodes"] != spec.content():
            database.write_meta(connection, virtual_nodes=spec.content())
            connection.commit()
        return
    connection.commit()
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("VACUUM")
    database.write_meta(
        connection,
        vocabulary=vocabulary.to_json(),
        vocabulary_hash=vocabulary.hash,
        format=FILE_FORMAT,
        virtual_nodes=spec.content(),
        complete=False,
        **wanted,
    )
    connection.commit()


def _pending(
    connection: sqlite3.Connection, rows: Iterable[Row], skipped: Callable[[int], None]
) -> Iterator[list[Row]]:
    """Batches of the rows in neither table; ``skipped`` is called with the number of others."""
    for batch in batched(rows, _ROWS_PER_TASK):
        ids = [row[0] for row in batch]
        queries = ("SELECT post_id FROM graph WHERE post_id IN", "SELECT post_id FROM failure WHERE post_id IN")
        done = {post_id for query in queries for (post_id,) in database.rows_of_ids(connection, query, ids)}
        if done:
            batch = [row for row in batch if row[0] not in done]
            skipped(len(ids) - len(batch))
        if batch:
            yield batch


_config_hash = config_hash  # which an argument of GraphStore has for its name
_OTHERWISE = "preprocess with the configuration in use"


class SentenceNodeVectors(Protocol):
    """Vectors of sentence nodes by the text encoder ``encoder``, each of length ``dimension``."""

    encoder: str
    dimension: int

    def of(self, post_ids: Sequence[str], counts: Sequence[int]) -> torch.Tensor:
        """Return float32 (sum(counts), dimension): vectors of the ``counts[i]`` sentence nodes of each graph."""

    def close(self) -> None:
        """Close the files of this thread."""


class GraphStore(database.Reader):
    """Reader of preprocessed.db, for any number of processes and threads (:class:`graphs.database.Reader`).

    Args:
        path: a finished file.
        spec: virtual nodes that graphs get, and the formula mode that the file must have; None: those of
            ``config_hash``, or else those that the file was built with.
        config_hash: configuration of graphs that a model was trained on (:func:`config_hash`); a file
            without it is refused.
        sentence_vectors: vectors of the posts' sentences; batches then have those of their sentence nodes.

    Raises:
        StoreError: the file is missing or unfinished, or has another vocabulary, configuration or formula mode.
        ConfigError: sentence vectors for graphs without sentence nodes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        spec: VirtualNodeSpec | None = None,
        *,
        config_hash: str | None = None,
        sentence_vectors: SentenceNodeVectors | None = None,
    ) -> None:
        super().__init__(path, purpose=PURPOSE)
        self.sentence_vectors = sentence_vectors
        meta: dict[str, Any] = database.read_meta(self.connection)
        check_format(meta, path)
        if not meta.get("complete"):
            raise StoreError("preprocessing did not finish; run it again, it resumes where it stopped", path=path)
        self.vocabulary, default, self.source = identity_of(meta, path)
        self.spec = spec or spec_of_hash(config_hash, default, self.vocabulary)
        if self.spec.formulas != default.formulas:
            message = f"made with formulas={default.formulas}, {self.spec.formulas} is needed; {_OTHERWISE}"
            raise StoreError(message, path=path)
        self.config_hash = _config_hash(self.spec, self.vocabulary)
        if config_hash not in (None, self.config_hash):
            hashes = f"config_hash is {self.config_hash}, {config_hash} is needed"
            message = f"made with another vocabulary or other virtual nodes than the model ({hashes}); {_OTHERWISE}"
            raise StoreError(message, path=path)
        self._sizes = GraphSizes(self.spec)
        if sentence_vectors is not None:
            check_structure(self.spec.structure)

    @cached_property
    def too_large(self) -> Mapping[str, Failure]:
        """Posts whose graph is too large with these virtual nodes, by id: few, or none."""
        return {failure.post_id: failure for failure in self._sizes.failures(self.connection)}

    @cached_property
    def _checked(self) -> bytearray:
        """A byte for each row: 1 after its digest was compared and its content checked.

        Rows with another ``idx``, such as those of a file that grows, are checked at each read.
        """
        (stored,) = self.connection.execute("SELECT count(*) FROM graph").fetchone()
        return bytearray(stored)

    def close(self) -> None:
        """Close the file of this thread; the next read opens it again."""
        super().close()
        if self.sentence_vectors is not None:
            self.sentence_vectors.close()

    def __len__(self) -> int:
        (stored,) = self.connection.execute("SELECT count(*) FROM graph").fetchone()
        return int(stored) - len(self.too_large)

    def __contains__(self, post_id: object) -> bool:
        return isinstance(post_id, str) and any(self.having([post_id]))

    def post_ids(self) -> list[str]:
        """Ids of all graphs, by ``idx``."""
        rows = self.connection.execute("SELECT post_id FROM graph ORDER BY idx")
        return [post_id for (post_id,) in rows if post_id not in self.too_large]

    def having(self, post_ids: Iterable[str]) -> Iterator[str]:
        """Yield those of the posts that have a graph, in the given order; few ids are held at once."""
        for ids in batched(post_ids, database.IDS_PER_QUERY):
            rows = database.rows_of_ids(self.connection, "SELECT post_id FROM graph WHERE post_id IN", ids)
            found = {post_id for (post_id,) in rows}.difference(self.too_large)
            yield from (post_id for post_id in ids if post_id in found)

    @property
    def num_labels(self) -> int:
        """Number of label ids in batches."""
        return self.vocabulary.num_labels

    @property
    def num_relations(self) -> int:
        """Number of relation ids in batches, inverses included."""
        return self.vocabulary.num_relations

    def sizes(
        self, post_ids: Sequence[str], hidden: Collection[str] = ()
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return nodes and edges (with inverses) of each graph, both (len(post_ids),); reads none. See :meth:`load`."""
        rows = self._select(f"{self._sizes.nodes}, {self._sizes.edges}", post_ids)
        sizes = np.array([rows[post_id] for post_id in post_ids], dtype=np.int64).reshape(-1, 2)
        return sizes[:, 0].copy(), sizes[:, 1].copy()

    def get_blobs(self, post_ids: Sequence[str]) -> list[bytes]:
        """Return the packed graphs, without virtual nodes."""
        return self._read(post_ids)[0]

    def _read(self, post_ids: Sequence[str]) -> tuple[list[bytes], list[int]]:
        """Return the packed graphs, and the rows among them that no batch has held yet; their digests are compared."""
        rows = self._select("g.idx, a.blob", post_ids, _ARRAYS)
        checked = self._checked
        first = {post_id: row for post_id, row in rows.items() if not (0 <= row[0] < len(checked) and checked[row[0]])}
        if first:
            for post_id, (*counts, digest) in self._select(f"{_COUNTS}, a.digest", list(first), _ARRAYS).items():
                check_row(digest, post_id, post_id, *counts, blob=first[post_id][1], path=self.path)
        return [rows[post_id][1] for post_id in post_ids], [number for number, _ in first.values()]

    def get_arrays(self, post_ids: Sequence[str]) -> list[GraphArrays]:
        """Return the graphs as arrays, with their virtual nodes.

        Raises:
            GraphError: when a stored graph is cut off or damaged.
            StoreError: when a post has no graph here.
        """
        blobs = zip(self.get_blobs(post_ids), post_ids, strict=True)
        return [extended(blob, self.spec, post_id) for blob, post_id in blobs]

    def load(self, post_ids: Sequence[str], hidden: Collection[str] = ()) -> GraphBatch:
        """Return the graphs as one batch, in the order of ``post_ids``; raises as :meth:`get_arrays`.

        ``hidden`` is for graphs of threads (:mod:`graphs.stores.thread_store`).
        """
        if self.spec.thread != "none":
            raise StoreError(f"graph.thread={self.spec.thread} needs the posts of each thread; run it as an experiment")
        return self.load_posts(post_ids)

    def load_posts(self, post_ids: Sequence[str]) -> GraphBatch:
        """Return the graphs of single posts as one batch, in the order of ``post_ids``; raises as :meth:`load`."""
        blobs, first = self._read(post_ids)
        batch = collate_packed(
            blobs,
            self.spec,
            post_ids=post_ids,
            num_labels=self.vocabulary.num_labels,
            num_relations=self.vocabulary.num_relations,
            checked=not first,
        )
        for number in first:
            if 0 <= number < len(self._checked):
                self._checked[number] = 1
        if self.sentence_vectors is None:
            return batch
        of_sentences = batch.node_graph[batch.virtual_kind == VirtualKind.SENTENCE]  # ascending
        counts = torch.bincount(of_sentences, minlength=batch.num_graphs).tolist()
        return replace(batch, sentence_vectors=self.sentence_vectors.of(post_ids, counts))

    def get(self, post_id: str) -> Data:
        """Return one graph for exploration, as PyTorch Geometric's ``Data``.

        ``x`` (N,) are labels and ``edge_attr`` (E,) relations (names: ``vocabulary.labels``, ``relation_name``).
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
        """Posts whose graph could not be converted, then those whose graph is too large with its virtual nodes."""
        for row in self.connection.execute("SELECT post_id, stage, kind, message FROM failure ORDER BY post_id"):
            yield Failure(*row)
        yield from self.too_large.values()

    def _select(self, columns: str, post_ids: Sequence[str], join: str = "") -> dict[str, tuple[Any, ...]]:
        if isinstance(post_ids, str):
            raise StoreError(f"{post_ids!r} is one post id; give a list of ids: [{post_ids!r}]", path=self.path)
        query = f"SELECT g.post_id, {columns} FROM graph g{join} WHERE g.post_id IN"
        found = database.rows_of_ids(self.connection, query, post_ids)
        rows = {row[0]: row[1:] for row in found if row[0] not in self.too_large}
        for post_id in post_ids:
            if post_id not in rows:
                raise StoreError(self._why_missing(post_id), path=self.path)
        return rows

    def _why_missing(self, post_id: str) -> str:
        failure = self.connection.execute("SELECT message FROM failure WHERE post_id = ?", (post_id,)).fetchone()
        if post_id in self.too_large:
            failure = (self.too_large[post_id].message,)
        why = f": {failure[0]}" if failure else ", nor a record of why; was it built from another collection?"
        return f"no graph of post {post_id}{why}"
