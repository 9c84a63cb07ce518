"""Make a knowledge graph of papers: of the terms and names that they define, or by a language model.

    mathamr text concepts --papers papers.jsonl --out graph.json                     # without a model
    mathamr text concepts --sources DIR --model NAME --server URL --out graph.json   # with one

mathamr text statements makes ``papers.jsonl`` from LaTeX sources; mathamr text pairs makes pairs, or a collection with
tests, from the graph. mathamr/text/concepts.py defines concepts and edges.

A model reads the first and last passages of each paper in the folders ``--sources``, and answers with concepts and
typed edges (mathamr/text/asking/graphs.py). Each answer is saved at once in ``--answers``, by default
``graph.answers.jsonl`` beside the graph, and the same command asks only for missing answers. ``--estimate`` sends no
requests and prints their number and size.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import add_model, model_of, parser_of
from graphs.errors import ConfigError, CorpusError


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--papers", type=Path, help="papers.jsonl of mathamr text statements")
    source.add_argument("--sources", type=Path, nargs="+", help="folders of LaTeX sources, for a model")
    parser.add_argument("--least-papers", type=int, help="fewest papers of a concept; default: 2, or 1 with a model")
    parser.add_argument("--out", type=Path, required=True, help="JSON, see mathamr/text/knowledge_graph.py")
    add_model(parser, "names concepts")
    given = parser.parse_args(arguments)

    from graphs.whole_file import write_whole
    from mathamr.stages.console import Console
    from mathamr.stages.learning.text_pairs import estimate_of_graph, graph_by_model
    from mathamr.text.asking.answers import KeptAnswers
    from mathamr.text.asking.graphs import MAX_TOKENS
    from mathamr.text.concepts import graph_of
    from mathamr.text.knowledge_graph import MIN_DEGREE, to_json
    from mathamr.text.sources.papers import read_papers

    model = model_of(given, max_tokens=MAX_TOKENS)
    if (model is None) != (given.sources is None):
        raise ConfigError("a model reads --sources, and --papers are read without a model; give --model with --sources")
    least = given.least_papers or (MIN_DEGREE if model is None else 1)
    if model is None:
        graph = graph_of(read_papers(given.papers), least_papers=least)
    else:
        answers = KeptAnswers(given.answers or given.out.with_suffix(".answers.jsonl"))
        if given.estimate:
            return estimate_of_graph(given.sources, model, answers).described(given.prices)
        graph = graph_by_model(given.sources, model, answers, least, Console())
    if not graph.concepts:
        fewer = "--least-papers 1" if least > 1 else "papers with definitions and named theorems"
        raise CorpusError(f"no concept occurs in {least} paper{'s' * (least > 1)} or more; use more papers, or {fewer}")
    write_whole(given.out, to_json(graph))
    papers = {paper for concept in graph.concepts for paper in concept.papers}
    counts = Counter(edge.relation for edge in graph.edges)
    kinds = ", ".join(f"{relation}: {count:,}" for relation, count in counts.most_common())
    return f"{len(graph.concepts):,} concepts of {len(papers):,} papers, {len(graph.edges):,} edges in {given.out}" + (
        f" ({kinds})" if kinds else ""
    )


if __name__ == "__main__":
    sys.exit(main())
