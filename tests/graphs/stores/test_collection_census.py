"""The counts of a collection, its drawings, and the real parses of the ARQMath topics (docs/amr.md)."""

from __future__ import annotations

import json
import xml.dom.minidom
from functools import partial
from pathlib import Path

import pytest
from parrot import build, posts

from graphs.amr.penman_file import PenmanFileParser
from graphs.amr.penman_text import blocks, decode, encode
from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Post
from graphs.errors import Failure
from graphs.formulas.store import build as build_formulas
from graphs.graph import drawing
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.mathamr_plus import decode as decode_plus
from graphs.stores import census, collection
from graphs.stores.collection import Collection

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"


@pytest.mark.parametrize("workers", [1, 2])
def test_the_counts_of_a_small_collection(tmp_path: Path, workers: int) -> None:
    stream: list[Post | Failure] = [
        Post("q", "question", body="Solve $x$.", markup="text"),  # say, Solve, FORMULA_0, V!x, V!x; 4 edges
        Post("a", "answer", body="apart $x$", markup="text"),  # say, part, FORMULA_0, V!x, V!x; 4 edges
        Post("b", "answer", body="It.", markup="text"),  # say, It; 1 edge
        Post("c", "answer", body="crash with $z$", markup="text"),  # amr-empty, FORMULA_0, V!z, V!z; 3 edges
        Post("d", "answer", body="crash"),
    ]
    build(tmp_path / "c.db", stream)
    with Collection(tmp_path / "c.db") as graphs:
        counted = census.take(graphs, vocabulary_size=10, number_threshold=5, workers=workers)
    assert (counted.posts, counted.graphs, counted.posts_without_graph, counted.incomplete) == (5, 4, 1, 1)
    assert counted.graphs_by_kind == {"answer": 3, "question": 1}
    assert counted.failures == (census.FailureCount("amr", "crash", 2, 1),)
    assert (counted.formulas, counted.attachments) == (3, {"concept": 1, "root": 2})
    assert (counted.reattached_parts, counted.reattached_graphs) == (1, 1)
    assert counted.nodes == census.Spread(mean=4.0, median=4.5, largest=5)
    assert counted.edges == census.Spread(mean=3.0, median=3.5, largest=4)
    assert counted.formulas_without == {"opt": 0, "slt": 0, "both": 0}
    assert counted.node_kinds == {"amr": 7, "formula": 3, "opt": 3, "slt": 3}
    # Labels: say-01, Solve, part, It, amr-empty, V!x, V!z, FORMULA_i; of these, two have an id beside 8 reserved ones.
    assert (counted.labels_raw, counted.labels_kept) == (8, 10)
    assert counted.coverage == pytest.approx(7 / 16)  # V!x four times, say-01 or FORMULA_i three times
    assert counted.finished
    text = census.table(counted)
    assert "mean 4.0, median 4.5, largest 5" in text
    assert "amr: crash" in text
    assert "10 with the reserved ones, for 43.75% of the nodes" in text
    assert json.loads(counted.to_json())["failures"][0]["posts_without_graph"] == 1


def test_formulas_without_a_tree_are_counted(tmp_path: Path) -> None:
    empty = '<span class="math-container" id="9"></span>'
    build(tmp_path / "c.db", [Post("q", "question", body=f"<p>Solve {empty} for $x$, {empty}.</p>")])
    with Collection(tmp_path / "c.db") as graphs:
        counted = census.take(graphs, vocabulary_size=10, number_threshold=5)
    assert (counted.formulas, counted.formulas_without) == (3, {"opt": 2, "slt": 2, "both": 2})
    assert "without any tree" in census.table(counted)


def test_an_empty_collection_can_be_counted(tmp_path: Path) -> None:
    build(tmp_path / "c.db", [])
    with Collection(tmp_path / "c.db") as graphs:
        counted = census.take(graphs, vocabulary_size=10, number_threshold=5)
    assert (counted.posts, counted.nodes.mean, counted.formulas) == (0, 0.0, 0)
    assert "posts" in census.table(counted)


def test_some_kinds_can_be_counted_alone(tmp_path: Path) -> None:
    build(tmp_path / "c.db", [*posts(3), Post("t", "topic", body="Solve.", markup="text")])
    with Collection(tmp_path / "c.db") as graphs:
        counted = census.take(graphs, vocabulary_size=10, number_threshold=5, kinds=["topic"])
    assert (counted.graphs_by_kind, counted.formulas) == ({"topic": 1}, 0)


def test_a_drawing_shows_every_node_and_edge_once() -> None:
    text = (
        "(m / multi-sentence :snt1 (s / solve-01 :ARG0 (y / you) :ARG1 (F0 / FORMULA_0"
        ' :opt (a / O!SUP :opt-0 (b / "<&>") :opt-1 (c / N!2)) :slt (d / V!x :slt-a (e / N!2))))'
        " :snt2 (h / hold-01 :ARG1-of (i / imply-01 :ARG0 F0) :ARG2 y))"
    )
    graph = decode_plus(text, {"FORMULA_0": "17"})
    lines = drawing.indented(graph).splitlines()
    assert lines[:5] == [
        "multi-sentence",
        "  :snt1 solve-01",
        "    :ARG0 you [2]",
        "    :ARG1 FORMULA_0 (17) [1]",
        "      :opt",
    ]
    assert "    :ARG1-of imply-01" in lines
    assert "      :ARG0 see [1] FORMULA_0" in lines
    assert "    :ARG2 see [2] you" in lines
    svg = drawing.svg(graph, title="<&>")
    nodes = xml.dom.minidom.parseString(svg)
    assert len(nodes.getElementsByTagName("rect")) == 1 + len(graph.labels)  # and the background
    assert len(nodes.getElementsByTagName("path")) == 2  # the dashed lines of what is mentioned again
    assert "&lt;&amp;&gt;" in svg
    single = drawing.svg(decode_plus("(s / solve-01)", {}))
    assert len(xml.dom.minidom.parseString(single).getElementsByTagName("rect")) == 2


def test_a_chain_of_ten_thousand_nodes_is_drawn() -> None:
    count = 10_000
    edges = [(i, ":mod", i + 1) for i in range(count - 1)]
    graph = DocumentGraph(["x"] * count, [NodeKind.AMR] * count, edges, 0, [0] * count, [-1] * count, [0], [], [])
    assert drawing.indented(graph).count("\n") == count - 1
    assert drawing.svg(graph).count("<rect") == count + 1


@pytest.mark.shared
def test_real_parses_of_the_arqmath_topics_become_graphs_with_their_own_formula_trees(tmp_path: Path) -> None:
    given = SHARED / "amr" / "arqmath_topics_parsed.penman"
    if not given.is_file():
        pytest.skip(f"no parses of the ARQMath topics at {given}")
    with given.open(encoding="utf-8") as lines:
        maps = {block.metadata["id"]: json.loads(block.metadata["formula_map"]) for block in blocks(lines)}
    assert len(maps) == 285
    corpus = open_corpus("arqmath", SHARED / "arqmath-mini")
    topics = {topic.topic_id: topic.post for topic in corpus.topics(2, [2020, 2021, 2022])}
    files = corpus.formulas()
    assert files is not None
    only_topics = type(files)(latex=(), slt=(), opt=(), topics=files.topics)
    build_formulas(tmp_path / "formulas.db", only_topics)
    stream = [topics[topic_id] for topic_id in maps]
    parser = partial(PenmanFileParser, path=str(given))
    summary = collection.build(
        tmp_path / "c.db", stream, parser, source=corpus.fingerprints().graphs, formulas_db=tmp_path / "formulas.db"
    )
    assert (summary.graphs, summary.failures) == (285, {})
    with Collection(tmp_path / "c.db") as graphs:
        stored = {graph.post_id: graph for graph in graphs}
    dropped = 0
    bare: set[str] = set()
    for topic_id, formula_map in maps.items():
        row = stored[topic_id]
        prefix = topics[topic_id].formula_prefix
        for name, formula_id in formula_map.items():  # every formula of the map, under its own name
            assert row.formula_map[name] == prefix + formula_id
        graph = row.decode()
        assert all(node >= 0 for node in graph.formula_nodes)
        assert connected(graph), topic_id
        assert encode(decode(row.penman)) == row.penman
        for role in (":opt", ":slt"):
            have = {source for source, edge, _ in graph.edges if edge == role}
            bare |= {i for i, node in zip(graph.formula_ids, graph.formula_nodes, strict=True) if node not in have}
        dropped += sum(row.attachments[name] == "root" for name in formula_map)
    assert dropped == 249
    assert bare == {"2020:q_217", "2022:q_905"}  # two formulas that are empty in the topics; all others have both trees


def connected(graph: DocumentGraph) -> bool:
    neighbours: list[list[int]] = [[] for _ in graph.labels]
    for source, _, target in graph.edges:
        neighbours[source].append(target)
        neighbours[target].append(source)
    seen, stack = {graph.root}, [graph.root]
    while stack:
        fresh = set(neighbours[stack.pop()]) - seen
        seen |= fresh
        stack.extend(fresh)
    return len(seen) == len(graph.labels)
