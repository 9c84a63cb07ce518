"""Which pairs stand in which batch: no two that share a text or an id, so that no right answer counts as a wrong one.

>>> keys = np.array([[1, 11], [1, 12], [2, 13], [3, 14]], np.uint64)  # the first two pairs have the same query
>>> batches = no_duplicates(keys, np.arange(4), batch_size=2, seed=0, epoch=0)
>>> batches.shape, any({0, 1} == set(batch) for batch in batches.tolist())
((2, 2), False)

Everything random is a function of the seed and of the place of a batch in training (:mod:`mathamr.training.streams`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mathamr.training.streams import ORDER, stream

Rows = npt.NDArray[np.int64]


def no_duplicates(keys: npt.NDArray[np.uint64], rows: Rows, *, batch_size: int, seed: int, epoch: int) -> Rows:
    """Batches of an epoch, int64 (batches, batch_size), of the pairs ``rows`` in an order of their own.

    A pair that shares a key with a batch waits for the next; those that are over at the end sit the epoch out.

    Args:
        keys: uint64 (n, any), of all pairs.
    """
    order = np.random.default_rng(stream(seed, ORDER, epoch)).permutation(rows)
    waiting = order.tolist()
    batches: list[list[int]] = []
    while waiting:
        batch: list[int] = []
        seen: set[int] = set()
        passed: list[int] = []
        taken = 0
        for row in waiting:
            taken += 1
            own = keys[row].tolist()
            if seen.isdisjoint(own):
                seen.update(own)
                batch.append(row)
                if len(batch) == batch_size:
                    break
            else:
                passed.append(row)
        if len(batch) < batch_size:
            break
        batches.append(batch)
        waiting = passed + waiting[taken:]
    return np.array(batches, np.int64).reshape(-1, batch_size)


def draw_negatives(pool: Rows, rows: Rows, groups: npt.NDArray[np.uint64], train: Rows, count: int, seed: int) -> Rows:
    """Pairs whose documents are hard negatives of the pairs ``rows``, int64 (B, count).

    Where a pair's pool has fewer, pairs of other groups are drawn from ``train`` in their place.

    Args:
        pool: int64 (n, most), for each pair those to draw from, -1 behind the last.
        groups: uint64 (n,).
        train: int64 (any,), pairs that are trained on.
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for row in rows.tolist():
        own = pool[row][pool[row] >= 0]
        some = rng.choice(own, size=min(count, len(own)), replace=False).tolist()
        while len(some) < count:
            other = int(train[rng.integers(len(train))])
            if groups[other] != groups[row]:
                some.append(other)
        drawn.append(some)
    return np.array(drawn, np.int64).reshape(len(rows), count)
