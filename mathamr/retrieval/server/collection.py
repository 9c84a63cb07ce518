"""A Qdrant server: requests, tried again while it is busy or away, and a collection on it.

server = connect("http://localhost:6333", ServerOptions())
server(lambda: server.client.count("posts").count)      # 8 attempts within some two minutes, then a StoreError

A server whose version is too old is refused. The functions below create a collection, list its points, wait for its
graphs, and point an alias at it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from qdrant_client import QdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from graphs.errors import StoreError
from mathamr.retrieval.index import Hnsw
from mathamr.retrieval.server.options import ServerOptions

Report = Callable[[str], None]
SETTLED = 3  # looks in a row at a green collection whose number of indexed vectors stays: small segments get no graph
MEMORY = ":memory:"
NEEDED_VERSION = (1, 16)  # the first that keeps metadata of a collection
LONGEST_WAIT = 30.0  # seconds between two attempts; a server that asks for more is given it
T = TypeVar("T")


class Server:
    """A server and a client of it; a call runs a request, again if the server is busy or away.

    Raises:
        StoreError: the server refuses, is busy in all attempts, or does not answer in any.
    """

    def __init__(self, client: QdrantClient, location: str, options: ServerOptions) -> None:
        self.client, self.location, self.options = client, location, options

    def __call__(self, request: Callable[[], T]) -> T:
        for attempt in range(self.options.retries + 1):
            wait = min(self.options.wait * 2**attempt, LONGEST_WAIT)
            try:
                return request()
            except UnexpectedResponse as error:
                if error.status_code is not None and error.status_code < 500 and error.status_code != 429:
                    raise self._refused(error) from error
                last: Exception = error
            except ResourceExhaustedResponse as error:
                last = error
                wait = max(wait, float(error.retry_after_s)) if self.options.wait else 0.0
            except (ResponseHandlingException, ConnectionError, TimeoutError) as error:
                if isinstance(getattr(error, "source", None), ValidationError):  # it did answer
                    raise self._refused(error) from error
                last = error
            except (ApiException, QdrantException, ValueError) as error:
                raise self._refused(error) from error
            if attempt < self.options.retries:
                time.sleep(wait)
        attempts = self.options.retries + 1
        if isinstance(last, ResourceExhaustedResponse):
            raise StoreError(
                f"the Qdrant server was too busy in {attempts} attempts (429: {_reason(last)}); run the command again "
                "when it has less load: what is uploaded is kept",
                path=self.location,
            ) from last
        raise StoreError(
            f"the Qdrant server did not answer in {attempts} attempts ({_reason(last)}); is it running, and is "
            "QDRANT_API_KEY set if it wants one? location=embedded needs no server",
            path=self.location,
        ) from last

    def _refused(self, error: Exception) -> StoreError:
        return StoreError(f"the Qdrant server refused: {_reason(error)}", path=self.location)


def _reason(error: Exception) -> str:
    """Return the reason that the server gives, or the error in one line."""
    if isinstance(error, UnexpectedResponse):
        try:
            reason = str(error.structured()["status"]["error"])
        except (ValueError, KeyError, TypeError):
            reason = error.reason_phrase
        return f"{error.status_code}: {reason}"
    return " ".join(str(error).split())


def connect(location: str, options: ServerOptions, client: QdrantClient | None = None) -> Server:
    """Return the server at ``location``, or one in this process for ``:memory:``.

    Args:
        client: client used in place of a new one.

    Raises:
        StoreError: no such place, no answer, or a server older than :data:`NEEDED_VERSION`.
    """
    if client is not None or location == MEMORY:
        return Server(client or QdrantClient(MEMORY), location, options)
    if not location.startswith(("http://", "https://")):
        raise StoreError(
            f"location={location!r} is not a place of an index; there are embedded, {MEMORY} and a server's URL "
            "(http://HOST:6333)"
        )
    new = QdrantClient(
        url=location,
        api_key=os.environ.get("QDRANT_API_KEY"),
        timeout=options.timeout,
        check_compatibility=False,  # below, with a message that says what to do
    )
    server = Server(new, location, options)
    version = server(lambda: new.info().version)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < NEEDED_VERSION:
        needed = ".".join(map(str, NEEDED_VERSION))
        raise StoreError(
            f"the Qdrant server has version {version}; {needed} or later is needed, which keeps metadata of "
            "collections. Upgrade it, or use location=embedded",
            path=location,
        )
    return server


def create(client: QdrantClient, name: str, metadata: dict[str, Any], hnsw: Hnsw, options: ServerOptions) -> None:
    """Create the collection, unless an earlier attempt did.

    Args:
        metadata: ``dim`` is the length of the vectors; with ``sets``, a point has the multivector ``all`` beside the
            vector ``doc``.
    """
    if client.collection_exists(name):
        return

    def params(m: int, **more: Any) -> models.VectorParams:
        graph = models.HnswConfigDiff(
            m=m, ef_construct=hnsw.ef_construct, full_scan_threshold=hnsw.threshold, on_disk=options.on_disk or None
        )
        return models.VectorParams(
            size=metadata["dim"],
            distance=models.Distance.COSINE,
            hnsw_config=graph,
            quantization_config=_quantization(options) if m else None,
            on_disk=options.on_disk or None,
            **more,
        )

    vectors = {"doc": params(hnsw.m)}
    if metadata["sets"]:
        maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
        vectors["all"] = params(hnsw.m_all, multivector_config=maxsim)
    client.create_collection(
        name,
        vectors_config=vectors,
        optimizers_config=models.OptimizersConfigDiff(indexing_threshold=hnsw.threshold),
        shard_number=options.shards,
        replication_factor=options.replicas,
        write_consistency_factor=options.write_consistency,
        on_disk_payload=options.on_disk or None,
        metadata=metadata,
    )


def _quantization(options: ServerOptions) -> models.ScalarQuantization | models.BinaryQuantization | None:
    if options.quantization == "scalar":
        scalar = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
        return models.ScalarQuantization(scalar=scalar)
    if options.quantization == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return None


def index_payload(client: QdrantClient, name: str, fields: Sequence[str]) -> None:
    """Index the payload fields that are not indexed, so that points can be filtered by them."""
    has = client.get_collection(name).payload_schema
    for field in fields:
        if field not in has:
            client.create_payload_index(name, field, models.PayloadSchemaType.KEYWORD, wait=True)


def point_ids(client: QdrantClient, name: str) -> set[int]:
    """Return the ids of the points that the collection has."""
    present: set[int] = set()
    offset: Any = None
    while True:
        points, offset = client.scroll(name, limit=10_000, offset=offset, with_payload=False, with_vectors=False)
        present.update(int(point.id) for point in points)
        if offset is None:
            return present


def wait_until_indexed(server: Server, name: str, expected: int, report: Report) -> None:
    """Wait until the server has built its graphs.

    The collection is green, and either ``expected`` vectors are indexed or their number stays the same for some
    looks: segments below the threshold get no graph and are searched whole.

    Args:
        report: function called with a line for each change.

    Raises:
        StoreError: the server reports an error, or no change within ``options.patience`` seconds.
    """
    last: tuple[str, int] | None = None
    changed, settled = time.monotonic(), 0
    while True:
        info = server(lambda: server.client.get_collection(name))
        status, indexed = str(info.status), info.indexed_vectors_count or 0
        error = getattr(info.optimizer_status, "error", None)
        if status == "red" or error is not None:
            raise StoreError(
                f"collection {name} is {status}: {error or 'the server gives no reason'}; see the log of the server, "
                "and build the index again",
                path=server.location,
            )
        if status == "grey":  # after a restart Qdrant begins nothing until the collection is changed
            server(lambda: server.client.update_collection(name, optimizers_config=models.OptimizersConfigDiff()))
        now = (status, indexed)
        if now != last:
            report(f"{name}: {indexed:,} of {expected:,} vectors indexed, {status}")
            changed, settled = time.monotonic(), 0
        settled += status == "green"
        if status == "green" and (indexed >= expected or settled > SETTLED):
            return
        if time.monotonic() - changed > server.options.patience:
            raise StoreError(
                f"collection {name} has stayed {status} with {indexed:,} of {expected:,} vectors indexed for "
                f"{server.options.patience:,.0f} s; see the log of the server, and run the command again: what is "
                "uploaded is kept",
                path=server.location,
            )
        last = now
        time.sleep(server.options.poll)


def collection_of(client: QdrantClient, alias: str) -> str | None:
    """Return the name of the collection that ``alias`` names."""
    return next((a.collection_name for a in client.get_aliases().aliases if a.alias_name == alias), None)


def switch(server: Server, name: str) -> None:
    """Point the alias at ``name``, and delete the collection that it pointed at."""
    client, alias = server.client, server.options.alias
    before = server(lambda: collection_of(client, alias))
    if before == name:
        return

    def change() -> None:
        now = collection_of(client, alias)
        if now == name:  # an attempt whose answer was lost
            return
        changes: list[Any] = []
        if now is not None:
            changes.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias)))
        create_alias = models.CreateAlias(collection_name=name, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=create_alias))
        client.update_collection_aliases(changes)

    server(change)
    if before is not None:
        server(lambda: client.delete_collection(before))


def remove(client: QdrantClient, alias: str, name: str) -> None:
    """Delete the collection, and the alias if it still names it."""
    if collection_of(client, alias) == name:
        gone = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
        client.update_collection_aliases([gone])
    client.delete_collection(name)


def bytes_of(client: QdrantClient, name: str) -> int:
    """Return the bytes of vectors and payload on the node that answers, as its telemetry estimates them."""
    telemetry = client.http.service_api.telemetry(details_level=4).result
    collections = telemetry.collections.collections if telemetry and telemetry.collections else None
    total = 0
    for collection in collections or ():
        if isinstance(collection, models.CollectionTelemetry) and collection.id == name:
            for shard in collection.shards or ():
                if shard.local is not None:
                    total += (shard.local.vectors_size_bytes or 0) + (shard.local.payloads_size_bytes or 0)
    return total
