"""Functions compiled by numba where it is installed (extra ``fast``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def compiled(function: Callable[..., None], signature: str) -> Callable[..., None] | None:
    """Return a function compiled by numba, or None without numba. Compiled code is kept in a cache folder if possible.

    Compiled functions run beside other threads of Python. They may take maxima of numbers in any order, but not sums.
    """
    try:
        import numba
    except ImportError:
        return None
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"nnan", "nsz"}}
    try:
        return numba.njit(signature, cache=True, **options)(function)
    except RuntimeError:  # no folder for compiled code can be written
        return numba.njit(signature, **options)(function)
