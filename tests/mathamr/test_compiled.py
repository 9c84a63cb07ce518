"""Compilation by numba, with and without a folder for compiled code."""

import sys
from typing import Any

import numpy as np
import pytest

from mathamr.compiled import compiled


def test_code_is_compiled_without_a_folder_for_it_and_not_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    compiler = numba.njit

    def without_folder(*arguments: Any, cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return compiler(*arguments, **options)

    def add(numbers, one):
        numbers[0] += one

    monkeypatch.setattr(numba, "njit", without_folder)
    function = compiled(add, "void(int64[::1], int64)")
    numbers = np.array([1])
    assert function is not None
    function(numbers, 2)
    assert numbers.tolist() == [3]
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled(lambda: None, "void()") is None
