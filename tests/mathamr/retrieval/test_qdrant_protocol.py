"""Client of a Qdrant server over HTTP, against a stand-in that is slow, yellow, busy, away or drops connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from graphs.errors import ConfigError, RetrievalError, StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval import Strategy
from mathamr.retrieval.formulas import FormulaIndex, FormulaPoints
from mathamr.retrieval.index import Hnsw
from mathamr.retrieval.qdrant_server import ServerIndex
from mathamr.retrieval.server.options import ServerOptions
from mathamr.retrieval.strategies import search_reference
from tests.mathamr.retrieval.qdrant_stand_in import StandIn, stand_in

QUICK: dict[str, Any] = {"batch_bytes": 5_000, "wait": 0.0, "poll": 0.0, "timeout": 60}
STRATEGIES = (Strategy("single_vector"), Strategy("doc_vn_maxsim", pool=12), Strategy("maxsim"))


@pytest.fixture
def server() -> Iterator[StandIn]:
    with stand_in() as server:
        yield server


def built(server: StandIn, collection: Any, lines: list[str] | None = None, **options: Any) -> ServerIndex:
    report = (lambda line: None) if lines is None else lines.append
    return ServerIndex.build(
        collection.post_ids,
        collection.documents,
        location=server.url,
        model_hash="m",
        options=ServerOptions(**{**QUICK, **options}),
        report=report,
    )


def assert_finds(index: ServerIndex, collection: Any, strategies: tuple[Strategy, ...] = STRATEGIES) -> None:
    for strategy in strategies:
        found = index.search(collection.queries, strategy, 10)
        wanted = search_reference(collection.post_ids, collection.documents, collection.queries, strategy, 10)
        assert [[post_id for post_id, _ in row] for row in found] == [[post_id for post_id, _ in row] for row in wanted]


def test_over_http_exact_search_is_the_definition(server: StandIn, collection: Any) -> None:
    index = built(server, collection)
    assert_finds(index, collection)
    assert index.nbytes == 1024  # as the telemetry of the node says
    assert server.fields == {index._name: ["post_id"]}
    index.close()
    again = ServerIndex.open(location=server.url, model_hash="m", options=ServerOptions(**QUICK))
    assert len(again) == 90
    assert_finds(again, collection, STRATEGIES[:1])
    again.close()


def test_a_build_waits_until_the_server_is_green_and_has_indexed(server: StandIn, collection: Any) -> None:
    server.status, server.indexed = ["green", "yellow", "grey", "yellow", "green"], [0.0, 0.0, 0.0, 0.5, 0.5, 1.0]
    lines: list[str] = []
    index = built(server, collection, lines)
    states = [line.split(": ")[1] for line in lines]
    assert states == [
        "0 of 90 vectors indexed, yellow",
        "0 of 90 vectors indexed, grey",
        "45 of 90 vectors indexed, yellow",
        "45 of 90 vectors indexed, green",
        "90 of 90 vectors indexed, green",
    ]
    name = index._name
    assert ("PATCH", f"/collections/{name}") in server.requests  # grey: Qdrant waits for a change
    order = [request for request in server.requests if request[1] in ("/collections/aliases", f"/collections/{name}")]
    assert order[-1] == ("POST", "/collections/aliases")  # nobody finds the collection before
    index.close()


def test_segments_below_the_threshold_get_no_graph_and_are_not_waited_for(server: StandIn, collection: Any) -> None:
    server.indexed = [0.4]
    lines: list[str] = []
    built(server, collection, lines).close()
    assert lines[-1].endswith("36 of 90 vectors indexed, green")
    assert [one.alias_name for one in server.local.get_aliases().aliases]


def test_a_server_that_fails_or_stays_yellow_is_reported(server: StandIn, collection: Any) -> None:
    server.status = ["yellow"]
    with pytest.raises(StoreError, match=r"has stayed yellow with 90 of 90 vectors indexed for 0 s.*what is uploaded"):
        built(server, collection, patience=0.0)
    server.error = "no space left on device"
    with pytest.raises(StoreError, match="is yellow: no space left on device; see the log of the server"):
        built(server, collection)
    assert not server.local.get_aliases().aliases


@pytest.mark.parametrize("fault", ["busy", "away", "drop"])
def test_requests_may_fail_now_and_then(server: StandIn, collection: Any, fault: str) -> None:
    built(server, collection).close()
    requests = len(server.requests)
    others = type(collection)([f"x{post_id}" for post_id in collection.post_ids], collection.documents, None)
    setattr(server, fault, set(range(requests + 1, 10 * requests, 3)))  # every third one
    index = built(server, others)
    setattr(server, fault, set())
    assert len(index.search(collection.queries, Strategy("maxsim"), 1000)[0]) == 90
    assert [one.name for one in server.local.get_collections().collections] == [index._name]  # the old one is gone
    index.close()


def test_an_upload_is_resumed_after_a_server_that_went_away(server: StandIn, collection: Any) -> None:
    server.away = set(range(8, 1000))
    with pytest.raises(StoreError, match=r"did not answer in 3 attempts \(503: service is starting\); is it running"):
        built(server, collection, retries=2)
    points = ("PUT", server.requests[-1][1])
    assert points[1].endswith("/points")
    there = server.local.count(points[1].split("/")[2]).count
    assert 0 < there < 90
    server.away, server.requests, lines = set(), [], []
    index = built(server, collection, lines)
    assert lines[0].endswith(f"{there} of 90 points are there from an earlier upload")
    first = server.requests.count(points)
    assert_finds(index, collection, STRATEGIES[2:])
    index.close()
    with stand_in() as fresh:
        built(fresh, collection).close()
        assert first < fresh.requests.count(points)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("busy", r"too busy in 2 attempts \(429: .*\); run the command again when it has less load"),
        ("away", r"did not answer in 2 attempts \(503: service is starting\); is it running"),
        ("drop", r"did not answer in 2 attempts \(Server disconnected without sending a response\.\); is it running"),
    ],
)
def test_a_search_that_always_fails_says_why(server: StandIn, collection: Any, fault: str, said: str) -> None:
    index = built(server, collection, retries=1)
    setattr(server, fault, set(range(len(server.requests), 1000)))
    with pytest.raises(StoreError, match=said):
        index.search(collection.queries, Strategy("maxsim"), 5)


def test_a_slow_server_is_given_up_after_its_timeout(server: StandIn, collection: Any) -> None:
    server.answers.clear()
    with pytest.raises(StoreError, match=r"did not answer in 1 attempts \(timed out\)"):
        built(server, collection, retries=0, timeout=1)
    server.answers.set()


def test_an_old_server_is_refused_with_its_version(server: StandIn, collection: Any) -> None:
    server.version = "1.9.7"
    with pytest.raises(StoreError, match=r"has version 1\.9\.7; 1\.16 or later is needed.*Upgrade it"):
        built(server, collection)
    server.version = "2.0.1-dev"
    built(server, collection).close()


def test_settings_reach_the_server(server: StandIn, collection: Any) -> None:
    given = ServerOptions(
        **QUICK, shards=6, replicas=2, write_consistency=2, quantization="binary", on_disk=True, alias="posts"
    )
    index = ServerIndex.build(
        collection.post_ids, collection.documents, location=server.url, options=given, hnsw=Hnsw(m=8)
    )
    made = server.bodies["PUT", "/collections/posts-HASH"]
    assert (made["shard_number"], made["replication_factor"], made["write_consistency_factor"]) == (6, 2, 2)
    assert made["on_disk_payload"] is True
    document, every = made["vectors"]["doc"], made["vectors"]["all"]
    assert document["quantization_config"] == {"binary": {"always_ram": True}}
    assert "quantization_config" not in every  # it has no graph, so its search is exact
    assert document["on_disk"] is True
    assert (document["hnsw_config"]["on_disk"], document["hnsw_config"]["m"]) == (True, 8)
    index.search(collection.queries, Strategy("doc_vn_maxsim", exact=False, pool=12), 5)
    (search, *_) = server.bodies["POST", "/collections/posts-HASH/points/query/batch"]["searches"]
    assert search["prefetch"][0]["params"]["quantization"] == {"rescore": True, "oversampling": 3.0}
    assert search["params"] == {"exact": True, "quantization": {"ignore": True}}
    index.close()
    with pytest.raises(ConfigError, match="write_consistency=2 exceeds replicas=1"):
        ServerOptions(write_consistency=2)


@pytest.mark.parametrize("other", [{"shards": 2}, {"replicas": 2}, {"replicas": 2, "write_consistency": 2}])
def test_other_settings_make_another_collection(server: StandIn, collection: Any, other: dict[str, Any]) -> None:
    built(server, collection).close()
    index = built(server, collection, **other)
    assert [one.name for one in server.local.get_collections().collections] == [index._name]
    assert server.bodies["PUT", "/collections/mathamr-HASH"]["shard_number"] == other.get("shards", 1)
    assert server.bodies["PUT", "/collections/mathamr-HASH"]["replication_factor"] == other.get("replicas", 1)
    index.close()


def test_formulas_are_points_of_one_vector_with_their_post_and_visual_id(server: StandIn) -> None:
    vectors = torch.nn.functional.normalize(torch.randn(5, 4, generator=torch.Generator().manual_seed(0)), dim=1)
    points = FormulaPoints(
        [f"f{i}" for i in range(5)], ["7", "7", "8", "9", "9"], ["v1", "v2", "v1", "", "v3"], vectors
    )
    index = FormulaIndex.build(points, backend="qdrant", location=server.url, server=ServerOptions(**QUICK))
    made = server.bodies["PUT", "/collections/mathamr-formulas-HASH"]
    assert list(made["vectors"]) == ["doc"]
    (name,) = server.fields
    assert server.fields[name] == ["formula_id", "post_id", "visual_id"]
    stored, _ = server.local.scroll(name, with_vectors=True)
    assert [point.payload for point in stored][2] == {"formula_id": "f2", "post_id": "8", "visual_id": "v1"}
    assert all(list(point.vector) == ["doc"] for point in stored)
    best = index.search(vectors[3:4], k=2)[0][0]
    assert (best.doc_id, best.post_id) == ("f3", "9")
    opened = ServerIndex.open(location=server.url, options=ServerOptions(**QUICK, alias="mathamr-formulas"))
    sets = VectorSets.of([vectors[:1]])
    assert opened.search(sets, Strategy("single_vector"), 1)[0][0][0] == "f0"
    with pytest.raises(RetrievalError, match="holds one vector for each id and cannot do exact maxsim"):
        opened.search(sets, Strategy("maxsim"), 1)
    opened.close()
    index.close()
