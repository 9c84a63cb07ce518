"""Formulas as token sequences, and pairs from a knowledge graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import CorpusError
from graphs.formulas.latex.tokens import tokens
from mathamr.text.knowledge_graph import Concept, Edge, KnowledgeGraph, benchmark, chunked, pairs, read_graph
from mathamr.text.linearize import _merged, linearize
from mathamr.text.sources.pair_sources import Passage, of_formulas


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x_n", "x_{n}"),
        (r"\frac ab", r"\dfrac{a}{b}"),
        (r"\frac12", r"\frac{1}{2}"),
        (r"\left(x\right)", "(x)"),
        (r"a\le b", r"a \leq b"),
        (r"\sum\limits_{i=1}^n i", r"\sum_{i=1}^{n} i"),
        (r"{x}^{2}", "x^2"),
        (r"e^\frac12", r"e^{\frac{1}{2}}"),
        (r"\sqrt[3]x % cube", r"\sqrt[3]{x}"),
        (r"x^{{2}}", "x^2"),
        (r"\mathbb R", r"\mathbb{R}"),
        (r"x^{2}_{n}", "x_n^2"),
        (r"f'_n", "f_n'"),
        ("a\\ b", "ab"),
        (r"\operatorname{rank} A", r"\operatorname{ rank }A"),
        (r"\begin{align*}a\end{align*}", r"\begin {align} a \end{align}"),
        (r"\begin{array}{cc}a\end{array}", r"\begin{array}{lr}a\end{array}"),
        (r"\alpha{x}", r"\alpha x"),
        (r"{\bf x}y", r"\mathbf{x} y"),
        (r"{\rm Tr} A", r"\mathrm{Tr} A"),
        (r"{\cal A}_{\rm max}", r"\mathcal A_\mathrm{max}"),
        (r"\bf x + y", r"\mathbf{x + y}"),
        (r"\bf x \rm y", r"\mathbf{x}\mathrm{y}"),
        (r"\begin{matrix}\bf x & y \\ \bf z\end{matrix}", r"\begin{matrix}\mathbf x & y \\ \mathbf z\end{matrix}"),
        (r"\left(\bf x\right) y", r"(\mathbf{x}) y"),
        (r"\sqrt[\bf 3]{x}", r"\sqrt[\mathbf{3}]{x}"),
        (r"\sqrt [\rm a b]{c}d", r"\sqrt[\mathrm{a b}]{c}d"),
        (r"{\bf \sqrt[3]{x} y}z", r"\mathbf{\sqrt[3]{x} y}z"),
        (r"{\sqrt[\bf x}y", r"{\sqrt[\mathbf{x}}y"),
    ],
)
def test_two_ways_of_typing_are_one(one: str, other: str) -> None:
    assert linearize(one) == linearize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x_n", "x^n"),
        (r"\norm{x+y}z", r"\norm{x}+yz"),
        (r"\inner{a}{b}", r"\inner{ab}"),
        (r"\text{a b}", r"\text{ab}"),
        (r"\frac ab", r"\frac ba"),
        (r"{a \over b}c", r"a \over bc"),
        (r"{\bf x}y", r"{\bf xy}"),
        (r"{\rm Tr} AB", r"{\rm Tr AB}"),
        (r"{\cal A}B", r"{\cal AB}"),
    ],
)
def test_different_formulas_stay_different(one: str, other: str) -> None:
    assert linearize(one) != linearize(other)


@given(st.text(alphabet="\\frac{}[]^_ sqrt12x&", max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_string_gives_a_sequence(latex: str) -> None:
    tokens = linearize(latex).split(" ")
    assert all(token == token.strip() for token in tokens)


def test_names_and_words_are_one_token() -> None:
    assert linearize(r"\operatorname*{arg\,max}_x f").split()[:5] == [r"\operatorname", "{", "arg", "max", "}"]
    assert linearize(r"\begin{aligned} a &= b \end{aligned}") == r"\begin{aligned} a & = b \end{aligned}"
    assert linearize(r"\mathrm{dist}(x,y)") == r"\mathrm { dist } ( x , y )"


def test_deep_nesting_is_no_overflow() -> None:
    assert linearize(r"\frac{" * 5_000).count(r"\frac") == 5_000
    assert linearize("}" * 5_000) == ""
    assert linearize("^" * 20_000).count("^") == 20_000
    assert linearize(r"\bf" * 5_000).count(r"\mathbf") == 5_000
    assert linearize(r"{\bf" * 5_000).count(r"\mathbf") == 5_000


def test_a_formula_of_unclosed_words_is_read_once() -> None:
    class Counted(list[str]):
        read = 0

        def __getitem__(self, place: Any) -> Any:
            self.read += 1
            return super().__getitem__(place)

    found = Counted(tokens(r"\text{" * 2_000))
    assert _merged(found) == found
    assert found.read < 10 * len(found)


def test_a_formula_that_stands_there_twice_is_hidden_twice() -> None:
    there, _ = of_formulas([Passage("p", "p", "If $a+b = c$ holds then $x$ and $a + b=c$ hold as well.")])
    assert there.query == "If FORMULA holds then $x$ and FORMULA hold as well."


@pytest.mark.parametrize("size", [50, 200])
def test_chunks_overlap_and_lose_nothing(size: int) -> None:
    text = " ".join(f"word{i}" for i in range(300))
    chunks = chunked(text, size=size, overlap=20)
    assert all(len(chunk) <= size for chunk in chunks)
    position = 0
    for chunk in chunks:  # each begins where the one before it has not ended yet
        at = text.find(chunk, max(0, position - 25))
        assert 0 <= at <= position
        position = at + len(chunk)
    assert position == len(text)
    assert chunked("x" * 1_000, size=100, overlap=10)[0] == "x" * 100
    assert chunked("") == []


def test_concepts_and_edges_are_capped_and_seeded() -> None:
    graph = KnowledgeGraph(
        (Concept("a", "what a is", ("p",)), Concept("b", "", ("q", "r"))),
        (Edge("a", "b", "uses"), Edge("b", "a", "proves")),
    )
    chunks = {"p": [f"p{i}" for i in range(50)], "q": ["q0"], "r": ["r0"]}
    found = pairs(graph, chunks, seed=1)
    assert len(set(found)) == len(found)
    assert sum(anchor == "what a is" for anchor, _ in found) == 20
    assert {chunk for anchor, chunk in found if anchor == "a"} >= {"q0", "r0"}
    of_b = [chunk for anchor, chunk in found if anchor == "b" and chunk.startswith("p")]
    assert 5 <= len(of_b) <= 10  # five for each of the two edges
    assert found == pairs(graph, chunks, seed=1)
    assert found != pairs(graph, chunks, seed=2)
    assert benchmark(graph) == {"b": ("q", "r")}


def test_a_graph_is_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    concepts = [{"name": "a", "papers": ["1"]}, {"name": "b", "description": "d", "papers": []}]
    edges = [{"source": "a", "target": "b", "relation": "uses"}]
    path.write_text(json.dumps({"concepts": concepts, "edges": edges}))
    assert read_graph(path).concepts[1] == Concept("b", "d", ())
    for content, words in (
        ("{", "is not a knowledge graph"),
        ("[]", "is not a knowledge graph"),
        ("[" * 100_000, "is not a knowledge graph"),
        (json.dumps({"concepts": [{"name": "a", "papers": "p1"}], "edges": []}), "'p1' is not a list"),
        (json.dumps({"concepts": [{"papers": []}], "edges": []}), "KeyError: 'name'"),
        (json.dumps({"concepts": [*concepts, concepts[0]], "edges": []}), "two concepts with the name 'a'"),
        (
            json.dumps({"concepts": [{"name": name, "papers": []} for name in ("Group", "groups")], "edges": []}),
            "two concepts with the name 'group': 'Group' and 'groups'; rename one",
        ),
        (
            json.dumps({"concepts": concepts[:1], "edges": edges}),
            "edge to 'b', which is not a concept; add the concept",
        ),
    ):
        path.write_text(content)
        with pytest.raises(CorpusError, match=words):
            read_graph(path)
