"""Results come in order, and a process that dies takes only its own item with it."""

import os
from pathlib import Path

import pytest

from graphs.errors import MathAMRError
from graphs.processes import ordered_map


class Square:
    def __init__(self, offset: int) -> None:
        self.offset = offset

    def __call__(self, number: int) -> int:
        if number == -1:
            os._exit(9)
        if number == -2:
            raise ValueError("minus two")
        return number * number + self.offset


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_items(workers: int) -> None:
    assert list(ordered_map(Square, (1,), iter(range(20)), workers=workers)) == [n * n + 1 for n in range(20)]


def test_a_process_that_dies_loses_only_its_own_item() -> None:
    items = iter([1, 2, -1, 3, 4])
    assert list(ordered_map(Square, (0,), items, workers=2, give_up=lambda item: 1000 + item)) == [1, 4, 999, 9, 16]


def test_a_death_without_a_way_to_give_up_says_what_to_do() -> None:
    with pytest.raises(MathAMRError, match="fewer workers"):
        list(ordered_map(Square, (0,), iter([-1]), workers=2))


def test_an_exception_in_a_process_reaches_the_caller() -> None:
    with pytest.raises(ValueError, match="minus two"):
        list(ordered_map(Square, (0,), iter([1, -2]), workers=2))


def test_no_more_items_are_taken_than_are_under_way(tmp_path: Path) -> None:
    taken = []

    def items():
        for number in range(100):
            taken.append(number)
            yield number

    results = ordered_map(Square, (0,), items(), workers=2)
    next(results)
    assert len(taken) <= 7
    results.close()
