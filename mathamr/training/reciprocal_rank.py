"""Rank of each query's own document among the documents of a validation set.

>>> import torch
>>> scores = torch.tensor([[0.3, 0.9, 0.1], [0.5, 0.5, 0.5]])
>>> rank_of(scores, torch.tensor([0, 1]), torch.zeros(2, 3, dtype=torch.bool))
tensor([2., 2.])
"""

from __future__ import annotations

from torch import Tensor

# The reciprocal rank is taken over only the first pairs (as many as the thesis holds out, section 4.3.1). With ten
# times as many pairs, ranking all against all would take longer than an epoch.
MRR_PAIRS = 5_000
QUERIES_AT_ONCE = 256


def rank_of(scores: Tensor, own: Tensor, known_positives: Tensor) -> Tensor:
    """Return the rank of each query's own document, 1 for the best: float (B,).

    Other known answers do not count. Half of the documents with equal scores rank before it, so that collapsed vectors
    rank in the middle, not at the top.

    Args:
        scores: similarities (B, C).
        own: int64 (B,), column of each query's own document.
        known_positives: bool (B, C), documents known to answer a query.
    """
    score = scores.gather(1, own.unsqueeze(1))  # (B, 1)
    others = ~known_positives.scatter(1, own.unsqueeze(1), True)
    better = ((scores > score) & others).sum(1)
    equal = ((scores == score) & others).sum(1)
    return 1 + better + equal / 2
