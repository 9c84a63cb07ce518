"""Ids in one string behave as the list that they were made from."""

import sys

import pytest

from graphs.corpus.post import Pair
from graphs.ids import IdPairs, Ids

MANY = [f"arqmath/{number}" for number in range(25_000)]


@pytest.mark.parametrize("given", [[], [""], ["a", "", "bé", "∑x", "\ud800", "a"], MANY], ids=["0", "1", "odd", "many"])
def test_ids_are_a_sequence(given: list[str]) -> None:
    ids = Ids(iter(given))
    assert (len(ids), list(ids), bool(ids)) == (len(given), given, bool(given))
    assert [ids[number] for number in range(-len(given), len(given))] == given * 2
    for part in (slice(None), slice(1, -1), slice(None, None, -2), slice(10_000, 10_003), slice(9, 3)):
        assert ids[part] == given[part]
    for outside in (len(given), -len(given) - 1):
        with pytest.raises(IndexError):
            ids[outside]


def test_an_id_takes_eight_bytes_more_than_its_characters() -> None:
    ids = Ids(MANY)
    size = sys.getsizeof(ids._text) + sys.getsizeof(ids._ends)
    assert size < sum(map(len, MANY)) + 10 * len(MANY)  # an array has some room to grow


def test_pairs_are_a_sequence() -> None:
    given = [Pair("q", "a"), Pair("q", "b"), Pair("", "a")]
    pairs = IdPairs(given)
    assert (list(pairs), pairs[-1], pairs[:2], len(pairs)) == (given, given[-1], given[:2], 3)
