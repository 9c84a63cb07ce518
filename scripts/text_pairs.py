"""Make a file of pairs to fine-tune a text encoder on.

    python scripts/text_pairs.py answers --data arqmath --root DIR --out pairs.jsonl        # question -> answer
    python scripts/text_pairs.py answers --data titles --root DIR --out pairs.jsonl         # title -> body
    python scripts/text_pairs.py statements --papers papers.jsonl --out pairs.jsonl         # query -> statement
    python scripts/text_pairs.py formulas --papers papers.jsonl --out pairs.jsonl           # text <-> formula
    python scripts/text_pairs.py concepts --graph graph.json --sources DIR --out pairs.jsonl    # concept -> chunk

    python scripts/text_pairs.py statements --papers papers.jsonl --collection DIR          # with tests kept apart

With ``--collection`` each makes a folder for an experiment (``data=pairs data.root=DIR``): documents to search, pairs
to learn from, and tests of which no pair tells anything; mathamr/text/benchmarks.py says which.

scripts/extract_statements.py makes ``papers.jsonl`` from LaTeX sources. ``--model NAME`` lets a language model ask for
statements; without it the paper's own words do. ``--raw`` leaves formulas as they are typed (in a collection all are:
``text.linearize`` says how they are read). ``concepts`` reads the paper P of the graph from ``DIR/P.tar.gz``,
``DIR/P.tex`` or the folder ``DIR/P``; scripts/knowledge_graph.py makes a graph.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.pairs import POSITIVES, training_pairs
from graphs.errors import Failure, MathAMRError
from graphs.stores import posts
from mathamr.stages.console import Console
from mathamr.text import benchmarks
from mathamr.text.knowledge_graph import KnowledgeGraph, chunked, read_graph
from mathamr.text.latex_source import assemble
from mathamr.text.pairs import TextPair, write_pairs
from mathamr.text.queries import ModelQueries, PaperQueries, QueryGenerator
from mathamr.text.sources import pair_sources
from mathamr.text.sources.archives import read_files
from mathamr.text.sources.papers import paper_id, read_papers
from mathamr.text.sources.plain import plain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0], epilog="The head of this file has more.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    answers = kinds.add_parser("answers", help="question -> answer of a collection; title -> body of titles")
    answers.add_argument("--data", choices=sorted(NAMES), required=True, help="the collection")
    answers.add_argument("--root", type=Path, help="its folder, where it needs one")
    answers.add_argument("--positives", choices=POSITIVES, default=POSITIVES[0], help="which answers make a pair")
    answers.add_argument("--least-score", type=int, default=1, help="votes that an answer needs")
    statements = kinds.add_parser("statements", help="query -> statement")
    statements.add_argument("--model", help="an instruction model of Hugging Face that asks; default: the papers")
    formulas = kinds.add_parser("formulas", help="text <-> formula, both directions")
    formulas.add_argument("--raw", action="store_true", help="LaTeX as typed, not linearised")
    for one in (statements, formulas):
        one.add_argument("--papers", type=Path, required=True, help="papers.jsonl of extract_statements.py")
    concepts = kinds.add_parser("concepts", help="concept -> chunk of a knowledge graph")
    concepts.add_argument("--graph", type=Path, required=True, help="JSON, see mathamr/text/knowledge_graph.py")
    concepts.add_argument("--sources", type=Path, nargs="+", required=True, help="folders of the papers' LaTeX sources")
    for one in kinds.choices.values():
        one.add_argument("--most", type=int, help="stop after so many pairs; of a collection of formulas: in its tests")
        place = one.add_mutually_exclusive_group(required=True)
        place.add_argument("--out", type=Path, help="JSON lines of pairs")
        place.add_argument("--collection", type=Path, help="folder of a collection with tests")
        one.add_argument("--seed", type=int, default=0, help="of the choice of what is tested")
    answers.add_argument("--test-share", type=float, default=0.2, help="of the questions, with their answers")
    statements.add_argument("--unseen-papers", type=int, default=15, help="papers that a collection tests as a whole")
    statements.add_argument("--test-share", type=float, default=0.1, help="of the statements, with those papers")
    formulas.add_argument("--test-share", type=float, default=0.2, help="of the pairs, in papers of their own")
    concepts.add_argument("--test-share", type=float, default=0.4, help="of the concepts, unknown in training")
    given = parser.parse_args(arguments)
    console = Console()
    lost: Counter[tuple[str, str]] = Counter()
    try:
        if given.out is None:
            with tempfile.TemporaryDirectory() as scratch:
                made = _collection(given, Path(scratch))
            benchmarks.write(made, given.collection)
            print(json.dumps(benchmarks.about(made)))
            return 0
        with console.stage("pairs", unit="pairs") as advance, tempfile.TemporaryDirectory() as scratch:

            def told() -> Iterator[TextPair]:
                for pair in islice(_without_failures(_made(given, Path(scratch)), lost), given.most):
                    yield pair
                    advance(1)

            pairs = write_pairs(given.out, told())
    except (MathAMRError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    console.failures("statements", lost)
    print(f"{len(pairs):,} pairs of {len(set(pairs.groups.tolist())):,} groups in {given.out}")
    return 0


def _made(given: argparse.Namespace, scratch: Path) -> Iterable[TextPair | Failure]:
    if given.kind == "answers":
        yield from _answers(given, scratch)
    elif given.kind == "statements":
        yield from pair_sources.of_statements(read_papers(given.papers), _asking(given))
    elif given.kind == "formulas":
        yield from pair_sources.of_formulas(_passages(given), linear=not given.raw)
    else:
        graph = read_graph(given.graph)
        yield from pair_sources.of_concepts(graph, _chunks(graph, given.sources))


def _answers(given: argparse.Namespace, scratch: Path) -> Iterator[TextPair]:
    corpus = open_corpus(given.data, given.root)
    posts.build(scratch / "posts.db", corpus.posts(), ())
    with posts.PostTexts(scratch / "posts.db") as texts:
        yield from pair_sources.of_answers(training_pairs(corpus, given.positives, given.least_score), texts)


def _collection(given: argparse.Namespace, scratch: Path) -> benchmarks.Benchmark:
    if given.kind == "answers":
        pairs = islice(_answers(given, scratch), given.most)
        return benchmarks.of_answers(pairs, test_share=given.test_share, seed=given.seed)
    if given.kind == "statements":
        options = {"test_share": given.test_share, "unseen_papers": given.unseen_papers, "seed": given.seed}
        return benchmarks.of_statements(list(read_papers(given.papers)), _asking(given), **options)
    if given.kind == "formulas":
        return benchmarks.of_passages(_passages(given), test_share=given.test_share, most=given.most, seed=given.seed)
    graph = read_graph(given.graph)
    return benchmarks.of_graph(graph, _chunks(graph, given.sources), unseen_share=given.test_share, seed=given.seed)


def _asking(given: argparse.Namespace) -> QueryGenerator:
    return PaperQueries() if given.model is None else ModelQueries(given.model)


def _passages(given: argparse.Namespace) -> Iterator[pair_sources.Passage]:
    """The statements of all papers."""
    for paper in read_papers(given.papers):
        for number, statement in enumerate(paper.statements):
            name = f"{paper.paper_id}/{number}"
            yield pair_sources.Passage(name, paper.paper_id, statement.text, paper.categories)


def _chunks(graph: KnowledgeGraph, folders: Sequence[Path]) -> dict[str, list[str]]:
    """The passages of the papers that the graph names, as far as they lie in one of the folders."""
    wanted = {paper for concept in graph.concepts for paper in concept.papers}
    papers = {
        name: path for folder in folders for path in sorted(folder.iterdir()) if (name := paper_id(path)) in wanted
    }
    return {name: chunked(plain(assemble(read_files(path)).text)) for name, path in papers.items()}


def _without_failures(made: Iterable[TextPair | Failure], lost: Counter[tuple[str, str]]) -> Iterator[TextPair]:
    for one in made:
        if isinstance(one, Failure):
            lost[one.stage, one.kind] += 1
        else:
            yield one


if __name__ == "__main__":
    sys.exit(main())
