"""A Qdrant server of this process: its HTTP interface over qdrant-client's local mode, with the faults of a real one.

    with stand_in() as server:
        server.drop = {3}                 # the third request is done, and its answer is lost
        server.status = ["yellow", "grey", "green"]
        QdrantClient(url=server.url)

Answers have the form of Qdrant's OpenAPI description; what a real server does between them is not simulated.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from qdrant_client import QdrantClient, models


class StandIn:
    """State of the server, and its faults by the number of the request, from 1.

    Attributes:
        busy: requests answered with 429 and Retry-After.
        drop: requests that are done, but whose answer never comes.
        away: requests refused while the server restarts, with 503.
        answers: an event; while it is clear, no request is answered.
        status: statuses of a collection, one a look; the last stays.
        indexed: shares of the vectors that are indexed, one a look; the last stays.
        requests: method and path of each request.
    """

    def __init__(self) -> None:
        self.local = QdrantClient(":memory:")
        self.version = "1.17.0"
        self.url = ""
        self.busy: set[int] = set()
        self.drop: set[int] = set()
        self.away: set[int] = set()
        self.answers = threading.Event()
        self.answers.set()
        self.status, self.indexed = ["green"], [1.0]
        self.error: str | None = None
        self.requests: list[tuple[str, str]] = []
        self.bodies: dict[tuple[str, str], Any] = {}
        self.fields: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def answer(self, method: str, path: str, body: Any) -> Any:
        """Return the result of a request."""
        self.bodies[method, re.sub(r"[0-9a-f]{16}", "HASH", path)] = body
        _, *parts = path.split("/")
        match (method, *parts):
            case ("GET", "telemetry"):
                app = {"name": "qdrant", "version": self.version, "startup": "2026-01-01T00:00:00Z"}
                return {"id": "node", "app": app, "collections": self.sizes()}
            case ("GET", "aliases"):
                return self.local.get_aliases()
            case ("POST", "collections", "aliases"):
                actions = models.ChangeAliasesOperation(**body).actions
                return self.local.update_collection_aliases(actions)
            case ("GET", "collections", name, "exists"):
                return {"exists": self.local.collection_exists(name)}
            case ("GET", "collections", name):
                return self.info(name)
            case ("PUT", "collections", name):
                return self.create(name, models.CreateCollection(**body))
            case ("PATCH", "collections", _):
                return True
            case ("DELETE", "collections", name):
                return self.local.delete_collection(name)
            case ("PUT", "collections", name, "index"):
                self.fields.setdefault(name, []).append(body["field_name"])
                return {"operation_id": 1, "status": "completed"}
            case ("POST", "collections", name, "points", "scroll"):
                points, offset = self.local.scroll(name, limit=body["limit"], offset=body.get("offset"))
                return {"points": [{"id": point.id} for point in points], "next_page_offset": offset}
            case ("PUT", "collections", name, "points"):
                return self.local.upsert(name, models.PointsList(**body).points)
            case ("POST", "collections", name, "points", "count"):
                return self.local.count(name)
            case ("POST", "collections", name, "points", "query", "batch"):
                searches = models.QueryRequestBatch(**body).searches
                for search in searches:
                    search.params = None  # local mode is exact
                    for pool in [search.prefetch] if search.prefetch else []:
                        for one in pool if isinstance(pool, list) else [pool]:
                            one.params = None
                return self.local.query_batch_points(name, searches)
        raise LookupError(f"{method} {path} is not in the stand-in")

    def create(self, name: str, given: models.CreateCollection) -> bool:
        """Create a collection; the settings that local mode warns of stay in ``bodies``."""
        vectors = given.vectors
        assert isinstance(vectors, dict)
        plain = {
            key: models.VectorParams(
                size=value.size, distance=value.distance, multivector_config=value.multivector_config
            )
            for key, value in vectors.items()
        }
        return self.local.create_collection(name, vectors_config=plain, metadata=given.metadata)

    def info(self, name: str) -> Any:
        """Return a collection with the next status."""
        found = json.loads(self.local.get_collection(name).model_dump_json())
        count = self.local.count(name).count
        status, share = (values.pop(0) if len(values) > 1 else values[0] for values in (self.status, self.indexed))
        schema = {field: {"data_type": "keyword", "points": count} for field in self.fields.get(name, [])}
        state = "ok" if self.error is None else {"error": self.error}
        return {
            **found,
            "status": status,
            "optimizer_status": state,
            "indexed_vectors_count": int(share * count),
            "payload_schema": schema,
        }

    def sizes(self) -> Any:
        """Return the collections of the telemetry."""
        found = self.local.get_collections().collections
        shard = {"total_optimized_points": 0, "vectors_size_bytes": 1000, "payloads_size_bytes": 24}
        replicas = {"id": 0, "local": shard, "remote": [], "replicate_states": {}}
        rows = [
            {"id": one.name, "config": None, "shards": [replicas], "transfers": [], "resharding": []} for one in found
        ]
        return {"number_of_collections": len(rows), "collections": rows}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _do(self) -> None:
        server: StandIn = self.server.stand_in  # type: ignore[attr-defined]
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path = self.path.split("?")[0]
        with server.lock:
            server.requests.append((self.command, path))
            number = len(server.requests)
            server.answers.wait(60)
            if number in server.busy:
                self._send(429, {"status": {"error": "rate limiting exceeded"}}, {"Retry-After": "1"})
                return
            if number in server.away:
                self._send(503, {"status": {"error": "service is starting"}}, {})
                return
            if path == "/":
                self._send(200, {"title": "qdrant", "version": server.version, "commit": None}, {})
                return
            try:
                result, code = (
                    {"result": _plain(server.answer(self.command, path, body)), "status": "ok", "time": 0.1},
                    200,
                )
            except ValueError as error:
                result, code = {"status": {"error": str(error)}, "time": 0.1}, 404
            if number in server.drop:
                self.close_connection = True
                return
            self._send(code, result, {})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _do

    def _send(self, code: int, result: Any, headers: dict[str, str]) -> None:
        content = json.dumps(result).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return json.loads(value.model_dump_json()) if hasattr(value, "model_dump_json") else value


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """Yield a server that listens on a free port of this machine."""
    server = StandIn()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as http:
        http.daemon_threads = True
        http.stand_in = server  # type: ignore[attr-defined]
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
