"""Streams of random numbers as functions of a purpose and a place in training; no state is saved.

>>> first = stream(42, ORDER, 0)
>>> first == stream(42, ORDER, 0), first == stream(43, ORDER, 0), first == stream(42, NEGATIVES, 0)
(True, False, False)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

ORDER, NEGATIVES, AUGMENTATION, FORMULAS, SHARES, MIXTURE = range(6)
"""Purpose of a stream: the second part of its key, after the seed of the run."""


def stream(*key: int) -> int:
    """Return a seed for the random stream of ``key``, different from those of all other keys."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def same_draws() -> Iterator[None]:
    """Let torch draw the same numbers on the CPU at each use of the block; the caller's generator is restored."""
    import torch  # slow to import

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
