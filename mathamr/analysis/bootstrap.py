"""One value a query, to be bootstrapped: what a survey found of it, or a run's score of it (the paper's section II-A).

Two queries with two results each; the second query's right document comes second:

>>> from mathamr.evaluation.resampling import bootstrap
>>> found = Survey(
...     top=np.array([[0.9, 0.3], [0.8, 0.4]]), results=np.zeros((2, 2), int), correct=np.array([0.9, 0.4]),
...     rank=np.array([1, 2]), random=np.zeros(2), hits=np.array([[True, False], [False, True]]),
...     num_correct=np.ones(2, int))
>>> accuracy(found, k=1), reciprocal_rank(found)
(array([1., 0.]), array([1. , 0.5]))
>>> bootstrap(accuracy(found, k=1)).interval()
(0.0, 1.0)
"""

from __future__ import annotations

import numpy as np

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats, Survey
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Qrels, Run


def accuracy(found: Survey, k: int) -> Floats:
    """1 for each query that has a right document among its first ``k``, else 0 (Q,)."""
    _check(k, found)
    return np.asarray(found.hits[:, :k].any(axis=1), dtype=np.float64)


def reciprocal_rank(found: Survey) -> Floats:
    """1 / rank of each query's first right document (Q,); their mean is MRR."""
    values: Floats = np.reciprocal(found.rank.astype(np.float64))
    return values


def ndcg(found: Survey, k: int) -> Floats:
    """nDCG@k of each query (Q,), right documents having the gain 1."""
    _check(k, found)
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discounts)[np.minimum(found.num_correct, k) - 1]
    return np.asarray(found.hits[:, :k] @ discounts / ideal)


def of_run(run: Run, qrels: Qrels, measure: str = "ndcg_prime") -> Floats:
    """The scores (Q,) of a run's topics, in the order of their ids; a topic that the run lacks scores 0."""
    scores = evaluate(run, qrels).per_topic
    return np.array([scores[topic][measure] for topic in sorted(scores)])


def _check(k: int, found: Survey) -> None:
    if not 1 <= k <= found.top.shape[1]:
        raise AnalysisError(f"k={k} is not between 1 and the {found.top.shape[1]} results that the survey kept")
