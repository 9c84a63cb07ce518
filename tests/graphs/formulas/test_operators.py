"""graphs.formulas.operators: the rules that readers other than MathML's rely on."""

import pytest

from graphs.errors import FormulaError
from graphs.formulas.operators import MAX_OPERANDS, Term, apply, error, finish, group, interval, matrix


def terms(*labels: str) -> list[Term]:
    return [Term(label) for label in labels]


def string(term: Term) -> str:
    return finish(term).tangent_string()


def test_application() -> None:
    assert string(apply(Term("V!f"), terms("V!x"))) == "[F!f,0[V!x]]"
    assert string(apply(Term("O!root"), terms("V!x"))) == "[O!root,0[V!x],1[N!2]]"
    assert string(apply(Term("O!root"), [Term("$!degree", terms("N!3")), Term("V!x")])) == "[O!root,0[V!x],1[N!3]]"
    assert string(apply(Term("O!int"), terms("V!x"))) == "[O!int,0[V!x],1[W!],2[W!]]"
    assert string(apply(Term("E!"), terms("-!a", "-!b"))) == "[E!,0[T!ab]]"


def test_an_operator_with_operands_becomes_compound() -> None:
    twice = apply(apply(Term("O!SUP"), [apply(Term("O!SUB"), terms("O!sum", "V!k")), Term("V!n")]), terms("V!k"))
    assert string(twice) == "[+!O!SUB,0[O!SUP,0[O!SUB,0[O!sum],1[V!k]],1[V!n]],1[V!k]]"


def test_groups_intervals_matrices() -> None:
    assert string(group("S", terms("N!1", "N!2"))) == "[M!S-2,0[N!1],1[N!2]]"
    assert string(interval("C", "O", terms("N!1", "N!2"))) == "[O!interval(C-O),0[N!1],1[N!2]]"
    assert string(matrix([])) == "[M!M-0x0]"
    assert string(matrix([terms("V!a"), []])) == "[M!M-2x1,0[M!R!,0[V!a]],1[M!R!,0[E!]]]"


def test_text_swallows_the_unknown_symbols_after_it_but_not_before() -> None:
    assert string(error(terms("-!a", "T!b", "-!c", "-!d", "V!e"))) == "[E!,0[-!a],1[T!bcd],2[V!e]]"


@pytest.mark.parametrize("label", ["U!plus", "E!"])
def test_too_many_operands_are_split_evenly(label: str) -> None:
    many = terms(*["N!1"] * (2 * MAX_OPERANDS + 1))
    term = apply(Term(label), many)
    halves = term.operands
    assert [half.label for half in halves] == [label, label]
    assert [len(half.operands) for half in halves] == [2, MAX_OPERANDS]  # of 501 and 500: the first is halved again
    assert [len(quarter.operands) for quarter in halves[0].operands] == [251, 250]
    with pytest.raises(FormulaError, match="1,001 operands, at most 500"):
        apply(Term("O!minus"), many)
