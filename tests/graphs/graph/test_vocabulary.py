"""Counting, truncation, ids of labels and relations."""

from __future__ import annotations

import json

import pytest

from graphs.errors import GraphError, OtherVersionError
from graphs.graph import mathamr_plus
from graphs.graph.mathamr_plus import NodeKind
from graphs.graph.virtual_nodes import VIRTUAL_RELATIONS
from graphs.graph.vocabulary import (
    _FORMAT,
    CONSTITUENT_RELATIONS,
    NUM_VIRTUAL_RELATIONS,
    RESERVED_LABELS,
    RESERVED_RELATIONS,
    Counts,
    Row,
    Vocabulary,
    count,
    own_roles,
)

ROWS: list[Row] = [
    (
        str(i),
        f"(s / solve-01 :ARG1 (F0 / FORMULA_0 :opt (F0o0 / O!SUP :opt-0 (F0o1 / V!x) :opt-1 (F0o2 / N!{i % 7}))"
        f" :slt (F0s0 / V!x :slt-a (F0s1 / N!{i % 7}))) :time (e / equations :quant {i}))",
        '{"FORMULA_0": "17"}',
    )
    for i in range(40)
]


def test_frequent_numbers_have_ids_and_rare_ones_share_three() -> None:
    vocabulary = Vocabulary.build(Counts(amr={"4": 4, "5": 5, "2.5": 1, "1/3": 2}, formula={"N!4": 9}), size=100)
    names = [vocabulary.labels[vocabulary.label_id(label, NodeKind.AMR)] for label in ("4", "5", "2.5", "1/3", "99")]
    assert names == ["[UNKNUM_INT]", "5", "[UNKNUM_DEC]", "[UNKNUM_RAT]", "[UNKNUM_INT]"]
    assert vocabulary.labels[vocabulary.label_id("N!4", NodeKind.SLT)] == "N!4"
    assert vocabulary.labels[vocabulary.label_id("N!5", NodeKind.SLT)] == "[UNKNUM_INT]"


def test_truncation_keeps_the_most_frequent_and_reports_the_coverage() -> None:
    counts = Counts(amr={"group": 50, "ring": 30, "field": 15, "topos": 5})
    vocabulary = Vocabulary.build(counts, size=len(RESERVED_LABELS) + 2)
    assert vocabulary.labels[len(RESERVED_LABELS) :] == ("group", "ring")
    assert vocabulary.statistics["coverage"] == pytest.approx(0.8)
    assert vocabulary.label_id("topos", NodeKind.AMR) == 0
    assert vocabulary.num_labels == len(RESERVED_LABELS) + 2


def test_concept_and_variable_of_the_same_letter_differ() -> None:
    vocabulary = Vocabulary.build(Counts(amr={"x": 3}, formula={"V!x": 3}), size=20)
    assert vocabulary.label_id("x", NodeKind.AMR) != vocabulary.label_id("V!x", NodeKind.OPT)


def test_reserved_ids_are_where_the_model_expects_them() -> None:
    vocabulary = Vocabulary.build(Counts(relations={":ARG0": 1}), size=20)
    assert vocabulary.labels[: len(RESERVED_LABELS)] == RESERVED_LABELS
    names = [vocabulary.relation_name(i) for i in range(vocabulary.num_relations)]
    assert names == [name + end for name in (*RESERVED_RELATIONS, ":ARG0") for end in ("", "*")]
    assert names[NUM_VIRTUAL_RELATIONS:] == [":unknown", ":unknown*", ":ARG0", ":ARG0*"]
    assert [names[i] for i in CONSTITUENT_RELATIONS] == [f"{name}*" for name in VIRTUAL_RELATIONS]


def test_other_reserved_ids_are_another_format() -> None:
    """Files of earlier code have these ids; who changes them changes the format, and then this test."""
    format_1 = (
        ("[UNK]", "[MASK]", "VIRTUAL_FORMULA", "VIRTUAL_SENTENCE", "VIRTUAL_DOCUMENT",
         "[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]"),
        (":virtual_formula", ":virtual_sentence", ":virtual_document", ":auxiliary_vn", ":unknown"),
    )  # fmt: skip
    assert {1: format_1} == {_FORMAT: (RESERVED_LABELS, RESERVED_RELATIONS)}


def test_no_graph_has_a_role_of_virtual_nodes() -> None:
    for role in RESERVED_RELATIONS:
        graph = mathamr_plus.decode(f"(s / solve-01 {role} (e / equation))", {})
        assert [found for _, found, _ in own_roles(graph).edges] == [":unknown"]


def test_text_cannot_forge_a_reserved_label() -> None:
    vocabulary = Vocabulary.build(Counts(formula={"[MASK]": 9, "VIRTUAL_DOCUMENT": 9}), size=20)
    assert vocabulary.label_id("[MASK]", NodeKind.SLT) == 0
    assert vocabulary.label_id("VIRTUAL_DOCUMENT", NodeKind.SLT) == 0
    assert len(set(vocabulary.labels)) == len(vocabulary.labels)


def test_relations_unseen_in_training_have_a_place() -> None:
    relations = {":snt1": 9, ":snt2": 9, ":opt-0": 50, ":opt-12": 7, ":opt-31": 2, ":opt-40": 90, ":ARG0": 3}
    vocabulary = Vocabulary.build(Counts(relations=relations), size=20)
    name = {role: vocabulary.relation_name(vocabulary.relation_id(role)) for role in (":snt57", ":opt-31", ":opt-40")}
    assert name == {":snt57": ":snt2", ":opt-31": ":opt-12", ":opt-40": ":opt-12"}
    rarer = Vocabulary.build(Counts(relations=relations), size=20, number_threshold=8)  # the threshold of numbers
    assert rarer.relation_name(rarer.relation_id(":opt-12")) == ":opt-0"
    assert vocabulary.relation_name(vocabulary.relation_id(":never-heard")) == ":unknown"
    assert vocabulary.relation_name(vocabulary.relation_id(":op3")) == ":unknown"
    assert vocabulary.relation_id(":ARG0") % 2 == 0


def test_labels_that_utf8_has_no_bytes_for_can_be_written() -> None:
    counts = count(
        [("1", '(s / "\\ud800x")', "{}"), ("2", "(s / x)", "[]"), ("3", "(s / x)", "{")], mathamr_plus.decode
    )
    assert (counts.graphs, counts.failures) == (1, 2)
    vocabulary = Vocabulary.build(Counts.from_json(counts.to_json().encode().decode()), size=20)
    assert Vocabulary.from_json(vocabulary.to_json().encode().decode()).hash == vocabulary.hash


def test_counts_of_parts_add_up_and_survive_json() -> None:
    whole, left, right = (count(rows, mathamr_plus.decode) for rows in (ROWS, ROWS[:17], ROWS[17:]))
    left.merge(Counts.from_json(right.to_json()))
    assert left == whole
    assert whole.graphs == 40
    assert whole.placeholders == 40
    assert whole.amr["equations"] == 40


def test_workers_count_the_same() -> None:
    many = ROWS * 10
    assert count(iter(many), mathamr_plus.decode, workers=2) == count(many, mathamr_plus.decode)


def test_formula_mode_decides_what_is_counted() -> None:
    assert count(ROWS, mathamr_plus.decode, "slt").formula["O!SUP"] == 0
    assert count(ROWS, mathamr_plus.decode, "opt").formula["O!SUP"] == 40
    none = count(ROWS, mathamr_plus.decode, "none")
    assert not none.formula
    assert none.placeholders == 0
    assert none.amr["solve-01"] == 40


def test_unreadable_graphs_are_counted_and_passed_over() -> None:
    seen: list[int] = []
    counts = count([("a", "(s / solve-01", "{}"), ROWS[0]], mathamr_plus.decode, progress=seen.append)
    assert (counts.graphs, counts.failures, seen) == (1, 1, [2])


def test_json_round_trip_keeps_the_hash_and_the_ids() -> None:
    vocabulary = Vocabulary.build(count(ROWS, mathamr_plus.decode), size=30)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again.hash == vocabulary.hash
    assert again.labels == vocabulary.labels
    assert again.statistics == vocabulary.statistics
    other = Vocabulary.build(count(ROWS, mathamr_plus.decode), size=12)
    assert other.hash != vocabulary.hash


def test_damaged_vocabulary_is_named() -> None:
    with pytest.raises(GraphError, match="not a vocabulary"):
        Vocabulary.from_json('{"labels": []}')
    content = json.loads(Vocabulary.build(Counts(), size=20).to_json())
    with pytest.raises(OtherVersionError, match="vocabulary of format 99, this version reads 1"):
        Vocabulary.from_json(json.dumps({**content, "format": 99}))
    for labels, begin in ((["group"], "group"), ([1, 2], "1, 2")):
        with pytest.raises(OtherVersionError, match=f"its labels begin with {begin}, and those of this version with"):
            Vocabulary.from_json(json.dumps({**content, "labels": labels}))


def test_size_without_room_is_refused() -> None:
    with pytest.raises(GraphError, match="size 5 leaves no room: 8 ids are reserved"):
        Vocabulary.build(Counts(), size=5)
