"""Ids in one string behave as the list that they were made from."""

import sys

import pytest

from graphs.corpus.post import IdPairs, Pair
from graphs.ids import Ids, array_of, each_once

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
    assert pairs == given == pairs
    assert given[:2] != pairs != given[::-1]


@pytest.mark.parametrize("given", [[], ["a"], ["b", "a", "b", "a", "", "c", ""], ["bé", "∑x", "bé"], MANY + MANY[::-7]])
def test_each_once_is_the_keys_of_a_dictionary(given: list[str]) -> None:
    assert list(each_once(iter(given))) == list(dict.fromkeys(given))


def test_ids_become_an_array_of_their_width() -> None:
    assert array_of(Ids(["7", "arqmath/8", ""])).tolist() == ["7", "arqmath/8", ""]
    assert array_of([]).shape == (0,)
