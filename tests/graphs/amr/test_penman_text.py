"""Penman text: the same graphs as the penman package reads, at any depth, with any label."""

from __future__ import annotations

from pathlib import Path

import penman
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.amr.arrangement import arrange, parents_of
from graphs.amr.penman_text import atom, blocks, decode, encode, label, quote
from graphs.errors import AMRError

AMR_DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "amr"

TEXTS = [
    "(b / bark-01)",
    "(w / want-01 :ARG0 (d / dog) :ARG1 (b / bark-01 :ARG0 d))",
    '(a / and :op1 (s / sum :ARG1-of (h / hold-01 :polarity -)) :op2 s :op3 "a ( \\" ) / : ~ b")',
    "(a / x :ARG0-of b :ARG1 (b / y :ARG2-of (c / z :mod a)))",
    "(a / x :ARG0-of constant :quant 3.5 :op1 -)",
    '(a / "x y"~e.3,5 :ARG0~2 (b / y~3) :value "FORMULA_0"~e.7)',
]


@pytest.mark.parametrize("text", TEXTS)
def test_reads_what_the_penman_package_reads(text: str) -> None:
    ours, theirs = decode(text), penman.decode(text)
    assert ours.triples == theirs.triples
    assert ours.top == theirs.top


@pytest.mark.parametrize("text", TEXTS)
def test_written_text_reads_back_as_the_same_triples(text: str) -> None:
    graph = decode(text)
    written = encode(graph)
    assert decode(written).triples == graph.triples
    assert penman.decode(written).triples == graph.triples


@pytest.mark.shared
@pytest.mark.parametrize("name", ["arqmath_topics_parsed.penman", "little-prince-dev.txt"])
def test_real_graphs_read_and_round_trip(name: str) -> None:
    path = AMR_DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with path.open(encoding="utf-8") as lines:
        found = list(blocks(lines))
    assert len(found) > 100
    assert "snt" in found[0].metadata
    for block in found:
        graph = decode(block.text)
        assert graph.triples == penman.decode(block.text).triples
        assert decode(encode(graph)).triples == graph.triples
        shuffled = penman.Graph(sorted(graph.triples), top=graph.top)
        assert set(decode(encode(shuffled)).triples) == set(graph.triples)


def test_a_chain_of_20_000_nodes_is_no_deeper_than_any_other_graph() -> None:
    triples = [("n0", ":instance", "x")]
    for i in range(1, 20_000):
        triples += [(f"n{i - 1}", ":slt-n", f"n{i}"), (f"n{i}", ":instance", "x")]
    graph = penman.Graph(triples, top="n0")
    assert decode(encode(graph)).triples == triples
    assert arrange(penman.Graph(triples[::-1], top="n0")) == triples
    assert parents_of(graph)["n19999"] == "n19998"


@settings(deadline=None)
@given(st.text(st.characters(codec=None), max_size=12))
def test_any_label_comes_back(text: str) -> None:
    graph = penman.Graph([("a", ":instance", atom(text)), ("a", ":value", quote(text))], top="a")
    again = decode(encode(graph))
    assert [label(target) for _, _, target in again.triples] == [text, text]
    assert penman.decode(encode(graph)).triples == graph.triples
    encode(graph).encode("utf-8")


def test_a_label_that_was_not_quoted_is_quoted_in_writing() -> None:
    graph = penman.Graph([("a", ":instance", "f(x)"), ("a", ":value", "two words"), ("a", ":op1", "")], top="a")
    assert encode(graph) == '(a / "f(x)" :value "two words" :op1 "")'


def test_a_node_is_written_where_it_was_although_edges_were_added_at_the_end() -> None:
    graph = decode("(m / multi-sentence :snt1 (p / prove-01 :ARG1 (f / FORMULA_0)) :snt2 (h / hold-01))")
    triples = [*graph.triples, ("h", ":ARG1", "f"), ("o", ":instance", '"O!plus"'), ("f", ":opt", "o")]
    text = encode(penman.Graph(triples, top="m"))
    assert text == (
        "(m / multi-sentence :snt1 (p / prove-01 :ARG1 (f / FORMULA_0 :opt (o / O!plus)))"
        " :snt2 (h / hold-01 :ARG1 f))".replace("O!plus", '"O!plus"')
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "no_graph"),
        ("nothing here", "no_graph"),
        ("(a)", "no_graph"),
        ("(a / b", "truncated"),
        ("(a / b :ARG0", "truncated"),
        ("(a / b :ARG0 (c))", "syntax"),
        ("(a / b ARG0 c)", "syntax"),
        ('(a / b :op1 "open)', "syntax"),
        ("(a / b :ARG1)", "syntax"),
        ("(a / b :ARG1~e.12)", "syntax"),
        ("(a / b :ARG1~e.1,2)", "syntax"),
        ("(a / b) (c / d)", "trailing_text"),
        ("(a / b :ARG0 (a / c))", "duplicate_variable"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, kind: str) -> None:
    with pytest.raises(AMRError) as caught:
        decode(text)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("triples", "kind"),
    [
        ([], "no_graph"),
        ([("a", ":instance", "x"), ("b", ":instance", "y")], "disconnected"),
        ([("a", ":instance", "x"), ("b", ":ARG0", "a")], "no_concept"),
        ([("a", ":instance", None)], "no_concept"),
        ([("a", ":instance", "x"), ("a", ":has space", "1")], "role"),
    ],
)
def test_what_cannot_be_written_is_named(triples: list[tuple[str, str, str]], kind: str) -> None:
    with pytest.raises(AMRError) as caught:
        encode(penman.Graph(triples))
    assert caught.value.kind == kind


def test_a_forest_is_one_graph_in_parts() -> None:
    graph = decode("(a / x :ARG0 (b / y))\n(c / z)", forest=True)
    assert graph.top == "a"
    assert graph.triples[-1] == ("c", ":instance", "z")


def test_metadata_is_read_and_files_come_graph_by_graph() -> None:
    lines = ["# AMR release; a header\n", "\n", "# ::id q.1 ::kind question\n", "# ::snt Why :: this?\n", "(a / x\n"]
    lines += ["  :mod (b / y))\n", "# ::id q.2\n", "(c / z)"]
    found = list(blocks(lines))
    assert [(block.line, block.metadata, block.text) for block in found] == [
        (3, {"id": "q.1", "kind": "question", "snt": "Why :: this?"}, "(a / x\n  :mod (b / y))\n"),
        (7, {"id": "q.2"}, "(c / z)"),
    ]
    assert decode("".join(lines[2:6])).metadata["kind"] == "question"


@pytest.mark.parametrize("between", [" ", "\n"])
def test_long_runs_of_blanks_separate_metadata(between: str) -> None:
    text = f"# ::id 1{between * 200_000}# ::snt a  b ::kind ::n 3\n(a / x)"
    metadata = decode(text).metadata
    assert (metadata["snt"], metadata["kind"], metadata["n"]) == ("a  b", "", "3")
