"""A Qdrant server or cluster as the index: upload by size, retry, resume, switch; ``:memory:`` for a trial without one.

>>> import torch
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = ServerIndex.build(["154", "255"], documents, location=":memory:", model_hash="abc")
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> [(post_id, round(score, 4)) for post_id, score in index.search(question, Strategy("maxsim"), k=10)[0]]
[('255', 1.8), ('154', 1.0)]
>>> index.close()

Points are those of :mod:`mathamr.retrieval.qdrant`, numbered from 0, with ``post_id`` as payload. They are uploaded
into a collection named after their content. When the server has all points and has built its graphs, the alias
(``mathamr`` by default) is switched to the collection, and the one before it is deleted. An interrupted upload can
therefore be resumed, and an incomplete index is never searched. Jobs that share a server use different aliases.

The API key comes from the environment variable ``QDRANT_API_KEY``. ``:memory:`` is the local mode of qdrant-client: it
compares everything with everything, in Python, and is meant for tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from qdrant_client import QdrantClient, models

from graphs.errors import RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval.index import (
    BackendName,
    Hnsw,
    Ranking,
    Strategy,
    check_documents,
    check_search,
    ranked,
    refuse_missing_graph,
)
from mathamr.retrieval.qdrant import QUERIES_A_BATCH, as_lists, refuse_missing_sets
from mathamr.retrieval.server import collection
from mathamr.retrieval.server.collection import MEMORY, Report, Server, connect
from mathamr.retrieval.server.options import CREATED_WITH, ServerOptions

FORMAT = "mathamr-qdrant-collection-1"
BYTES_A_FLOAT = 12  # in JSON: sign, nine digits, point, comma


class ServerIndex:
    """A collection of a Qdrant server: the one that the alias named when it was opened.

    If another build has moved the alias since then, a search raises :class:`StoreError`; it never uses another index.
    """

    backend: BackendName = "qdrant"

    def __init__(self, server: Server, name: str, metadata: dict[str, Any], *, temporary: bool = False) -> None:
        self.model_hash: str = metadata["model_hash"]
        self.dim: int = metadata["dim"]
        self.hnsw = Hnsw(**metadata["hnsw"])
        self._metadata = metadata
        self._server = server
        self._name = name
        self._temporary = temporary

    @classmethod
    def build(
        cls,
        post_ids: Sequence[str],
        documents: VectorSets,
        *,
        location: str,
        fields: Mapping[str, Sequence[str]] | None = None,
        model_hash: str = "",
        hnsw: Hnsw = Hnsw(),  # noqa: B008 (frozen)
        options: ServerOptions = ServerOptions(),  # noqa: B008 (frozen)
        client: QdrantClient | None = None,
        temporary: bool = False,
        report: Report = lambda line: None,
    ) -> ServerIndex:
        """Upload ``documents``, wait until the server has indexed them, and switch the alias to them.

        Args:
            post_ids: ids that a search returns, of posts or of formulas.
            location: URL of the server, or ``:memory:``.
            fields: payload of the points, a column for each name, which is indexed; the first is the name of the ids.
                Sets of one vector each are then stored once, as ``doc``. Without it, the payload is ``post_id``.
            client: client used in place of a new one.
            temporary: :meth:`close` removes the index from the server.
            report: function called with lines on the progress of the server.

        Raises:
            StoreError: the server cannot be reached, refuses, or does not get its graphs built.
        """
        check_documents(post_ids, documents)
        server = connect(location, options, client)
        columns = dict(fields or {"post_id": post_ids})
        sets = fields is None or bool((documents.sizes > 1).any())
        metadata = {
            "format": FORMAT,
            "model_hash": model_hash,
            "documents": len(documents),
            "vectors": len(documents.vectors),
            "dim": int(documents.vectors.shape[1]),
            "hnsw": asdict(hnsw),
            "id": next(iter(columns)),
            "sets": sets,
            **{name: getattr(options, name) for name in CREATED_WITH},
        }
        name = f"{options.alias}-{_digest(columns, documents, metadata)}"
        server(lambda: collection.create(server.client, name, metadata, hnsw, options))
        uploaded = _upload(server, name, columns, documents, sets, report)
        if uploaded != len(documents):
            raise StoreError(
                f"collection {name} has {uploaded} points after the upload of {len(documents)}", path=location
            )
        if location != MEMORY:  # local mode has no graphs, and no index of the payload
            server(lambda: collection.index_payload(server.client, name, list(columns)))
            expected = len(documents) * ((hnsw.m > 0) + (sets and hnsw.m_all > 0))
            collection.wait_until_indexed(server, name, expected, report)
        collection.switch(server, name)
        return cls(server, name, metadata, temporary=temporary)

    @classmethod
    def open(
        cls,
        *,
        location: str,
        model_hash: str | None = None,
        options: ServerOptions = ServerOptions(),  # noqa: B008 (frozen)
        client: QdrantClient | None = None,
    ) -> ServerIndex:
        """Return the collection behind the alias; with ``model_hash``, refuse one of another model."""
        server = connect(location, options, client)
        client = server.client
        if not server(lambda: client.collection_exists(options.alias)):
            raise StoreError(f"there is no collection or alias {options.alias}; build the index first", path=location)
        name = server(lambda: collection.collection_of(client, options.alias)) or options.alias
        metadata = server(lambda: client.get_collection(name).config.metadata) or {}
        if metadata.get("format") != FORMAT:
            raise StoreError(f"collection {options.alias} was not made by this program ({FORMAT})", path=location)
        if model_hash is not None and metadata["model_hash"] != model_hash:
            raise StoreError(
                f"the index was built by model {metadata['model_hash']}, not by {model_hash}; build it again",
                path=location,
            )
        return cls(server, name, metadata)

    def __len__(self) -> int:
        return int(self._metadata["documents"])

    @property
    def num_vectors(self) -> int:
        """Number of vectors in ``all``, those of all documents together."""
        return int(self._metadata["vectors"])

    @property
    def nbytes(self) -> int:
        """Bytes of vectors and payload on the node that answers, as it estimates them; 0 if it does not tell."""
        if self._server.location == MEMORY:
            stored = self.num_vectors + (len(self) if self._metadata.get("sets", True) else 0)
            return stored * self.dim * 4
        try:
            return self._server(lambda: collection.bytes_of(self._server.client, self._name))
        except StoreError:  # a key without the right to see telemetry; no job should end by this
            return 0

    def close(self) -> None:
        """Close the connection; the collection stays where it is, unless it is temporary."""
        if self._temporary:
            server = self._server
            server(lambda: collection.remove(server.client, server.options.alias, self._name))
            self._temporary = False
        self._server.client.close()

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return the top-k documents of each query; see :class:`mathamr.retrieval.index.Index`."""
        local = self._server.location == MEMORY
        if local and not strategy.exact:
            raise RetrievalError(
                f"qdrant in local mode (:memory:) cannot do {strategy}: it has no HNSW graph; location=embedded or a "
                "server's URL can"
            )
        refuse_missing_sets(strategy, self._metadata.get("sets", True))
        refuse_missing_graph(strategy, self.hnsw)
        check_search(self, queries, k)
        rankings = []
        for begin in range(0, len(queries), QUERIES_A_BATCH):
            some = as_lists(queries, begin, begin + QUERIES_A_BATCH)
            batch = [self._request(vectors, strategy, k) for vectors in some]
            responses = self._server(
                lambda batch=batch: self._server.client.query_batch_points(self._name, batch)  # type: ignore[misc]
            )
            for response in responses:
                names = [(point.payload or {})[self._id] for point in response.points]
                rankings.append(ranked(names, [point.score for point in response.points]))
        return rankings

    @property
    def _id(self) -> str:
        """Name of the payload field that a search returns."""
        return str(self._metadata.get("id", "post_id"))

    def _request(self, vectors: list[list[float]], strategy: Strategy, k: int) -> models.QueryRequest:
        exact = params = None  # local mode is exact, and warns of parameters
        if self._server.location != MEMORY:
            quantized = self._metadata.get("quantization", "none") != "none"
            original = models.QuantizationSearchParams(ignore=True) if quantized else None
            exact = params = models.SearchParams(exact=True, quantization=original)
            if not strategy.exact:
                oversampling = ServerOptions(quantization=self._metadata.get("quantization", "none")).oversampling
                rescored = models.QuantizationSearchParams(rescore=True, oversampling=oversampling)
                params = models.SearchParams(hnsw_ef=strategy.ef, quantization=rescored if quantized else None)
        wanted: dict[str, Any] = {"limit": k, "with_payload": [self._id]}
        if strategy.name == "single_vector":
            return models.QueryRequest(query=vectors[-1], using="doc", params=params, **wanted)
        if strategy.name == "maxsim":
            return models.QueryRequest(query=vectors, using="all", params=params, **wanted)
        if strategy.name != "doc_vn_maxsim":
            raise strategy.not_in("qdrant")
        pool = models.Prefetch(query=vectors[-1], using="doc", limit=strategy.pool, params=params)
        return models.QueryRequest(query=vectors, using="all", prefetch=[pool], params=exact, **wanted)


def _upload(
    server: Server, name: str, columns: Mapping[str, Sequence[str]], documents: VectorSets, sets: bool, report: Report
) -> int:
    """Upload the points that the collection lacks; return the number that it then has."""
    client = server.client
    present = server(lambda: collection.point_ids(client, name))
    if present:
        report(f"{name}: {len(present):,} of {len(documents):,} points are there from an earlier upload")
    for begin, end in _batches(documents, server.options.batch_bytes):
        if present.issuperset(range(begin, end)):
            continue
        points = [
            models.PointStruct(
                id=begin + i,
                vector={"doc": vectors[-1], "all": vectors} if sets else {"doc": vectors[-1]},
                payload={field: values[begin + i] for field, values in columns.items()},
            )
            for i, vectors in enumerate(as_lists(documents, begin, end))
        ]
        server(lambda points=points: client.upsert(name, points, wait=True))  # type: ignore[misc]
    return server(lambda: client.count(name, exact=True).count)


def _batches(documents: VectorSets, batch_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of documents of about ``batch_bytes`` in a request, at least one document each."""
    sizes = ((documents.sizes + 1) * documents.vectors.shape[1] * BYTES_A_FLOAT).tolist()
    begin, total = 0, 0
    for i, size in enumerate(sizes):
        if total + size > batch_bytes and i > begin:
            yield begin, i
            begin, total = i, 0
        total += size
    yield begin, len(sizes)


def _digest(columns: Mapping[str, Sequence[str]], documents: VectorSets, metadata: dict[str, Any]) -> str:
    """Return a name for exactly these points, by which an interrupted upload finds its own collection again."""
    content = (sorted(metadata.items()), [(field, list(values)) for field, values in columns.items()])
    digest = hashlib.sha256(repr(content).encode())
    digest.update(documents.ptr.cpu().numpy().tobytes())
    digest.update(documents.vectors.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
