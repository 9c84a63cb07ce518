"""The client of a Qdrant server, against local mode, and against a server where QDRANT_URL names one."""

from __future__ import annotations

import os
from typing import Any

import pytest
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException

from graphs.errors import RetrievalError, StoreError
from mathamr.retrieval import Strategy, build
from mathamr.retrieval.qdrant_server import ServerIndex, ServerOptions
from mathamr.retrieval.strategies import search_reference

SMALL = ServerOptions(batch_bytes=5_000, wait=0.0)


@pytest.mark.parametrize("location", [":memory:", "server"])
def test_exact_search_is_the_definition(collection: Any, location: str) -> None:
    if location == "server":
        location = os.environ.get("QDRANT_URL", "")
        if not location:
            pytest.skip("QDRANT_URL is not set: no Qdrant server to test against")
    index = ServerIndex.build(collection.post_ids, collection.documents, location=location, options=SMALL)
    for strategy in (Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=12), Strategy("maxsim")):
        found = index.search(collection.queries, strategy, 10)
        expected = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, 10)
        assert [[p for p, _ in row] for row in found] == [[p for p, _ in row] for row in expected]
        for row, other in zip(found, expected, strict=True):
            assert dict(row) == pytest.approx(dict(other), abs=1e-5)
    index.close()


class FailingClient:
    """A client whose upserts fail now and then, or for good after some."""

    def __init__(self, client: QdrantClient, failures: set[int], stop_after: int | None = None) -> None:
        self._client, self._failures, self._stop_after, self.upserts = client, failures, stop_after, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def upsert(self, *arguments: Any, **options: Any) -> Any:
        self.upserts += 1
        if self.upserts in self._failures:
            raise ResponseHandlingException(ConnectionError("gone"))
        if self._stop_after is not None and self.upserts > self._stop_after:
            raise KeyboardInterrupt
        return self._client.upsert(*arguments, **options)


class Unclosed(QdrantClient):
    """A client that stays open, as a server does."""

    def close(self, *_: Any, **__: Any) -> None:
        pass


def test_uploads_are_tried_again_and_resumed(collection: Any) -> None:
    local = QdrantClient(":memory:")
    killed: Any = FailingClient(local, {2}, stop_after=4)
    arguments: dict[str, Any] = {"location": ":memory:", "options": SMALL, "model_hash": "m1"}
    with pytest.raises(KeyboardInterrupt):
        ServerIndex.build(collection.post_ids, collection.documents, client=killed, **arguments)
    assert not local.get_aliases().aliases  # nobody sees half an index
    resumed: Any = FailingClient(local, set())
    index = ServerIndex.build(collection.post_ids, collection.documents, client=resumed, **arguments)
    complete: Any = FailingClient(QdrantClient(":memory:"), set())
    ServerIndex.build(collection.post_ids, collection.documents, client=complete, **arguments)
    assert 0 < resumed.upserts == complete.upserts - 3  # 4 attempts, one of which failed
    assert len(index) == 90
    assert len(index.search(collection.queries, Strategy("maxsim"), 1000)[0]) == 90


def test_the_alias_moves_to_a_new_collection(collection: Any) -> None:
    local = QdrantClient(":memory:")
    arguments: dict[str, Any] = {"location": ":memory:", "client": local}
    ServerIndex.build(collection.post_ids, collection.documents, model_hash="m1", **arguments)
    ServerIndex.build(collection.post_ids, collection.documents, model_hash="m2", **arguments)
    assert len(local.get_collections().collections) == 1
    assert ServerIndex.open(model_hash="m2", **arguments).num_vectors == len(collection.documents.vectors)
    with pytest.raises(StoreError, match="built by model m2, not by m1"):
        ServerIndex.open(model_hash="m1", **arguments)
    with pytest.raises(StoreError, match="no collection or alias other"):
        ServerIndex.open(options=ServerOptions(alias="other"), **arguments)


def test_an_index_is_never_searched_in_place_of_another_that_the_alias_has_left(collection: Any) -> None:
    arguments: dict[str, Any] = {"location": ":memory:", "client": QdrantClient(":memory:")}
    first = ServerIndex.build(collection.post_ids, collection.documents, model_hash="m1", **arguments)
    others = [f"other{post_id}" for post_id in collection.post_ids]
    second = ServerIndex.build(others, collection.documents, model_hash="m2", **arguments)
    with pytest.raises(StoreError, match="not found"):
        first.search(collection.queries, Strategy("maxsim"), 5)
    for index in (second, ServerIndex.open(**arguments)):
        ranking = index.search(collection.queries, Strategy("maxsim"), 5)[0]
        assert all(post_id.startswith("other") for post_id, _ in ranking)


def test_jobs_that_share_a_server_do_not_touch_each_other(collection: Any) -> None:
    server: Any = Unclosed(":memory:")
    arguments: dict[str, Any] = {"location": ":memory:", "client": server, "model_hash": "m"}
    one, two = ({"options": ServerOptions(alias=f"exp-{name}")} for name in ("none-seed42", "none-seed43"))
    first = ServerIndex.build(collection.post_ids, collection.documents, temporary=True, **one, **arguments)
    others = [f"other{post_id}" for post_id in collection.post_ids]
    second = ServerIndex.build(others, collection.documents, **two, **arguments)
    assert first.search(collection.queries, Strategy("maxsim"), 5)[0][0][0] in collection.post_ids
    first.close()  # temporary: it goes from the server, the other stays
    assert [alias.alias_name for alias in server.get_aliases().aliases] == ["exp-none-seed43"]
    assert len(server.get_collections().collections) == 1
    second.close()
    assert len(ServerIndex.open(**two, **{**arguments, "model_hash": None})) == 90


def test_what_local_mode_cannot_do_and_a_server_that_is_away(collection: Any) -> None:
    index = build("qdrant", collection.post_ids, collection.documents, location=":memory:")
    with pytest.raises(RetrievalError, match=r"local mode.*location=embedded"):
        index.search(collection.queries, Strategy("single_vector", exact=False), 5)
    with pytest.raises(StoreError, match="'nowhere' is not a place"):
        build("qdrant", collection.post_ids, collection.documents, location="nowhere")
    away = ServerOptions(retries=1, wait=0.0, timeout=1)
    with pytest.raises(StoreError, match="did not answer in 2 attempts"):
        ServerIndex.open(location="http://127.0.0.1:9", options=away)
