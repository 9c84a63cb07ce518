"""MaxSim with other weights: of virtual nodes, and of documents by size.

A query with a formula that every document has and a sentence that one has. The plain scores are equal:

>>> import torch
>>> from mathamr.maxsim import VectorSets
>>> query = VectorSets.of([torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])])
>>> documents = VectorSets.of([torch.eye(3)[:2], torch.eye(3)[[0, 2]], torch.eye(3)[[0, 2]]])
>>> found = weighted(query, np.array([0, 1]), documents)
>>> found["as it is"].round(2).tolist(), found["idf, 0.7"].round(2).tolist()
([[1.0, 0.5, 0.5]], [[1.0, 0.0, 0.0]])

Each way changes the weights of the best matches of a query's vectors (thesis Eq. 3.4), or the sum of the matches.
Ways with equal rankings are left out, such as a sum and a mean over query vectors.

==================  ===========================================================================================
formulas alone      only vectors of formulas; also sentences alone, the document alone
kinds alike         the same weight for each kind of virtual node, however many vectors it has
idf, S              log of (1 + documents) / (1 + documents that match with more than S); Spärck Jones (1972)
1 - mean            one minus the vector's mean best match over the documents
cubed               the third power of each match: near matches count most
both ways           plus the mean best match of the document's vectors among the query's
size, L             minus L times the log of the document's number of vectors
centred             minus half the document's mean score over the queries, which lowers hubs
==================  ===========================================================================================
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphs.errors import AnalysisError

if TYPE_CHECKING:  # torch takes a second, and reports read the names of the ways
    from mathamr.analysis.similarities import Floats
    from mathamr.maxsim import VectorSets

AS_IT_IS = "as it is"
_SIMILAR = (0.5, 0.7, 0.9)
_SIZES = (0.02, 0.05)
_KINDS = {0: "formulas alone", 1: "sentences alone", 2: "document alone"}


def weighted(queries: VectorSets, kinds: NDArray[np.integer], documents: VectorSets) -> dict[str, Floats]:
    """Return the scores of every way, each (B, C): of B queries against C documents.

    Args:
        kinds: kind of each query vector (V,): 0 formula, 1 sentence, 2 document.

    Raises:
        AnalysisError: a vector without a kind, no query, or no document.
    """
    if len(kinds) != len(queries.vectors) or not len(queries) or not len(documents):
        raise AnalysisError(
            f"{len(kinds)} kinds for {len(queries.vectors)} vectors of {len(queries)} queries, {len(documents)} "
            "documents; give each vector a kind, and at least one query and document"
        )
    starts = documents.ptr[:-1].numpy()
    sizes = np.diff(documents.ptr.numpy())
    rows: dict[str, list[Floats]] = {}
    for begin, end in pairwise(queries.ptr.tolist()):
        similar = (
            queries.vectors[begin:end].float() @ documents.vectors.float().T
        ).numpy()  # (vectors, vectors of all documents)
        best = np.maximum.reduceat(similar, starts, axis=1)  # (vectors, C)
        backwards = np.add.reduceat(similar.max(0), starts) / sizes  # (C,)
        for name, row in _of_query(best, np.asarray(kinds[begin:end]), backwards, sizes).items():
            rows.setdefault(name, []).append(row)
    found = {name: np.stack(of_all) for name, of_all in rows.items()}
    plain = found[AS_IT_IS]
    return found | {"centred": plain - 0.5 * plain.mean(0, keepdims=True)}


def _of_query(
    best: Floats, kinds: NDArray[np.integer], backwards: Floats, sizes: NDArray[np.integer]
) -> dict[str, Floats]:
    """Return the scores (C,) of one query, from its best matches (vectors, C)."""
    plain = best.mean(0)
    ways = {AS_IT_IS: plain}
    for kind, name in _KINDS.items():
        ways[name] = best[kinds == kind].mean(0) if (kinds == kind).any() else np.zeros_like(plain)
    ways["kinds alike"] = _mean(best, 1 / np.bincount(kinds)[kinds])
    count = best.shape[1]
    for least in _SIMILAR:
        ways[f"idf, {least}"] = _mean(best, np.log((count + 1) / ((best > least).sum(1) + 1)))
    ways["1 - mean"] = _mean(best, 1 - best.mean(1))
    ways["cubed"] = (best**3).mean(0)
    ways["both ways"] = plain + backwards
    return ways | {f"size, {rate}": plain - rate * np.log(sizes) for rate in _SIZES}


def _mean(best: Floats, weights: Floats) -> Floats:
    """Return the weighted mean (C,) of the matches; weights of 0 give 0."""
    return weights @ best / (weights.sum() or 1.0)


def weighted_reference(queries: VectorSets, documents: VectorSets, weights: Floats) -> Floats:
    """Return weighted MaxSim (B, C), one pair of vectors at a time, for weights (V,) of the queries' vectors."""
    scores = np.zeros((len(queries), len(documents)))
    for i, (begin, end) in enumerate(pairwise(queries.ptr.tolist())):
        for j, (first, last) in enumerate(pairwise(documents.ptr.tolist())):
            for v in range(begin, end):
                matches = [float(queries.vectors[v] @ documents.vectors[u]) for u in range(first, last)]
                scores[i, j] += weights[v] * max(matches)
        scores[i] /= weights[begin:end].sum()
    return scores
