"""What a text encoder reads for a label."""

from __future__ import annotations

from collections import Counter

import pytest

from graphs.graph.labels import normalize
from graphs.graph.mathamr_plus import NodeKind
from graphs.graph.vocabulary import RESERVED_LABELS, Counts
from mathamr.model.label_words import full_forms, words


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("prove-01", "prove"),
        ("have-org-role-91", "have org role"),
        ("1-12", "1 12"),
        ("amr-unknown", "what"),
        ("FORMULA", "formula"),
        ("Möbius", "Möbius"),
        ("V!x", "x"),
        ("V!A", "capital A"),
        ("V!R", "capital R"),
        ("V!α", "alpha"),
        ("V!λ", "lambda"),
        ("V!Γ", "capital gamma"),
        ("V!italic-φ", "phi"),
        ("-!x", "x"),
        ("T!such that", "such that"),
        ("N!0.5", "0.5"),
        ("-1", "-1"),
        ("U!plus", "plus"),
        ("+", "plus"),
        ("×", "times"),
        ("O!le", "le"),
        ("O!leq", "less than or equals"),
        ("⩽", "less than or equals"),
        ("O!in", "element of"),
        ("∈", "element of"),
        ("∫", "integral"),
        ("O!superset-of-or-equals", "superset of or equals"),
        ("F!abs", "absolute value"),
        ("V!sin", "sine"),
        ("F!⊂≠", "subset of not equals"),
        ("&comma;", "comma"),
        ("M!&lsqb;&rsqb;1x2", "brackets of 2"),
        ("M!&lsqb;)1x2", "between left bracket right parenthesis of 2"),
        ("M!||3x3", "absolute value 3 by 3"),
        ("M!2x2", "table 2 by 2"),
        ("M!M-2x2", "matrix 2 by 2"),
        ("M!V-3", "vector of 3"),
        ("M!D-⟩", "delimiters"),
        ("O!interval(O-O)", "interval open open"),
        ("+!O!SUP", "superscript operator"),
        ("+!F!max", "maximum operator"),
        ("F!", "function"),
        ("’ll-01", "ll"),
    ],
)
def test_labels_are_read_as_a_person_would_say_them(label: str, expected: str) -> None:
    assert words(label) == expected


@pytest.mark.parametrize("label", RESERVED_LABELS)
def test_labels_that_stand_for_many_have_no_words(label: str) -> None:
    assert words(label) == ""


def test_a_stem_is_read_as_the_word_that_occurs_most_often() -> None:
    counts = Counts(
        amr=Counter({"converges": 2, "convergence": 5, '"Erdős"': 1, "the": 3, "solve-01": 4, "7": 9, "N!+1": 1})
    )
    forms = full_forms(counts)
    stem = normalize("convergence", NodeKind.AMR)
    assert words(stem, forms) == "convergence"
    assert words(normalize('"Erdős"', NodeKind.AMR), forms) == "Erdős"
    assert "solve-01" not in forms
    assert "7" not in forms
    assert words(normalize("N!+1", NodeKind.AMR), forms) == "N !+1"  # not the number +1 of a tree
    assert words("polynomi", forms) == "polynomi"  # that no counts know


def test_of_two_words_as_frequent_as_each_other_it_is_always_the_same() -> None:
    for order in (["equations", "equation"], ["equation", "equations"]):
        assert full_forms(Counts(amr=Counter(order))) == {"equat": "equation"}
