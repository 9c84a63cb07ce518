"""Fusion of run files, by ranks or by scores.

fused, _ = fuse([read_run(path, task=1) for path in paths], weights=(0.3, 0.7))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphs.errors import RetrievalError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Qrels, Run
from mathamr.retrieval import fusion
from mathamr.retrieval.fusion import merge_by_visual_id, rankings_of, tune_weight, with_posts
from mathamr.retrieval.index import Ranking


def fuse(
    runs: Sequence[Run],
    visual_ids: Mapping[str, str] | None = None,
    *,
    k: int | None = None,
    weights: Sequence[float] | None = None,
    tune: Qrels | None = None,
    name: str = "fused",
) -> tuple[Run, tuple[float, float] | None]:
    """Fuse runs of one task; return the run, and the weights that were found with ``tune``, if it is given.

    Args:
        visual_ids: visual ids of the formulas, in Task 2, where equal ones are one document.
        k: constant of reciprocal rank fusion; None: 60.
        weights: weight of each run; None: reciprocal rank fusion.
        tune: judgments that the weights of two runs of Task 1 are found with.
        name: last column of the run.

    Raises:
        RetrievalError: fewer than two runs, Task 2 without visual ids, tuning of anything but two runs of Task 1, ``k``
            beside weights, or weights beside judgments.
    """
    if k is not None and (weights is not None or tune is not None):
        raise RetrievalError("k belongs to reciprocal rank fusion; leave it out with weights or tuning")
    if tune is not None and weights is not None:
        raise RetrievalError("tuning finds the weights; leave them out")
    if len(runs) < 2:
        raise RetrievalError(f"{len(runs)} run was given; fusing takes two or more")
    task = runs[0].task
    rankings: list[dict[str, Ranking]] = [rankings_of(run) for run in runs]
    if task == 2:
        if visual_ids is None:
            raise RetrievalError("Task 2 fuses formulas by their look; add --visual-ids TSV")
        rankings = merge_by_visual_id(rankings, visual_ids)
    tuned = None
    if tune is not None:
        if len(runs) != 2 or task != 1:
            raise RetrievalError("tuning finds the weights of two runs of Task 1; give two")
        weights = tuned = _tuned(rankings, tune)
    fused = fusion.fuse(rankings, weights, k=60 if k is None else k)
    found = fused if task == 1 else with_posts(fused, runs)
    return Run.from_results(name, found, task=task), tuned


def _tuned(rankings: Sequence[dict[str, Ranking]], qrels: Qrels) -> tuple[float, float]:
    def score(fused: dict[str, Ranking]) -> float:
        return evaluate(Run.from_results("tuned", fused), qrels).aggregate["ndcg_prime"]

    weight = tune_weight(rankings[0], rankings[1], qrels, score)
    return weight, 1 - weight
