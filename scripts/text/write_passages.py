"""Write the passages of LaTeX papers, one a line, to pretrain an encoder on.

    mathamr text passages --papers arxiv/*.tar.gz --out passages.txt --workers 8
    mathamr text passages --papers arxiv/*.tar.gz --out passages.txt --parts introduction proof theorem lemma
    mathamr text passages --papers arxiv/*.tar.gz --out passages.txt --apart-from statements
    mathamr run +exp=text_finetuning data=pairs data.root=statements data.texts=passages.txt

A passage is a statement, a proof, or some neighbouring paragraphs of a section. ``--parts`` names beginnings of words;
a passage is written if its kind (theorem, proof) or a heading above it has one of them. ``--apart-from`` names a
collection of mathamr text pairs; passages that contain a query of its tests are left out. Equal passages are written
once. The last line of standard output is one JSON object. The ModernBERT thesis takes ``--parts introduction method
model result conclusion proof definition theorem lemma corollary``.

Exit codes: 0 written; 2 an error, with a message.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("--papers", type=Path, nargs="+", required=True, help="archives, folders or LaTeX files")
    parser.add_argument("--out", type=Path, required=True, help="text file, a passage on each line")
    parser.add_argument(
        "--parts", nargs="+", default=[], metavar="WORD", help="beginnings of words in kinds or headings"
    )
    parser.add_argument("--apart-from", type=Path, metavar="DIR", help="collection whose test queries are left out")
    parser.add_argument("--workers", type=int, default=1, help="number of reading processes")
    given = parser.parse_args(arguments)

    from mathamr.stages.console import Console
    from mathamr.stages.learning.passages import write_passages

    found = write_passages(
        given.papers, given.out, Console(), parts=given.parts, apart_from=given.apart_from, workers=given.workers
    )
    return json.dumps(asdict(found))


if __name__ == "__main__":
    sys.exit(main())
