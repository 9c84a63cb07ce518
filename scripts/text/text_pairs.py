"""Make a file of pairs for fine-tuning a text encoder.

    mathamr text pairs answers --corpus arqmath --root DIR --out pairs.jsonl        # question -> answer
    mathamr text pairs answers --corpus titles --root DIR --out pairs.jsonl         # title -> body
    mathamr text pairs statements --papers papers.jsonl --out pairs.jsonl         # query -> statement
    mathamr text pairs formulas --papers papers.jsonl --out pairs.jsonl           # text <-> formula
    mathamr text pairs concepts --graph graph.json --sources DIR --out pairs.jsonl    # concept -> chunk

    mathamr text pairs statements --papers papers.jsonl --benchmark DIR          # with separate tests

With ``--benchmark`` each command makes a folder for an experiment (``data=pairs data.root=DIR``):
documents, training pairs, and tests that share nothing with the pairs; see mathamr/text/benchmarks.py.

mathamr text statements makes ``papers.jsonl`` from LaTeX sources. With ``--model NAME`` a language model writes the
queries for statements; otherwise they are the paper's own words. The model runs in this process (a name of Hugging
Face, a folder, or a GGUF file), or on an OpenAI-compatible ``--server``, whose key is in OPENAI_API_KEY. Each answer is
saved at once in ``--answers``, and the same command asks only for missing answers. ``--estimate`` sends no requests and
prints their number and size.

``--raw`` leaves formulas as typed. Collections always do; there ``text.linearize`` selects the form. ``concepts`` reads
the paper P of the graph from ``DIR/P.tar.gz``, ``DIR/P.tex`` or the folder ``DIR/P``; mathamr text concepts makes the
graph.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import add_corpus, add_model, check_needs, corpus_of, model_of, parser_of
from graphs.counts import counted

if TYPE_CHECKING:
    from mathamr.stages.learning.text_pairs import PairSource

POSITIVES = ("accepted", "answers", "duplicates", "all", "related")


@command
def main(arguments: Sequence[str] | None = None) -> str:
    given = _parser().parse_args(arguments)

    from mathamr.stages.console import Console
    from mathamr.stages.learning.text_pairs import (
        BenchmarkChoice,
        StatementPairs,
        write_pair_collection,
        write_pair_file,
    )

    source, console = _source(given), Console()
    if getattr(given, "estimate", False):
        assert isinstance(source, StatementPairs)
        return source.estimate().described(given.prices)
    if given.out is None:
        choice = BenchmarkChoice(
            given.test_share,
            unseen_papers=getattr(given, "unseen_papers", 0),
            unseen_since=getattr(given, "unseen_since", None),
            most=given.most,
            seed=given.seed,
        )
        return json.dumps(write_pair_collection(source, given.benchmark, choice, console))
    pairs = write_pair_file(source, given.out, console, given.most)
    return f"{counted(len(pairs), 'pair')} of {counted(len(set(pairs.groups.tolist())), 'group')} in {given.out}"


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    answers = kinds.add_parser("answers", help="question -> answer of a collection; title -> body of titles")
    add_corpus(answers)
    answers.add_argument("--positives", choices=POSITIVES, default=POSITIVES[0], help="answers that make a pair")
    answers.add_argument("--least-score", type=int, default=1, help="lowest score of an answer")
    statements = kinds.add_parser("statements", help="query -> statement")
    add_model(statements, "writes queries")
    statements.add_argument("--questions", help="further test: file of written questions, or latex-books")
    formulas = kinds.add_parser("formulas", help="text <-> formula, both directions")
    formulas.add_argument("--raw", action="store_true", help="LaTeX as typed, not linearised")
    for one in (statements, formulas):
        one.add_argument("--papers", type=Path, required=True, help="papers.jsonl of mathamr text statements")
    concepts = kinds.add_parser("concepts", help="concept -> chunk of a knowledge graph")
    concepts.add_argument("--graph", type=Path, required=True, help="JSON, see mathamr/text/knowledge_graph.py")
    concepts.add_argument("--sources", type=Path, nargs="+", required=True, help="folders of the papers' LaTeX sources")
    for one in kinds.choices.values():
        one.add_argument("--most", type=int, help="largest number of pairs; for a collection of formulas: in its tests")
        place = one.add_mutually_exclusive_group(required=True)
        place.add_argument("--out", type=Path, help="JSON lines of pairs")
        place.add_argument("--benchmark", type=Path, help="folder of a collection with tests")
        one.add_argument("--seed", type=int, default=0, help="seed of the choice of tests")
    unseen = statements.add_mutually_exclusive_group()
    unseen.add_argument("--unseen-papers", type=int, default=15, help="number of papers kept for tests only")
    unseen.add_argument(
        "--unseen-since", type=_day, metavar="YYYY-MM-DD", help="day from which on papers are kept for tests only"
    )
    for one, share, of in (
        (answers, 0.2, "the questions for tests, with their answers"),
        (statements, 0.1, "the statements for tests, with those papers"),
        (formulas, 0.2, "the pairs for tests, from separate papers"),
        (concepts, 0.4, "the concepts for tests, not in training"),
    ):
        one.add_argument("--test-share", type=float, default=share, help=f"share of {of}")
    return parser


def _day(written: str) -> str:
    """Return a day; argparse refuses other words."""
    return date.fromisoformat(written).isoformat()


def _source(given: argparse.Namespace) -> PairSource:
    from mathamr.stages.learning.text_pairs import AnswerPairs, ConceptPairs, FormulaPairs, StatementPairs

    if given.kind == "answers":
        return AnswerPairs(corpus_of(given), given.positives, given.least_score)
    if given.kind == "statements":
        check_needs(given, {"questions": "benchmark", "unseen_since": "benchmark"})
        return StatementPairs(given.papers, model_of(given), given.answers, given.questions)
    if given.kind == "formulas":
        return FormulaPairs(given.papers, given.raw)
    return ConceptPairs(given.graph, given.sources)


if __name__ == "__main__":
    sys.exit(main())
