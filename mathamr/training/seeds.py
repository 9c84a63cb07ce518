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
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0]) >> 1


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Draw the random numbers of the CPU from ``seed`` within the block, and restore torch's generator after it.

    Generators of GPUs are left alone.
    """
    import torch  # slow to import

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
