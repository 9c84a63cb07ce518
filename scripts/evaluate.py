"""Score a run file against qrels with the official ARQMath protocol, and print one JSON object.

    python scripts/evaluate.py --task 1 --qrels qrel_task1_2020.tsv --run my_run.tsv
    {"ndcg_prime": 0.3446, "map_prime": 0.1393, "p_prime_10": 0.1623, "bpref": 0.1261, "topics": 77}

Task 2 is judged by visual id, and needs a formula TSV (or a folder of them) with the columns id and visual_id:

    python scripts/evaluate.py --task 2 --qrels qrel_task2_2020_visual_id.tsv --run my_run.tsv \\
        --visual-ids latex_representation_v3/

Run and qrels may have CRLF line ends; the run has the official form of its task or TREC's six columns. A file that
cannot be read ends the program with exit code 2 and a message that names file and line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from graphs.errors import MathAMRError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import read_qrels, read_run, read_visual_ids

PRINTED = ("ndcg_prime", "map_prime", "p_prime_10", "bpref")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--task", type=int, choices=(1, 2), required=True)
    parser.add_argument("--qrels", type=Path, required=True, nargs="+", help="one or more files")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--visual-ids", type=Path, help="Task 2: formula TSV, or a folder of them")
    given = parser.parse_args(arguments)
    if given.task == 2 and given.visual_ids is None:
        parser.error("Task 2 is judged by visual id: add --visual-ids TSV (the latex_representation TSVs)")
    if given.task == 1 and given.visual_ids is not None:
        parser.error("--visual-ids belongs to Task 2; Task 1 is judged by post id")
    try:
        qrels = read_qrels(*given.qrels)
        run = read_run(given.run, task=given.task)
        visual_ids = None
        if given.visual_ids is not None:
            wanted = {hit.doc_id for hits in run.rankings.values() for hit in hits}
            visual_ids = read_visual_ids(given.visual_ids, wanted)
        result = evaluate(run, qrels, visual_ids=visual_ids)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps({name: result.aggregate[name] for name in PRINTED} | {"topics": result.topics}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
