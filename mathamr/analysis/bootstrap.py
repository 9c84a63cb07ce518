"""Values to bootstrap, one for each query: from a survey or from a run's scores (the paper's section II-A).

Two queries with two results each; the second query's right document has rank 2:

>>> from mathamr.evaluation.resampling import bootstrap
>>> found = Hits(hits=np.array([[True, False], [False, True]]), rank=np.array([1, 2]), num_correct=np.ones(2, int))
>>> accuracy(found, k=1), reciprocal_rank(found)
(array([1., 0.]), array([1. , 0.5]))
>>> bootstrap(accuracy(found, k=1)).interval()
(0.0, 1.0)
"""

from __future__ import annotations

import numpy as np

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, Hits
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.runs import Qrels, Run, official_order


def accuracy(found: Hits, k: int) -> Floats:
    """Return 1 for each query that has a right document among its first ``k``, else 0 (Q,)."""
    _check(k, found)
    return np.asarray(found.hits[:, :k].any(axis=1), dtype=np.float64)


def reciprocal_rank(found: Hits) -> Floats:
    """Return 1 / rank of each query's first right document (Q,); their mean is MRR."""
    return np.reciprocal(found.rank.astype(np.float64))  # an unknown (infinite) rank gives 0


def ndcg(found: Hits, k: int) -> Floats:
    """Return nDCG@k of each query (Q,); right documents have gain 1."""
    _check(k, found)
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discounts)[np.minimum(found.num_correct, k) - 1]
    return np.asarray(found.hits[:, :k] @ discounts / ideal)


def hits_of_run(run: Run, qrels: Qrels, k: int, *, relevant: int = RELEVANT) -> Hits:
    """Return the hits of a run's first ``k`` results, for topics with a right document, ordered by topic id.

    Accuracy, MRR and nDCG of a run file follow from them. Results are ordered by score, whatever the order of lines.
    Documents without a judgment count as wrong, and places missing from the run as misses.

    >>> run = Run.from_results("demo", {"A.1": [("b", 2.0), ("a", 1.0)]})
    >>> found = hits_of_run(run, {"A.1": {"a": 3, "b": 1}, "A.2": {"c": 2}, "A.3": {"d": 0}}, k=5)
    >>> accuracy(found, 1), accuracy(found, 5), reciprocal_rank(found)  # of A.1 and A.2
    (array([0., 0.]), array([1., 0.]), array([0.5, 0. ]))

    Raises:
        AnalysisError: ``k`` below 1, or no topic with a right document.
    """
    right = {topic: {name for name, grade in of.items() if grade >= relevant} for topic, of in sorted(qrels.items())}
    right = {topic: names for topic, names in right.items() if names}
    if not right or k < 1:
        raise AnalysisError(
            f"{len(right)} topics have a document of grade {relevant}, and k={k}; both must be at least 1"
        )
    hits, rank = np.zeros((len(right), k), np.bool_), np.full(len(right), np.inf)
    for row, (topic, names) in enumerate(right.items()):
        ranking = official_order(run.rankings.get(topic, ()), run.task)
        places = [place for place, hit in enumerate(ranking) if hit.doc_id in names]
        hits[row, [place for place in places if place < k]] = True
        rank[row] = places[0] + 1 if places else np.inf
    return Hits(hits, rank, np.array([len(names) for names in right.values()]))


def _check(k: int, found: Hits) -> None:
    if not 1 <= k <= found.hits.shape[1]:
        raise AnalysisError(f"k={k} must be between 1 and {found.hits.shape[1]}, the results kept for each query")
