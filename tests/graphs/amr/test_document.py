"""Chunk graphs become one document graph whose sentences are known."""

from __future__ import annotations

import pytest

from graphs.amr.document import connect, merge, sentences_of
from graphs.amr.penman_text import decode, encode
from graphs.errors import AMRError


def merged(*texts: str) -> str:
    return encode(merge([decode(text, forest=True) for text in texts]).graph)


def test_one_sentence_keeps_its_root_and_its_variables() -> None:
    assert merged("(p / prove-01 :ARG1 (f / FORMULA_0~2))") == "(p / prove-01 :ARG1 (f / FORMULA_0))"
    assert (
        merged("(m / multi-sentence :snt1 (p / prove-01 :ARG1 (f / FORMULA_0)))")
        == "(p / prove-01 :ARG1 (f / FORMULA_0))"
    )


def test_variables_are_renamed_apart_and_roots_flattened() -> None:
    text = merged(
        "(d / document :snt2 (b / be :ARG1 a) :snt1 (a / act-01))",
        "(a / and :op1 (b / b) :op2 b)",
        "(m / multi-sentence :snt1 (d / document :snt1 (x / one) :snt2 (y / two)) :snt2 (z / three))",
    )
    assert text == (
        "(m / multi-sentence :snt1 (a / act-01) :snt2 (b / be :ARG1 a) :snt3 (a2 / and :op1 (b2 / b) :op2 b2)"
        " :snt4 (x / one) :snt5 (y / two) :snt6 (z / three))"
    )
    sentence, roots = sentences_of(decode(text))
    assert roots == ["a", "b", "a2", "x", "y", "z"]
    assert sentence == {"m": -1, "a": 0, "b": 1, "a2": 2, "b2": 2, "x": 3, "y": 4, "z": 5}


def test_a_constant_that_reads_like_a_variable_stays_a_constant() -> None:
    graph = merge([decode("(x / see-01 :mode b)"), decode("(b / boy)"), decode("(m / man :li m2)")]).graph
    assert ("x", ":mode", "b") in graph.triples
    assert not [t for t in graph.triples if t[2] == "b" and t[1].startswith(":snt")]
    assert len(graph.instances()) == 4
    assert len(graph.edges()) == 3


def test_a_concept_may_read_like_its_variable() -> None:
    assert merged("(d / document :snt1 (x / x :mod (y / y)) :snt2 (i / i))") == (
        "(m / multi-sentence :snt1 (x / x :mod (y / y)) :snt2 (i / i))"
    )


def test_detached_parts_hang_below_the_root_and_are_counted() -> None:
    document = merge([decode("(a / x :mod (b / y)) (c / z :ARG0-of (d / w)) (e / v)", forest=True)])
    assert document.reattached == 2
    assert encode(document.graph) == "(a / x :mod (b / y) :rel (d / w :ARG0 (c / z)) :rel (e / v))"
    assert connect(document.graph)[1] == 0


def test_many_detached_parts_hang_below_the_root() -> None:
    parts = " ".join(f"(x{i} / x :ARG0-of (y{i} / y))" for i in range(20_000))
    graph, number = connect(decode(f"(a / x) {parts}", forest=True))
    assert (number, graph.triples[-1]) == (20_000, ("a", ":rel", "y19999"))


def test_a_detached_part_of_a_collection_belongs_to_no_sentence() -> None:
    document = merge([decode("(d / document :snt1 (a / x) :snt2 (b / y)) (c / z)", forest=True)])
    assert encode(document.graph).startswith("(m / multi-sentence :snt1 (a / x)")
    sentence, _ = sentences_of(document.graph)
    assert sentence["c"] == -1


def test_a_part_beside_the_sentences_belongs_to_the_nearest_one() -> None:
    graph = decode(
        "(m / multi-sentence :snt1 (a / x) :snt2 (b / y :mod (s / shared))"
        " :manner (c / z :ARG1 (d / w :ARG0 a :ARG1 (t / tie :mod a :poss s)) :ARG2 s) :time (n / now))"
    )
    sentence, roots = sentences_of(graph)
    assert roots == ["a", "b"]
    # c is one edge from sentence 1 and two from sentence 0; t as near to both.
    assert sentence == {"m": -1, "a": 0, "b": 1, "s": 1, "c": 1, "d": 0, "t": 0, "n": -1}


def test_empty_sentences_are_left_out_where_others_remain() -> None:
    document = merge([decode("(a / amr-empty)"), decode("(d / document :snt1 (p / prove-01) :snt2 (a / amr-empty))")])
    assert encode(document.graph) == "(p / prove-01)"
    alone = merge([decode("(a / amr-empty)"), decode("(a / amr-empty)")])
    assert encode(alone.graph) == "(a / amr-empty)"


def test_a_sentence_keeps_what_its_root_shares_with_another() -> None:
    first = "(s / say-01 :ARG1 (h / hold-01 :ARG1 (f / FORMULA_0)))"
    text = f"(m / multi-sentence :snt1 {first} :snt2 h :snt3 (c / cause-01 :ARG1 f))"
    sentence, roots = sentences_of(merge([decode(text)]).graph)
    assert roots == ["s", "h", "c"]
    assert sentence == {"m": -1, "s": 0, "h": 1, "f": 1, "c": 2}


def test_sentences_of_an_imported_graph_with_a_nested_collection() -> None:
    graph = decode(
        "(m / multi-sentence :snt1 (n / multi-sentence :snt1 (a / x :mod (b / y)) :snt2 (c / z)) :snt2 (d / w))"
    )
    sentence, roots = sentences_of(graph)
    assert roots == ["a", "c", "d"]
    assert sentence == {"m": -1, "n": -1, "a": 0, "b": 0, "c": 1, "d": 2}


def test_a_root_called_document_without_sentences_is_a_sentence() -> None:
    assert sentences_of(decode("(d / document :mod (t / this))")) == ({"d": 0, "t": 0}, ["d"])


def test_a_sentence_number_of_thousands_of_digits_is_no_number() -> None:
    graph = decode(f"(m / multi-sentence :snt1 (a / x) :snt{'2' * 5000} (b / y))")
    assert sentences_of(graph) == ({"m": -1, "a": 0, "b": -1}, ["a"])


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        ("(a / multi-sentence :snt1 a)", "(a / multi-sentence)"),
        (
            "(a / multi-sentence :snt1 (b / multi-sentence :snt1 a))",
            "(a / multi-sentence :snt1 (b / multi-sentence :snt1 a))",
        ),
    ],
)
def test_collections_of_one_another_are_kept_as_they_are(chunk: str, expected: str) -> None:
    assert merged(chunk) == expected
    assert merged(chunk, chunk).count(":snt2") == 1
    assert merged(chunk, "(s / say-01)") == "(s / say-01)"


def test_no_chunk_is_an_error() -> None:
    with pytest.raises(AMRError, match="at least one chunk"):
        merge([])


def test_a_concept_that_reads_as_the_variable_of_an_empty_sentence_stays() -> None:
    """The word "a" in a sentence beside one without a word that AMR has a concept for."""
    text = (
        "(m / multi-sentence :snt1 (a / amr-empty) :snt2 (n / number :manner (a2 / a :poss (r / ring))) :snt3 (w / we))"
    )
    merged = merge([decode(text)])
    assert encode(merged.graph) == (
        "(m / multi-sentence :snt1 (n / number :manner (a2 / a :poss (r / ring))) :snt2 (w / we))"
    )
