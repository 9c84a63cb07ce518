"""Theorems, lemmas, definitions, propositions and corollaries of LaTeX papers, as one JSON object a paper.

    python scripts/extract_statements.py --papers arxiv/*.tar.gz --out papers.jsonl --workers 8
    python scripts/extract_statements.py --papers my_thesis/ notes.tex --out papers.jsonl

A paper is an archive (``.tar.gz``, ``.gz``, ``.tar``), a folder or a file. ``--categories`` is a TSV of paper ids and
subject categories (``2501.00001<TAB>math.CO math.RT``). Archives are read in memory, never unpacked to disk; hostile
ones are refused. Progress goes to standard error, with the papers that failed and how many statements were dropped; the
last line of standard output is one JSON object. The same command goes on where an interrupted run stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from graphs.errors import CorpusError, MathAMRError
from mathamr.stages.console import Console
from mathamr.text.sources.papers import extract
from mathamr.text.statements import MAX_CHARACTERS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--papers", type=Path, nargs="+", required=True, help="archives, folders or LaTeX files")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines; begun, or gone on with")
    parser.add_argument("--categories", type=Path, metavar="TSV", help="paper id and categories, separated by a tab")
    parser.add_argument("--max-characters", type=int, default=MAX_CHARACTERS, help="longer statements are dropped")
    parser.add_argument("--workers", type=int, default=1, help="processes that read papers")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        with console.stage("papers", total=len(given.papers), unit="papers") as advance:
            summary = extract(
                given.papers,
                given.out,
                categories={} if given.categories is None else read_categories(given.categories),
                max_characters=given.max_characters,
                workers=given.workers,
                progress=advance,
            )
    except (MathAMRError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        console.say(f"stopped; what is done is kept in {given.out}, the same command goes on from there")
        return 130
    for reason, count in sorted(summary.dropped.items()):
        console.say(f"  {count:,} statements dropped: {reason}")
    for failure in summary.failures[:10]:
        console.say(f"  {failure.message}")
    facts = {"papers": summary.papers, "failed": len(summary.failures), "statements": summary.kinds.total()}
    print(json.dumps({**facts, **dict(sorted(summary.kinds.items())), "dropped": dict(summary.dropped)}))
    return 0


def read_categories(path: Path) -> dict[str, list[str]]:
    """Categories by paper id.

    Raises:
        CorpusError: naming the line that has no tab.
    """
    categories = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            paper, tab, rest = line.rstrip("\n").partition("\t")
            if not tab:
                raise CorpusError("has no tab; a line is a paper id, a tab, and categories", path=path, line=number)
            categories[paper] = rest.replace(",", " ").split()
    return categories


if __name__ == "__main__":
    sys.exit(main())
