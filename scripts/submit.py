"""Write the submission files of an experiment's job, or check the counts, ranks, scores, ids and run names of files.

    mathamr submit outputs/arqmath3_benchmark --team MyLab --run plus --out submission
    mathamr submit outputs/arqmath3_benchmark --team MyLab --run second --out submission --alternate \\
        --job mathamr_plus-seed43
    mathamr submit --check submission/*.tsv --corpus arqmath --root /data/ARQMath --years 2022
    mathamr submit --check my_run.tsv --qrels qrel_task1_2021.tsv

An experiment gives ``MyLab-task1-plus-auto-both-P.tsv`` and, if it has Task 2, ``MyLab-task2-plus-...``. Without
``--job``, the finished job with the best ranking of held-out *training* pairs (``best_val_mrr``) is taken; this choice
uses no topic. Systems that train nothing rank no such pairs: ``--job`` names their jobs. ``--root`` is the present
folder of the experiment's collection, if it has moved.

``--check`` takes any file; ``--corpus`` names the collection in which topics and ids are looked up. ``--qrels`` prints
the official scores; Task 2 also needs ``--visual-ids``, a formula TSV or a folder of them. A valid submission is
stricter than a run file: mathamr evaluate reads more forms.

Exit codes: 0 all files are valid; 1 a file has problems, listed as FILE:LINE; 2 an error, with a message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    parser.add_argument("experiment", type=Path, nargs="?", help="folder outputs/EXP")
    parser.add_argument("--job", default="best", help="CONDITION-seedN; best: by the held-out training pairs")
    parser.add_argument("--team", help="team, the first part of file names")
    parser.add_argument("--run", help="name of the run, in file names and the last column")
    parser.add_argument("--alternate", action="store_true", help="an alternate run (A), not the primary one (P)")
    parser.add_argument("--out", type=Path, help="folder of the files")
    parser.add_argument("--check", type=Path, nargs="+", metavar="FILE", help="check these files")
    parser.add_argument(
        "--task", type=int, choices=(1, 2), help="task of the checked files; default: the one that fits their columns"
    )
    add_corpus(parser, required=False)
    parser.add_argument("--years", type=int, nargs="*", default=[], help="years of the topics, e.g. 2022")
    parser.add_argument("--qrels", type=Path, nargs="+", default=[], help="judgments for scores")
    parser.add_argument("--visual-ids", type=Path, help="scores of Task 2: formula TSV, or a folder or zip of them")
    parser.add_argument("--json", action="store_true", help="one JSON object: files, problems, scores")
    given = parser.parse_args(arguments)
    if (given.experiment is None) == (given.check is None):
        parser.error("name the folder of an experiment, or files with --check")
    if given.experiment is not None and not (given.team and given.run and given.out):
        parser.error("an experiment's files need --team, --run and --out")
    if given.experiment is not None and (given.corpus or given.id or given.years or given.task):
        parser.error("--corpus, --id, --years and --task belong to --check; an experiment knows its own")
    if given.check is not None and not given.corpus and (given.root or given.id or given.years):
        parser.error("--root, --id and --years choose topics and ids of --corpus NAME; add it, or leave them out")

    from experiments.submissions import Collection, check, write_submission
    from mathamr.evaluation.runs import read_qrels
    from mathamr.evaluation.submission import task_of

    collection: Collection | None = None
    job = None
    if given.check is not None:
        if given.corpus:
            collection = Collection(corpus_of(given), given.years)
        files = {path: given.task or task_of(path) for path in given.check}
    else:
        written = write_submission(
            given.experiment, given.job, given.team, given.run, given.out, alternate=given.alternate, root=given.root
        )
        files, collection, job = written.files, written.collection, written.job
        if not given.json:
            print(written.about)
    qrels = {path: read_qrels(path) for path in given.qrels}
    reports = [check(path, task, collection, qrels, given.visual_ids) for path, task in files.items()]
    if given.json:
        print(json.dumps({"job": job, "files": [report.content() for report in reports]}))
    else:
        print("\n".join(line for report in reports for line in report.lines()))
    return int(any(report.problems for report in reports))


if __name__ == "__main__":
    sys.exit(main())
