"""Make a file of pairs to fine-tune a text encoder on.

    python scripts/text_pairs.py answers --data arqmath --root DIR --out pairs.jsonl        # question -> answer
    python scripts/text_pairs.py answers --data titles --root DIR --out pairs.jsonl         # title -> body
    python scripts/text_pairs.py statements --papers papers.jsonl --out pairs.jsonl         # query -> statement
    python scripts/text_pairs.py formulas --papers papers.jsonl --out pairs.jsonl           # text <-> formula
    python scripts/text_pairs.py concepts --graph graph.json --sources DIR --out pairs.jsonl    # concept -> chunk

scripts/extract_statements.py makes ``papers.jsonl`` from LaTeX sources. ``--model NAME`` lets a language model ask for
statements; without it the paper's own words do. ``--raw`` leaves formulas as they are typed. ``concepts`` reads the
paper P of the graph from ``DIR/P.tar.gz``, ``DIR/P.tex`` or the folder ``DIR/P``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from experiments.progress import Console
from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.pairs import POSITIVES, training_pairs
from graphs.errors import Failure, MathAMRError
from mathamr.retrieval import posts
from mathamr.text import pair_sources
from mathamr.text.archives import read_files
from mathamr.text.knowledge_graph import chunked, read_graph
from mathamr.text.latex_source import assemble
from mathamr.text.pairs import TextPair, write_pairs
from mathamr.text.papers import paper_id, read_papers
from mathamr.text.plain import plain
from mathamr.text.queries import ModelQueries, PaperQueries, QueryGenerator


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
    concepts.add_argument("--sources", type=Path, required=True, help="folder of the papers' LaTeX sources")
    for one in kinds.choices.values():
        one.add_argument("--most", type=int, help="stop after so many pairs")
        one.add_argument("--out", type=Path, required=True, help="JSON lines of pairs")
    given = parser.parse_args(arguments)
    console = Console()
    lost: Counter[tuple[str, str]] = Counter()
    try:
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
        corpus = open_corpus(given.data, given.root)
        posts.build(scratch / "posts.db", corpus.posts(), ())
        with posts.PostTexts(scratch / "posts.db") as texts:
            yield from pair_sources.of_answers(training_pairs(corpus, given.positives, given.least_score), texts)
    elif given.kind == "statements":
        generator: QueryGenerator = PaperQueries() if given.model is None else ModelQueries(given.model)
        yield from pair_sources.of_statements(read_papers(given.papers), generator)
    elif given.kind == "formulas":
        passages = (
            pair_sources.Passage(f"{paper.paper_id}/{number}", paper.paper_id, statement.text, paper.categories)
            for paper in read_papers(given.papers)
            for number, statement in enumerate(paper.statements)
        )
        yield from pair_sources.of_formulas(passages, linear=not given.raw)
    else:
        papers = {paper_id(path): path for path in sorted(given.sources.iterdir())}
        chunks = {name: chunked(plain(assemble(read_files(path)).text)) for name, path in papers.items()}
        yield from pair_sources.of_concepts(read_graph(given.graph), chunks)


def _without_failures(made: Iterable[TextPair | Failure], lost: Counter[tuple[str, str]]) -> Iterator[TextPair]:
    for one in made:
        if isinstance(one, Failure):
            lost[one.stage, one.kind] += 1
        else:
            yield one


if __name__ == "__main__":
    sys.exit(main())
