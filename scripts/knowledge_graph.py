"""Make a knowledge graph of what papers define and call by a name, without a language model.

    python scripts/knowledge_graph.py --papers papers.jsonl --out graph.json

scripts/extract_statements.py makes ``papers.jsonl`` from LaTeX sources; scripts/text_pairs.py makes pairs, or a
collection with tests, of the graph. What its concepts and edges are: mathamr/text/concepts.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from graphs.errors import MathAMRError
from graphs.whole_file import write_whole
from mathamr.text.concepts import graph_of
from mathamr.text.knowledge_graph import MIN_DEGREE, to_json
from mathamr.text.sources.papers import read_papers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--papers", type=Path, required=True, help="papers.jsonl of extract_statements.py")
    parser.add_argument("--least-papers", type=int, default=MIN_DEGREE, help="papers that a concept has to be found in")
    parser.add_argument("--out", type=Path, required=True, help="JSON, see mathamr/text/knowledge_graph.py")
    given = parser.parse_args(arguments)
    try:
        graph = graph_of(read_papers(given.papers), least_papers=given.least_papers)
        write_whole(given.out, to_json(graph))
    except (MathAMRError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    papers = {paper for concept in graph.concepts for paper in concept.papers}
    print(f"{len(graph.concepts):,} concepts of {len(papers):,} papers, {len(graph.edges):,} edges in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
