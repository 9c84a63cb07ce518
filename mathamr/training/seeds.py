"""Streams of random numbers that are functions of what they are for, and of a place in training: no state to save.

>>> first = stream(42, ORDER, 0)
>>> first == stream(42, ORDER, 0), first == stream(43, ORDER, 0), first == stream(42, NEGATIVES, 0)
(True, False, False)
"""

from __future__ import annotations

import numpy as np

ORDER, NEGATIVES, AUGMENTATION, FORMULAS, SHARES, MIXTURE = range(6)
"""What a stream is for: the second part of its key, behind the seed of the run."""


def stream(*key: int) -> int:
    """A seed for the random stream of ``key``, unlike those of all other keys."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1)
