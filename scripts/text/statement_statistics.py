"""Print statistics of statements: split, distribution over papers, and tokens of several encoders.

    mathamr text statistics --papers papers.jsonl
    mathamr text statistics --papers papers.jsonl --encoders minilm models/all-mpnet-base-v2 --limit 128

The tables are those of the ModernBERT thesis: statements in each part of the split (Table 1), and their distribution
over papers (Table 3). For each encoder follow its tokens for the statements, as typed and with linearised formulas, and
the most frequent ones (Figures 2 and 3). Only tokenizers are read, no weights. ``--limit`` is the number of tokens
above which a text counts as cut.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("--papers", type=Path, required=True, help="papers.jsonl of mathamr text statements")
    parser.add_argument("--test-share", type=float, default=0.1, help="share of the statements that is tested")
    parser.add_argument(
        "--unseen-papers", type=int, help="number of papers kept for tests only; default: 15, or as many as fit"
    )
    parser.add_argument("--encoders", nargs="+", default=[], metavar="NAME", help="names or folders of encoders")
    parser.add_argument("--limit", type=int, default=512, help="tokens that an encoder reads")
    given = parser.parse_args(arguments)

    from graphs.errors import CorpusError
    from mathamr.text.linearize import linearize_text
    from mathamr.text.sources.papers import read_papers
    from mathamr.text.sources.splits import split_papers
    from mathamr.text.sources.statistics import distribution, split_counts, tokenized, tokenizer_of

    papers = list(read_papers(given.papers))
    sizes = {paper.paper_id: len(paper.statements) for paper in papers}
    typed = [statement.text for paper in papers for statement in paper.statements]
    if not typed:
        raise CorpusError(
            "has no statement; make it from other sources with mathamr text statements", path=given.papers
        )
    split = split_papers(sizes, test_share=given.test_share, unseen_papers=given.unseen_papers)
    parts = split_counts(papers, split)
    lines = ["| split | statements | share |", "|---|---|---|"]
    lines += [f"| {part} | {count:,} | {count / len(typed):.1%} |" for part, count in parts.items()]
    lines += ["", "| statements per paper | |", "|---|---|"]
    lines += [f"| {name} | {value:,.4g} |" for name, value in distribution(papers).items()]
    if given.encoders:
        texts = {"typed": typed, "linearised": [linearize_text(text) for text in typed]}
        found = {
            (name, form): tokenized(own, tokens_of, limit=given.limit)
            for name, tokens_of in ((name, tokenizer_of(name)) for name in given.encoders)
            for form, own in texts.items()
        }
        lines += ["", f"| encoder | formulas | tokens | mean | largest | above {given.limit} | different |"]
        lines += ["|---|---|---|---|---|---|---|"]
        lines += [
            f"| {name} | {form} | {one.tokens:,} | {one.mean:.1f} | {one.largest:,} | {one.cut:.1%} "
            f"| {len(one.distinct):,} |"
            for (name, form), one in found.items()
        ]
        first = found[given.encoders[0], "typed"].distinct
        for name in given.encoders:
            one = found[name, "typed"]
            shared = len(one.distinct & first)
            frequent = " ".join(token for token, _ in one.frequent)
            lines += ["", f"{name}: {shared:,} tokens also of {given.encoders[0]}; most frequent: {frequent}"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
