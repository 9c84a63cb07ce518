"""Score a run file against qrels with the official ARQMath protocol, and print one JSON object.

    mathamr evaluate --task 1 --qrels qrel_task1_2020.tsv --run my_run.tsv
    {"ndcg_prime": 0.3446, "map_prime": 0.1393, "p_prime_10": 0.1623, "bpref": 0.1261, "topics": 77}

Task 2 is judged by visual id, and needs a formula TSV (or a folder or zip of them) with the columns id and visual_id;
judgments by formula id, such as those of 2020, are converted:

    mathamr evaluate --task 2 --qrels qrel_task2_2020_visual_id.tsv --run my_run.tsv \\
        --visual-ids latex_representation_v3/

``--regime mini`` scores as the experiments do on a part of a collection: qrels are restricted to searched documents,
and topics without a relevant document are dropped. ``--searched`` names the searched documents: the collection's
folder, or a file with one id per line; in Task 2 the default is the formulas of ``--visual-ids``. ``--collection`` is
another name of the option.

    mathamr evaluate --task 1 --qrels qrel_task1_2020.tsv qrel_task1_2021.tsv --run my_run.tsv \\
        --regime mini --searched arqmath-mini/

``--relevant-grade`` is the lowest relevant grade in MAP', P'@10 and Bpref. The default is 2, as in ARQMath, or 1 (with
a message) if no grade of the qrels is above 1.

Run and qrels may have CRLF line endings; the run has the official form of its task or TREC's six columns. An
unreadable file ends the program with exit code 2 and a message with file and line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of

REGIMES = ("full", "mini", "judged")


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("--task", type=int, choices=(1, 2), required=True)
    parser.add_argument("--qrels", type=Path, required=True, nargs="+", help="files of judgments")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--visual-ids", type=Path, help="Task 2: formula TSV, or a folder or zip of them")
    parser.add_argument("--regime", choices=REGIMES, default="full", help="indexed posts")
    parser.add_argument(
        "--searched", "--collection", type=Path, help="regime mini: folder of the collection, or a file of ids"
    )
    parser.add_argument("--relevant-grade", type=int, help="lowest relevant grade (2, or 1 if none is above 1)")
    given = parser.parse_args(arguments)
    if given.task == 2 and given.visual_ids is None:
        parser.error("Task 2 is judged by visual id: add --visual-ids TSV (the latex_representation TSVs)")
    if given.task == 1 and given.visual_ids is not None:
        parser.error("--visual-ids is an option of Task 2; Task 1 is judged by post id")
    if given.searched is not None and given.regime != "mini":
        parser.error(
            f"--searched is an option of --regime mini; the regime {given.regime} uses all qrels; leave it out"
        )
    if given.searched is None and given.regime == "mini" and given.task == 1:
        parser.error("--regime mini restricts the qrels: add --searched FOLDER (or a file of ids)")

    from mathamr.stages.retrieval.scoring import score_files

    scores, note = score_files(
        given.run,
        given.qrels,
        task=given.task,
        regime=given.regime,
        searched=given.searched,
        visual_ids=given.visual_ids,
        relevant_grade=given.relevant_grade,
    )
    if note:
        print(note.replace("data.relevant_grade=N", "--relevant-grade N"), file=sys.stderr)
    return json.dumps(scores)


if __name__ == "__main__":
    sys.exit(main())
