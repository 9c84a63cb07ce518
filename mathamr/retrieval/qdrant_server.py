"""A Qdrant server or cluster as the index: upload by size, retry, resume, switch; ``:memory:`` for a trial without one.

>>> import torch
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = ServerIndex.build(["154", "255"], documents, location=":memory:", model_hash="abc")
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> [(post_id, round(score, 4)) for post_id, score in index.search(question, Strategy("maxsim"), k=10)[0]]
[('255', 1.8), ('154', 1.0)]
>>> index.close()

Points are those of :mod:`mathamr.retrieval.qdrant`, numbered from 0, with ``post_id`` as payload. They are uploaded
into a collection named after their content; when all are there, the alias (``mathamr`` unless told otherwise) is
switched to it and the collection it named before is deleted. An upload that was interrupted therefore goes on where it
stopped, and doubles nothing. Jobs that share a server take an alias each.

The API key comes from the environment variable ``QDRANT_API_KEY``. ``:memory:`` is the local mode of qdrant-client: it
compares everything with everything, in Python, and is meant for tests.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from graphs.errors import RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval.index import (
    BackendName,
    Hnsw,
    Ranking,
    Strategy,
    check_documents,
    check_search,
    refuse_missing_graph,
)
from mathamr.retrieval.qdrant import QUERIES_A_BATCH, as_lists, ranked

FORMAT = "mathamr-qdrant-collection-1"
MEMORY = ":memory:"
BYTES_A_FLOAT = 12  # in JSON: sign, nine digits, point, comma
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """``shards`` and ``replicas`` of the collection in a cluster; uploads in requests of about ``batch_bytes``.

    A request that fails is tried ``retries`` times more, after 1, 2, 4 ... times ``wait`` seconds; ``timeout`` in
    seconds.
    """

    alias: str = "mathamr"
    shards: int = 1
    replicas: int = 1
    batch_bytes: int = 8 << 20  # Qdrant refuses requests above 32 MiB
    retries: int = 4
    wait: float = 1.0
    timeout: int = 60


class ServerIndex:
    """A collection of a Qdrant server: the one that the alias named when it was opened.

    Where another build has moved the alias since, searching is a :class:`StoreError`, never a search of another index.
    """

    backend: BackendName = "qdrant"

    def __init__(
        self,
        client: QdrantClient,
        location: str,
        name: str,
        metadata: dict[str, Any],
        options: ServerOptions,
        *,
        temporary: bool = False,
    ) -> None:
        self.model_hash: str = metadata["model_hash"]
        self.dim: int = metadata["dim"]
        self.hnsw = Hnsw(**metadata["hnsw"])
        self._metadata = metadata
        self._client = client
        self._location = location
        self._name = name
        self._options = options
        self._temporary = temporary

    @classmethod
    def build(
        cls,
        post_ids: Sequence[str],
        documents: VectorSets,
        *,
        location: str,
        model_hash: str = "",
        hnsw: Hnsw = Hnsw(),  # noqa: B008 (frozen)
        options: ServerOptions = ServerOptions(),
        client: QdrantClient | None = None,
        temporary: bool = False,
    ) -> ServerIndex:
        """Upload ``documents`` to the server at ``location`` (a URL, or ``:memory:``) and switch the alias to them.

        ``client`` is used in place of a new one; :meth:`close` removes a ``temporary`` index from the server. Raises
        :class:`StoreError` if the server cannot be reached or refuses.
        """
        check_documents(post_ids, documents)
        client = client or _connect(location, options)
        metadata = {
            "format": FORMAT,
            "model_hash": model_hash,
            "documents": len(documents),
            "vectors": len(documents.vectors),
            "dim": int(documents.vectors.shape[1]),
            "hnsw": asdict(hnsw),
        }
        name = f"{options.alias}-{_digest(post_ids, documents, metadata)}"
        call = _Caller(location, options)
        if not call(lambda: client.collection_exists(name)):
            call(lambda: _create(client, name, metadata, hnsw, options))
        present = call(lambda: _point_ids(client, name))
        for begin, end in _batches(documents, options.batch_bytes):
            if present.issuperset(range(begin, end)):
                continue
            points = [
                models.PointStruct(
                    id=begin + i, vector={"doc": vectors[-1], "all": vectors}, payload={"post_id": post_ids[begin + i]}
                )
                for i, vectors in enumerate(as_lists(documents, begin, end))
            ]
            call(lambda points=points: client.upsert(name, points, wait=True))  # type: ignore[misc]
        found = call(lambda: client.count(name, exact=True).count)
        if found != len(documents):
            raise StoreError(
                f"collection {name} has {found} points after the upload of {len(documents)}", path=location
            )
        call(lambda: _switch(client, options.alias, name))
        return cls(client, location, name, metadata, options, temporary=temporary)

    @classmethod
    def open(
        cls,
        *,
        location: str,
        model_hash: str | None = None,
        options: ServerOptions = ServerOptions(),
        client: QdrantClient | None = None,
    ) -> ServerIndex:
        """Return the collection behind the alias; with ``model_hash``, refuse one of another model."""
        client = client or _connect(location, options)
        call = _Caller(location, options)
        if not call(lambda: client.collection_exists(options.alias)):
            raise StoreError(f"there is no collection or alias {options.alias}; build the index first", path=location)
        name = call(lambda: _collection_of(client, options.alias)) or options.alias
        metadata = call(lambda: client.get_collection(name).config.metadata) or {}
        if metadata.get("format") != FORMAT:
            raise StoreError(f"collection {options.alias} was not made by this program ({FORMAT})", path=location)
        if model_hash is not None and metadata["model_hash"] != model_hash:
            raise StoreError(
                f"the index was built by model {metadata['model_hash']}, not by {model_hash}; build it again",
                path=location,
            )
        return cls(client, location, name, metadata, options)

    def __len__(self) -> int:
        return int(self._metadata["documents"])

    @property
    def num_vectors(self) -> int:
        """Number of vectors in ``all``, those of all documents together."""
        return int(self._metadata["vectors"])

    @property
    def nbytes(self) -> int:
        """0: a server does not tell what a collection takes."""
        return 0

    def close(self) -> None:
        """Close the connection; the collection stays where it is, unless it is temporary."""
        if self._temporary:
            _Caller(self._location, self._options)(lambda: _remove(self._client, self._options.alias, self._name))
            self._temporary = False
        self._client.close()

    def search(self, queries: VectorSets, strategy: Strategy, k: int) -> list[Ranking]:
        """Return the top-k documents of each query; see :class:`mathamr.retrieval.index.Index`."""
        local = self._location == MEMORY
        if local and not strategy.exact:
            raise RetrievalError(
                f"qdrant in local mode (:memory:) cannot do {strategy}: it has no HNSW graph; location=embedded or a "
                "server's URL can"
            )
        refuse_missing_graph(strategy, self.hnsw)
        check_search(self, queries, k)
        call = _Caller(self._location, self._options)
        rankings = []
        for begin in range(0, len(queries), QUERIES_A_BATCH):
            end = min(begin + QUERIES_A_BATCH, len(queries))
            batch = [_request(vectors, strategy, k, local) for vectors in as_lists(queries, begin, end)]
            responses = call(
                lambda batch=batch: self._client.query_batch_points(self._name, batch)  # type: ignore[misc]
            )
            for response in responses:
                rankings.append(ranked([((point.payload or {})["post_id"], point.score) for point in response.points]))
        return rankings


class _Caller:
    """Runs a request, again where the server was busy or away; what stays wrong is a :class:`StoreError`."""

    def __init__(self, location: str, options: ServerOptions) -> None:
        self._location, self._options = location, options

    def __call__(self, request: Callable[[], T]) -> T:
        for attempt in range(self._options.retries + 1):
            try:
                return request()
            except UnexpectedResponse as error:
                if error.status_code is not None and error.status_code < 500 and error.status_code != 429:
                    raise StoreError(f"the Qdrant server refused: {error}", path=self._location) from error
                last: Exception = error
            except (ResponseHandlingException, ConnectionError, TimeoutError) as error:
                last = error
            except (ApiException, ValueError) as error:
                raise StoreError(f"the Qdrant server refused: {error}", path=self._location) from error
            if attempt < self._options.retries:
                time.sleep(self._options.wait * 2**attempt)
        raise StoreError(
            f"the Qdrant server did not answer in {self._options.retries + 1} attempts ({last}); is it running, and is "
            "QDRANT_API_KEY set if it wants one? location=embedded needs no server",
            path=self._location,
        ) from last


def _connect(location: str, options: ServerOptions) -> QdrantClient:
    if location == MEMORY:
        return QdrantClient(MEMORY)
    if not location.startswith(("http://", "https://")):
        raise StoreError(
            f"location={location!r} is not a place of an index; there are embedded, {MEMORY} and a server's URL "
            "(http://HOST:6333)"
        )
    return QdrantClient(
        url=location,
        api_key=os.environ.get("QDRANT_API_KEY"),
        timeout=options.timeout,
        check_compatibility=False,
    )


def _create(client: QdrantClient, name: str, metadata: dict[str, Any], hnsw: Hnsw, options: ServerOptions) -> bool:
    def graph(m: int) -> models.HnswConfigDiff:
        return models.HnswConfigDiff(m=m, ef_construct=hnsw.ef_construct, full_scan_threshold=hnsw.threshold)

    cosine, dim = models.Distance.COSINE, metadata["dim"]
    maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    return client.create_collection(
        name,
        vectors_config={
            "doc": models.VectorParams(size=dim, distance=cosine, hnsw_config=graph(hnsw.m)),
            "all": models.VectorParams(
                size=dim, distance=cosine, multivector_config=maxsim, hnsw_config=graph(hnsw.m_all)
            ),
        },
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=hnsw.threshold),
        shard_number=options.shards,
        replication_factor=options.replicas,
        metadata=metadata,
    )


def _switch(client: QdrantClient, alias: str, name: str) -> None:
    """Point the alias at ``name``, and delete the collection that it pointed at."""
    before = _collection_of(client, alias)
    if before == name:
        return
    changes: list[Any] = []
    if before is not None:
        changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
    changes.append(models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=alias)))
    client.update_collection_aliases(changes)
    if before is not None:
        client.delete_collection(before)


def _remove(client: QdrantClient, alias: str, name: str) -> None:
    """Delete the collection, and the alias if it still names it."""
    if _collection_of(client, alias) == name:
        gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
        client.update_collection_aliases([gone])
    client.delete_collection(name)


def _collection_of(client: QdrantClient, alias: str) -> str | None:
    """Return the name of the collection behind ``alias``."""
    return next((a.collection_name for a in client.get_aliases().aliases if a.alias_name == alias), None)


def _point_ids(client: QdrantClient, name: str) -> set[int]:
    """Ids of the points that are there already."""
    present: set[int] = set()
    offset: Any = None
    while True:
        points, offset = client.scroll(name, limit=10_000, offset=offset, with_payload=False, with_vectors=False)
        present.update(int(point.id) for point in points)
        if offset is None:
            return present


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


def _digest(post_ids: Sequence[str], documents: VectorSets, metadata: dict[str, Any]) -> str:
    """A name for exactly these points, so that an interrupted upload finds its own collection again."""
    digest = hashlib.sha256(repr((sorted(metadata.items()), list(post_ids))).encode())
    digest.update(documents.ptr.cpu().numpy().tobytes())
    digest.update(documents.vectors.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _request(vectors: list[list[float]], strategy: Strategy, k: int, local: bool) -> models.QueryRequest:
    exact = None if local else models.SearchParams(exact=True)  # local mode is exact, and warns of parameters
    params = exact if strategy.exact else models.SearchParams(hnsw_ef=strategy.ef)
    if strategy.name == "single_vector":
        return models.QueryRequest(query=vectors[-1], using="doc", limit=k, params=params, with_payload=True)
    if strategy.name == "maxsim":
        return models.QueryRequest(query=vectors, using="all", limit=k, params=params, with_payload=True)
    pool = models.Prefetch(query=vectors[-1], using="doc", limit=strategy.pool, params=params)
    return models.QueryRequest(query=vectors, using="all", limit=k, prefetch=[pool], params=exact, with_payload=True)
