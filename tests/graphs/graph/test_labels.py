"""Label normalisation (thesis, 3.3.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.graph.labels import normalize, number_type, numbered, porter_stemmer
from graphs.graph.mathamr_plus import NodeKind


@pytest.mark.parametrize(
    ("label", "kind", "normal"),
    [
        ("equations", NodeKind.AMR, "equat"),
        ("solve-01", NodeKind.AMR, "solve-01"),
        ("have-org-role-91", NodeKind.AMR, "have-org-role-91"),
        ('"Cauchy"', NodeKind.AMR, "cauchi"),
        ("ﬁeld", NodeKind.AMR, "field"),  # with the ligature
        ("-", NodeKind.AMR, "-"),
        ("V!𝑥", NodeKind.OPT, "V!x"),
        ("V!ℝ", NodeKind.SLT, "V!R"),
        ("F!primes", NodeKind.OPT, "F!primes"),  # formula labels are not stemmed
        ("http://example.org/a", NodeKind.AMR, "[URL]"),
        ("T!www.example.org", NodeKind.SLT, "[URL]"),
        ("FORMULA_12", NodeKind.FORMULA, "FORMULA"),
        ("1990", NodeKind.AMR, "1990"),
        ("N!+1", NodeKind.AMR, "N !+1"),  # a typed factorial, no number of a tree
        ("N!+1", NodeKind.SLT, "N!+1"),
    ],
)
def test_normal_forms(label: str, kind: NodeKind, normal: str) -> None:
    assert normalize(label, kind) == normal


@pytest.mark.parametrize(
    ("label", "token"),
    [
        ("7", "[UNKNUM_INT]"),
        ("-12", "[UNKNUM_INT]"),
        ("N!1729", "[UNKNUM_INT]"),
        ("1,000,000", "[UNKNUM_INT]"),
        ("N!1&comma;000", "[UNKNUM_INT]"),
        ("3.14", "[UNKNUM_DEC]"),
        ("N!.5", "[UNKNUM_DEC]"),
        ("6.02E23", "[UNKNUM_DEC]"),
        ("1e-5", "[UNKNUM_DEC]"),
        ("N!3/8", "[UNKNUM_RAT]"),
        ("1\u20442", "[UNKNUM_RAT]"),  # what NFKC makes of ½
        ("V!7", None),
        ("N!x", None),
        ("N !+1", None),
        ("1.2.3", None),
        ("", None),
        ("e5", None),
    ],
)
def test_numbers_by_type(label: str, token: str | None) -> None:
    assert number_type(label) == token


def test_long_run_of_y_does_not_exhaust_the_stemmer() -> None:
    assert normalize("y" * 5000, NodeKind.AMR) == "y" * 5000
    assert normalize("y" * 60, NodeKind.AMR)


def test_letters_number_the_children_past_nine() -> None:
    assert numbered(":opt-36") == (":opt-", 36)
    assert numbered(":op10") == (":op", 10)
    assert numbered(":slt-n") is None
    assert numbered(":opx") is None
    assert numbered(":op" + "1" * 5000) is None


def test_the_stemmer_is_that_of_nltk_which_is_whole_when_imported_later() -> None:
    """The stemmer's module is imported without its packages."""
    words = Path(__file__).read_text(encoding="utf-8").split()
    stems = [porter_stemmer().stem(word) for word in words]
    import nltk
    from nltk.stem import porter

    assert callable(nltk.word_tokenize)
    assert stems == [porter.PorterStemmer().stem(word) for word in words]
