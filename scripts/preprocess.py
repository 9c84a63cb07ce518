"""Make the files that mathamr train reads from a collection: preprocessed.db, pairs.tsv and optional hard negatives.

    mathamr build graphs --corpus arqmath --root arqmath --formulas formulas.db --out collection.db
    mathamr build tensors --corpus arqmath --root arqmath --graphs-db collection.db --out work
    mathamr train --tensors work/preprocessed.db --pairs work/pairs.tsv --out model

    mathamr build tensors ... train.positives=all graph.connectivity=sequential
    mathamr build tensors ... train.negatives=3 train.negative_source=bm25    # also OUT/negatives.tsv

``preprocessed.db`` holds the graphs of ``collection.db`` as integers, with their vocabulary
(``graphs/stores/store.py``). Virtual nodes are added when graphs are loaded: ``graph.structure`` and
``graph.connectivity`` are written into the file as defaults for its readers, and the same command with other values
changes only these defaults. Another value of ``graph.formulas`` needs another file.
``pairs.tsv`` has a question and an answer in each line, chosen by ``train.positives`` (``graphs/corpus/pairs.py``),
``pairs.positives`` this setting, and ``negatives.tsv`` a question and an answer to another question, best ranked first
(``mathamr/negatives/mining.py``). Topics are in no pair and do not count for the vocabulary, but their tensors are
made. The same command resumes after any stop.

Exit codes: 0 made; 2 an error, with a message.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.command import command
from experiments.options import add_corpus, corpus_of, parser_of


@command
def main(arguments: Sequence[str] | None = None) -> str:
    parser = parser_of(__doc__)
    add_corpus(parser)
    parser.add_argument("--graphs-db", type=Path, required=True, help="collection.db")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--workers", type=int, default=1, help="number of converting processes")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of the groups graph and train")
    given = parser.parse_args(arguments)

    from experiments.configuration.composition import read_groups
    from mathamr.stages.console import Console
    from mathamr.stages.learning.training_files import prepare_training
    from mathamr.stages.settings import GraphConfig
    from mathamr.training.config import TrainConfig

    graph, train = read_groups(given.settings, "graph", "train")
    return prepare_training(
        corpus_of(given),
        given.graphs_db,
        given.out,
        GraphConfig(**graph),
        TrainConfig(**train),
        Console(),
        workers=given.workers,
    )


if __name__ == "__main__":
    sys.exit(main())
