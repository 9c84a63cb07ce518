"""Fuse run files of one task, by ranks (RRF) or by scores, and write the result as a run file.

    python scripts/fuse_runs.py --task 1 bm25.tsv graph.tsv --out rrf.tsv
    python scripts/fuse_runs.py --task 1 bm25.tsv graph.tsv --weights 0.3 0.7 --out mixed.tsv
    python scripts/fuse_runs.py --task 1 bm25.tsv graph.tsv --tune qrel_task1_2020.tsv --out mixed.tsv
    python scripts/fuse_runs.py --task 2 bm25.tsv graph.tsv --visual-ids latex_representation_v3/ --out rrf.tsv

Without weights: reciprocal rank fusion, k = 60. With `--weights`: the weighted mean of the scores, each run's scaled to
0 ... 1 in each topic. `--tune` finds the weights of two runs of Task 1 that score the highest nDCG' on the topics of
these qrels: report the result on other topics only. In Task 2, formulas that look alike (`--visual-ids`) are one.

Exit codes: 0 written; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from graphs.errors import MathAMRError, RetrievalError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Hit, Run, read_qrels, read_run, read_visual_ids, write_run
from mathamr.retrieval.fusion import interpolate, one_a_look, rankings_of, reciprocal_rank_fusion, tune_weight
from mathamr.retrieval.index import Ranking


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run files, two or more")
    parser.add_argument("--task", type=int, choices=(1, 2), required=True)
    parser.add_argument("--k", type=int, help="of reciprocal rank fusion; 60")
    parser.add_argument("--weights", type=float, nargs="+", help="one a run")
    parser.add_argument("--tune", type=Path, nargs="+", help="qrels of the topics to find the weights of two runs with")
    parser.add_argument("--visual-ids", type=Path, help="Task 2: formula TSV, or a folder of them")
    parser.add_argument("--name", default="fused", help="last column of the run")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        runs = [read_run(path, task=given.task) for path in given.runs]
        write_run(_fused(runs, given), given.out)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _fused(runs: Sequence[Run], given: argparse.Namespace) -> Run:
    if len(runs) < 2:
        raise RetrievalError(f"{len(runs)} run was given; fusing takes two or more")
    rankings = [rankings_of(run) for run in runs]
    if given.task == 2:
        if given.visual_ids is None:
            raise RetrievalError("Task 2 fuses formulas by their look; add --visual-ids TSV")
        names = {name for run in rankings for ranking in run.values() for name, _ in ranking}
        rankings = one_a_look(rankings, read_visual_ids(given.visual_ids, names))
    weights = given.weights
    if given.k is not None and (weights is not None or given.tune is not None):
        raise RetrievalError(
            "--k is of reciprocal rank fusion, which --weights and --tune take the place of; leave it out"
        )
    if given.tune is not None:
        if len(runs) != 2 or given.task != 1 or weights is not None:
            raise RetrievalError("--tune finds the weights of two runs of Task 1; leave --weights out")
        qrels = read_qrels(*given.tune)

        def score(fused: dict[str, Ranking]) -> float:
            return evaluate(Run.from_results("tuned", fused), qrels).aggregate["ndcg_prime"]

        weight = tune_weight(rankings[0], rankings[1], qrels, score)
        weights = [weight, 1 - weight]
        print(f"weights {weight:.2f} and {1 - weight:.2f}, tuned on {len(qrels)} topics: report on others")
    fused = (
        reciprocal_rank_fusion(rankings, k=60 if given.k is None else given.k)
        if weights is None
        else interpolate(rankings, weights)
    )
    if given.task == 1:
        return Run.from_results(given.name, fused)
    place = {hit.doc_id: hit.post_id for run in runs for hits in run.rankings.values() for hit in hits}
    found = {topic: [Hit(name, value, place[name]) for name, value in ranking] for topic, ranking in fused.items()}
    return Run.from_results(given.name, found, task=2)


if __name__ == "__main__":
    sys.exit(main())
