"""Batches of pairs that share no text and no id, so that no right answer counts as a wrong one.

>>> keys = np.array([[1, 11], [1, 12], [2, 13], [3, 14]], np.uint64)  # the first two pairs have the same query
>>> batches = no_duplicates(keys, np.arange(4), batch_size=2, seed=0, epoch=0)
>>> batches.shape, any({0, 1} == set(batch) for batch in batches.tolist())
((2, 2), False)

Documents that answer a query elsewhere in the file are not negatives either, nor are documents of the same groups
(papers, threads) as its answers; :class:`KnownPairs` finds them.

>>> groups = np.array([7, 8, 9, 8], np.uint64)
>>> known = KnownPairs(np.hstack([keys, keys]), groups)  # here texts and ids are the same
>>> known.mask(np.array([0, 2]), np.array([0, 1, 2, 3]))  # the query of pairs 0 and 1, and that of 2
array([[ True,  True, False,  True],
       [False, False,  True, False]])

Everything random is a function of the seed and of the place of a batch in training (:mod:`mathamr.training.seeds`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from graphs.errors import TrainingError
from mathamr.training.seeds import ORDER, stream

VERSION = 5
"""Goes up when the same pairs and settings train another encoder: the keys of models have it."""

Rows = npt.NDArray[np.int64]


def no_duplicates(keys: npt.NDArray[np.uint64], rows: Rows, *, batch_size: int, seed: int, epoch: int) -> Rows:
    """Return an epoch's batches, int64 (batches, batch_size), of the pairs ``rows`` in random order.

    A pair that shares one of its ``keys``, uint64 (n, any), with a batch waits for the next one; the incomplete last
    batch is dropped.
    """
    order = np.random.default_rng(stream(seed, ORDER, epoch)).permutation(rows)
    waiting = order.tolist()
    batches: list[list[int]] = []
    while waiting:
        batch: list[int] = []
        seen: set[int] = set()
        passed: list[int] = []
        rest = iter(waiting)
        for row in rest:
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
        waiting = [*passed, *rest]
    return np.array(batches, np.int64).reshape(-1, batch_size)


class KnownPairs:
    """Known answers of queries, by text or by id, and the documents of the answers' groups.

    A statement of the same paper is relevant too (ModernBERT thesis, section 3, which takes negatives of other papers).
    ``keys`` uint64 (n, 4) and ``groups`` uint64 (n,) are those of a :class:`mathamr.text.pairs.PairFile`.
    """

    def __init__(self, keys: npt.NDArray[np.uint64], groups: npt.NDArray[np.uint64]) -> None:
        columns = ((keys[:, 0], keys[:, 1]), (keys[:, 2], keys[:, 3]), (keys[:, 0], groups), (keys[:, 2], groups))
        self._columns = [(queries, answers, np.unique(_joined(queries, answers))) for queries, answers in columns]

    def mask(self, queries: Rows, documents: Rows) -> npt.NDArray[np.bool_]:
        """Return a mask of known answers, bool (B, C), for queries of pairs (B,) and documents of pairs (C,)."""
        answered = np.zeros((len(queries), len(documents)), np.bool_)
        for query_column, answers, known in self._columns:
            candidates = _joined(query_column[queries][:, None], answers[documents][None])
            places = np.searchsorted(known, candidates).clip(max=len(known) - 1)
            answered |= known[places] == candidates
        return answered


def _joined(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return an ordered hash of two hashes."""
    return one * np.uint64(0x9E3779B97F4A7C15) ^ other


def draw_negatives(
    pool: Rows, row: int, groups: npt.NDArray[np.uint64], train: Rows, count: int, seed: int, known: KnownPairs
) -> list[int]:
    """Return ``count`` pairs whose documents are hard negatives of the pair ``row``.

    If its pool has fewer, pairs of other groups are drawn from ``train``. Documents that are ``known`` to answer a
    query are never its negatives.

    Shapes: ``pool`` int64 (n, most), -1 after the last; ``groups`` uint64 (n,); ``train`` int64 (any,).

    Raises:
        TrainingError: all pairs answer the query, or belong to its group.
    """
    rng, here = np.random.default_rng([seed, row]), np.array([row])
    own = pool[row][pool[row] >= 0]
    own = own[~known.mask(here, own)[0]]
    drawn: list[int] = rng.choice(own, size=min(count, len(own)), replace=False).tolist()
    if len(drawn) < count:
        others = train[groups[train] != groups[row]]
        others = others[~known.mask(here, others)[0]]
        if not len(others):
            raise TrainingError(
                "a query has no hard negatives: all pairs answer it or belong to its group; use more groups"
            )
        drawn += rng.choice(others, size=count - len(drawn)).tolist()
    return drawn
