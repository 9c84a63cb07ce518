"""Make a knowledge graph of the terms and names that papers define, without a language model.

    mathamr text concepts --papers papers.jsonl --out graph.json

mathamr text statements makes ``papers.jsonl`` from LaTeX sources; mathamr text pairs makes pairs, or a collection with
tests, from the graph. mathamr/text/concepts.py defines concepts and edges.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    """Run the command; return the exit code."""
    parser = parser_of(__doc__)
    parser.add_argument("--papers", type=Path, required=True, help="papers.jsonl of mathamr text statements")
    parser.add_argument("--least-papers", type=int, help="fewest papers of a concept")
    parser.add_argument("--out", type=Path, required=True, help="JSON, see mathamr/text/knowledge_graph.py")
    given = parser.parse_args(arguments)

    from graphs.whole_file import write_whole
    from mathamr.text.concepts import graph_of
    from mathamr.text.knowledge_graph import MIN_DEGREE, to_json
    from mathamr.text.sources.papers import read_papers

    graph = graph_of(read_papers(given.papers), least_papers=given.least_papers or MIN_DEGREE)
    write_whole(given.out, to_json(graph))
    papers = {paper for concept in graph.concepts for paper in concept.papers}
    return f"{len(graph.concepts):,} concepts of {len(papers):,} papers, {len(graph.edges):,} edges in {given.out}"


if __name__ == "__main__":
    sys.exit(main())
