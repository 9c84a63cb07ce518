"""preprocessed.db: building, resuming, reading, refusing."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphs import database
from graphs.errors import GraphError, GraphTooLargeError, StoreError
from graphs.graph import connectivity, mathamr_plus, tensors, virtual_nodes
from graphs.graph.batching import GraphBatch, collate
from graphs.graph.connectivity import counted
from graphs.graph.tensors import to_arrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Row, Vocabulary, count
from graphs.row_digests import row_digest
from graphs.stores.store import PURPOSE, GraphStore, build, config_hash
from tests.warm_process import SECONDS

ROWS: list[Row] = [
    (
        str(10 * i),
        f"(s / solve-01 :ARG1 (F0 / FORMULA_0 :slt (F0s0 / V!x :slt-a (F0s1 / N!{i % 3}))) :time (e / c{i % 50}))",
        '{"FORMULA_0": "17"}',
    )
    for i in range(600)
]
SPEC = VirtualNodeSpec()


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.build(count(ROWS, mathamr_plus.decode), size=40)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, vocabulary: Vocabulary) -> Path:
    path = tmp_path_factory.mktemp("store") / "preprocessed.db"
    assert build(path, ROWS, mathamr_plus.decode, SPEC, vocabulary, source="abc") == 600
    return path


def content(path: Path) -> tuple[list, list, list]:
    with closing(database.connect_read_only(path, purpose=PURPOSE)) as connection:
        tables = [connection.execute(f"SELECT * FROM {name}").fetchall() for name in ("graph", "arrays", "failure")]
    return tables[0], tables[1], tables[2]


def equal(one: GraphBatch, other: GraphBatch) -> bool:
    both = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]
    return all(a.equal(b) if isinstance(a, torch.Tensor) else a == b for a, b in both)


def test_stored_graphs_come_back_in_the_order_asked_for(path: Path, vocabulary: Vocabulary) -> None:
    wanted = ["50", "10", "5990", "10"]
    texts = {post_id: text for post_id, text, _ in ROWS}
    graphs = [to_arrays(mathamr_plus.decode(texts[p], {"FORMULA_0": "17"}), SPEC, vocabulary) for p in wanted]
    store = GraphStore(path, config_hash=config_hash(SPEC, vocabulary))
    assert store.get_arrays(wanted) == graphs
    assert equal(store.load(wanted), collate(graphs))
    assert store.load([]).num_graphs == 0
    assert [sizes.tolist() for sizes in store.sizes([])] == [[], []]
    nodes, edges = store.sizes(wanted)
    assert nodes.tolist() == [graph.num_nodes for graph in graphs]
    assert edges.tolist() == [graph.num_edges for graph in graphs]


def test_store_tells_what_it_holds(path: Path, vocabulary: Vocabulary) -> None:
    store = GraphStore(path)
    assert len(store) == 600
    assert store.post_ids() == [row[0] for row in ROWS]
    assert "10" in store
    assert "11" not in store
    assert store.vocabulary.hash == vocabulary.hash
    assert (store.spec, store.source) == (SPEC, "abc")


def test_more_posts_than_one_query_takes(path: Path) -> None:
    ids = [row[0] for row in ROWS] * 2
    assert GraphStore(path).load(ids).num_graphs == 1200
    assert list(GraphStore(path).having(iter(["11", *ids]))) == ids


class Stopped(Exception):
    """Stands for a kill."""


def rows_until(stop: int) -> Iterator[Row]:
    yield from ROWS[:stop]
    raise Stopped


def test_resumed_build_equals_an_uninterrupted_one(path: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    resumed = tmp_path / "resumed.db"
    with pytest.raises(Stopped):
        build(resumed, rows_until(530), mathamr_plus.decode, SPEC, vocabulary, source="abc")
    with pytest.raises(StoreError, match="preprocessing did not finish; run it again"):
        GraphStore(resumed)
    done: list[int] = []
    build(resumed, iter(ROWS), mathamr_plus.decode, SPEC, vocabulary, source="abc", progress=done.append)
    assert content(resumed) == content(path)
    assert sum(done) == 600
    assert GraphStore(resumed).get_blobs(["5990"]) == GraphStore(path).get_blobs(["5990"])


@pytest.mark.usefixtures("warm_children")
def test_workers_build_the_same_file(path: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    build(tmp_path / "two.db", iter(ROWS), mathamr_plus.decode, SPEC, vocabulary, workers=2)
    assert content(tmp_path / "two.db") == content(path)


def test_configurations_stand_beside_one_another(path: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    other = VirtualNodeSpec(structure="none", formulas="none")
    build(tmp_path / "none.db", ROWS, mathamr_plus.decode, other, vocabulary)
    store = GraphStore(tmp_path / "none.db")
    assert store.spec == other
    assert store.get_arrays(["10"])[0].num_nodes < GraphStore(path).get_arrays(["10"])[0].num_nodes
    assert store.config_hash != GraphStore(path).config_hash


def test_wrong_hash_prints_both(path: Path, vocabulary: Vocabulary) -> None:
    with pytest.raises(StoreError, match=f"config_hash is {config_hash(SPEC, vocabulary)}, beef is needed"):
        GraphStore(path, config_hash="beef")


def test_one_file_serves_all_virtual_nodes(path: Path, vocabulary: Vocabulary) -> None:
    texts = {post_id: text for post_id, text, _ in ROWS}
    wanted = ["50", "10", "5990", "10"]
    for spec in VirtualNodeSpec.every(formulas="both", thread="none"):
        store = GraphStore(path, spec)
        graphs = [to_arrays(mathamr_plus.decode(texts[p], {"FORMULA_0": "17"}), spec, vocabulary) for p in wanted]
        assert equal(store.load(wanted), collate(graphs))
        nodes, edges = store.sizes(wanted)
        assert nodes.tolist() == [graph.num_nodes for graph in graphs]
        assert edges.tolist() == [graph.num_edges for graph in graphs]
        named = GraphStore(path, config_hash=config_hash(spec, vocabulary))  # as by a model that was trained so
        assert (named.spec, named.config_hash) == (spec, store.config_hash)
    with pytest.raises(StoreError, match="made with formulas=both, opt is needed"):
        GraphStore(path, VirtualNodeSpec(formulas="opt"))
    with pytest.raises(StoreError, match=r"graph\.thread=question needs the posts of each thread"):
        GraphStore(path, VirtualNodeSpec(thread="question")).load(["10"])


def dense(members: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Join each member to every member, itself included."""
    sources = np.repeat(np.arange(members.sum()), np.repeat(members, members))
    return sources, counted(np.repeat(np.cumsum(members) - members, members), np.repeat(members, members))


@pytest.mark.parametrize(("name", "edges"), [("fully_connected", 1), ("dense", 4)])
def test_a_graph_too_large_with_some_virtual_nodes_has_tensors_with_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, edges: int
) -> None:
    monkeypatch.setattr(connectivity, "_KNOWN", dict(connectivity._KNOWN))
    connectivity.connectivity("dense", count="{n} * {n} | 0")(dense)  # binds less than the + before it
    spec = VirtualNodeSpec(connectivity=name)
    assert GraphStore(path, spec).sizes(["10"])[1] == GraphStore(path, spec).get_arrays(["10"])[0].num_edges
    monkeypatch.setattr(virtual_nodes, "MAX_AUXILIARY_EDGES", 0)
    graph = mathamr_plus.decode(ROWS[1][1], {"FORMULA_0": "17"})
    message = f"2 formulas and sentences have {edges} edges with graph.connectivity={name}; at most 0 are made"
    with pytest.raises(GraphTooLargeError, match=message):
        virtual_nodes.add_virtual_nodes(graph, spec)
    connected = GraphStore(path, spec)
    assert (len(connected), connected.post_ids(), list(connected.having(["10"])), "10" in connected) == (
        0,
        [],
        [],
        False,
    )
    failures = list(connected.failures())
    assert len(failures) == 600
    assert (failures[0].stage, failures[0].kind) == ("tensors", "too_large")
    with pytest.raises(StoreError, match=f"post 10: {message}"):
        connected.load(["10"])
    assert len(GraphStore(path)) == 600
    monkeypatch.setattr(tensors, "MAX_NODES", 7)
    assert len(GraphStore(path)) == 0
    with pytest.raises(StoreError, match="post 10: a graph of 8 nodes; at most 7"):
        GraphStore(path).sizes(["10"])
    assert len(GraphStore(path, VirtualNodeSpec(structure="none"))) == 600


def test_a_file_of_an_earlier_format_is_refused(path: Path, vocabulary: Vocabulary, tmp_path: Path) -> None:
    sql = "UPDATE meta SET key = 'config_hash' WHERE key = 'format'"
    message = "tensors of format 1, this version reads 2; preprocess the collection into a new file"
    with pytest.raises(StoreError, match=message):
        damaged(path, tmp_path, sql)
    with pytest.raises(StoreError, match=message):
        build(tmp_path / "damaged.db", ROWS, mathamr_plus.decode, SPEC, vocabulary, source="abc")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"format": 1', '"format": 2', "vocabulary of format 2, this version reads 1"),
        (":auxiliary_vn", ":aux", "vocabulary of another version: its relations begin with .* :aux, "),
        ("VIRTUAL_DOCUMENT", "DOCUMENT", "vocabulary of another version: its labels begin with .* DOCUMENT, "),
    ],
)
def test_a_vocabulary_of_another_version_is_no_damage(
    path: Path, vocabulary: Vocabulary, tmp_path: Path, before: str, after: str, message: str
) -> None:
    stored = json.dumps(vocabulary.to_json().replace(before, after)).replace("'", "''")
    with pytest.raises(StoreError, match=f"damaged.db: {message}.*; preprocess the collection into a new file"):
        damaged(path, tmp_path, f"UPDATE meta SET value = '{stored}' WHERE key = 'vocabulary'")
    with pytest.raises(StoreError, match=r"damaged \(its meta table: .*not a vocabulary.*; delete it"):
        damaged(path, tmp_path, "UPDATE meta SET value = '\"[]\"' WHERE key = 'vocabulary'")


def test_build_resumes_with_other_virtual_nodes_and_nothing_else(
    path: Path, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    again = tmp_path / "again.db"
    again.write_bytes(path.read_bytes())
    circular, converted = VirtualNodeSpec(connectivity="circular"), list[int]()
    build(again, ROWS, decode_nothing, circular, vocabulary, source="abc", progress=converted.append)
    assert (sum(converted), GraphStore(again).spec, GraphStore(path).spec) == (600, circular, SPEC)
    with pytest.raises(StoreError, match=r"begun with file_hash .* build into another file"):
        build(again, ROWS, mathamr_plus.decode, VirtualNodeSpec(formulas="slt"), vocabulary, source="abc")
    with pytest.raises(StoreError, match="begun with source 'abc', not with 'xyz'"):
        build(again, ROWS, mathamr_plus.decode, SPEC, vocabulary, source="xyz")
    assert len(GraphStore(again)) == 600


def decode_nothing(text: str, formula_map: Mapping[str, str]) -> mathamr_plus.DocumentGraph:
    raise AssertionError("there is nothing left to convert")


def test_second_writer_is_refused(vocabulary: Vocabulary, tmp_path: Path) -> None:
    busy = tmp_path / "busy.db"

    def rows() -> Iterator[Row]:
        with pytest.raises(StoreError, match="another process is writing"):
            build(busy, ROWS, mathamr_plus.decode, SPEC, vocabulary)
        yield ROWS[0]

    assert build(busy, rows(), mathamr_plus.decode, SPEC, vocabulary) == 1


def test_post_that_does_not_convert_is_a_record(vocabulary: Vocabulary, tmp_path: Path) -> None:
    broken: list[Row] = [("1", "(s / solve-01", "{}"), ("2", "(s / solve-01)", "{"), ROWS[3]]
    build(tmp_path / "x.db", broken, mathamr_plus.decode, SPEC, vocabulary)
    store = GraphStore(tmp_path / "x.db")
    assert [(f.post_id, f.stage) for f in store.failures()] == [("1", "tensors"), ("2", "tensors")]
    reason = next(store.failures()).message
    with pytest.raises(StoreError) as refused:
        store.load(["30", "1"])
    assert "no graph of post 1: " in str(refused.value)
    assert reason in str(refused.value)
    with pytest.raises(StoreError, match=r"'77' is one post id; give a list of ids: \['77'\]"):
        store.load("77")
    with pytest.raises(StoreError, match="no graph of post 77, nor a record of why"):
        store.sizes(["77"])


def test_a_build_with_nothing_to_do_sends_no_reader_away(vocabulary: Vocabulary, tmp_path: Path) -> None:
    def rows(known: list[Row]) -> Iterator[Row]:
        yield from known
        GraphStore(tmp_path / "x.db").load(["10"])

    build(tmp_path / "x.db", ROWS[:300], mathamr_plus.decode, SPEC, vocabulary)
    before = (tmp_path / "x.db").read_bytes()
    assert build(tmp_path / "x.db", rows(ROWS[:300]), mathamr_plus.decode, SPEC, vocabulary) == 300
    assert (tmp_path / "x.db").read_bytes() == before
    with pytest.raises(Stopped):
        build(tmp_path / "x.db", rows_until(600), mathamr_plus.decode, SPEC, vocabulary)
    with pytest.raises(StoreError, match="did not finish"):
        GraphStore(tmp_path / "x.db")
    assert build(tmp_path / "x.db", ROWS, mathamr_plus.decode, SPEC, vocabulary) == 600
    assert len(GraphStore(tmp_path / "x.db")) == 600


def test_post_twice_is_refused(vocabulary: Vocabulary, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="post 10 comes twice"):
        build(tmp_path / "x.db", [ROWS[1], ROWS[1]], mathamr_plus.decode, SPEC, vocabulary)


def damaged(path: Path, tmp_path: Path, sql: str) -> GraphStore:
    """Change a copy of the file; ``digest_of(blob, ...)`` is a row's digest."""
    copy = tmp_path / "damaged.db"
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        connection.create_function("digest_of", -1, lambda blob, *counts: row_digest(*counts, blob=blob))
        connection.execute(sql)
        connection.commit()
    return GraphStore(copy)


RESEALED = (
    "UPDATE arrays SET blob = {0}, digest = (SELECT"
    " digest_of({0}, post_id, nodes, edges, formulas, sentences, roots, constituents)"
    " FROM graph WHERE graph.idx = 5) WHERE idx = 5"
)


def test_truncated_graph_names_its_post(path: Path, tmp_path: Path) -> None:
    store = damaged(path, tmp_path, RESEALED.format("substr(blob, 1, 50)"))
    for read in (store.load, store.get_arrays):
        with pytest.raises(GraphError, match="post 50: stored graph has 50 bytes"):
            read(["10", "50"])
    assert store.load(["10", "60"]).num_graphs == 2


@pytest.mark.parametrize("number", [-1, 600, 1 << 60])
def test_a_row_out_of_order_is_checked_at_each_read(path: Path, tmp_path: Path, number: int) -> None:
    label = "CAST(substr(blob, 1, 40) || x'ff7f' || substr(blob, 43) AS BLOB)"
    store = damaged(path, tmp_path, RESEALED.format(label))
    with closing(sqlite3.connect(store.path)) as connection, connection:
        for table in ("graph", "arrays"):
            connection.execute(f"UPDATE {table} SET idx = ? WHERE idx = 5", (number,))
    store.load(["5990", "5980"])  # the rows whose bytes -1 and -2 are
    for _ in range(2):
        with pytest.raises(GraphError, match=r"post 50: label 32767"):
            store.load(["50"])


def test_label_outside_the_vocabulary_names_its_post(path: Path, tmp_path: Path) -> None:
    store = damaged(path, tmp_path, RESEALED.format("CAST(substr(blob, 1, 40) || x'ff7f' || substr(blob, 43) AS BLOB)"))
    for posts in (["10", "50"], ["50"]):  # the second time, too
        with pytest.raises(GraphError, match=r"post 50: label 32767 is outside the vocabulary of \d+"):
            store.load(posts)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE arrays SET blob = CAST(substr(blob, 1, 40) || x'01' || substr(blob, 42) AS BLOB) WHERE idx = 5",
        "UPDATE graph SET edges = edges + 1 WHERE idx = 5",
        "UPDATE arrays SET blob = (SELECT blob FROM arrays WHERE idx = 6) WHERE idx = 5",
    ],
)
def test_a_row_that_is_not_what_was_written_names_its_post(path: Path, tmp_path: Path, sql: str) -> None:
    store = damaged(path, tmp_path, sql)
    for read in (store.load, store.get_arrays):
        with pytest.raises(StoreError, match=r"damaged\.db: the row of post 50 is not what was written"):
            read(["10", "50"])
    assert store.load(["10", "60"]).num_graphs == 2


def test_a_file_without_digests_is_refused(path: Path, tmp_path: Path) -> None:
    store = damaged(path, tmp_path, "ALTER TABLE arrays DROP COLUMN digest")
    with pytest.raises(StoreError, match=r"damaged\.db: not a readable SQLite database \(no such column: a.digest\)"):
        store.load(["10", "50"])


def test_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        GraphStore(tmp_path / "nowhere.db")
    (tmp_path / "text.db").write_text("no database at all, but a long enough text to look at\n" * 20)
    with pytest.raises(StoreError, match="not a readable SQLite database"):
        GraphStore(tmp_path / "text.db")


def test_reading_cannot_write(path: Path) -> None:
    store = GraphStore(path)
    with pytest.raises(StoreError, match="readonly"):
        store.connection.execute("DELETE FROM graph")


def load_in_child(store: GraphStore, results: multiprocessing.Queue) -> None:
    results.put(store.load(["10", "20"]).labels.tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_read_the_parents_store(path: Path, method: str) -> None:
    store = GraphStore(path)
    expected = store.load(["10", "20"]).labels.tolist()
    context = multiprocessing.get_context(method)
    results = context.Queue()
    worker = context.Process(target=load_in_child, args=(store, results))
    worker.start()
    assert results.get(timeout=SECONDS) == expected
    worker.join()
    assert store.load(["10", "20"]).labels.tolist() == expected


def test_threads_and_closing(path: Path) -> None:
    store = pickle.loads(pickle.dumps(GraphStore(path)))  # noqa: S301 - its own bytes
    loaded: list[GraphBatch] = []
    thread = threading.Thread(target=lambda: loaded.append(store.load(["10"])))
    thread.start()
    thread.join()
    store.close()
    assert equal(store.load(["10"]), loaded[0])


def test_data_for_exploration(path: Path) -> None:
    store = GraphStore(path)
    data = store.get("30")
    (arrays,) = store.get_arrays(["30"])
    assert data.x.tolist() == arrays.labels.tolist()
    assert data.edge_index.tolist() == arrays.edge_index.tolist()
    assert data.edge_attr.tolist() == arrays.relations.tolist()
    assert (data.post_id, data.num_nodes, data.num_edges) == ("30", arrays.num_nodes, arrays.num_edges)
    assert data.validate()


def test_database_of_pytorch_geometric(path: Path) -> None:
    from graphs.stores.pyg_database import GraphDatabase  # here, so that worker processes need not import it

    graphs = GraphDatabase(path)
    assert len(graphs) == 600
    assert graphs[3].post_id == "30"
    assert [data.post_id for data in graphs[5:8]] == ["50", "60", "70"]
    assert [data.post_id for data in graphs[torch.tensor([9, 1])]] == ["90", "10"]
    with pytest.raises(StoreError, match="read only"):
        graphs[0] = graphs[1]
    graphs.close()


def decode_or_fail(text: str, formula_map: Mapping[str, str]) -> mathamr_plus.DocumentGraph:
    if "c7)" in text:
        raise GraphError("seven is refused")
    return mathamr_plus.decode(text, formula_map)


def test_failures_do_not_shift_the_numbering_on_resume(vocabulary: Vocabulary, tmp_path: Path) -> None:
    build(tmp_path / "whole.db", ROWS, decode_or_fail, SPEC, vocabulary)
    with pytest.raises(Stopped):
        build(tmp_path / "parts.db", rows_until(300), decode_or_fail, SPEC, vocabulary)
    build(tmp_path / "parts.db", ROWS, decode_or_fail, SPEC, vocabulary)
    assert content(tmp_path / "parts.db") == content(tmp_path / "whole.db")
    assert len(content(tmp_path / "whole.db")[2]) == 12
