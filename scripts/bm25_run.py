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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from experiments.progress import Console
from graphs.corpus.corpus import NAMES, Corpus, open_corpus
from graphs.corpus.placeholders import extract
from graphs.corpus.post import FormulaRef, Post
from graphs.errors import MathAMRError, RetrievalError
from graphs.formulas.store import FormulaStore
from graphs.graph_maker import FormulaTrees
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Run, write_run
from mathamr.retrieval.bm25 import BM25Index, tokens_of_formula, tokens_of_latex, tokens_of_post


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
    tokens: Callable[[Post], list[str]] = tokens_of_post
    if given.by == "formulas":
        trees = FormulaTrees(given.formulas)

        def tokens(post: Post) -> list[str]:
            return [token for formula in trees.of(extract(post).formulas) for token in tokens_of_formula(formula)]

    post_ids, documents = [], []
    with Console().stage("reading", unit="answers") as advance:
        for post in _posts(corpus):
            if post.kind == "answer":
                post_ids.append(post.post_id)
                documents.append(tokens(post))
                advance(1)
    index = BM25Index.build(post_ids, documents)
    topics = corpus.topics(1, given.years)
    queries = [tokens(topic.post) for topic in topics]
    with Stopwatch() as watch:
        rankings = index.search(queries, given.k)
    return dict(zip([topic.topic_id for topic in topics], rankings, strict=True)), watch.seconds


def _formulas(corpus: Corpus, given: argparse.Namespace) -> tuple[dict[str, list[Hit]], float]:
    """Task 2: formulas, one of each look, by what they share with the query formula."""
    trees = FormulaTrees(given.formulas)

    def tokens(formulas: Sequence[FormulaRef]) -> Iterator[list[str]]:
        if given.by == "text":
            return (tokens_of_latex(formula.latex) for formula in formulas)
        return (list(tokens_of_formula(parsed)) for parsed in trees.of(formulas))

    store = None if given.formulas is None else FormulaStore.open(given.formulas)
    post_of: dict[str, str] = {}  # the formulas that stand for their look, and where they are
    documents, looks = [], set()
    with Console().stage("reading", unit="posts") as advance:
        for post in _posts(corpus):
            formulas = extract(post).formulas
            visual_ids = {} if store is None else store.visual_ids(formula.formula_id for formula in formulas)
            for formula, document in zip(formulas, tokens(formulas), strict=True):
                look = visual_ids.get(formula.formula_id, f"formula {formula.formula_id}")
                if look not in looks and formula.formula_id not in post_of:
                    looks.add(look)
                    post_of[formula.formula_id] = post.post_id
                    documents.append(document)
            advance(1)
    index = BM25Index.build(list(post_of), documents)
    topics, queries = [], []
    for topic in corpus.topics(2, given.years):
        formulas = extract(topic.post).formulas
        for formula, query in zip(formulas, tokens(formulas), strict=True):
            if formula.formula_id == topic.formula_id:
                topics.append(topic.topic_id)
                queries.append(query)
                break
        else:
            print(f"topic {topic.topic_id}: formula {topic.formula_id} is not in its post; scores 0", file=sys.stderr)
    with Stopwatch() as watch:
        rankings = index.search(queries, given.k)
    hits = [[Hit(name, score, post_of[name]) for name, score in ranking] for ranking in rankings]
    return dict(zip(topics, hits, strict=True)), watch.seconds


def _posts(corpus: Corpus) -> Iterator[Post]:
    return (post for post in corpus.posts() if isinstance(post, Post))


if __name__ == "__main__":
    sys.exit(main())
