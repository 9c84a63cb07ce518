"""Memory of tensors: huge pages, and the return of released memory to the system.

give_back_memory()                                  # after a model is no longer needed
advance = giving_back_memory(progress)              # within a long loop: every 500 items
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

_C_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None
GIVEN_BACK_EVERY = 500  # items


def use_huge_pages() -> None:
    """Let torch put tensors of 2 MB or more into huge pages (Linux), unless the user has set its variable.

    Page faults take less time, and the heap hardly grows with the number of batches (docs/scale.md). Torch reads the
    variable at its first allocation, so this comes before any tensor.
    """
    if Path("/sys/kernel/mm/transparent_hugepage/enabled").exists():
        os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")


def give_back_memory() -> None:
    """Return released memory to the system, if the C library keeps it (glibc).

    Tensors of a few megabytes live in a heap that shrinks only at its end. Without this call, a process that trains
    several models grows to many times what one of them needs.
    """
    trim = getattr(_C_LIBRARY, "malloc_trim", None)
    if trim is not None:
        trim(0)


def giving_back_memory(progress: Callable[[int], None]) -> Callable[[int], None]:
    """Return ``progress``, with a call of :func:`give_back_memory` after each :data:`GIVEN_BACK_EVERY` items.

    Small results between large intermediate tensors keep the heap from shrinking, so that it grows with the items.
    After every batch the call would double the time.
    """
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        progress(count)
        done += count
        if done >= GIVEN_BACK_EVERY:
            done = 0
            give_back_memory()

    return advance
