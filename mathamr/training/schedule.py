"""Learning rate as a function of the step, without state.

>>> [round(cosine(step, total=4, highest=1.0, lowest=0.2), 3) for step in range(4)]
[1.0, 0.8, 0.4, 0.2]
>>> [round(warmed_up(step, total=10, highest=1.0, warmup=0.2), 3) for step in range(10)]
[0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
"""

from __future__ import annotations

import math


def cosine(step: int, *, total: int, highest: float, lowest: float) -> float:
    """Return the learning rate of ``step`` out of ``total``, from 0: ``highest`` at the first, ``lowest`` at the last.

    Cosine annealing over single steps (thesis, 3.4.5), without restarts.
    """
    done = step / (total - 1) if total > 1 else 0.0
    weight = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return weight * highest + (1 - weight) * lowest


def warmed_up(step: int, *, total: int, highest: float, warmup: float) -> float:
    """Return the learning rate of ``step`` out of ``total``, from 0: linear up to ``highest``, then linear towards 0.

    Args:
        warmup: share of the steps on the way up (formula-text retrieval paper, section 3.3: a tenth).
    """
    rising = round(warmup * total)
    if step < rising:
        return highest * (step + 1) / rising
    return highest * (total - step) / max(total - rising, 1)
