"""Score a run file against qrels with the official ARQMath protocol, and print one JSON object.

    python scripts/evaluate.py --task 1 --qrels qrel_task1_2020.tsv --run my_run.tsv
    {"ndcg_prime": 0.3446, "map_prime": 0.1393, "p_prime_10": 0.1623, "bpref": 0.1261, "topics": 77}

Task 2 is judged by visual id, and needs a formula TSV (or a folder of them) with the columns id and visual_id:

    python scripts/evaluate.py --task 2 --qrels qrel_task2_2020_visual_id.tsv --run my_run.tsv \\
        --visual-ids latex_representation_v3/

``--regime mini`` scores as the experiments do on a part of a collection: the qrels are restricted to what is there, and
topics without a relevant document are dropped. ``--collection`` says what is there: the collection's folder, or a file
of ids, one a line; in Task 2 it is the formulas of ``--visual-ids`` unless a file of visual ids is given.

    python scripts/evaluate.py --task 1 --qrels qrel_task1_2020.tsv qrel_task1_2021.tsv --run my_run.tsv \\
        --regime mini --collection arqmath-mini/

``--relevant-grade`` is the lowest grade that counts as relevant in MAP', P'@10 and Bpref: 2, as in ARQMath; where no
grade of the qrels is above 1, it is 1, and a line says so.

Run and qrels may have CRLF line ends; the run has the official form of its task or TREC's six columns. A file that
cannot be read ends the program with exit code 2 and a message that names file and line.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Post
from graphs.errors import EvaluationError, MathAMRError
from mathamr.evaluation.metrics import Regime, evaluate, relevant_grade
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
    parser.add_argument("--regime", choices=get_args(Regime), default="full", help="what was indexed")
    parser.add_argument("--collection", type=Path, help="regime mini: folder of the collection, or a file of ids")
    parser.add_argument("--relevant-grade", type=int, help="lowest relevant grade (2, or 1 if none is above 1)")
    given = parser.parse_args(arguments)
    if given.task == 2 and given.visual_ids is None:
        parser.error("Task 2 is judged by visual id: add --visual-ids TSV (the latex_representation TSVs)")
    if given.task == 1 and given.visual_ids is not None:
        parser.error("--visual-ids belongs to Task 2; Task 1 is judged by post id")
    if given.collection is not None and given.regime != "mini":
        parser.error(f"--collection belongs to --regime mini; {given.regime} takes the qrels as they are")
    if given.collection is None and given.regime == "mini" and given.task == 1:
        parser.error("--regime mini restricts the qrels: add --collection FOLDER (or a file of ids)")
    try:
        qrels = read_qrels(*given.qrels)
        run = read_run(given.run, task=given.task)
        visual_ids = None
        if given.visual_ids is not None:
            # The regime mini asks for all formulas of the collection, the others for those of the run.
            wanted = {hit.doc_id for hits in run.rankings.values() for hit in hits} if given.regime != "mini" else None
            visual_ids = read_visual_ids(given.visual_ids, wanted)
        collection = None
        if given.collection is not None:
            collection = _ids(given.collection, given.task)
        elif given.regime == "mini" and visual_ids is not None:
            collection = set(visual_ids.values())
        judgments = (Judgment(topic, doc, grade) for topic, docs in qrels.items() for doc, grade in docs.items())
        relevant, derived = relevant_grade(judgments, given.relevant_grade)
        if derived:
            print(derived.replace("data.relevant_grade=N", "--relevant-grade N"), file=sys.stderr)
        result = evaluate(
            run, qrels, regime=given.regime, collection=collection, visual_ids=visual_ids, relevant=relevant
        )
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps({name: result.aggregate[name] for name in PRINTED} | {"topics": result.topics}))
    return 0


def _ids(path: Path, task: int) -> set[str]:
    """The posts of a collection's folder, or the ids that a file lists."""
    if path.is_dir():
        if task == 2:
            raise EvaluationError("a folder has posts; Task 2 takes a file of visual ids, or none", path=path)
        name = "beir" if any(path.glob("corpus.jsonl*")) else "jsonl" if any(path.glob("*.jsonl*")) else "arqmath"
        corpus = open_corpus(name, path)
        return {post.post_id for post in corpus.posts() if isinstance(post, Post)}
    try:
        return set(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"cannot be read as a list of ids: {error}", path=path) from error


if __name__ == "__main__":
    sys.exit(main())
