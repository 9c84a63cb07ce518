"""Make of a collection what scripts/train.py learns from: preprocessed.db, pairs.tsv, and hard negatives if wanted.

    python scripts/build_collection.py --data arqmath --root arqmath --formulas formulas.db --out collection.db
    python scripts/preprocess.py --data arqmath --root arqmath --collection collection.db --out work
    python scripts/train.py --graphs work/preprocessed.db --pairs work/pairs.tsv --out model

    python scripts/preprocess.py ... train.positives=all graph.connectivity=sequential
    python scripts/preprocess.py ... train.negatives=3 train.negative_source=bm25    # also OUT/negatives.tsv

``preprocessed.db`` holds the graphs of ``collection.db`` as integers, with their vocabulary and the virtual nodes that
the group ``graph`` of ``conf/`` asks for (``graphs/stores/store.py``): another connectivity, say, is another file.
``pairs.tsv`` has a question and an answer in each line, chosen by ``train.positives`` (``graphs/corpus/pairs.py``), and
``negatives.tsv`` a question and an answer of another one, best ranked first (``mathamr/negatives/mining.py``). Topics
count for no vocabulary and stand in no pair, but get their tensors. The same command goes on where it was stopped.

Exit codes: 0 made; 2 a message says what is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from train import read_groups  # type: ignore[import-not-found]  # neighbours: scripts are no package

from graphs.corpus.corpus import NAMES, open_corpus
from graphs.corpus.pairs import training_pairs
from graphs.errors import MathAMRError
from graphs.graph import mathamr_plus, vocabulary
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores import store
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from graphs.whole_file import write_whole
from mathamr.negatives import mining
from mathamr.stages.console import Console
from mathamr.training.config import TrainConfig


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--data", choices=sorted(NAMES), required=True, help="form of the collection")
    parser.add_argument("--root", type=Path, help="folder of the collection, where it has one")
    parser.add_argument("--collection", type=Path, required=True, help="collection.db, its graphs")
    parser.add_argument("--out", type=Path, required=True, help="folder of what is made")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="of the groups graph and train")
    given = parser.parse_args(arguments)
    try:
        make(given.data, given.root, given.collection, given.out, given.workers, given.settings)
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def make(data: str, root: Path | None, collection: Path, out: Path, workers: int, overrides: Sequence[str]) -> None:
    """Write the files, and print what is in them."""
    graph, train = read_groups(overrides, "graph", "train")
    config = TrainConfig(**train)
    spec = VirtualNodeSpec(**{name: graph[name] for name in ("structure", "connectivity", "formulas")})
    corpus = open_corpus(data, root)
    pairs = training_pairs(corpus, config.positives, config.least_score)
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    with Collection(collection) as source:
        with console.stage("vocabulary", total=len(source), unit="graphs") as advance:
            rows = source.rows("question", "answer")
            counts = vocabulary.count(rows, mathamr_plus.decode, spec.formulas, workers=workers, progress=advance)
        words = Vocabulary.build(counts, size=graph["vocabulary_size"], number_threshold=graph["number_threshold"])
        with console.stage("graphs to tensors", total=len(source), unit="graphs") as advance:
            store.build(
                out / "preprocessed.db",
                source.rows(),
                mathamr_plus.decode,
                spec,
                words,
                source=str(source.meta["source"]),
                workers=workers,
                progress=advance,
            )
    graphs = GraphStore(out / "preprocessed.db")
    console.failures("graphs without tensors", Counter((f.stage, f.kind) for f in graphs.failures()))
    write_pairs(out / "pairs.tsv", ((pair.question_id, pair.answer_id) for pair in pairs))
    print(
        f"{out / 'preprocessed.db'}: {len(graphs):,} graphs, {words.num_labels:,} labels, "
        f"{words.num_relations} relations"
    )
    print(f"{out / 'pairs.tsv'}: {len(pairs):,} pairs of {len({pair.question_id for pair in pairs}):,} questions")
    (out / "negatives.tsv").unlink(missing_ok=True)  # of other settings
    if config.negatives and config.negative_source != "model":
        mined = mining.negatives_of(
            config, graphs, pairs, posts=corpus.posts, report=lambda record: print(mining.as_text(record))
        )
        assert isinstance(mined, dict)
        lines = [(question, post_id) for question, kept in mined.items() for post_id in kept]
        write_pairs(out / "negatives.tsv", lines)
        print(f"{out / 'negatives.tsv'}: {len(lines):,} hard negatives of {len(mined):,} questions")


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Two columns with a tab between, as scripts/train.py reads them."""
    write_whole(path, "".join(f"{first}\t{second}\n" for first, second in pairs))


if __name__ == "__main__":
    sys.exit(main())
