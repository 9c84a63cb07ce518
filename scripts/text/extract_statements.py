"""Extract theorems, lemmas, definitions, propositions and corollaries of LaTeX papers, one JSON object a paper.

    mathamr text statements --papers arxiv/*.tar.gz --out papers.jsonl --workers 8
    mathamr text statements --papers my_thesis/ notes.tex --out papers.jsonl

A paper is an archive (``.tar.gz``, ``.gz``, ``.tar``), a folder or a file. ``--metadata`` gives papers of arXiv their
titles, categories and dates: responses of arXiv's OAI-PMH server (arXivRaw or arXiv), the JSON lines of Kaggle's data
set, or lines of an id, a tab and categories (``2501.00001<TAB>math.CO math.RT``).

Archives are read in memory, never unpacked to disk; hostile ones are refused. Progress goes to standard error, with
failed papers and the number of dropped statements; the last line of standard output is one JSON object. The same
command resumes an interrupted run.

Exit codes: 0 extracted; 1 every paper failed; 2 an error, with a message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--papers", type=Path, nargs="+", required=True, help="archives, folders or LaTeX files")
    parser.add_argument("--out", type=Path, required=True, help="JSON lines (resumed if the file exists)")
    parser.add_argument(
        "--metadata", type=Path, nargs="+", default=[], help="metadata of arXiv: XML, JSON lines or TSV"
    )
    parser.add_argument("--max-characters", type=int, help="largest length of a statement; longer ones are dropped")
    parser.add_argument("--workers", type=int, default=1, help="number of reading processes")
    given = parser.parse_args(arguments)

    from mathamr.stages.console import Console
    from mathamr.text.sources.arxiv import read_metadata
    from mathamr.text.sources.papers import extract, paper_id
    from mathamr.text.statements import MAX_CHARACTERS

    console = Console()
    metadata = read_metadata(given.metadata, {paper_id(path) for path in given.papers})
    if given.metadata:
        console.say(f"  metadata of {len(metadata):,} papers")
    if given.metadata and not metadata:
        console.say("  warning: --metadata has no record of any paper; name the files by their ids on arXiv")
    with console.stage("papers", total=len(given.papers), unit="papers") as advance:
        summary = extract(
            given.papers,
            given.out,
            metadata=metadata,
            max_characters=given.max_characters or MAX_CHARACTERS,
            workers=given.workers,
            progress=advance,
        )
    for reason, count in sorted(summary.dropped.items()):
        console.say(f"  {count:,} statements dropped: {reason}")
    for failure in summary.failures[:10]:
        console.say(f"  {failure.message}")
    facts = {"papers": summary.papers, "failed": len(summary.failures), "statements": summary.kinds.total()}
    print(json.dumps({**facts, **dict(sorted(summary.kinds.items())), "dropped": dict(summary.dropped)}))
    return 1 if len(summary.failures) == len(given.papers) else 0


if __name__ == "__main__":
    sys.exit(main())
