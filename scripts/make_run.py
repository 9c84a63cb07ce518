"""Write a run file from an index, from BM25 or from other runs; mathamr evaluate scores it.

    mathamr rank index --index index --corpus arqmath --root /data/ARQMath --years 2020 --out task1.tsv
    mathamr rank index ... --task 2 --formulas formulas.db --out task2.tsv
    mathamr rank bm25 --corpus arqmath --root /data/ARQMath --years 2020 2021 --out bm25.tsv
    mathamr rank bm25 ... --by formulas --formulas formulas.db --task 2 --out bm25_task2.tsv
    mathamr rank fuse --task 1 bm25.tsv task1.tsv --out rrf.tsv
    mathamr rank fuse --task 1 bm25.tsv task1.tsv --tune qrel_task1_2020.tsv --out mixed.tsv

``index`` searches an index of mathamr index with the topics of a collection. Task 1 finds answers. Task 2 finds
formulas: the query is the topic's formula vector, encoded with its whole post; of formulas with the same visual id,
only the best is kept. ``--context 0.2`` adds a fifth of the similarity of the posts around the two formulas. The index
names the model, vocabulary and AMR parser. The command parses the topics, with the published formula trees of
``--formulas``; ``--graphs-db`` names existing graphs of the topics instead.

``bm25`` needs no model. ``--by text`` compares words, LaTeX commands, letters and numbers; ``--by formulas`` compares
pairs of symbols in the operator and layout trees, with the edges between them. In Task 1 the documents are answers, in
Task 2 the formulas of questions and answers, one for each visual id.

``fuse`` without weights is reciprocal rank fusion, k = 60. With ``--weights`` it is the weighted mean of the scores,
scaled to 0 ... 1 for each run and topic. ``--tune`` finds the weights of two runs of Task 1 with the highest nDCG' on
the topics of these qrels: report the result on other topics only. In Task 2, formulas with the same visual
id (``--visual-ids``) are one document.

Exit codes: 0 written; 2 an error, with a message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of
from graphs.counts import counted

if TYPE_CHECKING:
    from graphs.corpus.corpus import Corpus
    from mathamr.evaluation.runs import Run


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    index = commands.add_parser("index", help="search an index of mathamr index")
    index.add_argument("--index", type=Path, required=True, help="folder of the index")
    index.add_argument("--model", type=Path, help="checkpoint that must have made the index (optional check)")
    index.add_argument("--strategy", default="maxsim", help="Task 1: single_vector, doc_vn_maxsim or maxsim")
    index.add_argument(
        "--approximate", action="store_true", help="approximate search (backends approximate and qdrant)"
    )
    index.add_argument(
        "--pool", type=int, default=1000, help="candidates that doc_vn_maxsim and the backend approximate rerank"
    )
    index.add_argument("--context", type=float, default=0.0, help="Task 2: weight of the formulas' posts")
    index.add_argument("--graphs-db", type=Path, help="collection.db with graphs of the topics")
    index.add_argument("--device", default="auto", help="auto, cpu or cuda")
    index.set_defaults(run=of_index)
    bm25 = commands.add_parser("bm25", help="search a collection without a model")
    bm25.add_argument("--by", choices=("text", "formulas"), default="text")
    bm25.add_argument("--stem", choices=("none", "porter", "snowball"), default="none", help="stemmer of words")
    bm25.add_argument("--method", choices=("lucene", "robertson", "atire", "bm25+", "bm25l"), default="lucene")
    bm25.set_defaults(run=of_bm25)
    for one, name in ((index, "mathamr-plus"), (bm25, "bm25")):
        add_corpus(one)
        one.add_argument("--task", type=int, choices=(1, 2), default=1)
        one.add_argument("--years", type=int, nargs="*", default=[], help="years of the topics, e.g. 2020 2021")
        one.add_argument("--formulas", type=Path, help="formulas.db: published trees, and visual ids")
        one.add_argument("--k", type=int, default=1000, help="results for each topic")
        one.add_argument("--name", default=name, help="last column of the run")
    fuse = commands.add_parser("fuse", help="fuse run files of one task")
    fuse.add_argument("runs", type=Path, nargs="+", help="run files, two or more")
    fuse.add_argument("--task", type=int, choices=(1, 2), required=True)
    fuse.add_argument("--k", type=int, help="constant of reciprocal rank fusion; default: 60")
    fuse.add_argument("--weights", type=float, nargs="+", help="weight of each run")
    fuse.add_argument("--tune", type=Path, nargs="+", help="qrels that select the weights of two runs")
    fuse.add_argument("--visual-ids", type=Path, help="Task 2: formula TSV, or a folder or zip of them")
    fuse.add_argument("--name", default="fused", help="last column of the run")
    fuse.set_defaults(run=of_runs)
    for one in (index, bm25, fuse):
        one.add_argument("--out", type=Path, required=True, help="run file")
    given = parser.parse_args(arguments)
    if given.task == 1 and getattr(given, "visual_ids", None) is not None:
        parser.error("--visual-ids is an option of Task 2; Task 1 fuses posts by their ids; leave it out")
    if given.task == 1 and getattr(given, "context", 0.0):
        parser.error("--context is an option of Task 2, which finds formulas; add --task 2, or leave it out")
    return given.run(given)


def of_index(given: argparse.Namespace) -> str:
    """Search an index with topics."""
    from graphs.corpus.corpus import benchmark
    from graphs.errors import ConfigError
    from graphs.stores.collection import Collection
    from mathamr.evaluation.runs import write_run
    from mathamr.retrieval.index import Strategy
    from mathamr.search_index import is_of_system
    from mathamr.stages.console import Console
    from mathamr.stages.data.identity import check_same_topics
    from mathamr.stages.retrieval.index_runs import IndexSearch, search_index

    if is_of_system(given.index):
        raise ConfigError(
            f"{given.index}: is not the index of a graph model, which mathamr rank index needs; the experiment that "
            "it was made from has a run file for each condition"
        )
    settings = IndexSearch(
        given.task,
        Strategy(given.strategy, exact=not given.approximate, pool=given.pool),
        given.k,
        given.context,
        given.model,
        given.formulas,
        given.graphs_db,
        given.device,
        given.name,
    )
    corpus = corpus_of(given)
    if given.graphs_db is not None:
        with Collection(given.graphs_db) as graphs:
            check_same_topics(graphs, corpus)
    topics = benchmark(corpus).topics(given.task, given.years)
    console = Console()
    run, seconds = search_index(given.index, topics, settings, console)
    write_run(run, given.out)
    if given.task == 1 and _is_unjudged(run, corpus, given.years):
        console.say(
            f"note: the collection judges none of the results; check that {given.index} is an index of this "
            "collection (--corpus, --root)"
        )
    count, results = len(run.rankings), sum(map(len, run.rankings.values()))
    return (
        f"{given.out}: Task {given.task}, {counted(count, 'topic')}, {counted(results, 'result')}; search "
        f"{seconds:.2f} s, {count / max(seconds, 1e-9):,.0f} queries/s"
    )


def _is_unjudged(run: Run, corpus: Corpus, years: Sequence[int]) -> bool:
    """Return whether the collection has judgments of Task 1, but for no result of ``run``."""
    from graphs.corpus.corpus import benchmark
    from graphs.errors import CorpusError
    from mathamr.evaluation.metrics import judged_results
    from mathamr.evaluation.runs import qrels_of

    try:
        qrels = qrels_of(benchmark(corpus).judgments(1, years))
    except CorpusError:  # topics that are not judged yet
        return False
    return bool(qrels) and not judged_results(run, qrels)


def of_bm25(given: argparse.Namespace) -> str:
    """Search a collection with BM25."""
    from graphs.corpus.corpus import benchmark
    from mathamr.evaluation.runs import Run, check_k, write_run
    from mathamr.retrieval.bm25 import Weighting
    from mathamr.retrieval.lexical import LexicalIndex, Tokens
    from mathamr.stages.console import Console

    check_k(given.k)
    corpus, console = corpus_of(given), Console()
    tokens, weighting = Tokens(given.by, given.formulas, stem=given.stem), Weighting(method=given.method)
    with console.stage(f"reading {given.by}", unit="posts") as advance:
        options = {"formulas_db": given.formulas, "weighting": weighting, "progress": advance}
        index = LexicalIndex.build(corpus.posts(), tokens, given.task, **options)
    topics = benchmark(corpus).topics(given.task, given.years)
    results, seconds = index.search(topics, given.k)
    for topic_id in (topic.topic_id for topic in topics if topic.topic_id not in results):
        console.say(f"topic {topic_id}: its query formula is not in its post; scores 0")
    write_run(Run.from_results(given.name, results, task=given.task), given.out)
    return f"{given.out}: Task {given.task}, {counted(len(results), 'topic')}; search {seconds:.2f} s"


def of_runs(given: argparse.Namespace) -> str:
    """Fuse run files."""
    from graphs.errors import ConfigError
    from mathamr.evaluation.runs import read_qrels, read_run, read_visual_ids, write_run
    from mathamr.stages.retrieval.fused_runs import fuse

    out, tables = given.out.resolve(), [] if given.visual_ids is None else [given.visual_ids]
    if out in [path.resolve() for path in (*given.runs, *(given.tune or ()), *tables)]:
        raise ConfigError(f"--out {given.out} is a file that is read, and would be replaced; name a new file")
    if out.parent in [path.resolve() for path in tables]:
        raise ConfigError(f"--out {given.out} lies in the folder of --visual-ids; name a file in another folder")
    tune = None if given.tune is None else read_qrels(*given.tune)
    runs = [read_run(path, task=given.task) for path in given.runs]
    visual_ids = None
    if given.visual_ids is not None:
        names = {hit.doc_id for run in runs for hits in run.rankings.values() for hit in hits}
        visual_ids = read_visual_ids(given.visual_ids, names)
    fused, tuned = fuse(runs, visual_ids, k=given.k, weights=given.weights, tune=tune, name=given.name)
    write_run(fused, given.out)
    if tune is None or tuned is None:
        return ""
    first, second = tuned
    return f"weights {first:.2f} and {second:.2f}, tuned on {counted(len(tune), 'topic')}: report on others"


if __name__ == "__main__":
    sys.exit(main())
