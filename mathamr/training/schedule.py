"""Learning rate as a function of the step, without state.

>>> [round(cosine(step, total=4, highest=1.0, lowest=0.2), 3) for step in range(4)]
[1.0, 0.8, 0.4, 0.2]
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
