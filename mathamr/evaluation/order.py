"""Order of results: one rule for equal scores, that of trec_eval, in every search, fusion and run file.

>>> names = ["7", "10", "9"]
>>> [names[place] for place in best_first(names, [0.5, 1.0, 1.0])]
['9', '10', '7']

The score decides first, in float32, descending; equal scores go by id as a string, descending.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def best_first(names: Sequence[str] | npt.NDArray[np.str_], scores: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the places of documents (documents,), best first, from their ids and scores (documents,)."""
    with np.errstate(over="ignore"):  # a score beyond float32 is refused where the run is made
        values = np.asarray(scores, dtype=np.float32)
    order = np.argsort(-values, kind="stable")
    if (values[order][1:] == values[order][:-1]).any():  # ids are slow to compare
        order = np.lexsort((np.asarray(names, dtype=np.str_), values))[::-1]
    return order


def best_numbers(
    numbers: npt.NDArray[np.int64], scores: npt.NDArray[np.floating], k: int, names: npt.NDArray[np.str_] | None = None
) -> list[tuple[int, float]]:
    """Return the best ``k`` items of a collection, best first, from numbers and scores of the items found, (found,).

    ``names`` are the ids of all items of the collection, by which equal scores are ordered; None: by number, ascending.
    """
    order = np.lexsort((numbers, -scores)) if names is None else best_first(names[numbers], scores)
    return list(zip(numbers[order[:k]].tolist(), scores[order[:k]].tolist(), strict=True))
