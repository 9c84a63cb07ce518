"""Collections as Penman files, with what other programs, or nobody, would write into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parrot import build, posts

from graphs.errors import StoreError
from graphs.graph.graph_maker import StoredGraph
from graphs.graph.mathamr_plus import decode
from graphs.graph.tensors import to_arrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary, count
from graphs.stores import exchange
from graphs.stores.collection import Collection, insert_graphs, writer

TEXT = st.text(
    st.one_of(st.sampled_from(':: "\\#\n\r\u2028{}'), st.characters(exclude_categories=["Cs"])), min_size=1, max_size=12
)


def imported(tmp_path: Path, text: str) -> Collection:
    (tmp_path / "given.penman").write_text(text, encoding="utf-8")
    (tmp_path / "c.db").unlink(missing_ok=True)
    exchange.import_penman(tmp_path / "given.penman", tmp_path / "c.db")
    return Collection(tmp_path / "c.db")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(post_id=TEXT, kind=TEXT, formula_id=TEXT, how=TEXT)
def test_every_id_reads_back(tmp_path: Path, post_id: str, kind: str, formula_id: str, how: str) -> None:
    for name in ("c.db", "again.db"):
        (tmp_path / name).unlink(missing_ok=True)
    text = "(s / solve-01 :ARG1 (F0 / FORMULA_0))"
    graph = StoredGraph(post_id, kind, text, {"FORMULA_0": formula_id}, {"FORMULA_0": how}, 1)
    with writer(tmp_path / "c.db") as connection:
        insert_graphs(connection, [graph])
        connection.commit()
    with Collection(tmp_path / "c.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
    exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    with Collection(tmp_path / "again.db") as graphs:
        assert list(graphs) == [graph]


def test_two_colons_in_an_id_cut_no_line(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(1))
    with Collection(tmp_path / "c.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
    line = '# ::formula_map {"FORMULA_0": "a ::b"}'
    exported = (tmp_path / "c.penman").read_text(encoding="utf-8")
    assert "::kind answer" in exported
    assert json.loads(exchange._json({"FORMULA_0": "a ::b"})) == {"FORMULA_0": "a ::b"}
    assert line.count("::") == 2  # what would be cut
    assert exchange._json({"FORMULA_0": "a ::b"}).count("::") == 0


def test_formulas_are_in_the_order_of_their_placeholders(tmp_path: Path) -> None:
    formulas = " ".join(f":ARG{i} (f{i} / FORMULA_{i})" for i in range(11))
    formula_map = json.dumps({f"FORMULA_{i}": f"id {i}" for i in reversed(range(11))})
    with imported(tmp_path, f"# ::id a\n# ::formula_map {formula_map}\n(s / solve-01 {formulas})\n") as graphs:
        graph = graphs.get("a")
    assert list(graph.formula_map) == [f"FORMULA_{i}" for i in range(11)]
    assert graph.decode().formula_ids == [f"id {i}" for i in range(11)]


def test_hostile_lines_are_records(tmp_path: Path) -> None:
    given = {
        "deep": "[" * 100_000,
        "list": "[1]",
        "none": "null",
        "word": "FORMULA_0",
    }
    text = "".join(f"# ::id {name}\n# ::formula_map {value}\n(s / solve-01)\n\n" for name, value in given.items())
    text += '# ::id "\\ud800"\n(s / solve-01)\n\n# ::id many\n# ::reattached 99999999999999999999\n(s / solve-01)\n\n'
    text += '# ::id c\n# ::formula_map {"FORMULA_\\ud800": "7"}\n(s / solve-01)\n'
    with imported(tmp_path, text) as graphs:
        assert not len(graphs)
        failures = {failure.post_id: failure.message for failure in graphs.failures()}
    assert failures.keys() == {*given, "given.penman:17", "many", "c"}


def test_an_id_without_a_graph_is_named_with_its_line(tmp_path: Path) -> None:
    with imported(tmp_path, "# ::id 1\n\n# ::id 2\n(s / say-01)\n") as graphs:
        assert graphs.post_ids() == ["2"]
        (failure,) = graphs.failures()
    assert failure.post_id == "1"
    assert failure.message.endswith("given.penman:1: no graph follows this id")


def test_bytes_that_are_no_text_spoil_one_graph(tmp_path: Path) -> None:
    (tmp_path / "given.penman").write_bytes(
        b"# ::id 1\n(s / say-01)\n\n# ::id 2\n(s / \xff )\n\n# ::id 3\n(s / see-01)\n"
    )
    exchange.import_penman(tmp_path / "given.penman", tmp_path / "c.db")
    with Collection(tmp_path / "c.db") as graphs:
        assert [graph.penman for graph in graphs] == ["(s / say-01)", "(s / \ufffd)", "(s / see-01)"]


def test_the_origin_of_a_collection_is_exported(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(1), shard="1/2")
    with Collection(tmp_path / "c.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
        origin = {key: graphs.meta[key] for key in ("source", "parser", "trees", "shard")}
    exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    with Collection(tmp_path / "again.db") as graphs:
        assert {key: graphs.meta[key] for key in origin} == origin


def test_an_unfinished_collection_stays_unfinished(tmp_path: Path) -> None:
    build(tmp_path / "some.db", posts(3), whole=False)
    build(tmp_path / "all.db", posts(3))
    for name, finished in (("some", False), ("all", True)):
        with Collection(tmp_path / f"{name}.db") as graphs:
            exchange.export_penman(graphs, tmp_path / f"{name}.penman")
        exchange.import_penman(tmp_path / f"{name}.penman", tmp_path / "again.db")
        with Collection(tmp_path / "again.db") as graphs:
            assert (len(graphs), graphs.meta["finished"]) == (3, finished)


def test_a_file_that_lacks_its_last_graphs_is_no_finished_collection(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(3))
    with Collection(tmp_path / "c.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
    text = (tmp_path / "c.penman").read_text(encoding="utf-8")
    (tmp_path / "c.penman").write_text(text[: text.index("# ::id 2")], encoding="utf-8")
    with pytest.raises(StoreError, match=r"c\.penman: its first line says 3 graphs, and 2 are here; the file is cut"):
        exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    with Collection(tmp_path / "again.db") as graphs:
        assert (len(graphs), graphs.meta["finished"]) == (2, False)
    (tmp_path / "c.penman").write_text(text, encoding="utf-8")
    exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    with Collection(tmp_path / "again.db") as graphs:
        assert (len(graphs), graphs.meta["finished"]) == (3, True)


def test_an_import_that_is_killed_is_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given.penman").write_text("# ::id 1\n(s / solve-01)\n\n# ::id 2\n(s / see-01)\n")
    monkeypatch.setattr(exchange, "_COMMIT_EVERY", 1)

    def stop(graphs: int) -> None:
        raise KeyboardInterrupt

    for _ in range(2):  # the second import replaces a finished one
        with pytest.raises(KeyboardInterrupt):
            exchange.import_penman(tmp_path / "given.penman", tmp_path / "c.db", progress=stop)
        with Collection(tmp_path / "c.db") as graphs:
            assert (graphs.post_ids(), graphs.meta["finished"]) == (["1"], False)
        assert exchange.import_penman(tmp_path / "given.penman", tmp_path / "c.db").graphs == 2
        with Collection(tmp_path / "c.db") as graphs:
            assert graphs.meta["finished"] is True


def test_of_two_graphs_with_one_id_the_first_counts(tmp_path: Path) -> None:
    with imported(tmp_path, "# ::id 1\n(s / solve-01)\n\n# ::id 1\n(s / see-01)\n") as graphs:
        assert [(graph.post_id, graph.penman) for graph in graphs] == [("1", "(s / solve-01)")]
        (failure,) = graphs.failures()
    assert (failure.post_id, failure.stage, failure.kind) == ("given.penman:4", "import", "duplicate_id")
    assert failure.message == f"{tmp_path / 'given.penman'}:4: an earlier graph has the id 1; the first counts"


def test_importing_again_replaces_every_graph(tmp_path: Path) -> None:
    given = tmp_path / "given.penman"
    given.write_text("# ::id 1\n(s / solve-01)\n\n# ::id 2\n(s / see-01)\n\n# ::id 3\n(s / say-01)\n")
    assert exchange.import_penman(given, tmp_path / "c.db").graphs == 3
    given.write_text("# ::id 1\n(s / solve-01\n\n# ::id 3\n(s / say-01)\n")
    for _ in range(2):
        assert exchange.import_penman(given, tmp_path / "c.db").failures == {("import", "decode"): 1}
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.post_ids() == ["3"]


def test_an_import_does_not_replace_what_a_build_has_made(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(3))
    with Collection(tmp_path / "c.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "c.penman")
    with pytest.raises(StoreError, match="graphs that no import has made"):
        exchange.import_penman(tmp_path / "c.penman", tmp_path / "c.db")
    with Collection(tmp_path / "c.db") as graphs:
        assert (len(graphs), graphs.meta["finished"]) == (3, True)


def test_trees_with_the_roles_of_another_release_give_the_same_tensors(tmp_path: Path) -> None:
    build(tmp_path / "ours.db", posts(4, p3=r"Is $\frac{x_1}{2}+y^2$ the sum of $f(a,b,c)$?"))
    with Collection(tmp_path / "ours.db") as graphs:
        exchange.export_penman(graphs, tmp_path / "ours.penman")
    text = (tmp_path / "ours.penman").read_text(encoding="utf-8")
    assert ":opt-0" in text
    assert ":slt-n" in text
    theirs = text.replace(":opt-", ":op").replace(":slt-n", ":N").replace(":slt-", ":").replace(":opt ", ":OPT ")
    (tmp_path / "theirs.penman").write_text(theirs, encoding="utf-8")
    summary = exchange.import_penman(tmp_path / "theirs.penman", tmp_path / "theirs.db")
    assert summary.renamed_roles == text.count(":opt") + text.count(":slt-")
    assert summary.unknown_roles == {}
    with Collection(tmp_path / "ours.db") as ours, Collection(tmp_path / "theirs.db") as imported:
        assert list(imported) == list(ours)
        vocabulary = Vocabulary.build(count(ours.rows(), decode), size=1000)
        for one, other in zip(ours, imported, strict=True):
            arrays = [to_arrays(graph.decode(), VirtualNodeSpec(), vocabulary) for graph in (one, other)]
            assert arrays[0] == arrays[1]


def test_unknown_roles_in_trees_are_kept_and_counted(tmp_path: Path) -> None:
    text = (
        '# ::id a\n# ::formula_map {"FORMULA_0": "7"}\n'
        "(s / see-01 :op9 (F0 / FORMULA_0 :mod (g / good) :opt (o / plus :child (x / x :n (y / y)) :op1 (z / z))"
        " :slt (l / l :n (k / k) :opt-0 (j / j))))\n"
    )
    (tmp_path / "c.penman").write_text(text)
    summary = exchange.import_penman(tmp_path / "c.penman", tmp_path / "c.db")
    assert summary.graphs == 1
    assert summary.renamed_roles == 2
    assert summary.unknown_roles == {("opt", ":child"): 1, ("opt", ":n"): 1, ("slt", ":opt-0"): 1}
    with Collection(tmp_path / "c.db") as graphs:
        stored = graphs.get("a")
    assert ":op9 (F0 / FORMULA_0 :mod" in stored.penman
    assert ":child (x / x :n (y / y)) :opt-1 (z / z)" in stored.penman
    assert ":slt (l / l :slt-n (k / k) :opt-0 (j / j))" in stored.penman
