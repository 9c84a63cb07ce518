"""Show the results of a finished formula search: one HTML page with the query and the first formulas of some topics.

    python scripts/development/formula_matches.py outputs/formula_search/jobs/structure-seed42 \\
        --corpus arqmath --root D --years 2020 2021 \\
        --formulas outputs/shared/COLLECTION/formulas.db --out matches.html

Topics are chosen at regular steps of the scores of the job, from the lowest nDCG' to the highest. Each found formula is
shown with its grade. Whichever system found it, its common part with the query is aligned by :mod:`mathamr.structure`
and coloured in both. Symbols are weighted by their rarity among the formulas of the page, so a common part may differ
from that in a large index. The page is one file that loads nothing else; browsers draw its MathML.

Exit codes: 0 written; 2 an error, with a message.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of

if TYPE_CHECKING:
    from graphs.corpus.corpus import Corpus
    from mathamr.evaluation.runs import Hit
    from mathamr.structure.matching import Match

_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1c1f24; }
table { border-collapse: collapse; width: 100%; }
td { padding: 0.4rem 0.8rem; border-top: 1px solid #d9dce1; vertical-align: top; }
math { font-size: 1.15rem; }
math :is(mi, mn, mo, mtext) { color: #767d87; }
.equal:is(mi, mn, mo, mtext), .renamed:is(mi, mn, mo, mtext), .changed:is(mi, mn, mo, mtext) { background: #eef3fa; }
math .equal, b.equal { color: #1c1f24; }
math .renamed, b.renamed { color: #1f4e8c; font-weight: 700; }
math .changed, b.changed { color: #a3161a; border-bottom: 2px solid; }
.grade { white-space: nowrap; }
"""
_LEGEND = (
    '<p>Symbols: <b class="equal">equal</b>, <b class="renamed">renamed</b>, '
    '<b class="changed">another number or letter</b>; all others did not match.</p>'
)


@dataclass(frozen=True)
class FoundFormula:
    """A result: its rank from 1, the formula and its score, its grade ("" unjudged), and its match with the query."""

    rank: int
    hit: Hit
    grade: str
    match: Match | None


@dataclass(frozen=True)
class ShownTopic:
    """A topic with its nDCG', and its first results."""

    topic_id: str
    ndcg: float
    results: Sequence[FoundFormula]


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    parser.add_argument("job", type=Path, help="folder of a finished job of Task 2")
    add_corpus(parser)
    parser.add_argument("--formulas", type=Path, help="formulas.db: published trees and visual ids")
    parser.add_argument("--years", type=int, nargs="*", default=[], help="years of the topics, e.g. 2020 2021")
    parser.add_argument("--topics", type=int, default=20, help="number of topics")
    parser.add_argument("--results", type=int, default=5, help="formulas of each topic")
    parser.add_argument("--out", type=Path, required=True, help="output page")
    given = parser.parse_args(arguments)
    scores = read_scores(given.job / "per_topic-task2.csv")
    ordered = sorted(scores, key=lambda topic: (scores[topic], topic))
    count = min(given.topics, len(ordered))
    shown_scores = [ordered[round(place * (len(ordered) - 1) / max(count - 1, 1))] for place in range(count)]
    files = given.formulas, given.job / "run-task2.tsv"
    topics = shown_topics(
        corpus_of(given), given.years, *files, {name: scores[name] for name in shown_scores}, given.results
    )
    given.out.write_text(page(topics, given.job.name), encoding="utf-8")
    return f"{given.out}: {len(topics)} topics"


def read_scores(path: Path) -> dict[str, float]:
    """Return the nDCG' of each topic; raise a ``StoreError`` for a file that is no table of scores."""
    from graphs.errors import StoreError

    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {row["topic"]: float(row["ndcg_prime"]) for row in csv.DictReader(file)}
    except (OSError, KeyError, ValueError) as error:
        raise StoreError(f"no scores of a finished job of Task 2: {error}", path=path) from error


def shown_topics(
    corpus: Corpus,
    years: Sequence[int],
    formulas_db: Path | None,
    run: Path,
    shown_scores: dict[str, float],
    results: int,
) -> list[ShownTopic]:
    """Return the topics with the first results of a run.

    Args:
        formulas_db: trees and visual ids; None: trees come from the LaTeX, and each formula has its own visual id.
        shown_scores: nDCG' of each topic, in the order of the page.
        results: number of formulas of each topic.
    """
    from graphs.corpus.corpus import benchmark
    from graphs.corpus.post import Post
    from graphs.corpus.text.placeholders import extract
    from graphs.formulas.store import FormulaStore
    from graphs.formulas.tree import ParsedFormula
    from graphs.graph.graph_maker import FormulaTrees
    from mathamr.default_settings import values
    from mathamr.evaluation.runs import qrels_of, read_run
    from mathamr.retrieval.lexical import query_formula
    from mathamr.structure.index import StructureIndex
    from mathamr.structure.matching import match_of
    from mathamr.structure.scoring import StructureConfig

    trees, published = FormulaTrees(formulas_db), benchmark(corpus)
    queries = {
        topic.topic_id: query_formula(topic, trees.of)
        for topic in published.topics(2, years)
        if topic.topic_id in shown_scores
    }
    rankings = read_run(run, task=2).rankings
    found = {topic: rankings.get(topic, [])[:results] for topic in shown_scores}
    names = list(dict.fromkeys(hit.doc_id for hits in found.values() for hit in hits))
    places = {hit.post_id for hits in found.values() for hit in hits}
    known: dict[str, ParsedFormula] = {}
    for post in corpus.posts():
        if isinstance(post, Post) and post.post_id in places:
            formulas = extract(post).formulas
            known |= zip((formula.formula_id for formula in formulas), trees.of(formulas), strict=True)
    visual_ids = {name: name for name in names}
    if formulas_db is not None:
        with FormulaStore.open(formulas_db) as store:
            visual_ids = store.visual_ids(names)
    indexed = [known.get(name, ParsedFormula(None, None)) for name in names]
    index = StructureIndex.build(indexed, StructureConfig(**values("structure")))
    qrels = qrels_of(published.judgments(2, years))
    shown = []
    for topic, ndcg in shown_scores.items():
        query = queries.get(topic)
        own = [
            FoundFormula(
                rank,
                hit,
                str(qrels.get(topic, {}).get(visual_ids.get(hit.doc_id, ""), "")),
                None if query is None else match_of(index, query, names.index(hit.doc_id)),
            )
            for rank, hit in enumerate(found[topic], 1)
        ]
        shown.append(ShownTopic(topic, ndcg, own))
    return shown


def page(topics: Sequence[ShownTopic], name: str) -> str:
    """Return the page; everything that a collection says is escaped."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(name)}</title><style>{_STYLE}</style>'
    parts = [head, f"<h1>{escape(name)}</h1>", _LEGEND]
    for topic in topics:
        parts.append(f"<h2>{escape(topic.topic_id)}: nDCG' {topic.ndcg:.3f}</h2><table>")
        parts += [_row(result) for result in topic.results]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _row(result: FoundFormula) -> str:
    from mathamr.structure.drawing import as_markup

    grade = f"grade {escape(result.grade)}" if result.grade else "not judged"
    first = f'{result.rank}. <span class="grade">{grade}</span><br>score {result.hit.score:.3f}'
    if result.match is None:
        return f"<tr><td>{first}</td><td>formula {escape(result.hit.doc_id)}, not drawn</td></tr>"
    both = f"{as_markup(result.match.query)}<br>{as_markup(result.match.formula)}"
    return f"<tr><td>{first}</td><td>{both}<br>{escape(str(result.match))}</td></tr>"


if __name__ == "__main__":
    sys.exit(main())
