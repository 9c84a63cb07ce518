"""Search a collection by BM25, without any model, and write a run file: the baseline, and a part of fusions.

    python scripts/bm25_run.py --corpus arqmath --root /data/ARQMath --years 2020 2021 --out bm25.tsv
    python scripts/bm25_run.py ... --by formulas --formulas formulas.db --out bm25_formulas.tsv
    python scripts/bm25_run.py ... --by formulas --formulas formulas.db --task 2 --out bm25_task2.tsv

`--by text` compares words, LaTeX commands, letters and numbers; `--by formulas` pairs of symbols in the operator and
layout trees, with the edges between them. In Task 1 an answer is a document, in Task 2 every formula of the questions
and answers that looks different. Trees come from `--formulas` where they are published, else from the LaTeX.

Exit codes: 0 written; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from graphs.corpus.corpus import NAMES, Corpus, open_corpus
from graphs.errors import MathAMRError, RetrievalError
from graphs.formulas.store import FormulaStore
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run, write_run
from mathamr.retrieval.lexical import Tokens, index_answers, index_formulas
from mathamr.stages.console import Console


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--corpus", required=True, choices=sorted(NAMES))
    parser.add_argument("--root", type=Path, help="folder of the corpus")
    parser.add_argument("--task", type=int, choices=(1, 2), default=1)
    parser.add_argument("--years", type=int, nargs="*", default=[], help="of the topics, e.g. 2020 2021")
    parser.add_argument("--by", choices=("text", "formulas"), default="text")
    parser.add_argument("--formulas", type=Path, help="formulas.db: published trees, and visual ids")
    parser.add_argument("--k", type=int, default=MAX_PER_TOPIC, help="results a topic")
    parser.add_argument("--name", default="bm25", help="last column of the run")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        if not 1 <= given.k <= MAX_PER_TOPIC:
            raise RetrievalError(f"k={given.k}; a run has from 1 to {MAX_PER_TOPIC:,} results a topic")
        corpus = open_corpus(given.corpus, given.root)
        results, seconds = (_answers if given.task == 1 else _formulas)(corpus, given)
        run = Run.from_results(given.name, results, task=given.task)
        write_run(run, given.out)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{given.out}: Task {given.task}, {len(results)} topics; search {seconds:.2f} s")
    return 0


def _answers(corpus: Corpus, given: argparse.Namespace) -> tuple[dict[str, list[tuple[str, float]]], float]:
    """Task 1: answers by what they share with the whole question."""
    tokens = Tokens(given.by, given.formulas)
    with Console().stage("reading", unit="answers") as advance:
        index = index_answers(corpus.posts(), tokens, progress=advance)
    topics = corpus.topics(1, given.years)
    queries = [tokens.of_post(topic.post) for topic in topics]
    with Stopwatch() as watch:
        rankings = index.search(queries, given.k)
    return dict(zip([topic.topic_id for topic in topics], rankings, strict=True)), watch.seconds


def _formulas(corpus: Corpus, given: argparse.Namespace) -> tuple[dict[str, list[Hit]], float]:
    """Task 2: formulas, one of each look, by what they share with the query formula."""
    tokens = Tokens(given.by, given.formulas)
    store = None if given.formulas is None else FormulaStore.open(given.formulas)
    with Console().stage("reading", unit="posts") as advance:
        formulas = index_formulas(corpus.posts(), tokens, store=store, progress=advance)
    queries = {}
    for topic in corpus.topics(2, given.years):
        query = tokens.of_query_formula(topic)
        if query is None:
            lost = f"topic {topic.topic_id}: formula {topic.formula_id} is not in its post; scores 0"
            print(lost, file=sys.stderr)
        else:
            queries[topic.topic_id] = query
    with Stopwatch() as watch:
        hits = formulas.search(queries.values(), given.k)
    return dict(zip(queries, hits, strict=True)), watch.seconds


if __name__ == "__main__":
    sys.exit(main())
